package diagnosis

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/joiner-sh/joiner/internal/diagnosis/fix"
)

func readyChecks() []Check {
	return []Check{
		{ID: "CNI-1", Title: "the network plug-in comes up", Layer: LayerReady, judge: judgePlugin},
		{ID: "CNI-2", Title: "the network plug-in reaches the API server's service", Layer: LayerReady, judge: judgeServiceAddress},
		{ID: "IMDS-1", Title: "pods that need the instance's metadata reach it", Layer: LayerReady, judge: judgeHops},
		{ID: "READY-1", Title: "devices that were asked for appear", Layer: LayerReady, judge: judgeDevices},
		{ID: "READY-2", Title: "startup taints are taken away", Layer: LayerReady, judge: judgeStartupTaints},
		{ID: "READY-3", Title: "nodes become ready in good time", Layer: LayerReady, Fallback: true, judge: judgeSlow},
	}
}

// isOfDaemon reports whether a pod is of a DaemonSet of the system. A pod of a tenant may name any owner.
func (d *desk) isOfDaemon(p Pod, names ...string) bool {
	s, ok := d.daemon(names...)
	return slices.Contains(names, strings.TrimPrefix(p.Owner, "DaemonSet/")) && (p.Namespace == systemNamespace || ok && p.Namespace == s.Namespace)
}

// podsOn are pods of a DaemonSet that do not run on a node.
func (d *desk) podsOn(node string, daemons ...string) []Pod {
	var out []Pod
	for _, p := range d.Pods.Value {
		if p.Node == node && d.isOfDaemon(p, daemons...) {
			out = append(out, p)
		}
	}
	return out
}

// judgePlugin: a node without network is not ready, and says so.
func judgePlugin(d *desk) []Finding {
	if gap, ok := d.Nodes.gap("the nodes"); ok {
		return []Finding{gap}
	}
	_, daemon := d.daemon("aws-node", "cilium", "calico-node", "kube-flannel-ds", "weave-net")
	for _, n := range d.Nodes.Value {
		if n.Ready || !strings.Contains(n.Message, "cni plugin not initialized") && !strings.Contains(n.Message, "NetworkPluginNotReady") {
			continue
		}
		if age := d.At.Sub(n.Created); age < time.Minute && !n.Created.IsZero() {
			continue // it may still start
		}
		f := broken("node "+n.Name, Likely, "node %s is there and not ready: its network plug-in has not come up", n.Name).with("its condition Ready: "+quote(n.Message)).
			explaining(NetworkPlugin).mend(podsOn(n.Name, fix.Text("-n"), fix.Text("kube-system")).With("the plug-in's pod: image, role, restarts"),
			fix.Kubectl(fix.Text("-n"), fix.Text("kube-system"), fix.Text("logs"), fix.Text("daemonset/aws-node"), fix.Text("-c"), fix.Text("aws-node"), fix.Text("--tail"), fix.Text("50")))
		if d.Daemons.Known() && !daemon {
			f.Cause = fmt.Sprintf("node %s is not ready: the cluster has no network plug-in", n.Name)
			if !slices.ContainsFunc(d.Nodes.Value, func(n Node) bool { return n.Ready }) { // the message of a single node is no proof
				f.Certainty = Certain
			}
			f = f.mend(fix.Call("eks", "create-addon", d.inRegion(), d.ofCluster(), fix.P("--addon-name", fix.Text("vpc-cni"))))
		}
		if slices.ContainsFunc(judgeServiceAddress(d), func(f Finding) bool { return f.Verdict == Broken }) {
			f.Follows = "CNI-2"
		}
		for _, p := range d.podsOn(n.Name, "aws-node", "cilium", "calico-node") {
			f = f.with("pod " + p.String() + ": " + strings.Join(p.Messages[:min(1, len(p.Messages))], ""))
		}
		return []Finding{f} // one finding is enough: the nodes have the same problem
	}
	return nil
}

// judgeServiceAddress: ipamd talks to the service's address, which kube-proxy makes work.
func judgeServiceAddress(d *desk) []Finding {
	sights, certainty := lines(d.of("", ServiceTimeout)), Likely // whoever runs on an instance writes its console
	for _, p := range d.Pods.Value {
		if d.isOfDaemon(p, "aws-node") {
			for _, m := range slices.Concat(p.Messages, p.Events) {
				if strings.Contains(m, "i/o timeout") {
					sights, certainty = append(sights, "pod "+p.String()+": "+quote(m)), Certain
				}
			}
		}
	}
	if gap, ok := d.Pods.gap("the pods that do not run"); ok && len(sights) == 0 {
		return []Finding{gap}
	}
	if len(sights) == 0 {
		return nil
	}
	if _, ok := d.daemon("kube-proxy", "cilium"); d.Daemons.Known() && !ok {
		return []Finding{broken("", certainty, "the network plug-in cannot reach the API server's service address, because the cluster has no kube-proxy").with(sights...).
			explaining(ServiceTimeout, NetworkPlugin).mend(fix.Call("eks", "create-addon", d.inRegion(), d.ofCluster(), fix.P("--addon-name", fix.Text("kube-proxy"))))}
	}
	return []Finding{broken("", Likely, "the network plug-in cannot reach the API server's service address").with(sights...).explaining(ServiceTimeout, NetworkPlugin).
		mend(fix.Kubectl(fix.Text("-n"), fix.Text("kube-system"), fix.Text("get"), fix.Text("pods"), fix.Text("-l"), fix.Text("k8s-app=kube-proxy"), fix.Text("-o"), fix.Text("wide")).
			With("it must run on the node, and the security groups let nodes reach port 443"))}
}

// needMetadata returns the owners whose pods use the instance metadata service for region or credentials, unless they have another source.
func needMetadata() []string {
	return []string{
		"ebs-csi-node", "efs-csi-node", "fsx-csi-node", "s3-csi-node", "aws-load-balancer-controller", "cloudwatch-agent",
		"aws-for-fluent-bit", "fluent-bit",
	}
}

// mayNeedMetadata reports whether the owner has the name of a program that uses the instance metadata service.
func (p Pod) mayNeedMetadata() bool {
	_, name, _ := strings.Cut(p.Owner, "/")
	return slices.ContainsFunc(needMetadata(), func(n string) bool { return strings.HasPrefix(name, n) })
}

// isAboutMetadata reports whether a pod's message names the instance metadata service.
func isAboutMetadata(message string) bool {
	return strings.Contains(message, "169.254.169.254") || strings.Contains(message, "IMDS") || strings.Contains(message, "instance metadata")
}

// judgeHops: an answer of the metadata service may take one hop, and reaches no pod that is not on the host's network.
func judgeHops(d *desk) []Finding {
	if gap, ok := d.Classes.gap("the EC2NodeClasses"); ok {
		return []Finding{gap}
	}
	if gap, ok := d.Pods.gap("the pods that do not run"); ok {
		return []Finding{gap}
	}
	var out []Finding
	for _, c := range d.Classes.Value {
		if c.HopLimit != 1 {
			continue
		}
		for _, p := range d.Pods.Value {
			said := slices.Concat(p.Messages, p.Events)
			known, i := p.mayNeedMetadata(), slices.IndexFunc(said, isAboutMetadata)
			starting := i < 0 && d.At.Sub(p.Created) < slowly
			if p.Node == "" || p.Host || !known && i < 0 || starting || !d.isOf(p.Node, c.Name) {
				continue
			}
			if !d.isOfSystem(p) { // what it says may be untrue, and more hops open the metadata to all pods
				out = append(out, suspicious("pod "+p.String(), Possible, "the pod does not start, and may need the instance metadata service, which pods on nodes of EC2NodeClass %s cannot reach: give its service account a role of its own", c.Name).
					with(said[:min(1, len(said))]...))
				continue
			}
			f := suspicious("EC2NodeClass "+c.Name, Possible, "pod %s does not come up: it needs the metadata service, whose answers may take %d hop, and pods are two away", p.String(), c.HopLimit).
				with(fmt.Sprintf("pod %s of %s has waited on node %s for %s", p.String(), p.Owner, p.Node, age(d.At.Sub(p.Created)))).with(said[:min(1, len(said))]...).
				mend(fix.Merge(fix.NodeClass(c.Name), fix.At(fix.Number(2), "spec", "metadataOptions", "httpPutResponseHopLimit")).With("or give the pod a role of its own"))
			if i >= 0 {
				f.Verdict, f.Certainty = Broken, Likely
				f.Evidence = []string{quote(said[i])}
			}
			out = append(out, f)
			break
		}
	}
	return out
}

// isOf reports whether a node was bought for a class.
func (d *desk) isOf(node, class string) bool {
	return slices.ContainsFunc(d.Nodes.Value, func(n Node) bool {
		return n.Name == node && slices.ContainsFunc(d.Pools.Value, func(p Pool) bool { return p.Name == n.Pool && p.Class == class })
	})
}

// stuck are the claims that registered and are not initialized, with the message that says why.
func (d *desk) stuck() []Claim {
	return slices.DeleteFunc(slices.Clone(d.Claims.Value), func(c Claim) bool {
		return c.Deleting || condition(c.Conditions, "Registered").Status != "True" || condition(c.Conditions, "Initialized").Status == "True"
	})
}

// judgeDevices: a device plug-in that does not run tells the kubelet of no devices.
func judgeDevices(d *desk) []Finding {
	if gap, ok := d.Claims.gap("the NodeClaims"); ok {
		return []Finding{gap}
	}
	var out []Finding
	for _, c := range d.stuck() {
		i := condition(c.Conditions, "Initialized")
		isNew := d.At.Sub(condition(c.Conditions, "Registered").Since) < announcing
		if i.Reason != "ResourceNotRegistered" && !strings.Contains(strings.ToLower(i.Message), "resource") || isNew || d.awaitsPlugin(c) {
			continue
		}
		f := broken("NodeClaim "+c.Name, Likely, "the node does not have the device yet that its instance type has and pods asked for: no device plug-in for it runs there").
			with("condition Initialized: " + quote(i.Message))
		out = append(out, f.mend(d.devicePlugin(i.Message)))
	}
	return out
}

// announcing is how long a running device plug-in takes to report its devices.
const announcing = 10 * time.Second

// awaitsPlugin reports whether a device plug-in is on its way to the node of a claim: it has a pod there that does not run yet.
func (d *desk) awaitsPlugin(c Claim) bool {
	n, ok := d.nodeOf(c)
	return ok && slices.ContainsFunc(d.Pods.Value, func(p Pod) bool {
		name, isDaemon := strings.CutPrefix(p.Owner, "DaemonSet/")
		return p.Node == n.Name && isDaemon && isDevicePlugin(p.Namespace, name) && d.At.Sub(p.Created) < slowly
	})
}

// devicePlugin is the step by which the plug-in for a device comes to all nodes: one that is there tolerates their taints, or it is installed.
func (d *desk) devicePlugin(message string) fix.Step {
	vendor := "device"
	for _, known := range []string{"nvidia", "neuron", "efa", "amd"} {
		if strings.Contains(message, known) {
			vendor = known
			break
		}
	}
	i := slices.IndexFunc(d.Daemons.Value, func(s DaemonSet) bool { return strings.Contains(s.Name, vendor) && isDevicePlugin(s.Namespace, s.Name) })
	other := slices.IndexFunc(d.Daemons.Value, func(s DaemonSet) bool {
		return strings.Contains(s.Name, vendor) && strings.Contains(s.Name, "device-plugin")
	})
	switch {
	case i < 0 && other >= 0: // it may belong to a tenant
		s := d.Daemons.Value[other]
		return fix.Show("get", fix.DaemonSet(s.Namespace, s.Name), "-o", "yaml").With("if it is the cluster's plug-in, it must tolerate the pool's taints; if not, install one")
	case i >= 0:
		s := d.Daemons.Value[i]
		return fix.JSONPatch(fix.DaemonSet(s.Namespace, s.Name), fix.Fields{"op": fix.Text("add"), "path": fix.Text("/spec/template/spec/tolerations"),
			"value": fix.List{fix.At(fix.Text("Exists"), "operator")}}).With("or the pool's taints alone")
	case vendor == "nvidia":
		return fix.Apply("https://raw.githubusercontent.com/NVIDIA/k8s-device-plugin/v0.17.1/deployments/static/nvidia-device-plugin.yml").With("or the GPU operator")
	}
	return fix.Kubectl(fix.Text("get"), fix.Text("daemonsets"), fix.Text("-A")).With("one for the device must be installed, and tolerate the pool's taints")
}

// podsOn is the step that shows the pods of a node.
func podsOn(node string, where ...fix.Value) fix.Step {
	return fix.Kubectl(append(where, fix.Text("get"), fix.Text("pods"), fix.Text("-o"), fix.Text("wide"), fix.Text("--field-selector"), fix.Join(fix.Text("spec.nodeName="), fix.Name(node)))...)
}

// judgeStartupTaints: somebody has to take them away.
func judgeStartupTaints(d *desk) []Finding {
	if gap, ok := d.Claims.gap("the NodeClaims"); ok {
		return []Finding{gap}
	}
	var out []Finding
	for _, c := range d.stuck() {
		node, isNode := d.nodeOf(c)
		p := slices.IndexFunc(d.Pools.Value, func(p Pool) bool { return p.Name == c.Pool })
		if !isNode || p < 0 || !node.Ready {
			continue
		}
		for _, t := range d.Pools.Value[p].Startup {
			if !slices.ContainsFunc(node.Taints, func(has Taint) bool { return has.Key == t.Key && has.Effect == t.Effect }) || d.At.Sub(node.Created) < Lingering {
				continue
			}
			out = append(out, broken("NodePool "+c.Pool, Likely, "the startup taint %s of NodePool %s is still on its nodes: whoever should take it away does not run there", t.Key, c.Pool).
				with("node "+node.Name+", "+age(d.At.Sub(node.Created))+" old").
				mend(fix.Untaint(node.Name, fix.LabelKey(t.Key), fix.TaintEffect(t.Effect)),
					podsOn(node.Name, fix.Text("-A")).With("the DaemonSet that takes %s away must tolerate the pool's taints", t.Key)))
		}
	}
	return slices.CompactFunc(out, func(a, b Finding) bool { return a.Cause == b.Cause })
}

// Lingering is how long a startup taint may stay, because its remover must first be pulled and started.
const Lingering = 75 * time.Second

// slowly is after how long a missing initialization is reported.
const slowly = 3 * time.Minute

func age(d time.Duration) string { return d.Truncate(time.Second).String() }

// judgeSlow knows that it takes long, and not why.
func judgeSlow(d *desk) []Finding {
	if gap, ok := d.Claims.gap("the NodeClaims"); ok {
		return []Finding{gap}
	}
	var out []Finding
	for _, c := range d.Claims.Value {
		launched, registered := condition(c.Conditions, "Launched"), condition(c.Conditions, "Registered")
		switch {
		case c.Deleting, condition(c.Conditions, "Initialized").Status == "True":
		case registered.Status == "True" && d.At.Sub(registered.Since) > slowly && !registered.Since.IsZero():
			i := condition(c.Conditions, "Initialized")
			out = append(out, suspicious("NodeClaim "+c.Name, Possible, "its node registered %s ago and still takes no pods: it is not initialized", age(d.At.Sub(registered.Since))).
				with(quote(i.Reason+": "+i.Message)).explaining(NetworkPlugin).mend(fix.Show("describe", fix.NodeClaim(c.Name))))
		case launched.Status == "True" && d.At.Sub(launched.Since) > slowly && !launched.Since.IsZero():
			f := suspicious("NodeClaim "+c.Name, Possible, "its instance was launched %s ago and has not become a node, and its console shows no known error", age(d.At.Sub(launched.Since))).
				with(d.consoleLine(instanceOf(c.ProviderID)), quote(registered.Reason+": "+registered.Message)).
				mend(fix.Call("ec2", "get-console-output", d.inRegion(), fix.P("--latest"), fix.P("--output", fix.Text("text")), fix.P("--instance-id", fix.Instance(instanceOf(c.ProviderID)).Or("ID"))).
					With("docs/checks/READY-3.md says what to look for in it"))
			if len(d.sightings) == 0 {
				out = append(out, f)
			}
		}
	}
	return out
}

// consoleLine says what was read of the console of an instance.
func (d *desk) consoleLine(id string) string {
	i := slices.IndexFunc(d.Instances.Value, func(i Instance) bool { return i.ID == id })
	switch {
	case id == "":
		return "the NodeClaim has no provider ID"
	case i < 0:
		return "EC2 lists no instance " + id
	}
	console := d.Instances.Value[i].Console
	if gap, ok := console.gap("the console of instance " + id); ok {
		return gap.Cause
	}
	return fmt.Sprintf("console of %s: %d lines, and none of them has a known error", id, strings.Count(console.Value, "\n"))
}

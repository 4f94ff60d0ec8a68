package diagnosis

import (
	"fmt"
	"slices"
	"strings"
	"time"
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

// podsOn are pods of a DaemonSet that do not run on a node.
func (d *desk) podsOn(node string, daemons ...string) []Pod {
	var out []Pod
	for _, p := range d.Pods.Value {
		if p.Node == node && slices.Contains(daemons, strings.TrimPrefix(p.Owner, "DaemonSet/")) {
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
	daemon := slices.ContainsFunc(d.Daemons.Value, func(s DaemonSet) bool {
		return slices.Contains([]string{"aws-node", "cilium", "calico-node", "kube-flannel-ds", "weave-net"}, s.Name)
	})
	for _, n := range d.Nodes.Value {
		if n.Ready || !strings.Contains(n.Message, "cni plugin not initialized") && !strings.Contains(n.Message, "NetworkPluginNotReady") {
			continue
		}
		if age := d.At.Sub(n.Created); age < time.Minute && !n.Created.IsZero() {
			continue // it is on its way
		}
		f := broken("node "+n.Name, Likely, "node %s is there and not ready: its network plug-in has not come up", n.Name).with("its condition Ready: "+quote(n.Message)).
			explaining(NetworkPlugin).mend("kubectl -n kube-system get pods -o wide --field-selector spec.nodeName="+n.Name+"   # the plug-in's pod: image, role, restarts",
			"kubectl -n kube-system logs daemonset/aws-node -c aws-node --tail 50")
		if d.Daemons.Known() && !daemon {
			f.Cause, f.Certainty = fmt.Sprintf("node %s is not ready: the cluster has no network plug-in", n.Name), Certain
			f.Fix = fmt.Sprintf("aws eks create-addon --region %s --cluster-name %s --addon-name vpc-cni", d.Region, d.Name)
		}
		if slices.ContainsFunc(judgeServiceAddress(d), func(f Finding) bool { return f.Verdict == Broken }) {
			f.Follows = "CNI-2"
		}
		for _, p := range d.podsOn(n.Name, "aws-node", "cilium", "calico-node") {
			f = f.with("pod " + p.String() + ": " + strings.Join(p.Messages[:min(1, len(p.Messages))], ""))
		}
		return []Finding{f} // one tells it all: they are alike
	}
	return nil
}

// judgeServiceAddress: ipamd talks to the service's address, which kube-proxy makes work.
func judgeServiceAddress(d *desk) []Finding {
	sights := lines(d.of("", ServiceTimeout))
	for _, p := range d.Pods.Value {
		if strings.HasSuffix(p.Owner, "/aws-node") {
			for _, m := range p.Messages {
				if strings.Contains(m, "i/o timeout") {
					sights = append(sights, "pod "+p.String()+": "+quote(m))
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
	proxy := slices.IndexFunc(d.Daemons.Value, func(s DaemonSet) bool { return s.Name == "kube-proxy" || s.Name == "cilium" })
	if d.Daemons.Known() && proxy < 0 {
		return []Finding{broken("", Certain, "the network plug-in cannot reach the API server's service address, because the cluster has no kube-proxy").with(sights...).
			explaining(ServiceTimeout, NetworkPlugin).mend(fmt.Sprintf("aws eks create-addon --region %s --cluster-name %s --addon-name kube-proxy", d.Region, d.Name))}
	}
	return []Finding{broken("", Likely, "the network plug-in cannot reach the API server's service address").with(sights...).explaining(ServiceTimeout, NetworkPlugin).
		mend("kubectl -n kube-system get pods -l k8s-app=kube-proxy -o wide   # it must run on the node, and the security groups let nodes reach port 443")}
}

// needMetadata are those whose pods ask the metadata service for their region or credentials, unless they have another source.
func needMetadata() []string {
	return []string{
		"ebs-csi-node", "efs-csi-node", "fsx-csi-node", "s3-csi-node", "aws-load-balancer-controller", "cloudwatch-agent",
		"aws-for-fluent-bit", "fluent-bit",
	}
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
			_, name, _ := strings.Cut(p.Owner, "/")
			known := slices.ContainsFunc(needMetadata(), func(n string) bool { return strings.HasPrefix(name, n) })
			i := slices.IndexFunc(p.Messages, func(m string) bool {
				return strings.Contains(m, "169.254.169.254") || strings.Contains(m, "IMDS") || strings.Contains(m, "instance metadata")
			})
			starting := i < 0 && d.At.Sub(p.Created) < slowly
			if p.Node == "" || p.Host || !known && i < 0 || starting || !d.isOf(p.Node, c.Name) {
				continue
			}
			f := suspicious("EC2NodeClass "+c.Name, Possible, "pod %s does not come up: it needs the metadata service, whose answers may take %d hop, and pods are two away", p.String(), c.HopLimit).
				with(fmt.Sprintf("pod %s of %s has waited on node %s for %s", p.String(), p.Owner, p.Node, age(d.At.Sub(p.Created)))).with(p.Messages[:min(1, len(p.Messages))]...).
				mend(fmt.Sprintf(`kubectl patch ec2nodeclass %s --type merge -p '{"spec":{"metadataOptions":{"httpPutResponseHopLimit":2}}}'   # or give the pod a role of its own`, c.Name))
			if i >= 0 {
				f.Verdict, f.Certainty = Broken, Likely
				f.Evidence = []string{quote(p.Messages[i])}
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

// announcing is how long a device plug-in that runs takes to tell of its devices.
const announcing = 10 * time.Second

// awaitsPlugin reports whether a device plug-in is on its way to the node of a claim: it has a pod there that does not run yet.
func (d *desk) awaitsPlugin(c Claim) bool {
	n := slices.IndexFunc(d.Nodes.Value, func(n Node) bool { return n.ProviderID == c.ProviderID && n.ProviderID != "" })
	return n >= 0 && slices.ContainsFunc(d.Pods.Value, func(p Pod) bool {
		return p.Node == d.Nodes.Value[n].Name && strings.Contains(p.Owner, "device-plugin") && d.At.Sub(p.Created) < slowly
	})
}

// devicePlugin is the command by which the plug-in for a device comes to all nodes: one that is there tolerates their taints, or it is installed.
func (d *desk) devicePlugin(message string) string {
	vendor := "device"
	for _, known := range []string{"nvidia", "neuron", "efa", "amd"} {
		if strings.Contains(message, known) {
			vendor = known
			break
		}
	}
	i := slices.IndexFunc(d.Daemons.Value, func(s DaemonSet) bool {
		return strings.Contains(s.Name, vendor) && strings.Contains(s.Name, "device-plugin")
	})
	switch {
	case i >= 0:
		s := d.Daemons.Value[i]
		return fmt.Sprintf(`kubectl -n %s patch daemonset %s --type json -p '[{"op":"add","path":"/spec/template/spec/tolerations","value":[{"operator":"Exists"}]}]'   # or the pool's taints alone`, s.Namespace, s.Name)
	case vendor == "nvidia":
		return "kubectl apply -f https://raw.githubusercontent.com/NVIDIA/k8s-device-plugin/v0.17.1/deployments/static/nvidia-device-plugin.yml   # or the GPU operator"
	}
	return "kubectl get daemonsets -A | grep -i -e device -e gpu -e neuron -e efa   # it must be installed, and tolerate the pool's taints"
}

// judgeStartupTaints: somebody has to take them away.
func judgeStartupTaints(d *desk) []Finding {
	if gap, ok := d.Claims.gap("the NodeClaims"); ok {
		return []Finding{gap}
	}
	var out []Finding
	for _, c := range d.stuck() {
		n := slices.IndexFunc(d.Nodes.Value, func(n Node) bool { return n.ProviderID == c.ProviderID && n.ProviderID != "" })
		p := slices.IndexFunc(d.Pools.Value, func(p Pool) bool { return p.Name == c.Pool })
		if n < 0 || p < 0 || !d.Nodes.Value[n].Ready {
			continue
		}
		node := d.Nodes.Value[n]
		for _, t := range d.Pools.Value[p].Startup {
			if !slices.ContainsFunc(node.Taints, func(has Taint) bool { return has.Key == t.Key && has.Effect == t.Effect }) || d.At.Sub(node.Created) < Lingering {
				continue
			}
			out = append(out, broken("NodePool "+c.Pool, Likely, "the startup taint %s of NodePool %s is still on its nodes: whoever should take it away does not run there", t.Key, c.Pool).
				with("node "+node.Name+", "+age(d.At.Sub(node.Created))+" old").
				mend(fmt.Sprintf("kubectl taint node %s %s:%s-", node.Name, t.Key, t.Effect),
					fmt.Sprintf("kubectl get pods -A -o wide --field-selector spec.nodeName=%s   # the DaemonSet that takes %s away must tolerate the pool's taints", node.Name, t.Key)))
		}
	}
	return slices.CompactFunc(out, func(a, b Finding) bool { return a.Cause == b.Cause })
}

// Lingering is how long a startup taint may stay: whoever takes it away has to be pulled and started first.
const Lingering = 75 * time.Second

// slowly is after how long it is worth a word that a node is not initialized.
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
				with(quote(i.Reason+": "+i.Message)).explaining(NetworkPlugin).mend("kubectl describe nodeclaim "+c.Name))
		case launched.Status == "True" && d.At.Sub(launched.Since) > slowly && !launched.Since.IsZero():
			f := suspicious("NodeClaim "+c.Name, Possible, "its instance was launched %s ago and has not become a node, and nothing that could be read says why", age(d.At.Sub(launched.Since))).
				with(quote(registered.Reason + ": " + registered.Message)).
				mend("aws ec2 get-console-output --region " + d.Region + " --latest --output text --instance-id " + orElse(c.ProviderID[strings.LastIndexByte(c.ProviderID, '/')+1:], "ID"))
			if len(d.sightings) == 0 {
				out = append(out, f)
			}
		}
	}
	return out
}

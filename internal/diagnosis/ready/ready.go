// Package ready checks whether a node that has joined becomes ready: its network plug-in, its devices and its taints.
//
// In: an index.Index.
// Out: findings of the checks CNI, IMDS, READY and TAINT.
// Never: a network call, a reading of the clock, or a verdict without evidence.
package ready

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/joiner-sh/joiner/internal/diagnosis"
	"github.com/joiner-sh/joiner/internal/diagnosis/fix"
	"github.com/joiner-sh/joiner/internal/diagnosis/index"
)

// Checks returns the checks CNI, IMDS and READY; TaintChecks returns the checks TAINT.
func Checks() []index.Check {
	return []index.Check{
		{ID: "CNI-1", Title: "the network plug-in starts", Layer: diagnosis.LayerReady, Judge: judgePlugin},
		{ID: "CNI-2", Title: "the network plug-in reaches the API server's service", Layer: diagnosis.LayerReady, Judge: judgeServiceAddress},
		{ID: "IMDS-1", Title: "pods that need the instance's metadata reach it", Layer: diagnosis.LayerReady, Judge: judgeHops},
		{ID: "READY-1", Title: "requested devices appear", Layer: diagnosis.LayerReady, Judge: judgeDevices},
		{ID: "READY-2", Title: "startup taints are removed", Layer: diagnosis.LayerReady, Judge: judgeStartupTaints},
		{ID: "READY-3", Title: "nodes become ready in time", Layer: diagnosis.LayerReady, Fallback: true, Judge: judgeSlow},
	}
}

// isOfDaemon reports whether a pod belongs to a DaemonSet that has one of the names and that administrators have
// installed. It checks the namespace too, because a tenant's pod may name any owner.
func isOfDaemon(ix *index.Index, p diagnosis.Pod, names ...string) bool {
	s, ok := ix.FindDaemonSet(names...)
	return slices.Contains(names, strings.TrimPrefix(p.Owner, "DaemonSet/")) &&
		(p.Namespace == diagnosis.SystemNamespace || ok && p.Namespace == s.Namespace)
}

// listPodsOn returns the pods on a node that belong to one of the DaemonSets. Evidence has only pods that do not run.
func listPodsOn(ix *index.Index, node string, daemons ...string) []diagnosis.Pod {
	var out []diagnosis.Pod
	for _, p := range ix.Evidence.Pods.Value {
		if p.Node == node && isOfDaemon(ix, p, daemons...) {
			out = append(out, p)
		}
	}
	return out
}

// judgePlugin reports the first node whose condition Ready shows that the network plug-in has not started.
func judgePlugin(ix *index.Index) []diagnosis.Finding {
	if gap, ok := ix.Evidence.Nodes.Gap("the nodes"); ok {
		return []diagnosis.Finding{gap}
	}
	_, hasPlugin := ix.FindDaemonSet("aws-node", "cilium", "calico-node", "kube-flannel-ds", "weave-net")
	for _, n := range ix.Evidence.Nodes.Value {
		if n.Ready || !strings.Contains(n.Message, "cni plugin not initialized") && !strings.Contains(n.Message, "NetworkPluginNotReady") {
			continue
		}
		if age := ix.Evidence.At.Sub(n.Created); age < time.Minute && !n.Created.IsZero() {
			continue // the plug-in may still start
		}
		f := diagnosis.ReportBroken("node "+n.Name, diagnosis.Likely,
			"node %s is not ready: its network plug-in has not started", n.Name).With("its condition Ready: "+diagnosis.Shorten(n.Message)).
			Explaining(diagnosis.NetworkPlugin).FixedBy(showPods(n.Name, fix.Text("-n"),
			fix.Text("kube-system")).With("the plug-in's pod: image, role, restarts"),
			fix.Kubectl(fix.Text("-n"), fix.Text("kube-system"), fix.Text("logs"), fix.Text("daemonset/aws-node"),
				fix.Text("-c"), fix.Text("aws-node"), fix.Text("--tail"), fix.Text("50")))
		if ix.Evidence.Daemons.Known() && !hasPlugin {
			f.Cause = fmt.Sprintf("node %s is not ready: the cluster has no network plug-in", n.Name)
			// a ready node shows that a network plug-in exists; then the certainty stays Likely
			if !slices.ContainsFunc(ix.Evidence.Nodes.Value, func(n diagnosis.Node) bool { return n.Ready }) {
				f.Certainty = diagnosis.Certain
			}
			f = f.FixedBy(fix.Call("eks", "create-addon", ix.RegionParam(), ix.ClusterParam(), fix.P("--addon-name", fix.Text("vpc-cni"))))
		}
		if slices.ContainsFunc(judgeServiceAddress(ix), func(f diagnosis.Finding) bool { return f.Verdict == diagnosis.Broken }) {
			f.Follows = "CNI-2"
		}
		for _, p := range listPodsOn(ix, n.Name, "aws-node", "cilium", "calico-node") {
			f = f.With("pod " + p.String() + ": " + strings.Join(p.Messages[:min(1, len(p.Messages))], ""))
		}
		return []diagnosis.Finding{f} // one finding is enough: the other nodes have the same problem
	}
	return nil
}

// judgeServiceAddress reports that the network plug-in cannot reach the address of the service kubernetes, which
// kube-proxy serves.
func judgeServiceAddress(ix *index.Index) []diagnosis.Finding {
	// any process on an instance can write to the console, so console lines alone are only Likely
	seen, certainty := index.Lines(ix.OccurrencesOf("", diagnosis.ServiceTimeout)), diagnosis.Likely
	for _, p := range ix.Evidence.Pods.Value {
		if isOfDaemon(ix, p, "aws-node") {
			for _, m := range slices.Concat(p.Messages, p.Events) {
				if strings.Contains(m, "i/o timeout") {
					seen, certainty = append(seen, "pod "+p.String()+": "+diagnosis.Shorten(m)), diagnosis.Certain
				}
			}
		}
	}
	if gap, ok := ix.Evidence.Pods.Gap("the pods that do not run"); ok && len(seen) == 0 {
		return []diagnosis.Finding{gap}
	}
	if len(seen) == 0 {
		return nil
	}
	if _, ok := ix.FindDaemonSet("kube-proxy", "cilium"); ix.Evidence.Daemons.Known() && !ok {
		return []diagnosis.Finding{diagnosis.ReportBroken("", certainty, "the network plug-in cannot reach the API server's service address, because the cluster has no kube-proxy").With(seen...).
			Explaining(diagnosis.ServiceTimeout,
				diagnosis.NetworkPlugin).FixedBy(fix.Call("eks", "create-addon", ix.RegionParam(), ix.ClusterParam(),
			fix.P("--addon-name", fix.Text("kube-proxy"))))}
	}
	return []diagnosis.Finding{diagnosis.ReportBroken("", diagnosis.Likely,
		"the network plug-in cannot reach the API server's service address").With(seen...).Explaining(diagnosis.ServiceTimeout,
		diagnosis.NetworkPlugin).
		FixedBy(fix.Kubectl(fix.Text("-n"), fix.Text("kube-system"), fix.Text("get"), fix.Text("pods"), fix.Text("-l"),
			fix.Text("k8s-app=kube-proxy"), fix.Text("-o"), fix.Text("wide")).
			With("kube-proxy must run on the node, and the security groups must let nodes reach port 443"))}
}

// metadataUsers returns prefixes of the names of DaemonSets and Deployments whose pods get their region or credentials
// from the instance metadata service, unless they have another source.
func metadataUsers() []string {
	return []string{
		"ebs-csi-node", "efs-csi-node", "fsx-csi-node", "s3-csi-node", "aws-load-balancer-controller", "cloudwatch-agent",
		"aws-for-fluent-bit", "fluent-bit",
	}
}

func mayNeedMetadata(p diagnosis.Pod) bool {
	_, name, _ := strings.Cut(p.Owner, "/")
	return slices.ContainsFunc(metadataUsers(), func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}

func isAboutMetadata(message string) bool {
	return strings.Contains(message, "169.254.169.254") || strings.Contains(message, "IMDS") || strings.Contains(message, "instance metadata")
}

// judgeHops reports pods that need the instance metadata service but cannot reach it. With a hop limit of 1, answers of
// the service reach only pods with the host's network.
func judgeHops(ix *index.Index) []diagnosis.Finding {
	if gap, ok := ix.Evidence.Classes.Gap("the EC2NodeClasses"); ok {
		return []diagnosis.Finding{gap}
	}
	if gap, ok := ix.Evidence.Pods.Gap("the pods that do not run"); ok {
		return []diagnosis.Finding{gap}
	}
	var out []diagnosis.Finding
	for _, c := range ix.Evidence.Classes.Value {
		if c.HopLimit != 1 {
			continue
		}
		for _, p := range ix.Evidence.Pods.Value {
			messages := slices.Concat(p.Messages, p.Events)
			i := slices.IndexFunc(messages, isAboutMetadata)
			isUnrelated := i < 0 && !mayNeedMetadata(p)
			isStarting := i < 0 && ix.Evidence.At.Sub(p.Created) < startLimit
			if p.Node == "" || p.Host || isUnrelated || isStarting || !isNodeOfClass(ix, p.Node, c.Name) {
				continue
			}
			if !ix.IsOfSystem(p) { // the pod's messages may be untrue, and a higher hop limit opens the metadata to all pods
				out = append(out, diagnosis.ReportSuspicious("pod "+p.String(), diagnosis.Possible, "the pod does not start, and may need the instance metadata service, which pods on nodes of EC2NodeClass %s cannot reach: give its service account an IAM role", c.Name).
					With(messages[:min(1, len(messages))]...))
				continue
			}
			f := diagnosis.ReportSuspicious("EC2NodeClass "+c.Name, diagnosis.Possible, "pod %s does not start: it needs the metadata service, whose answers may take %d hop, but pods are two hops away", p.String(), c.HopLimit).
				With(fmt.Sprintf("pod %s of %s has waited on node %s for %s", p.String(), p.Owner, p.Node,
					durationText(ix.Evidence.At.Sub(p.Created)))).With(messages[:min(1, len(messages))]...).
				FixedBy(fix.Merge(fix.NodeClass(c.Name),
					fix.At(fix.Number(2), "spec", "metadataOptions", "httpPutResponseHopLimit")).With("or give the pod's service account an IAM role"))
			if i >= 0 {
				f.Verdict, f.Certainty = diagnosis.Broken, diagnosis.Likely
				f.Evidence = []string{diagnosis.Shorten(messages[i])}
			}
			out = append(out, f)
			break
		}
	}
	return out
}

func isNodeOfClass(ix *index.Index, node, class string) bool {
	return slices.ContainsFunc(ix.Evidence.Nodes.Value, func(n diagnosis.Node) bool {
		return n.Name == node && slices.ContainsFunc(ix.Evidence.Pools.Value,
			func(p diagnosis.Pool) bool { return p.Name == n.Pool && p.Class == class })
	})
}

// uninitialized returns the NodeClaims that are registered but not initialized.
func uninitialized(ix *index.Index) []diagnosis.Claim {
	return slices.DeleteFunc(slices.Clone(ix.Evidence.Claims.Value), func(c diagnosis.Claim) bool {
		return c.Deleting || diagnosis.FindCondition(c.Conditions, "Registered").Status != "True" ||
			diagnosis.FindCondition(c.Conditions, "Initialized").Status == "True"
	})
}

func judgeDevices(ix *index.Index) []diagnosis.Finding {
	if gap, ok := ix.Evidence.Claims.Gap("the NodeClaims"); ok {
		return []diagnosis.Finding{gap}
	}
	var out []diagnosis.Finding
	for _, c := range uninitialized(ix) {
		i := diagnosis.FindCondition(c.Conditions, "Initialized")
		isNew := ix.Evidence.At.Sub(diagnosis.FindCondition(c.Conditions, "Registered").Since) < deviceReportTime
		if i.Reason != "ResourceNotRegistered" && !strings.Contains(strings.ToLower(i.Message), "resource") || isNew || awaitsPlugin(ix, c) {
			continue
		}
		f := diagnosis.ReportBroken("NodeClaim "+c.Name, diagnosis.Likely, "the node does not report the device that its instance type has and that pods request: no device plug-in for it runs on the node").
			With("condition Initialized: " + diagnosis.Shorten(i.Message))
		out = append(out, f.FixedBy(devicePlugin(ix, i.Message)))
	}
	return out
}

// deviceReportTime is how long a running device plug-in takes to report its devices.
const deviceReportTime = 10 * time.Second

// awaitsPlugin reports whether a device plug-in is starting on the node of a NodeClaim: the plug-in's pod is new and
// does not run yet.
func awaitsPlugin(ix *index.Index, c diagnosis.Claim) bool {
	n, ok := ix.NodeOf(c)
	return ok && slices.ContainsFunc(ix.Evidence.Pods.Value, func(p diagnosis.Pod) bool {
		name, isDaemon := strings.CutPrefix(p.Owner, "DaemonSet/")
		return p.Node == n.Name && isDaemon && index.IsDevicePlugin(p.Namespace, name) && ix.Evidence.At.Sub(p.Created) < startLimit
	})
}

// devicePlugin returns the step after which a plug-in for a device runs on all nodes: an existing plug-in tolerates all
// taints, or the user installs a plug-in. If neither is possible, the step shows the DaemonSets, and the user decides.
// message names the device.
func devicePlugin(ix *index.Index, message string) fix.Step {
	vendor := "device" // in the name of every plug-in
	for _, known := range []string{"nvidia", "neuron", "efa", "amd"} {
		if strings.Contains(message, known) {
			vendor = known
			break
		}
	}
	i := slices.IndexFunc(ix.Evidence.Daemons.Value, func(s diagnosis.DaemonSet) bool {
		return strings.Contains(s.Name, vendor) && index.IsDevicePlugin(s.Namespace, s.Name)
	})
	unverified := slices.IndexFunc(ix.Evidence.Daemons.Value, func(s diagnosis.DaemonSet) bool {
		return strings.Contains(s.Name, vendor) && strings.Contains(s.Name, "device-plugin")
	})
	switch {
	case i < 0 && unverified >= 0: // the plug-in may belong to a tenant
		s := ix.Evidence.Daemons.Value[unverified]
		return fix.Show("get", fix.DaemonSet(s.Namespace, s.Name), "-o",
			"yaml").With("if this is the cluster's plug-in, it must tolerate the pool's taints; otherwise install one")
	case i >= 0:
		s := ix.Evidence.Daemons.Value[i]
		return fix.JSONPatch(fix.DaemonSet(s.Namespace, s.Name),
			fix.Fields{"op": fix.Text("add"), "path": fix.Text("/spec/template/spec/tolerations"),
				"value": fix.List{fix.At(fix.Text("Exists"), "operator")}}).With("or tolerate only the pool's taints")
	case vendor == "nvidia":
		return fix.Apply("https://raw.githubusercontent.com/NVIDIA/k8s-device-plugin/v0.17.1/deployments/static/nvidia-device-plugin.yml").With("or the GPU operator")
	}
	return fix.Kubectl(fix.Text("get"), fix.Text("daemonsets"),
		fix.Text("-A")).With("a plug-in for the device must be installed, and tolerate the pool's taints")
}

// showPods is the step that shows the pods of a node. namespaces has the options that select namespaces.
func showPods(node string, namespaces ...fix.Value) fix.Step {
	return fix.Kubectl(append(namespaces, fix.Text("get"), fix.Text("pods"), fix.Text("-o"), fix.Text("wide"),
		fix.Text("--field-selector"), fix.Join(fix.Text("spec.nodeName="), fix.Name(node)))...)
}

func judgeStartupTaints(ix *index.Index) []diagnosis.Finding {
	if gap, ok := ix.Evidence.Claims.Gap("the NodeClaims"); ok {
		return []diagnosis.Finding{gap}
	}
	var out []diagnosis.Finding
	for _, c := range uninitialized(ix) {
		node, isNode := ix.NodeOf(c)
		p := slices.IndexFunc(ix.Evidence.Pools.Value, func(p diagnosis.Pool) bool { return p.Name == c.Pool })
		if !isNode || p < 0 || !node.Ready {
			continue
		}
		for _, t := range ix.Evidence.Pools.Value[p].Startup {
			if !slices.ContainsFunc(node.Taints,
				func(other diagnosis.Taint) bool { return other.Key == t.Key && other.Effect == t.Effect }) ||
				ix.Evidence.At.Sub(node.Created) < diagnosis.MaxStartupTaintAge {
				continue
			}
			out = append(out, diagnosis.ReportBroken("NodePool "+c.Pool, diagnosis.Likely, "the startup taint %s of NodePool %s is still on its nodes: the component that removes the taint does not run on them", t.Key, c.Pool).
				With("node "+node.Name+", "+durationText(ix.Evidence.At.Sub(node.Created))+" old").
				FixedBy(fix.Untaint(node.Name, fix.LabelKey(t.Key), fix.TaintEffect(t.Effect)),
					showPods(node.Name, fix.Text("-A")).With("the DaemonSet that removes %s must tolerate the pool's taints", t.Key)))
		}
	}
	return slices.CompactFunc(out, func(a, b diagnosis.Finding) bool { return a.Cause == b.Cause })
}

// startLimit is the time after which checks report a slow start: from a launch until the node registers, from then
// until it is initialized, and from the creation of a pod until it runs.
const startLimit = 3 * time.Minute

func durationText(d time.Duration) string { return d.Truncate(time.Second).String() }

// judgeSlow reports NodeClaims that take longer than startLimit to register or to initialize, for a reason that no
// other check knows.
func judgeSlow(ix *index.Index) []diagnosis.Finding {
	if gap, ok := ix.Evidence.Claims.Gap("the NodeClaims"); ok {
		return []diagnosis.Finding{gap}
	}
	var out []diagnosis.Finding
	for _, c := range ix.Evidence.Claims.Value {
		launched, registered := diagnosis.FindCondition(c.Conditions, "Launched"), diagnosis.FindCondition(c.Conditions, "Registered")
		switch {
		case c.Deleting, diagnosis.FindCondition(c.Conditions, "Initialized").Status == "True":
		case registered.Status == "True" && ix.Evidence.At.Sub(registered.Since) > startLimit && !registered.Since.IsZero():
			i := diagnosis.FindCondition(c.Conditions, "Initialized")
			out = append(out, diagnosis.ReportSuspicious("NodeClaim "+c.Name, diagnosis.Possible,
				"its node registered %s ago and still takes no pods: it is not initialized", durationText(ix.Evidence.At.Sub(registered.Since))).
				With(diagnosis.Shorten(i.Reason+": "+i.Message)).Explaining(diagnosis.NetworkPlugin).
				FixedBy(fix.Show("describe", fix.NodeClaim(c.Name))))
		case launched.Status == "True" && ix.Evidence.At.Sub(launched.Since) > startLimit && !launched.Since.IsZero():
			f := diagnosis.ReportSuspicious("NodeClaim "+c.Name, diagnosis.Possible,
				"its instance was launched %s ago and has not become a node; its console shows no known error", durationText(ix.Evidence.At.Sub(launched.Since))).
				With(consoleLine(ix, diagnosis.InstanceID(c.ProviderID)), diagnosis.Shorten(registered.Reason+": "+registered.Message)).
				FixedBy(fix.Call("ec2", "get-console-output", ix.RegionParam(), fix.P("--latest"), fix.P("--output", fix.Text("text")),
					fix.P("--instance-id", fix.Instance(diagnosis.InstanceID(c.ProviderID)).OrPlaceholder("ID"))).
					With("docs/checks/READY-3.md lists the errors to look for"))
			if len(ix.Occurrences) == 0 { // otherwise, other checks report the symptoms
				out = append(out, f)
			}
		}
	}
	return out
}

// consoleLine returns a line of evidence about the console of an instance: its number of lines, or why it was not read.
func consoleLine(ix *index.Index, id string) string {
	i := slices.IndexFunc(ix.Evidence.Instances.Value, func(i diagnosis.Instance) bool { return i.ID == id })
	switch {
	case id == "":
		return "the NodeClaim has no provider ID"
	case i < 0:
		return "EC2 lists no instance " + id
	}
	console := ix.Evidence.Instances.Value[i].Console
	if gap, ok := console.Gap("the console of instance " + id); ok {
		return gap.Cause
	}
	return fmt.Sprintf("console of %s: %d lines, and none of them has a known error", id, strings.Count(console.Value, "\n"))
}

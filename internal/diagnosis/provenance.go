package diagnosis

import (
	"slices"
	"strings"
)

// Claimed returns the instances with the names of their NodeClaim and EC2NodeClass as the NodeClaim has them that has the instance's provider
// ID in its status. Tags alone tell neither: whoever may tag an instance writes what they like. Of an instance that ended, whose NodeClaim may be
// gone for that, the class of its tags stays: nothing is done to it.
func Claimed(instances []Instance, claims []Claim) []Instance {
	of := map[string]Claim{}
	for _, c := range claims {
		if id := instanceID(c.ProviderID); id != "" {
			of[id] = c
		}
	}
	out := slices.Clone(instances)
	for k := range out {
		i := &out[k]
		c, ok := of[i.ID]
		i.Claim = c.Name
		if ok || i.runs() {
			i.Class = c.Class
		}
	}
	return out
}

// instanceID is the id in a provider ID: "aws:///us-east-1a/i-0123".
func instanceID(providerID string) string {
	return providerID[strings.LastIndexByte(providerID, '/')+1:]
}

// nodesByInstance are the Nodes by the id of their instance. A kubelet may write the provider ID of any instance into its own Node: of an instance
// whose name EC2 tells, it is the Node with that name; another one only where the controller has registered the instance, and no other names it.
func nodesByInstance(e Evidence, instances []Instance) map[string]Node {
	all, out := map[string][]Node{}, map[string]Node{}
	for _, n := range e.Nodes.Value {
		if id := instanceID(n.ProviderID); id != "" {
			all[id] = append(all[id], n)
			out[id] = n
		}
	}
	for _, i := range instances {
		candidates := all[i.ID]
		k := slices.IndexFunc(candidates, func(n Node) bool { return i.hasName(n.Name) })
		c := slices.IndexFunc(e.Claims.Value, func(c Claim) bool { return c.of(i) })
		isRegistered := c >= 0 && condition(e.Claims.Value[c].Conditions, "Registered").Status == "True"
		switch {
		case k >= 0:
			out[i.ID] = candidates[k]
		case len(candidates) > 1, len(candidates) == 1 && i.Claim != "" && i.PrivateDNS != "" && !isRegistered:
			delete(out, i.ID)
		}
	}
	return out
}

// hasName reports whether the Node of an instance has the name, as EC2 and Kubernetes give it.
func (i Instance) hasName(name string) bool {
	label, _, _ := strings.Cut(strings.ToLower(name), ".")
	own, _, _ := strings.Cut(strings.ToLower(i.PrivateDNS), ".")
	return label != "" && (label == own || label == i.ID)
}

// nodeOf is the Node of a NodeClaim's instance.
func (d *desk) nodeOf(c Claim) (Node, bool) {
	n, ok := d.joined[instanceID(c.ProviderID)]
	return n, ok
}

// controllers are the components that write events about objects of this API.
func controllers() []string { return []string{"joiner", "karpenter"} }

// own are the events that the controller has written about objects that are there. The events of cluster-scoped objects live in the namespace
// default; the UID is that of the object now.
func (d *desk) own() []Event {
	uids := map[string]string{}
	for _, c := range d.Claims.Value {
		uids["NodeClaim "+c.Name] = c.UID
	}
	for _, c := range d.Classes.Value {
		uids["EC2NodeClass "+c.Name] = c.UID
	}
	for _, p := range d.Pools.Value {
		uids["NodePool "+p.Name] = p.UID
	}
	return slices.DeleteFunc(slices.Clone(d.Events.Value), func(v Event) bool {
		return !v.isOfController() || v.UID == "" || v.UID != uids[v.Kind+" "+v.Name]
	})
}

// isOfController reports whether the event is where the controller writes its own, and says that it is from it.
func (v Event) isOfController() bool {
	return v.Namespace == "default" && slices.Contains(controllers(), v.By)
}

// isOfSystem reports whether the pod is in a namespace that no tenant can write to: kube-system, or the controller's.
func (d *desk) isOfSystem(p Pod) bool {
	return p.Namespace == systemNamespace || p.Namespace != "" && p.Namespace == d.Controller.Value.Namespace
}

// systemNamespace is the namespace that no tenant can write to.
const systemNamespace = "kube-system"

// homes are the namespaces besides kube-system where DaemonSets of the cluster itself are installed, by a part of their names.
func homes() map[string][]string {
	return map[string][]string{"cilium": {"cilium"}, "calico-node": {"calico-system"}, "kube-flannel-ds": {"kube-flannel"},
		"device-plugin": {"gpu-operator", "nvidia-device-plugin", "kube-amd-gpu"}}
}

// isDevicePlugin reports whether a name is that of a device plug-in, in a namespace where whoever runs the cluster installs it.
func isDevicePlugin(namespace, name string) bool {
	const plugin = "device-plugin"
	return strings.Contains(name, plugin) && (namespace == systemNamespace || slices.Contains(homes()[plugin], namespace))
}

// daemon returns the DaemonSet of one of the names in the namespace where whoever runs the cluster installs it. A tenant may give one of its own
// the same name.
func (d *desk) daemon(names ...string) (DaemonSet, bool) {
	i := slices.IndexFunc(d.Daemons.Value, func(s DaemonSet) bool {
		return slices.Contains(names, s.Name) && (s.Namespace == systemNamespace || slices.Contains(homes()[s.Name], s.Namespace))
	})
	if i < 0 {
		return DaemonSet{}, false
	}
	return d.Daemons.Value[i], true
}

// heardOf returns the statements of the controller's own events about objects that are there with one of the words, as evidence.
func (d *desk) heardOf(alternatives ...[]string) []statement {
	var out []statement
	for _, v := range d.own() {
		text := strings.Join(strings.Fields(v.Reason+": "+v.Message), " ")
		has := slices.ContainsFunc(alternatives, func(words []string) bool {
			return !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(strings.ToLower(text), strings.ToLower(w)) })
		})
		s := statement{subject: "event on " + v.Kind + " " + v.Name, text: text, class: d.classOf(v)}
		if has && !d.isPast(v) && !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}

// podsThatSay are the first pods whose conditions, containers or events say something, as evidence. Of pods of tenants it may be untrue.
func (d *desk) podsThatSay(words string) []string {
	const most = 4
	var out []string
	for _, p := range d.Pods.Value {
		for _, m := range slices.Concat(p.Messages, p.Events) {
			if len(out) < most && strings.Contains(m, words) {
				out = append(out, "pod "+p.String()+": "+quote(m))
			}
		}
	}
	return out
}

func sentences(all []statement) []string {
	var out []string
	for _, s := range all {
		out = append(out, s.String())
	}
	return out
}

// Truncated says of each list of which only a part was read how much that was, in the order of Evidence.
func (e Evidence) Truncated() []string {
	var out []string
	add := func(source, cut string) {
		if cut != "" {
			out = append(out, source+": "+cut)
		}
	}
	add(e.Entries.Source, e.Entries.Cut)
	add(e.Instances.Source, e.Instances.Cut)
	add(e.Classes.Source, e.Classes.Cut)
	add(e.Pools.Source, e.Pools.Cut)
	add(e.Claims.Source, e.Claims.Cut)
	add(e.Nodes.Source, e.Nodes.Cut)
	add(e.Pods.Source, e.Pods.Cut)
	add(e.Daemons.Source, e.Daemons.Cut)
	add(e.Events.Source, e.Events.Cut)
	return out
}

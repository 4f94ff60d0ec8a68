package diagnosis

import (
	"slices"
	"strings"
)

// Claimed returns the instances with the names of their NodeClaim and EC2NodeClass, taken from the NodeClaim whose status has the instance's
// provider ID. Tags prove neither, because anyone who may tag an instance can write them. An instance that has ended keeps the class in its
// tags, because its NodeClaim may be gone; nothing is done to it.
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

// instanceID returns the instance ID in a provider ID: "aws:///us-east-1a/i-0123".
func instanceID(providerID string) string {
	return providerID[strings.LastIndexByte(providerID, '/')+1:]
}

// nodesByInstance returns the Nodes by instance ID. A kubelet may write any provider ID into its own Node. If EC2 knows the instance's name,
// its Node is the one with that name. Another Node counts only if the controller has registered the instance and no other Node has its
// provider ID.
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

// hasName reports whether the name is that of the instance's Node, as EC2 and Kubernetes derive it.
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

// controllers returns the components that write events about objects of this API.
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

// isOfController reports whether the event has the namespace and component of the controller's events.
func (v Event) isOfController() bool {
	return v.Namespace == "default" && slices.Contains(controllers(), v.By)
}

// isOfSystem reports whether the pod is in a namespace that no tenant can write to: kube-system, or the controller's.
func (d *desk) isOfSystem(p Pod) bool {
	return p.Namespace == systemNamespace || p.Namespace != "" && p.Namespace == d.Controller.Value.Namespace
}

// systemNamespace is a namespace that tenants cannot write to.
const systemNamespace = "kube-system"

// homes returns namespaces besides kube-system where the cluster's own DaemonSets are installed, by a part of their names.
func homes() map[string][]string {
	return map[string][]string{"cilium": {"cilium"}, "calico-node": {"calico-system"}, "kube-flannel-ds": {"kube-flannel"},
		"device-plugin": {"gpu-operator", "nvidia-device-plugin", "kube-amd-gpu"}}
}

// isDevicePlugin reports whether a DaemonSet has the name of a device plug-in and is in a namespace where administrators install it.
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

// Truncated returns one line per list that was read in part only, in the order of Evidence.
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

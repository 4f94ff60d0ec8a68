package diagnosis

import (
	"slices"
	"strings"
)

// Claimed returns the instances with the names of their NodeClaim and EC2NodeClass, taken from the NodeClaim whose
// status has the instance's provider ID. Tags prove neither, because anyone who may tag an instance can write them. An
// instance that has ended keeps the class in its tags, because its NodeClaim may be gone and no fix changes the
// instance.
func Claimed(instances []Instance, claims []Claim) []Instance {
	of := map[string]Claim{}
	for _, c := range claims {
		if id := InstanceID(c.ProviderID); id != "" {
			of[id] = c
		}
	}
	out := slices.Clone(instances)
	for k := range out {
		i := &out[k]
		c, ok := of[i.ID]
		i.Claim = c.Name
		if ok || i.Runs() {
			i.Class = c.Class
		}
	}
	return out
}

// InstanceID returns the instance ID in a provider ID: "aws:///us-east-1a/i-0123".
func InstanceID(providerID string) string {
	return providerID[strings.LastIndexByte(providerID, '/')+1:]
}

// NodesByInstance returns the Nodes by instance ID. A kubelet may write any provider ID into its own Node. So of the
// Nodes with an instance's provider ID, the Node of the instance is the one with the name that EC2 knows. A Node with
// another name is used only if no other Node has the provider ID, and if one of three holds: the controller has
// registered the instance, EC2 does not know its name, or no NodeClaim has the instance.
func NodesByInstance(e Evidence, instances []Instance) map[string]Node {
	all, out := map[string][]Node{}, map[string]Node{}
	for _, n := range e.Nodes.Value {
		if id := InstanceID(n.ProviderID); id != "" {
			all[id] = append(all[id], n)
			out[id] = n
		}
	}
	for _, i := range instances {
		candidates := all[i.ID]
		k := slices.IndexFunc(candidates, func(n Node) bool { return i.hasName(n.Name) })
		c := slices.IndexFunc(e.Claims.Value, func(c Claim) bool { return c.Of(i) })
		isRegistered := c >= 0 && FindCondition(e.Claims.Value[c].Conditions, "Registered").Status == "True"
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

// controllers returns the source components of the events that controllers write about NodePools, NodeClaims and
// EC2NodeClasses.
func controllers() []string { return []string{"joiner", "karpenter"} }

// IsOfController reports whether the event has the namespace and component of the controller's events.
func (v Event) IsOfController() bool {
	return v.Namespace == "default" && slices.Contains(controllers(), v.By)
}

// SystemNamespace is a namespace that tenants cannot write to.
const SystemNamespace = "kube-system"

// Truncated returns one line for each list that was only partly read, in the order of Evidence.
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

// Of reports whether the claim's status names the instance.
func (c Claim) Of(i Instance) bool {
	return i.ID != "" && c.ProviderID[strings.LastIndexByte(c.ProviderID, '/')+1:] == i.ID
}

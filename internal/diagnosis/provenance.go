package diagnosis

import (
	"slices"
	"strings"
)

// WithClaims returns the instances with the names of their NodeClaim and EC2NodeClass, taken from the NodeClaim whose
// status has the instance's provider ID. These names replace those in the instance's tags, because anyone who may tag
// instances can forge tags. A stopped or terminated instance without NodeClaim keeps the EC2NodeClass in its
// tags, because no fix changes the instance.
func WithClaims(instances []Instance, claims []Claim) []Instance {
	byInstance := map[string]Claim{}
	for _, c := range claims {
		if id := InstanceID(c.ProviderID); id != "" {
			byInstance[id] = c
		}
	}
	out := slices.Clone(instances)
	for k := range out {
		i := &out[k]
		c, hasClaim := byInstance[i.ID]
		i.Claim = c.Name
		if hasClaim || i.Runs() {
			i.Class = c.Class
		}
	}
	return out
}

// InstanceID returns the instance ID in a provider ID: "aws:///us-east-1a/i-0123".
func InstanceID(providerID string) string {
	return providerID[strings.LastIndexByte(providerID, '/')+1:]
}

// NodesByInstance returns the Nodes by instance ID. A kubelet may write any provider ID into its own Node, so the name
// counts too: the Node of an instance has the instance's provider ID and a name that matches the instance (hasName).
// If no name matches, a single Node with the provider ID counts in any of these cases:
//   - The controller has registered the instance.
//   - EC2 reports no host name of the instance.
//   - The instance has no NodeClaim.
func NodesByInstance(e Evidence, instances []Instance) map[string]Node {
	nodes, out := map[string][]Node{}, map[string]Node{} // by instance ID
	for _, n := range e.Nodes.Value {
		if id := InstanceID(n.ProviderID); id != "" {
			nodes[id] = append(nodes[id], n)
			out[id] = n
		}
	}
	for _, i := range instances {
		candidates := nodes[i.ID]
		named := slices.IndexFunc(candidates, func(n Node) bool { return i.hasName(n.Name) })
		at := slices.IndexFunc(e.Claims.Value, func(c Claim) bool { return c.IsOf(i) })
		isRegistered := at >= 0 && FindCondition(e.Claims.Value[at].Conditions, "Registered").Status == "True"
		switch {
		case named >= 0:
			out[i.ID] = candidates[named]
		case len(candidates) > 1, len(candidates) == 1 && i.Claim != "" && i.PrivateDNS != "" && !isRegistered:
			delete(out, i.ID)
		}
	}
	return out
}

// hasName reports whether a Node with this name can be the instance's Node: up to their first dots, the
// name equals the instance's host name, or it equals the instance ID.
func (i Instance) hasName(name string) bool {
	label, _, _ := strings.Cut(strings.ToLower(name), ".")
	host, _, _ := strings.Cut(strings.ToLower(i.PrivateDNS), ".")
	return label != "" && (label == host || label == i.ID)
}

func controllerComponents() []string { return []string{"joiner", "karpenter"} }

// IsOfController reports whether the event has the namespace and a source component of the controller's events.
func (v Event) IsOfController() bool {
	return v.Namespace == "default" && slices.Contains(controllerComponents(), v.By)
}

// SystemNamespace is the namespace of system pods. Tenants cannot write to it.
const SystemNamespace = "kube-system"

// Truncated returns one line for each list that was only partly read, in the order of the fields of Evidence.
func (e Evidence) Truncated() []string {
	var out []string
	add := func(source, truncation string) {
		if truncation != "" {
			out = append(out, source+": "+truncation)
		}
	}
	add(e.Entries.Source, e.Entries.Truncation)
	add(e.Instances.Source, e.Instances.Truncation)
	add(e.Classes.Source, e.Classes.Truncation)
	add(e.Pools.Source, e.Pools.Truncation)
	add(e.Claims.Source, e.Claims.Truncation)
	add(e.Nodes.Source, e.Nodes.Truncation)
	add(e.Pods.Source, e.Pods.Truncation)
	add(e.Daemons.Source, e.Daemons.Truncation)
	add(e.Events.Source, e.Events.Truncation)
	return out
}

// IsOf reports whether the status of the NodeClaim has the instance's provider ID.
func (c Claim) IsOf(i Instance) bool {
	return i.ID != "" && c.ProviderID[strings.LastIndexByte(c.ProviderID, '/')+1:] == i.ID
}

package diagnosis

import (
	"slices"
	"strings"
)

// isUnused reports whether the subject of a finding is an EC2NodeClass that no NodePool uses and no NodeClaim is of.
func (d *desk) isUnused(subject string) bool {
	name, ok := strings.CutPrefix(subject, "EC2NodeClass ")
	if _, there := d.class(name); !ok || !there || !d.Pools.Known() {
		return false
	}
	return !slices.ContainsFunc(d.Pools.Value, func(p Pool) bool { return p.Class == name }) &&
		!slices.ContainsFunc(d.Claims.Value, func(c Claim) bool { return c.Class == name })
}

// holdsPods reports whether pods wait because of what a finding is about, as far as that can be told: NodeClaims of it are not initialized, or it
// has none and pods wait. What bites only after a node is ready holds none.
func (d *desk) holdsPods(f Finding) bool {
	if f.Verdict.order() > Suspicious.order() || f.layer == int(LayerFleet) {
		return false
	}
	stuck, all := d.stuckClaims(), d.Claims.Value
	waits := slices.ContainsFunc(d.Pods.Value, func(p Pod) bool { return p.Node == "" && !strings.HasPrefix(p.Owner, "DaemonSet/") })
	among := func(of func(Claim) bool) bool {
		return slices.ContainsFunc(stuck, of) || waits && !slices.ContainsFunc(all, of)
	}
	kind, name, _ := strings.Cut(f.Subject, " ")
	switch kind {
	case "EC2NodeClass", "NodePool", "subnet":
		return f.seen || among(func(c Claim) bool { return d.isAbout(kind, name, c) })
	case "NodeClaim":
		return slices.ContainsFunc(stuck, func(c Claim) bool { return c.Name == name })
	case "instance":
		return f.seen || slices.ContainsFunc(stuck, func(c Claim) bool { return instanceID(c.ProviderID) == name })
	case "pod":
		return slices.ContainsFunc(d.Pods.Value, func(p Pod) bool { return p.String() == name }) || f.layer == int(LayerController)
	}
	return waits || len(stuck) > 0
}

// isAbout reports whether a NodeClaim is launched with an object, given by its kind and name.
func (d *desk) isAbout(kind, name string, c Claim) bool {
	switch kind {
	case "EC2NodeClass":
		return c.Class == name
	case "NodePool":
		return c.Pool == name
	}
	class, _ := d.class(c.Class)
	return slices.Contains(class.Subnets, name)
}

// stuckClaims are the NodeClaims that stay and are not initialized.
func (d *desk) stuckClaims() []Claim {
	return slices.DeleteFunc(slices.Clone(d.Claims.Value), func(c Claim) bool {
		return c.Deleting || condition(c.Conditions, "Initialized").Status == "True"
	})
}

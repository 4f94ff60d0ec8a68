package diagnosis

import (
	"slices"
	"strings"
)

// Scope selects the findings about one instance, or about all instances that an EC2NodeClass would launch.
type Scope struct {
	Class    string // name of the EC2NodeClass
	Instance string // ID of the instance; empty: any instance of the class
	Subnet   string // ID of the instance's subnet; empty: any subnet of the class
}

// JoinBlockers returns the broken and suspicious findings that may keep the instances of a Scope from joining, in the
// order of Rank. Their subject is the class, the cluster, the instance or its subnet. Layers before a launch or after
// joining are left out.
func JoinBlockers(findings []Finding, s Scope) []Finding {
	return slices.DeleteFunc(slices.Clone(Actionable(findings)), func(f Finding) bool {
		return f.Layer < LayerLaunch || f.Layer > LayerAuth || !s.IsAbout(f.Subject)
	})
}

// IsAbout reports whether the scope includes findings with this subject.
func (s Scope) IsAbout(subject string) bool {
	kind, name, _ := strings.Cut(subject, " ")
	switch kind {
	case "", "VPC":
		return true
	case "EC2NodeClass":
		return name == s.Class
	case "subnet":
		return s.Subnet == "" || name == s.Subnet
	case "instance":
		return name == s.Instance
	}
	return false
}

// MissingPermissions returns, sorted, the permissions that were missing for evidence of JoinBlockers.
func MissingPermissions(e Evidence) []string {
	var out []string
	add := func(absent Absence, permission string) {
		if absent == Denied && !slices.Contains(out, permission) {
			out = append(out, permission)
		}
	}
	add(e.Cluster.Absent, e.Cluster.Why)
	add(e.Entries.Absent, e.Entries.Why)
	add(e.AuthMap.Absent, e.AuthMap.Why)
	add(e.VPC.Absent, e.VPC.Why)
	add(e.Subnets.Absent, e.Subnets.Why)
	add(e.Routes.Absent, e.Routes.Why)
	add(e.Endpoints.Absent, e.Endpoints.Why)
	add(e.Groups.Absent, e.Groups.Why)
	add(e.NATAddresses.Absent, e.NATAddresses.Why)
	add(e.Images.Absent, e.Images.Why)
	add(e.Instances.Absent, e.Instances.Why)
	for _, r := range e.Roles {
		add(r.Absent, r.Why)
	}
	for _, p := range e.Profiles {
		add(p.Absent, p.Why)
	}
	for _, i := range e.Instances.Value {
		add(i.Console.Absent, i.Console.Why)
	}
	slices.Sort(out)
	return out
}

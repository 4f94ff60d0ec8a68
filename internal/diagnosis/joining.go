package diagnosis

import (
	"slices"
	"strings"
)

// Scope selects the findings about one instance, or about all instances that an EC2NodeClass would launch.
type Scope struct {
	Class    string // name of the EC2NodeClass
	Instance string // id; empty: any
	Subnet   string // of the instance; empty: any subnet of the class
}

// Joining returns the broken and suspicious findings that may keep the instances of a Scope from joining, in the order
// of Rank. They are about the class, the whole cluster, the instance or its subnet. Findings about the time before
// a launch or after joining are left out.
func Joining(findings []Finding, q Scope) []Finding {
	return slices.DeleteFunc(slices.Clone(Worst(findings)), func(f Finding) bool {
		return f.Layer < LayerLaunch || f.Layer > LayerAuth || !q.IsAbout(f.Subject)
	})
}

// IsAbout reports whether a finding about the subject is relevant to the scope.
func (q Scope) IsAbout(subject string) bool {
	kind, name, _ := strings.Cut(subject, " ")
	switch kind {
	case "", "VPC":
		return true
	case "EC2NodeClass":
		return name == q.Class
	case "subnet":
		return q.Subnet == "" || name == q.Subnet
	case "instance":
		return name == q.Instance
	}
	return false
}

// Gaps returns the permissions that were missing when evidence was collected, sorted.
func Gaps(e Evidence) []string {
	var out []string
	add := func(absent Absence, why string) {
		if absent == Denied && !slices.Contains(out, why) {
			out = append(out, why)
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

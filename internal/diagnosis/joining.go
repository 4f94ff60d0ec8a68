package diagnosis

import (
	"slices"
	"strings"
)

// Quest selects the findings of one question: why does an instance, or all that an EC2NodeClass would launch, not join?
type Quest struct {
	Class    string // name of the EC2NodeClass
	Instance string // id; empty: any
	Subnet   string // of the instance; empty: any subnet of the class
}

// Joining returns the broken and suspicious findings that may keep the instances of a Quest from joining, in the order of Diagnose. They are
// about the class, the whole cluster, the instance or its subnet. Findings about the time before a launch or after joining are left out.
func Joining(findings []Finding, q Quest) []Finding {
	return slices.DeleteFunc(slices.Clone(Worst(findings)), func(f Finding) bool {
		return f.layer < int(LayerLaunch) || f.layer > int(LayerAuth) || !q.isAbout(f.Subject)
	})
}

// isAbout reports whether a finding about the subject is relevant to the quest.
func (q Quest) isAbout(subject string) bool {
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

// Ahead returns, by EC2NodeClass, the certain findings that need no instance as evidence: what the class launches now will not join. The first
// of a class is the root cause. A subnet without a route out counts only if no other subnet of the class has one.
func Ahead(e Evidence) map[string][]Finding {
	e.Instances, e.Events, e.Claims = Item[[]Instance]{}, Item[[]Event]{}, Item[[]Claim]{}
	var sure []Finding
	for _, f := range Diagnose(e) {
		if f.Verdict == Broken && f.Certainty == Certain && decides(f.Check) {
			sure = append(sure, f)
		}
	}
	out := map[string][]Finding{}
	for _, c := range e.Classes.Value {
		var own, subnets []Finding
		for _, f := range sure {
			id, isSubnet := strings.CutPrefix(f.Subject, "subnet ")
			switch {
			case isSubnet && slices.Contains(c.Subnets, id):
				subnets = append(subnets, f)
			case !isSubnet && (Quest{Class: c.Name}).isAbout(f.Subject):
				own = append(own, f)
			}
		}
		if len(subnets) == len(c.Subnets) {
			own = append(own, subnets...)
			rank(own)
		}
		if len(own) > 0 {
			out[c.Name] = own
		}
	}
	return out
}

// decides reports whether the verdict of a check is reliable before there is an instance: all its evidence was read. Other checks rely on
// usual cases, such as policy names, or on earlier launches.
func decides(check string) bool {
	switch check {
	case "ARCH-2", "AUTH-1", "AUTH-2", "AUTH-3", "AUTH-5", "AUTH-7", "NET-1", "NET-2", "NET-3", "NET-4":
		return true
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

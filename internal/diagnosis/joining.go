package diagnosis

import (
	"slices"
	"strings"
)

// Quest is what somebody wants to know why it does not join: one instance, or all that an EC2NodeClass would launch.
type Quest struct {
	Class    string // name of the EC2NodeClass
	Instance string // id; empty: any
	Subnet   string // of the instance; empty: any of the class's
}

// Joining returns the findings that keep the instances of a quest from joining, or may: broken and suspicious ones, in the order of
// Diagnose, about the class, about all of the cluster, or about just that instance or its subnet. What bites before a launch or after
// the joining is left out.
func Joining(findings []Finding, q Quest) []Finding {
	return slices.DeleteFunc(slices.Clone(Worst(findings)), func(f Finding) bool {
		return f.layer < int(LayerLaunch) || f.layer > int(LayerAuth) || !q.isAbout(f.Subject)
	})
}

// isAbout reports whether a finding about the subject bears on the quest.
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

// Ahead returns, by EC2NodeClass, the findings that are known without any instance, and certain: what the class would launch now will
// not join. The first of a class is the root. A subnet without a way out counts where no other of the class has one.
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

// decides reports whether a check that is certain before there is an instance is to be believed: it has read all that its verdict
// rests on. Others know what usually is so, as of policies by their names, or rest on what was said of launches.
func decides(check string) bool {
	switch check {
	case "ARCH-2", "AUTH-1", "AUTH-2", "AUTH-3", "AUTH-5", "AUTH-7", "NET-1", "NET-2", "NET-3", "NET-4":
		return true
	}
	return false
}

// Gaps are the permissions that were missing when the evidence of joining was collected, sorted.
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

package checks

import (
	"slices"
	"strings"

	"github.com/joiner-sh/joiner/internal/diagnosis"
)

// Preflight returns, by name of the EC2NodeClass, the findings that are Broken and Certain even without evidence from
// launches. Instances of a class with such a finding will not join. The first finding of a class is the root cause.
// Findings about subnets are returned only if each subnet of the class has one: instances in other subnets may join.
func Preflight(e diagnosis.Evidence) map[string][]diagnosis.Finding {
	e.Instances, e.Events, e.Claims = diagnosis.Item[[]diagnosis.Instance]{}, diagnosis.Item[[]diagnosis.Event]{},
		diagnosis.Item[[]diagnosis.Claim]{}
	var certain []diagnosis.Finding
	for _, f := range Diagnose(e) {
		if f.Verdict == diagnosis.Broken && f.Certainty == diagnosis.Certain && isReliable(f.Check) {
			certain = append(certain, f)
		}
	}
	out := map[string][]diagnosis.Finding{}
	for _, c := range e.Classes.Value {
		var ofClass, ofSubnets []diagnosis.Finding
		for _, f := range certain {
			id, isSubnet := strings.CutPrefix(f.Subject, "subnet ")
			switch {
			case isSubnet && slices.Contains(c.Subnets, id):
				ofSubnets = append(ofSubnets, f)
			case !isSubnet && (diagnosis.Scope{Class: c.Name}).IsAbout(f.Subject):
				ofClass = append(ofClass, f)
			}
		}
		if len(ofSubnets) == len(c.Subnets) {
			ofClass = append(ofClass, ofSubnets...)
			diagnosis.Rank(ofClass)
		}
		if len(ofClass) > 0 {
			out[c.Name] = ofClass
		}
	}
	return out
}

// isReliable reports whether the verdict of a check is reliable before there is an instance. The verdicts of other
// checks depend on conventions, such as the names of policies, or on earlier launches.
func isReliable(check string) bool {
	switch check {
	case "ARCH-2", "AUTH-1", "AUTH-2", "AUTH-3", "AUTH-5", "AUTH-7", "NET-1", "NET-2", "NET-3", "NET-4":
		return true
	}
	return false
}

package checks

import (
	"slices"
	"strings"

	"github.com/joiner-sh/joiner/internal/diagnosis"
)

// Preflight returns by EC2NodeClass the broken findings of certainty Certain that need no instance as evidence.
// Instances of a class with such a finding will not join. The first finding of a class is the root cause. Findings
// about subnets are returned only if there are as many of them as the class has subnets.
func Preflight(e diagnosis.Evidence) map[string][]diagnosis.Finding {
	e.Instances, e.Events, e.Claims = diagnosis.Item[[]diagnosis.Instance]{}, diagnosis.Item[[]diagnosis.Event]{},
		diagnosis.Item[[]diagnosis.Claim]{}
	var sure []diagnosis.Finding
	for _, f := range Diagnose(e) {
		if f.Verdict == diagnosis.Broken && f.Certainty == diagnosis.Certain && decides(f.Check) {
			sure = append(sure, f)
		}
	}
	out := map[string][]diagnosis.Finding{}
	for _, c := range e.Classes.Value {
		var own, subnets []diagnosis.Finding
		for _, f := range sure {
			id, isSubnet := strings.CutPrefix(f.Subject, "subnet ")
			switch {
			case isSubnet && slices.Contains(c.Subnets, id):
				subnets = append(subnets, f)
			case !isSubnet && (diagnosis.Scope{Class: c.Name}).IsAbout(f.Subject):
				own = append(own, f)
			}
		}
		if len(subnets) == len(c.Subnets) {
			own = append(own, subnets...)
			diagnosis.Rank(own)
		}
		if len(own) > 0 {
			out[c.Name] = own
		}
	}
	return out
}

// decides reports whether the verdict of a check is reliable before there is an instance. Other checks rely on usual
// cases, such as policy names, or on earlier launches.
func decides(check string) bool {
	switch check {
	case "ARCH-2", "AUTH-1", "AUTH-2", "AUTH-3", "AUTH-5", "AUTH-7", "NET-1", "NET-2", "NET-3", "NET-4":
		return true
	}
	return false
}

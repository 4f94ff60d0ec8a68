package checks

import (
	"slices"

	"github.com/joiner-sh/joiner/internal/diagnosis"
	"github.com/joiner-sh/joiner/internal/diagnosis/fix"
	"github.com/joiner-sh/joiner/internal/diagnosis/index"
)

// withRelaunch returns the finding. If its verdict is Broken and its fix changes an EC2NodeClass, the fix gets a step
// that deletes the class's NodeClaims that have not joined. Running instances keep the configuration of their launch,
// so new instances must be launched.
func withRelaunch(ix *index.Index, f diagnosis.Finding) diagnosis.Finding {
	if f.Verdict != diagnosis.Broken || f.Fix.IsZero() {
		return f
	}
	names := notJoined(ix, func(class string) bool { return f.Fix.Touches("ec2nodeclass", class) })
	if len(names) == 0 || f.Fix.Deletes("nodeclaim") {
		return f
	}
	const most = 5 // NodeClaims; more would not fit in a line
	var claims []fix.Claim
	for _, name := range names[:min(len(names), most)] {
		claims = append(claims, fix.Claim{Name: name})
	}
	step := fix.DeleteClaims(claims...)
	if len(names) > most {
		step = step.With("and the others that have not joined")
	}
	f.Fix = f.Fix.And(step)
	return f
}

// notJoined returns the sorted names of the NodeClaims whose instances were launched and have not joined, if isIncluded
// returns true for their class.
func notJoined(ix *index.Index, isIncluded func(class string) bool) []string {
	var out []string
	for _, c := range ix.Evidence.Claims.Value {
		if c.ProviderID != "" && isIncluded(c.Class) && !c.Deleting && diagnosis.FindCondition(c.Conditions, "Registered").Status != "True" {
			out = append(out, c.Name)
		}
	}
	slices.Sort(out)
	return out
}

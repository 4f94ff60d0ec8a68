package diagnosis

import (
	"slices"

	"github.com/joiner-sh/joiner/internal/diagnosis/fix"
)

// afresh adds to the fix of an EC2NodeClass the step that has its instances bought anew: those that run keep what they were launched with.
func (d *desk) afresh(f Finding) Finding {
	if f.Verdict != Broken || f.Fix.IsZero() {
		return f
	}
	names := d.notJoined(func(class string) bool { return f.Fix.Touches("ec2nodeclass", class) })
	if len(names) == 0 || f.Fix.Deletes("nodeclaim") {
		return f
	}
	const most = 5 // what fits in a line
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

// notJoined are the NodeClaims of such classes whose instances were launched and have not joined, sorted.
func (d *desk) notJoined(ofClass func(class string) bool) []string {
	var out []string
	for _, c := range d.Claims.Value {
		if c.ProviderID != "" && ofClass(c.Class) && !c.Deleting && condition(c.Conditions, "Registered").Status != "True" {
			out = append(out, c.Name)
		}
	}
	slices.Sort(out)
	return out
}

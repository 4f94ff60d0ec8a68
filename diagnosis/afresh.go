package diagnosis

import (
	"slices"
	"strings"
)

// afresh adds to the fix of an EC2NodeClass the command that has its instances bought anew: those that run keep what they were launched with.
func (d *desk) afresh(f Finding) Finding {
	if f.Verdict != Broken || f.Fix == "" {
		return f
	}
	var names []string
	for _, c := range d.Claims.Value {
		changes := strings.Contains(f.Fix, " ec2nodeclass "+c.Class+" ")
		// Claims are read before instances: one may have been bought for a claim in between.
		bought := c.ProviderID != "" || slices.ContainsFunc(d.Instances.Value, func(i Instance) bool { return i.Claim == c.Name && i.runs() })
		if changes && bought && !c.Deleting && condition(c.Conditions, "Registered").Status != "True" {
			names = append(names, c.Name)
		}
	}
	if len(names) == 0 || strings.Contains(f.Fix, "kubectl delete nodeclaim ") {
		return f
	}
	slices.Sort(names)
	const most = 5 // what fits in a line
	line := "kubectl delete nodeclaim --wait=false " + strings.Join(names[:min(len(names), most)], " ")
	if len(names) > most {
		line += "   # and the others that have not joined"
	}
	f.Fix += "\n" + line
	return f
}

package diagnosis

import (
	"maps"
	"slices"
	"strings"
)

// afresh adds to the fix of an EC2NodeClass the command that has its instances bought anew: those that run keep what they were launched with.
func (d *desk) afresh(f Finding) Finding {
	if f.Verdict != Broken || f.Fix == "" {
		return f
	}
	names := d.notJoined(func(class string) bool { return strings.Contains(f.Fix, " ec2nodeclass "+class+" ") })
	if len(names) == 0 || strings.Contains(f.Fix, "kubectl delete nodeclaim ") {
		return f
	}
	const most = 5 // what fits in a line
	line := "kubectl delete nodeclaim --wait=false " + strings.Join(names[:min(len(names), most)], " ")
	if len(names) > most {
		line += "   # and the others that have not joined"
	}
	f.Fix += "\n" + line
	return f
}

// notJoined are the NodeClaims of such classes whose machines were bought and have not joined, sorted. Claims are read before instances: a
// machine may have been bought for a claim in between, or for one that was not there yet.
func (d *desk) notJoined(ofClass func(class string) bool) []string {
	isBought, isOut := map[string]bool{}, map[string]bool{}
	for _, i := range d.Instances.Value {
		if _, isNode := d.joined[i.ID]; i.runs() && i.Claim != "" && ofClass(i.Class) && !isNode && !d.isOthers(i) {
			isBought[i.Claim] = true
		}
	}
	for _, c := range d.Claims.Value {
		isBought[c.Name] = isBought[c.Name] || c.ProviderID != ""
		isOut[c.Name] = !ofClass(c.Class) || c.Deleting || condition(c.Conditions, "Registered").Status == "True"
	}
	return slices.DeleteFunc(slices.Sorted(maps.Keys(isBought)), func(name string) bool { return !isBought[name] || isOut[name] })
}

package diagnosis

import (
	"fmt"
	"slices"
	"strings"

	"github.com/joiner-sh/joiner/internal/diagnosis/fix"
)

// judgeAddresses: instances and pods take addresses.
func judgeAddresses(d *desk) []Finding {
	if gap, ok := d.Classes.gap("the EC2NodeClasses"); ok {
		return []Finding{gap}
	}
	if gap, ok := d.Subnets.gap("the subnets"); ok {
		return []Finding{gap}
	}
	said := append(d.messages("InsufficientFreeAddressesInSubnet"), sentences(d.heardOf([]string{"InsufficientFreeAddressesInSubnet"}))...)
	certainty := Likely
	if len(said) == 0 { // events of a pod may be written by others than the kubelet
		said, certainty = d.podsThatSay("failed to assign an IP address"), Possible
	}
	var out []Finding
	for _, c := range d.Classes.Value {
		free, full := 0, []string{}
		for _, s := range d.Subnets.Value {
			if !slices.Contains(c.Subnets, s.ID) {
				continue
			}
			free += s.Free
			if s.Free < fewAddresses {
				full = append(full, fmt.Sprintf("%s (%d free)", s.ID, s.Free))
			}
		}
		subject := "EC2NodeClass " + c.Name
		roomier := d.roomierSubnets(c)
		switch {
		case len(c.Subnets) > 0 && free < fewAddresses:
			out = append(out, broken(subject, Certain, "its subnets are full: %s", strings.Join(full, ", ")).with(d.Subnets.Source).with(said...).mend(roomier))
		case len(full) > 0 && len(said) > 0:
			out = append(out, suspicious(subject, certainty, "some of its subnets are full: %s", strings.Join(full, ", ")).with(d.Subnets.Source).with(said...).mend(roomier))
		default:
			out = append(out, fine(subject))
		}
	}
	return out
}

// roomierSubnets is the step that lets a class select the subnets with the most free addresses that it has not: private ones that lead out, in
// different zones.
func (d *desk) roomierSubnets(c Class) fix.Step {
	all := slices.Clone(d.Subnets.Value)
	slices.SortStableFunc(all, func(a, b Subnet) int { return b.Free - a.Free })
	var terms fix.List
	zones := map[string]bool{}
	for _, s := range all {
		if s.Public || s.Free < manyAddresses || zones[s.Zone] || slices.Contains(c.Subnets, s.ID) || !d.leadsOut(s.ID) {
			continue
		}
		zones[s.Zone] = true
		terms = append(terms, fix.At(fix.Subnet(s.ID), "id"))
	}
	if len(terms) == 0 {
		return fix.Edit(fix.NodeClass(c.Name)).With("select subnets with more addresses in spec.subnetSelectorTerms; the VPC has none yet")
	}
	return fix.Merge(fix.NodeClass(c.Name), fix.At(terms, "spec", "subnetSelectorTerms"))
}

// subnetsOfVPC is the step that leaves of a class' subnets those in the cluster's VPC; where none is, it takes the roomiest there.
func (d *desk) subnetsOfVPC(c Class) fix.Step {
	var terms fix.List
	for _, s := range d.Subnets.Value {
		if slices.Contains(c.Subnets, s.ID) {
			terms = append(terms, fix.At(fix.Subnet(s.ID), "id"))
		}
	}
	if len(terms) == 0 {
		return d.roomierSubnets(c)
	}
	return fix.Merge(fix.NodeClass(c.Name), fix.At(terms, "spec", "subnetSelectorTerms")).With("subnets of %s", d.Cluster.Value.VPC)
}

// leadsOut reports whether a subnet has a default route that works.
func (d *desk) leadsOut(id string) bool {
	table, ok := d.table(id)
	return ok && slices.ContainsFunc(table.Routes, func(r Route) bool { return (r.To == "0.0.0.0/0" || r.To == "::/0") && !r.Blackhole })
}

// manyAddresses is how many free addresses a subnet must have to be proposed.
const manyAddresses = 64

// fewAddresses is the number of free addresses below which a node with its pods does not fit.
const fewAddresses = 4

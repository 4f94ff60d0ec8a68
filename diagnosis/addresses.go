package diagnosis

import (
	"fmt"
	"slices"
	"strings"
)

// judgeAddresses: instances and pods take addresses.
func judgeAddresses(d *desk) []Finding {
	if gap, ok := d.Classes.gap("the EC2NodeClasses"); ok {
		return []Finding{gap}
	}
	if gap, ok := d.Subnets.gap("the subnets"); ok {
		return []Finding{gap}
	}
	said := append(d.messages("InsufficientFreeAddressesInSubnet"), d.messages("failed to assign an IP address")...)
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
		fix := d.roomierSubnets(c)
		switch {
		case len(c.Subnets) > 0 && free < fewAddresses:
			out = append(out, broken(subject, Certain, "its subnets are full: %s", strings.Join(full, ", ")).with(d.Subnets.Source).with(said...).mend(fix))
		case len(full) > 0 && len(said) > 0:
			out = append(out, suspicious(subject, Likely, "some of its subnets are full: %s", strings.Join(full, ", ")).with(d.Subnets.Source).with(said...).mend(fix))
		default:
			out = append(out, fine(subject))
		}
	}
	return out
}

// roomierSubnets is the command that lets a class select the subnets with the most free addresses that it has not: private ones that lead out, in
// different zones.
func (d *desk) roomierSubnets(c Class) string {
	all := slices.Clone(d.Subnets.Value)
	slices.SortStableFunc(all, func(a, b Subnet) int { return b.Free - a.Free })
	var terms []string
	zones := map[string]bool{}
	for _, s := range all {
		if s.Public || s.Free < manyAddresses || zones[s.Zone] || slices.Contains(c.Subnets, s.ID) || !d.leadsOut(s.ID) {
			continue
		}
		zones[s.Zone] = true
		terms = append(terms, `{"id":"`+s.ID+`"}`)
	}
	if len(terms) == 0 {
		return "kubectl edit ec2nodeclass " + c.Name + "   # select subnets with more addresses in spec.subnetSelectorTerms; the VPC has none yet"
	}
	return fmt.Sprintf(`kubectl patch ec2nodeclass %s --type merge -p '{"spec":{"subnetSelectorTerms":[%s]}}'`, c.Name, strings.Join(terms, ","))
}

// subnetsOfVPC is the command that leaves of a class' subnets those in the cluster's VPC; where none is, it takes the roomiest there.
func (d *desk) subnetsOfVPC(c Class) string {
	var terms []string
	for _, s := range d.Subnets.Value {
		if slices.Contains(c.Subnets, s.ID) {
			terms = append(terms, `{"id":"`+s.ID+`"}`)
		}
	}
	if len(terms) == 0 {
		return d.roomierSubnets(c)
	}
	return patchOf(c.Name, `{"subnetSelectorTerms":[`+strings.Join(terms, ",")+`]}`, "subnets of "+d.Cluster.Value.VPC)
}

// leadsOut reports whether a subnet has a default route that works.
func (d *desk) leadsOut(id string) bool {
	table, ok := d.table(id)
	return ok && slices.ContainsFunc(table.Routes, func(r Route) bool { return (r.To == "0.0.0.0/0" || r.To == "::/0") && !r.Blackhole })
}

// manyAddresses is how many free ones a subnet must have to be proposed.
const manyAddresses = 64

// fewAddresses is how many free ones do not carry a node with its pods.
const fewAddresses = 4

package network

import (
	"fmt"
	"slices"
	"strings"

	"github.com/joiner-sh/joiner/internal/diagnosis"
	"github.com/joiner-sh/joiner/internal/diagnosis/fix"
	"github.com/joiner-sh/joiner/internal/diagnosis/index"
)

// judgeAddresses: instances and pods take addresses.
func judgeAddresses(ix *index.Index) []diagnosis.Finding {
	if gap, ok := ix.Evidence.Classes.Gap("the EC2NodeClasses"); ok {
		return []diagnosis.Finding{gap}
	}
	if gap, ok := ix.Evidence.Subnets.Gap("the subnets"); ok {
		return []diagnosis.Finding{gap}
	}
	said := append(ix.StatementLines("InsufficientFreeAddressesInSubnet"),
		index.Sentences(ix.ControllerStatements([]string{"InsufficientFreeAddressesInSubnet"}))...)
	certainty := diagnosis.Likely
	if len(said) == 0 { // events of a pod may be written by others than the kubelet
		said, certainty = ix.PodMessages("failed to assign an IP address"), diagnosis.Possible
	}
	var out []diagnosis.Finding
	for _, c := range ix.Evidence.Classes.Value {
		free, full := 0, []string{}
		for _, s := range ix.Evidence.Subnets.Value {
			if !slices.Contains(c.Subnets, s.ID) {
				continue
			}
			free += s.Free
			if s.Free < fewAddresses {
				full = append(full, fmt.Sprintf("%s (%d free)", s.ID, s.Free))
			}
		}
		subject := "EC2NodeClass " + c.Name
		roomier := RoomierSubnets(ix, c)
		switch {
		case len(c.Subnets) > 0 && free < fewAddresses:
			out = append(out, diagnosis.ReportBroken(subject, diagnosis.Certain, "its subnets are full: %s",
				strings.Join(full, ", ")).With(ix.Evidence.Subnets.Source).With(said...).FixedBy(roomier))
		case len(full) > 0 && len(said) > 0:
			out = append(out, diagnosis.ReportSuspicious(subject, certainty, "some of its subnets are full: %s",
				strings.Join(full, ", ")).With(ix.Evidence.Subnets.Source).With(said...).FixedBy(roomier))
		default:
			out = append(out, diagnosis.ReportFine(subject))
		}
	}
	return out
}

// RoomierSubnets is the step that lets a class select the subnets with the most free addresses that it has not: private
// ones that lead out, in different zones.
func RoomierSubnets(ix *index.Index, c diagnosis.Class) fix.Step {
	all := slices.Clone(ix.Evidence.Subnets.Value)
	slices.SortStableFunc(all, func(a, b diagnosis.Subnet) int { return b.Free - a.Free })
	var terms fix.List
	zones := map[string]bool{}
	for _, s := range all {
		if s.Public || s.Free < manyAddresses || zones[s.Zone] || slices.Contains(c.Subnets, s.ID) || !leadsOut(ix, s.ID) {
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

// SubnetsOfVPC is the step that leaves of a class' subnets those in the cluster's VPC; where none is, it takes the roomiest there.
func SubnetsOfVPC(ix *index.Index, c diagnosis.Class) fix.Step {
	var terms fix.List
	for _, s := range ix.Evidence.Subnets.Value {
		if slices.Contains(c.Subnets, s.ID) {
			terms = append(terms, fix.At(fix.Subnet(s.ID), "id"))
		}
	}
	if len(terms) == 0 {
		return RoomierSubnets(ix, c)
	}
	return fix.Merge(fix.NodeClass(c.Name), fix.At(terms, "spec", "subnetSelectorTerms")).With("subnets of %s", ix.Evidence.Cluster.Value.VPC)
}

// leadsOut reports whether a subnet has a default route that works.
func leadsOut(ix *index.Index, id string) bool {
	table, ok := RouteTableOf(ix, id)
	return ok && slices.ContainsFunc(table.Routes,
		func(r diagnosis.Route) bool { return (r.To == "0.0.0.0/0" || r.To == "::/0") && !r.Blackhole })
}

// manyAddresses is how many free addresses a subnet must have to be proposed.
const manyAddresses = 64

// fewAddresses is the number of free addresses below which a node with its pods does not fit.
const fewAddresses = 4

package network

import (
	"fmt"
	"slices"
	"strings"

	"github.com/joiner-sh/joiner/internal/diagnosis"
	"github.com/joiner-sh/joiner/internal/diagnosis/fix"
	"github.com/joiner-sh/joiner/internal/diagnosis/index"
)

func judgeAddresses(ix *index.Index) []diagnosis.Finding {
	if gap, ok := ix.Evidence.Classes.Gap("the EC2NodeClasses"); ok {
		return []diagnosis.Finding{gap}
	}
	if gap, ok := ix.Evidence.Subnets.Gap("the subnets"); ok {
		return []diagnosis.Finding{gap}
	}
	evidence := append(ix.StatementLines("InsufficientFreeAddressesInSubnet"),
		index.EvidenceLines(ix.ControllerStatements([]string{"InsufficientFreeAddressesInSubnet"}))...)
	certainty := diagnosis.Likely
	if len(evidence) == 0 { // messages of pods prove little, because tenants can write events about their pods
		evidence, certainty = ix.PodMessages("failed to assign an IP address"), diagnosis.Possible
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
				strings.Join(full, ", ")).With(ix.Evidence.Subnets.Source).With(evidence...).FixedBy(roomier))
		case len(full) > 0 && len(evidence) > 0:
			out = append(out, diagnosis.ReportSuspicious(subject, certainty, "some of its subnets are full: %s",
				strings.Join(full, ", ")).With(ix.Evidence.Subnets.Source).With(evidence...).FixedBy(roomier))
		default:
			out = append(out, diagnosis.ReportFine(subject))
		}
	}
	return out
}

// RoomierSubnets returns the step that makes a class select other subnets. The step selects one subnet per zone:
// private, with a default route, and with at least manyAddresses free addresses. If several subnets of a zone qualify,
// it selects the subnet with the most free addresses. If no subnet qualifies, the user selects subnets.
func RoomierSubnets(ix *index.Index, c diagnosis.Class) fix.Step {
	all := slices.Clone(ix.Evidence.Subnets.Value)
	slices.SortStableFunc(all, func(a, b diagnosis.Subnet) int { return b.Free - a.Free })
	var terms fix.List
	zones := map[string]bool{}
	for _, s := range all {
		if s.Public || s.Free < manyAddresses || zones[s.Zone] || slices.Contains(c.Subnets, s.ID) || !hasRouteOut(ix, s.ID) {
			continue
		}
		zones[s.Zone] = true
		terms = append(terms, fix.At(fix.Subnet(s.ID), "id"))
	}
	if len(terms) == 0 {
		return fix.Edit(fix.NodeClass(c.Name)).With("select subnets with more addresses in spec.subnetSelectorTerms; the VPC has no such subnets yet")
	}
	return fix.Merge(fix.NodeClass(c.Name), fix.At(terms, "spec", "subnetSelectorTerms"))
}

// SubnetsOfVPC is the step that makes a class select only those of its subnets that are in the cluster's VPC. If none
// is, it is the step RoomierSubnets.
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

func hasRouteOut(ix *index.Index, id string) bool {
	table, ok := RouteTableOf(ix, id)
	return ok && slices.ContainsFunc(table.Routes,
		func(r diagnosis.Route) bool { return (r.To == "0.0.0.0/0" || r.To == "::/0") && !r.Blackhole })
}

// manyAddresses is the minimum number of free addresses of a subnet that a fix proposes.
const manyAddresses = 64

// fewAddresses is the number of free addresses below which a subnet counts as full.
const fewAddresses = 4

package controller

import (
	"cmp"
	"slices"

	"github.com/joiner-sh/joiner/capacity"
	"github.com/joiner-sh/joiner/catalog"
	"github.com/joiner-sh/joiner/constraint"
	"github.com/joiner-sh/joiner/ec2"
	"github.com/joiner-sh/joiner/network"
)

// wish is what a claim accepts.
type wish struct {
	accepted constraint.Requirements
	requests capacity.Amounts
	variety  bool                      // many types are worth more than many zones of the cheapest
	subnets  map[string]network.Subnet // by zone; in a zone without one nothing can be launched
}

// pick is one offering to ask EC2 for.
type pick struct {
	kind     catalog.Type
	offering catalog.Offering
}

// choose returns what to ask EC2 for, in one way of paying: spot where it can be had, else on demand. The cheapest come
// first, and not more than one launch may name. Where on demand would do too, spot that costs more is left out.
func choose(types []catalog.Type, w wish) (string, []pick) {
	byWay := map[string][]pick{}
	for _, t := range types {
		if !w.fits(t) {
			continue
		}
		for _, o := range t.Offerings {
			if o.Available && w.takes(t, o) {
				byWay[o.CapacityType] = append(byWay[o.CapacityType], pick{t, o})
			}
		}
	}
	for _, picks := range byWay {
		slices.SortFunc(picks, comparePicks)
	}
	spot, onDemand := byWay[catalog.Spot], byWay[catalog.OnDemand]
	if len(spot) > 0 && len(onDemand) > 0 && !w.variety {
		ceiling := onDemand[0].offering.Price
		spot = slices.DeleteFunc(spot, func(p pick) bool { return p.offering.Price > ceiling })
	}
	if len(spot) > 0 {
		return catalog.Spot, w.cut(spot)
	}
	return catalog.OnDemand, w.cut(onDemand)
}

func comparePicks(a, b pick) int {
	return cmp.Or(a.offering.Compare(b.offering), cmp.Compare(a.kind.Name, b.kind.Name))
}

func (w wish) fits(t catalog.Type) bool { return w.requests.Fits(t.Allocatable) }

// takes reports whether a node of this offering would satisfy the requirements. Labels that neither type nor offering
// define are the pool's business: the claim carries them.
func (w wish) takes(t catalog.Type, o catalog.Offering) bool {
	if _, ok := w.subnets[o.Zone]; !ok {
		return false
	}
	for _, labels := range []constraint.Labels{t.Labels, o.Labels()} {
		for key, value := range labels {
			if accepted, ok := w.accepted[key]; ok && !accepted.Accepts(value) {
				return false
			}
		}
	}
	return w.takesAbsence(t, o)
}

// takesAbsence reports whether the labels that only some types have, and this one lacks, may be missing.
func (w wish) takesAbsence(t catalog.Type, o catalog.Offering) bool {
	offered := o.Labels()
	for key, accepted := range w.accepted {
		_, ofType := t.Labels[key]
		_, ofOffering := offered[key]
		if !ofType && !ofOffering && isTypeLabel(key) && !accepted.Absent {
			return false
		}
	}
	return true
}

// cut leaves as many picks as one launch may name. With variety, each type keeps its cheapest offering first.
func (w wish) cut(picks []pick) []pick {
	if len(picks) <= ec2.MaxChoices {
		return picks
	}
	if !w.variety {
		return picks[:ec2.MaxChoices]
	}
	seen := map[string]bool{}
	var first, rest []pick
	for _, p := range picks {
		if seen[p.kind.Name] {
			rest = append(rest, p)
			continue
		}
		seen[p.kind.Name] = true
		first = append(first, p)
	}
	return append(first, rest...)[:ec2.MaxChoices]
}

package existing

import (
	"slices"

	"github.com/joiner-sh/joiner/internal/model/bitset"
	"github.com/joiner-sh/joiner/internal/model/hashkey"
	"github.com/joiner-sh/joiner/internal/scheduling/topology"
)

// maxCells is the maximum number of combinations of domains (cells) for one profile. Further combinations are ignored,
// which limits the memory and time of a plan.
const maxCells = 20_000

// DomainCombinations returns the combinations of domains of the profile's labels that some offer or node has, sorted. A
// combination has the number of a domain for each label in p.Keys, which must not be empty. Profiles with the same
// labels share the result.
func (t *TopologyState) DomainCombinations(p *topology.Profile) [][]int {
	key := string(hashkey.Text(nil, p.Keys...))
	if known, ok := t.combined[key]; ok {
		return known
	}
	labels := make([]*LabelDomains, len(p.Keys))
	for i, label := range p.Keys {
		labels[i] = t.Keys[label]
	}
	seen := map[string]bool{}
	var out [][]int
	var cellKey []byte
	add := func(domain func(*LabelDomains) int) { // adds the domains that a node or an offer has
		cellKey = cellKey[:0]
		for _, f := range labels {
			cellKey = hashkey.Int(cellKey, domain(f))
		}
		if seen[string(cellKey)] {
			return
		}
		seen[string(cellKey)] = true
		cell := make([]int, len(labels))
		for i, f := range labels {
			cell[i] = domain(f)
		}
		out = append(out, cell)
	}
	for n := range labels[0].nodeAt {
		add(func(f *LabelDomains) int { return f.nodeAt[n] })
	}
	for o := range labels[0].OfferAt {
		add(func(f *LabelDomains) int { return f.OfferAt[o] })
	}
	slices.SortFunc(out, slices.Compare)
	out = out[:min(len(out), maxCells)]
	t.combined[key] = out
	return out
}

// OffersIn returns the offers in among that are in all domains of the cell, which is a combination of domains.
func (t *TopologyState) OffersIn(p *topology.Profile, cell []int, among bitset.Set) bitset.Set {
	for i, d := range cell {
		among = among.Intersection(t.Keys[p.Keys[i]].Offers[d])
	}
	return among
}

// NodesIn returns the nodes that are in all domains of the cell.
func (t *TopologyState) NodesIn(p *topology.Profile, cell []int) bitset.Set {
	out := t.Keys[p.Keys[0]].Nodes[cell[0]]
	for i := 1; i < len(cell); i++ {
		out = out.Intersection(t.Keys[p.Keys[i]].Nodes[cell[i]])
	}
	return out
}

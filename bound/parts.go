package bound

import "slices"

// parts splits the problem into parts that share no offer, in the order of
// their first sets.
func parts(p Problem) []*part {
	asked := make([][]float64, len(p.Sets))
	for _, d := range p.Demands {
		if asked[d.Set] == nil {
			asked[d.Set] = make([]float64, len(d.Ask))
		}
		for r, n := range d.Ask {
			asked[d.Set][r] += float64(d.Count) * float64(max(n, 0))
		}
	}
	owner := components(p, asked)
	byOwner := map[int]*part{}
	var out []*part
	for s := range p.Sets {
		if asked[s] == nil || len(p.Sets[s]) == 0 {
			continue
		}
		q, ok := byOwner[owner[s]]
		if !ok {
			q = &part{problem: p, scale: make([]float64, len(asked[s]))}
			byOwner[owner[s]] = q
			out = append(out, q)
		}
		q.groups = append(q.groups, group{set: s, asked: asked[s], rates: rates(p, p.Sets[s])})
		for r, n := range asked[s] {
			q.scale[r] += n
		}
	}
	for i, d := range p.Demands {
		if q, ok := byOwner[owner[d.Set]]; ok && len(p.Sets[d.Set]) > 0 {
			q.demands = append(q.demands, i)
		}
	}
	return out
}

// components returns, for each set, the first set that it is connected to
// through shared offers.
func components(p Problem, asked [][]float64) []int {
	owner := make([]int, len(p.Sets))
	for s := range owner {
		owner[s] = s
	}
	root := func(s int) int {
		for owner[s] != s {
			s = owner[s]
		}
		return s
	}
	first := make([]int, len(p.Offers)) // the first set with the offer, plus one
	for s, offers := range p.Sets {
		if asked[s] == nil {
			continue
		}
		for _, o := range offers {
			if first[o] == 0 {
				first[o] = s + 1
				continue
			}
			a, b := root(first[o]-1), root(s)
			owner[max(a, b)] = min(a, b)
		}
	}
	for s := range owner {
		owner[s] = root(s)
	}
	return owner
}

// rates returns the room that the price unit buys, for the offers that no
// other offer of the set beats in every resource: the others never set a rate.
func rates(p Problem, set []int) [][]float64 {
	all := make([][]float64, 0, len(set))
	for _, o := range set {
		offer := p.Offers[o]
		if offer.Price <= 0 {
			return nil // what can be had for nothing proves nothing
		}
		rate := make([]float64, len(offer.Room))
		for r, n := range offer.Room {
			rate[r] = float64(max(n, 0)) / float64(offer.Price)
		}
		all = append(all, rate)
	}
	slices.SortFunc(all, func(a, b []float64) int { return slices.Compare(b, a) })
	var out [][]float64
	for _, rate := range all {
		if !slices.ContainsFunc(out, func(o []float64) bool { return covers(o, rate) }) {
			out = append(out, rate)
		}
	}
	return out
}

func covers(a, b []float64) bool {
	for r := range a {
		if a[r] < b[r] {
			return false
		}
	}
	return true
}

package bound

import (
	"cmp"
	"maps"
	"math"
	"slices"
)

// refinement looks for the shares of each offer's price. It climbs by letting
// pods lean towards their cheapest offers, the more strictly the later, and by
// shifting the price of each offer to the resources that those pods use most.
type refinement struct {
	part    *part
	offers  []int       // indexes into problem.Offers: those that no other beats
	shares  [][]float64 // by offer: of its price, by resource, then by slot; they add up to 1
	choices [][]choice  // by demand of the part: the offers with room for it

	value float64     // the most that was proved
	best  [][]float64 // the shares that proved it
	worth []float64   // by demand: what one pod pays under them
}

// choice is an offer that has room for a demand.
type choice struct {
	offer int       // index into refinement.offers
	costs []float64 // by resource: the share of the room that the pod takes, times the price
	slots []slot    // what it takes of the groups that it is in
	now   float64   // what the pod pays there at present
}

// slot is the place of a group among the shares of an offer, past the resources.
type slot struct {
	at   int
	cost float64 // what the pod would pay if the whole price stood for the group
}

const (
	mostRounds  = 80
	leastRounds = 16
	// roundsWork bounds rounds × demands × offers × resources.
	roundsWork = 40_000_000

	softest   = 0.08 // how much dearer an offer may be and still get a good part of the pods, at first
	hardest   = 0.002
	sharpness = 0.7 // how fast prices follow use
)

func (p *part) refine(weights []float64) *refinement {
	r := &refinement{part: p, offers: p.relevant()}
	for _, o := range r.offers {
		r.shares = append(r.shares, shares(weights, p.problem.Offers[o]))
	}
	r.findChoices()
	for _, s := range r.shares {
		open(s, len(weights))
	}
	each := max(len(p.demands)*len(r.offers)*len(weights), 1)
	rounds := min(max(roundsWork/each, leastRounds), mostRounds)
	for n := range rounds {
		r.round(softest * math.Pow(hardest/softest, float64(n)/float64(rounds-1)))
	}
	return r
}

// shares splits an offer's price over its resources by these weights.
func shares(weights []float64, o Offer) []float64 {
	out := make([]float64, len(weights))
	sum := 0.0
	for r, w := range weights {
		out[r] = w * float64(max(o.Room[r], 0))
		sum += out[r]
	}
	for r := range out {
		out[r] /= max(sum, 1e-300)
	}
	return out
}

// opening is the part of an offer's price that its groups share at first.
const opening = 0.05

// open gives the slots past the resources their first shares.
func open(s []float64, resources int) {
	slots := len(s) - resources
	if slots == 0 {
		return
	}
	for k := range s {
		if k < resources {
			s[k] *= 1 - opening
		} else {
			s[k] = opening / float64(slots)
		}
	}
}

// findChoices finds, for each demand, the offers of its set that have room,
// and gives each offer a slot for each group that may be on it.
func (r *refinement) findChoices() {
	p := r.part.problem
	slotOf := make([]map[int]int, len(r.offers)) // by offer, by group
	for i := range slotOf {
		slotOf[i] = map[int]int{}
	}
	for _, i := range r.part.demands {
		d := p.Demands[i]
		inSet := make([]bool, len(p.Offers))
		for _, o := range p.Sets[d.Set] {
			inSet[o] = true
		}
		var choices []choice
		for at, o := range r.offers {
			if !inSet[o] || p.times(d, p.Offers[o]) < 1 {
				continue
			}
			c := choice{offer: at, costs: costs(d.Ask, p.Offers[o])}
			for _, g := range d.Groups {
				k, ok := slotOf[at][g]
				if !ok {
					k = len(r.shares[at])
					slotOf[at][g] = k
					r.shares[at] = append(r.shares[at], 0)
				}
				c.slots = append(c.slots, slot{at: k, cost: float64(p.Offers[o].Price) / float64(p.Caps[g])})
			}
			choices = append(choices, c)
		}
		r.choices = append(r.choices, choices)
	}
}

// costs returns, by resource, what a pod would pay if the whole price stood for that one.
func costs(ask []int64, o Offer) []float64 {
	out := make([]float64, len(ask))
	for r, a := range ask {
		if a > 0 {
			out[r] = float64(o.Price) * float64(a) / float64(o.Room[r])
		}
	}
	return out
}

// round prices every pod, keeps the shares if they prove more than any before,
// and moves them.
func (r *refinement) round(softness float64) {
	loads := make([][]float64, len(r.offers))
	for i := range loads {
		loads[i] = make([]float64, len(r.shares[i]))
	}
	worth, value := make([]float64, len(r.choices)), 0.0
	for i, choices := range r.choices {
		if len(choices) == 0 {
			continue
		}
		count := float64(r.part.problem.Demands[r.part.demands[i]].Count)
		worth[i] = r.price(choices)
		value += count * worth[i]
		lean(choices, count, worth[i], softness, loads)
	}
	if value > r.value || r.worth == nil {
		r.value, r.worth, r.best = value, worth, make([][]float64, len(r.shares))
		for i, s := range r.shares {
			r.best[i] = slices.Clone(s)
		}
	}
	for i, s := range r.shares {
		shift(s, loads[i])
	}
}

// price notes what a pod pays at each choice, and returns the least.
func (r *refinement) price(choices []choice) float64 {
	least := math.Inf(1)
	for i := range choices {
		c := &choices[i]
		c.now = c.pay(r.shares[c.offer])
		least = min(least, c.now)
	}
	return least
}

func (c *choice) pay(shares []float64) float64 {
	sum := pay(shares, c.costs)
	for _, s := range c.slots {
		sum += shares[s.at] * s.cost
	}
	return sum
}

func pay(shares, costs []float64) float64 {
	sum := 0.0
	for k, c := range costs {
		sum += shares[k] * c
	}
	return sum
}

// far is how many times the softness an offer may be dearer before nobody leans towards it.
const far = 20

// lean spreads the pods over their choices, most of them where they pay
// least, and adds what they take to the loads.
func lean(choices []choice, count, least, softness float64, loads [][]float64) {
	scale, total := max(least*softness, 1e-12), 0.0
	parts := make([]float64, len(choices))
	for i, c := range choices {
		if over := (c.now - least) / scale; over < far {
			parts[i] = math.Exp(-over)
			total += parts[i]
		}
	}
	for i, c := range choices {
		if parts[i] == 0 {
			continue
		}
		for k, cost := range c.costs {
			loads[c.offer][k] += count * parts[i] / total * cost
		}
		for _, s := range c.slots {
			loads[c.offer][s.at] += count * parts[i] / total * s.cost
		}
	}
}

// shift moves the price of an offer towards the resources that are used most.
func shift(w, load []float64) {
	sum := pay(w, load)
	if sum <= 0 {
		return
	}
	total := 0.0
	for k := range w {
		w[k] *= math.Pow(max(load[k]/sum, 1e-3), sharpness)
		w[k] = max(w[k], 1e-6/float64(len(w))) // no share is nothing: it could never grow again
		total += w[k]
	}
	for k := range w {
		w[k] /= total
	}
}

// hold notes the most that pods on each offer of the part can be worth. An
// offer that another beats is priced by the shares of that one.
func (r *refinement) hold(out *Answer) {
	p := r.part.problem
	paid := r.paid()
	for _, g := range r.part.groups {
		for _, o := range p.Sets[g.set] {
			if out.Holds[o] > 0 {
				continue
			}
			at := slices.IndexFunc(r.offers, func(by int) bool { return by == o || beats(p.Offers[by], p.Offers[o]) })
			if at < 0 {
				out.Holds[o] = float64(p.Offers[o].Price)
				continue
			}
			most := 0.0
			for i, d := range r.part.demands {
				if p.times(p.Demands[d], p.Offers[o]) < 1 {
					continue
				}
				cost := pay(r.best[at], costs(p.Demands[d].Ask, p.Offers[o]))
				if by := p.Offers[r.offers[at]].Price; by > 0 {
					cost += paid[i][at] / float64(by) * float64(p.Offers[o].Price)
				}
				if cost > 0 {
					most = max(most, r.worth[i]/cost)
				}
			}
			out.Holds[o] = min(most, 1) * float64(p.Offers[o].Price)
		}
	}
}

// paid returns, by demand and offer, what a pod pays there for its groups.
func (r *refinement) paid() []map[int]float64 {
	out := make([]map[int]float64, len(r.choices))
	for i, choices := range r.choices {
		for _, c := range choices {
			for _, s := range c.slots {
				if out[i] == nil {
					out[i] = map[int]float64{}
				}
				out[i][c.offer] += r.best[c.offer][s.at] * s.cost
			}
		}
	}
	return out
}

// relevant returns the offers of the part that no other beats: one that can be
// bought wherever the other can, has at least as much room of everything, and gives more
// of everything for its price. Where pods are in groups it must not cost more
// either, for two machines hold twice as many of a group.
func (p *part) relevant() []int {
	member := map[int][]int{} // by offer: the groups that have it
	for g, group := range p.groups {
		for _, o := range p.problem.Sets[group.set] {
			member[o] = append(member[o], g)
		}
	}
	offers := p.problem.Offers
	capped := map[int]bool{} // by set: some of its pods are in groups
	for _, i := range p.demands {
		d := p.problem.Demands[i]
		capped[d.Set] = capped[d.Set] || len(d.Groups) > 0
	}
	byGroup := func(o int) bool {
		return slices.ContainsFunc(member[o], func(g int) bool { return capped[p.groups[g].set] })
	}
	all := slices.SortedFunc(maps.Keys(member), func(a, b int) int {
		return cmp.Or(
			slices.Compare(offers[b].Room, offers[a].Room), cmp.Compare(offers[a].Price, offers[b].Price), cmp.Compare(a, b),
		)
	})
	var out []int
	for _, o := range all {
		beaten := slices.ContainsFunc(out, func(by int) bool {
			return beats(offers[by], offers[o]) && contains(member[by], member[o]) &&
				(offers[by].Price <= offers[o].Price || !byGroup(o))
		})
		if !beaten {
			out = append(out, o)
		}
	}
	return out
}

func beats(a, b Offer) bool {
	for r := range a.Room {
		if a.Room[r] < b.Room[r] || float64(a.Room[r])*float64(b.Price) < float64(b.Room[r])*float64(a.Price) {
			return false
		}
	}
	return true
}

// contains reports whether all of b, which is sorted like a, is in a.
func contains(a, b []int) bool {
	for _, x := range b {
		if _, ok := slices.BinarySearch(a, x); !ok {
			return false
		}
	}
	return true
}

package packing

import (
	"math"
	"slices"
)

// instances tries all ways to put a few pods on instances of capacity
// reservations, each with the least that the others then cost.
type instances struct {
	*exact
	turns []turn // one for each instance that could be used, alike ones in a row
}

// turn is the decision about one instance.
type turn struct {
	offer []int     // by state: the offer that holds just these pods; -1 if none does
	least []float64 // by state: the least for which all these pods can be had, with this instance and those before it
	part  []int     // by state: the pods on the instance in that plan
}

// fillFew fills capacity reservations in the way that makes the whole cheapest,
// if the active classes have few enough pods to try them all, and if no pod is
// left over and no limit overrun by it. It reports whether it did.
func (w *work) fillFew(active []int) bool {
	e := &exact{run: w.run(strategy{}, slices.Clone(w.left), nil), classes: active, states: 1}
	pods := 0
	for _, c := range active {
		e.size = append(e.size, e.states)
		pods += w.left[c]
		if e.states *= w.left[c] + 1; e.states > mostStates {
			return false
		}
	}
	lots := w.lots(active, w.set)
	if w.steps+e.states*(len(lots)+e.states*(1+len(w.st.Reserves))) > w.effort {
		return false
	}
	e.price(lots)
	e.partition()
	s := &instances{exact: e}
	least := e.least
	for n := range w.st.Reserves {
		offer := s.offers(n)
		for range min(w.unused(n), pods) {
			t := s.decide(offer, least)
			if slices.Equal(t.least, least) {
				break // one instance more makes nothing cheaper
			}
			s.turns, least = append(s.turns, t), t.least
		}
	}
	return !math.IsInf(least[e.states-1], 1) && s.assignAll()
}

// offers returns, by state, the offer of the reservation that holds just these pods.
func (s *instances) offers(reserve int) []int {
	out := make([]int, s.states)
	for state := range out {
		out[state] = -1
		takes := s.takes(state)
		for _, o := range s.st.Reserves[reserve].Offers {
			if state > 0 && s.work.affordable(o, 1) > 0 && s.holds(o, takes) {
				out[state] = o
				break
			}
		}
	}
	return out
}

// decide finds, for every state, the pods to put on one more instance.
func (s *instances) decide(offer []int, before []float64) turn {
	t := turn{offer: offer, least: slices.Clone(before), part: make([]int, s.states)}
	for state := 1; state < s.states; state++ {
		for part := 1; part <= state; part++ {
			if offer[part] < 0 || !s.within(part, state) {
				continue
			}
			price := before[state-part] + float64(s.st.Offers[offer[part]].Price)
			same := price == t.least[state] && t.part[state] > 0 && s.pods(part) > s.pods(t.part[state])
			if price < t.least[state] || same {
				t.least[state], t.part[state] = price, part
			}
		}
		s.steps += state
	}
	return t
}

// pods returns how many units a state has.
func (s *instances) pods(state int) int {
	n := 0
	for i := range s.classes {
		n += s.count(state, i)
	}
	return n
}

// assignAll makes the machines part of the plan, and reports whether the limits allow them.
func (s *instances) assignAll() bool {
	w := s.work
	machines, left := len(w.machines), slices.Clone(w.left)
	budgets := cloneBudgets(w.budgets)
	state := s.states - 1
	for _, t := range slices.Backward(s.turns) {
		part := t.part[state]
		if part == 0 {
			continue
		}
		if w.affordable(t.offer[part], 1) == 0 {
			w.machines, w.budgets = w.machines[:machines], budgets
			copy(w.left, left)
			return false
		}
		m := w.laden(t.offer[part], s.takes(part))
		m.worth = w.valueOf(&m)
		w.assign(m, 1)
		state -= part
	}
	return true
}

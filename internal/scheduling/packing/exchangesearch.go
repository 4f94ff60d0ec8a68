package packing

import "github.com/joiner-sh/joiner/internal/model/resources"

// exchangeSearch looks for exchanges that let one planned node fit a cheaper offering.
type exchangeSearch struct {
	*exchanger
	node       int              // index in exchanger.nodes
	target     int              // the cheaper offering
	targetRoom resources.Vector // room of the target
	scale      resources.Vector // room of the current offering, to normalize amounts
	used       resources.Vector // requests of the node's pods
	usedAfter  resources.Vector // requests after the exchange that is being compared
	excess     float64          // how far the requests exceed the target's room, normalized
}

// exchange moves one pod to a partner node, and one pod of another class back or none.
type exchange struct {
	partner   int // index in exchanger.nodes
	give, get int // classes; get is -1 for none
	score     float64
}

// findExchange returns the exchange that uses a partner's free room best. It compares at most
// maxPartners nodes, and stops early once it has an exchange and has compared enoughPartners.
func (s *exchangeSearch) findExchange() (exchange, bool) {
	best := exchange{partner: -1}
	s.excess = overflow(s.used, s.targetRoom, s.scale)
	for n := range min(len(s.nodes), maxPartners) {
		if best.partner >= 0 && n >= enoughPartners {
			break
		}
		if s.nextPartner++; s.nextPartner >= len(s.nodes) {
			s.nextPartner = 0
		}
		if s.nextPartner == s.node {
			continue
		}
		if gap := s.freeFor(&s.nodes[s.nextPartner]); gap >= minExchangeGain*s.excess {
			s.compareExchanges(s.nextPartner, gap, &best)
		}
	}
	return best, best.partner >= 0
}

// freeFor returns how much room a node has left of the resources that exceed the target,
// normalized.
func (s *exchangeSearch) freeFor(m *plannedNode) float64 {
	sum := 0.0
	for r, n := range s.used {
		if n > s.targetRoom[r] {
			sum += float64(m.free[r]) / float64(max(s.scale[r], 1))
		}
	}
	return sum
}

// compareExchanges compares all exchanges with one partner to the best so far.
func (s *exchangeSearch) compareExchanges(partner int, gap float64, best *exchange) {
	from, to := &s.nodes[s.node], &s.nodes[partner]
	s.steps += 1 + len(from.allocations)*(len(to.allocations)+1)/pairsPerStep
	for _, x := range from.allocations {
		if !s.movable[x.class] || !s.accepts.Sets[x.acceptSet].Has(to.offer) {
			continue
		}
		give := s.q.classes[x.class].Ask
		for i := -1; i < len(to.allocations); i++ {
			d := exchange{partner: partner, give: x.class, get: -1}
			var get resources.Vector
			if i >= 0 {
				if d.get = to.allocations[i].class; d.get == d.give || !s.movable[d.get] {
					continue
				}
				get = s.q.classes[d.get].Ask
			}
			if !s.fitsBoth(give, get, from, to) {
				continue
			}
			gain := s.excess - overflow(s.usedAfter, s.targetRoom, s.scale)
			if d.score = gain / gap; gain >= minExchangeGain*s.excess && d.score > best.score && s.allowed(d, from, to) {
				*best = d
			}
		}
	}
}

// fitsBoth reports whether both nodes have room after the exchange. It stores the node's new
// requests in usedAfter.
func (s *exchangeSearch) fitsBoth(give, get resources.Vector, from, to *plannedNode) bool {
	for r, n := range give {
		if get != nil {
			n -= get[r]
		}
		if n > to.free[r] || -n > from.free[r] {
			return false
		}
		s.usedAfter[r] = s.used[r] - n
	}
	return true
}

// allowed reports whether accept sets, host rules and the maximum share of a class permit the
// exchange.
func (s *exchangeSearch) allowed(d exchange, from, to *plannedNode) bool {
	if !s.canTake(to, d.give, from.allocations) {
		return false
	}
	if d.get < 0 {
		return s.hostRulesAllow(to, d.give, -1)
	}
	if !s.canTake(from, d.get, to.allocations) || !s.accepts.Sets[acceptSetOf(to.allocations, d.get)].Has(s.target) {
		return false
	}
	return s.hostRuleKey[d.give] == s.hostRuleKey[d.get] || s.hostRulesAllow(to, d.give, d.get) && s.hostRulesAllow(from, d.get, d.give)
}

// canTake reports whether the node's offering is in the accept set that a pod of the class has
// among others. The node must also have less than the maximum share of the class. Pods of one class
// on one node always have the same accept set.
func (s *exchangeSearch) canTake(m *plannedNode, class int, others []allocation) bool {
	set := acceptSetOf(others, class)
	if !s.accepts.Sets[set].Has(m.offer) {
		return false
	}
	n := m.unitsOf(class)
	return n == 0 || n < s.facts.maxShare[class] && acceptSetOf(m.allocations, class) == set
}

// acceptSetOf returns the accept set of the class's allocation; -1 if there is none.
func acceptSetOf(allocations []allocation, class int) int {
	for i := range allocations {
		if allocations[i].class == class {
			return allocations[i].acceptSet
		}
	}
	return -1
}

// hostRulesAllow reports whether host rules allow a pod of the class on the node after one pod of
// another class has left it.
func (s *exchangeSearch) hostRulesAllow(m *plannedNode, class, without int) bool {
	if s.facts.ruleScope[class] == noHostRules {
		return true
	}
	s.steps += 4
	after := plannedNode{offer: m.offer, host: s.tallyWithout(m, without)}
	return s.hostRuleRoom(&after, class) > 0
}

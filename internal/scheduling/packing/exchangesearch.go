package packing

import (
	"github.com/joiner-sh/joiner/internal/model/resources"
	"github.com/joiner-sh/joiner/internal/scheduling/packing/pending"
)

// exchangeSearch finds exchanges that bring the requests on one planned node closer to the room of a cheaper offering,
// the target.
type exchangeSearch struct {
	exchanger *exchanger
	problem   *pending.Problem
	queue     *pending.Queue
	facts     *classFacts
	work      *work

	node       int              // index in exchanger.nodes
	target     int              // the cheaper offering
	targetRoom resources.Vector // room of the target
	scale      resources.Vector // room of the current offering; amounts are divided by it, to be comparable
	used       resources.Vector // requests of the node's pods
	usedAfter  resources.Vector // requests after the exchange that is being compared
	excess     float64          // excess of the requests over the target's room, in units of scale; see overflow
}

// exchange moves one pod to a partner node, and at most one pod of another class back.
type exchange struct {
	partner   int     // index in exchanger.nodes
	give, get int     // classes: the node gives a pod of give, and gets a pod of get; get is -1 for none
	score     float64 // reduction of exchangeSearch.excess, relative to freeFor of the partner
}

// findExchange returns the exchange with the highest score; false if there is none. It compares at most maxPartners
// nodes, and stops early once it has an exchange and has compared enoughPartners.
func (es *exchangeSearch) findExchange() (exchange, bool) {
	best := exchange{partner: -1}
	es.excess = overflow(es.used, es.targetRoom, es.scale)
	for n := range min(len(es.exchanger.nodes), maxPartners) {
		if best.partner >= 0 && n >= enoughPartners {
			break
		}
		if es.exchanger.nextPartner++; es.exchanger.nextPartner >= len(es.exchanger.nodes) {
			es.exchanger.nextPartner = 0
		}
		if es.exchanger.nextPartner == es.node {
			continue
		}
		if free := es.freeFor(&es.exchanger.nodes[es.exchanger.nextPartner]); free >= minExchangeGain*es.excess {
			es.compareExchanges(es.exchanger.nextPartner, free, &best)
		}
	}
	return best, best.partner >= 0
}

// freeFor returns the free room of a possible partner in those resources in which the node's requests exceed the
// target's room, in units of scale.
func (es *exchangeSearch) freeFor(pn *plannedNode) float64 {
	sum := 0.0
	for r, n := range es.used {
		if n > es.targetRoom[r] {
			sum += float64(pn.free[r]) / float64(max(es.scale[r], 1))
		}
	}
	return sum
}

// compareExchanges compares all exchanges with one partner. It stores the exchange with the highest score in best, if
// this score is higher than the score of best. free is the result of freeFor for the partner.
func (es *exchangeSearch) compareExchanges(partner int, free float64, best *exchange) {
	from, to := &es.exchanger.nodes[es.node], &es.exchanger.nodes[partner]
	es.work.steps += 1 + len(from.allocations)*(len(to.allocations)+1)/pairsPerStep
	for _, x := range from.allocations {
		if !es.exchanger.movable[x.class] || !es.problem.Accepts.Sets[x.acceptSet].Has(to.offer) {
			continue
		}
		give := es.queue.Classes[x.class].Ask
		for i := -1; i < len(to.allocations); i++ {
			candidate := exchange{partner: partner, give: x.class, get: -1}
			var get resources.Vector
			if i >= 0 {
				if candidate.get = to.allocations[i].class; candidate.get == candidate.give || !es.exchanger.movable[candidate.get] {
					continue
				}
				get = es.queue.Classes[candidate.get].Ask
			}
			if !es.fitsBoth(give, get, from, to) {
				continue
			}
			gain := es.excess - overflow(es.usedAfter, es.targetRoom, es.scale)
			candidate.score = gain / free
			if gain >= minExchangeGain*es.excess && candidate.score > best.score && es.isAllowed(candidate, from, to) {
				*best = candidate
			}
		}
	}
}

// fitsBoth reports whether both nodes have room for their pods after an exchange. give are the requests of the pod
// that moves from the node to its partner. get are the requests of the pod that moves back; nil if no pod moves back.
// It stores the node's new requests in usedAfter.
func (es *exchangeSearch) fitsBoth(give, get resources.Vector, from, to *plannedNode) bool {
	for r, n := range give {
		if get != nil {
			n -= get[r]
		}
		if n > to.free[r] || -n > from.free[r] {
			return false
		}
		es.usedAfter[r] = es.used[r] - n
	}
	return true
}

// isAllowed reports whether accept sets, host rules and the maximum share of a class permit the exchange x.
func (es *exchangeSearch) isAllowed(x exchange, from, to *plannedNode) bool {
	if !es.canTake(to, x.give, from.allocations) {
		return false
	}
	if x.get < 0 {
		return es.hostRulesAllow(to, x.give, -1)
	}
	if !es.canTake(from, x.get, to.allocations) || !es.problem.Accepts.Sets[acceptSetOf(to.allocations, x.get)].Has(es.target) {
		return false
	}
	return es.exchanger.hostRuleKey[x.give] == es.exchanger.hostRuleKey[x.get] || es.hostRulesAllow(to, x.give, x.get) &&
		es.hostRulesAllow(from, x.get, x.give)
}

// canTake reports whether the node may get a pod of the class from the node with the allocations source. The pod's
// accept set must have the offering of pn, and pn must have less than the maximum share of the class. If pn already
// has pods of the class, they must have the same accept set, because a node has one allocation per class.
func (es *exchangeSearch) canTake(pn *plannedNode, class int, source []allocation) bool {
	set := acceptSetOf(source, class)
	if !es.problem.Accepts.Sets[set].Has(pn.offer) {
		return false
	}
	n := pn.unitsOf(class)
	return n == 0 || n < es.facts.maxShare[class] && acceptSetOf(pn.allocations, class) == set
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

// hostRulesAllow reports whether host rules allow a pod of the class on the node, after a pod of another class has left
// it. removed is that other class; -1 if no pod leaves.
func (es *exchangeSearch) hostRulesAllow(pn *plannedNode, class, removed int) bool {
	if es.facts.ruleScope[class] == noHostRules {
		return true
	}
	es.work.steps += 4
	after := plannedNode{offer: pn.offer, host: es.exchanger.hostCountsWithout(pn, removed)}
	return es.exchanger.filler.hostRuleRoom(&after, class) > 0
}

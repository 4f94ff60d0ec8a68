package packing

import "github.com/joiner-sh/joiner/internal/model/resources"

// seller is a machine that looks for a partner to trade with.
type seller struct {
	*trading
	number int              // in trading.machines
	offer  int              // what it wants to get by with
	room   resources.Vector // of that
	scale  resources.Vector // the room that it has
	used   resources.Vector // what its pods ask for
	rest   resources.Vector // what they would ask for after the deal that is looked at
	need   float64          // how much of it must go
}

// deal is a pod for one of a partner, or for none.
type deal struct {
	partner   int // in trading.machines
	give, get int // classes; get is -1 for none
	score     float64
}

// find returns a deal: of some partners that would trade, the one whose gap is filled best.
func (s *seller) find() (deal, bool) {
	best := deal{partner: -1}
	s.need = beyond(s.used, s.room, s.scale)
	for n := range min(len(s.machines), mostPartners) {
		if best.partner >= 0 && n >= fewPartners {
			break
		}
		if s.at++; s.at >= len(s.machines) {
			s.at = 0
		}
		if s.at == s.number {
			continue
		}
		if gap := s.gap(&s.machines[s.at]); gap >= leastGain*s.need {
			s.compare(s.at, gap, &best)
		}
	}
	return best, best.partner >= 0
}

// gap is how much is free on a machine of what the seller must give away.
func (s *seller) gap(m *machine) float64 {
	sum := 0.0
	for r, n := range s.used {
		if n > s.room[r] {
			sum += float64(m.free[r]) / float64(max(s.scale[r], 1))
		}
	}
	return sum
}

// compare holds all deals with the partner against the best.
func (s *seller) compare(partner int, gap float64, best *deal) {
	from, to := &s.machines[s.number], &s.machines[partner]
	s.steps += 1 + len(from.takes)*(len(to.takes)+1)/pairsAStep
	for _, x := range from.takes {
		if !s.movable[x.class] || !s.accepts.Sets[x.set].Has(to.offer) {
			continue
		}
		give := s.q.classes[x.class].Ask
		for i := -1; i < len(to.takes); i++ {
			d := deal{partner: partner, give: x.class, get: -1}
			var get resources.Vector
			if i >= 0 {
				if d.get = to.takes[i].class; d.get == d.give || !s.movable[d.get] {
					continue
				}
				get = s.q.classes[d.get].Ask
			}
			if !s.fits(give, get, from, to) {
				continue
			}
			gain := s.need - beyond(s.rest, s.room, s.scale)
			if d.score = gain / gap; gain >= leastGain*s.need && d.score > best.score && s.allowed(d, from, to) {
				*best = d
			}
		}
	}
}

// fits reports whether both have room for what they get, and notes what the seller's pods then ask for.
func (s *seller) fits(give, get resources.Vector, from, to *machine) bool {
	for r, n := range give {
		if get != nil {
			n -= get[r]
		}
		if n > to.free[r] || -n > from.free[r] {
			return false
		}
		s.rest[r] = s.used[r] - n
	}
	return true
}

// allowed reports whether offers, rules about hosts and fair shares let both have what they get.
func (s *seller) allowed(d deal, from, to *machine) bool {
	if !s.welcomes(to, d.give, from.takes) {
		return false
	}
	if d.get < 0 {
		return s.hasPlace(to, d.give, -1)
	}
	if !s.welcomes(from, d.get, to.takes) || !s.accepts.Sets[setOf(to.takes, d.get)].Has(s.offer) {
		return false
	}
	return s.kin[d.give] == s.kin[d.get] || s.hasPlace(to, d.give, d.get) && s.hasPlace(from, d.get, d.give)
}

// welcomes reports whether a pod of the class from among others may be on a machine of that offer, which holds no
// large part of the class yet. Pods of one class on a machine are there under one accept set.
func (s *seller) welcomes(m *machine, class int, others []take) bool {
	set := setOf(others, class)
	if !s.accepts.Sets[set].Has(m.offer) {
		return false
	}
	n := m.of(class)
	return n == 0 || n < s.facts.share[class] && setOf(m.takes, class) == set
}

// setOf returns the accept set of the take of a class.
func setOf(takes []take, class int) int {
	for i := range takes {
		if takes[i].class == class {
			return takes[i].set
		}
	}
	return -1
}

// hasPlace reports whether the rules about hosts let a pod of the class onto the machine once one of another has left.
func (s *seller) hasPlace(m *machine, class, without int) bool {
	if s.facts.rules[class] == noRule {
		return true
	}
	s.steps += 4
	after := machine{offer: m.offer, host: s.tallied(m, without)}
	return s.most(&after, class) > 0
}

package packing

import (
	"cmp"
	"slices"

	"github.com/joiner-sh/joiner/internal/model/resources"
	"github.com/joiner-sh/joiner/internal/scheduling/topology"
)

// trading is machines that exchange pods, so that one after the other gets by with a cheaper offer.
//
// What is left free on machines that are filled well is too little for any pod. But a machine that gives away a pod
// for one that is smaller by about so much comes nearer to the room of a cheaper offer, while the other machine keeps its
// price; a few such trades, with as many others, and it is there. One that does not get there keeps what it has gained:
// the gaps of several have become one, which is where the next pass begins. No price ever rises.
type trading struct {
	filler
	machines []machine // one by one, each for the cheapest offer that holds its pods
	aside    []machine // those that do not trade
	movable  []bool    // by class
	kin      []int     // by class: to rules about hosts, classes of one number are the same
	at       int       // the machine at which the search for a partner goes on
}

const (
	mostPasses = 6
	passGain   = 0.001 // of the price, by which a pass must have made the plan cheaper for there to be one more

	fewTrades    = 8    // for one machine in one pass
	fewPartners  = 16   // machines that are looked at where one of them would trade
	mostPartners = 512  // machines that are looked at in all
	leastGain    = 0.05 // of what is to be given away, for each trade
	pairsAStep   = 10   // two pods held against one another take so much less time than a step
	mostCheaper  = 24   // offers that a machine compares to find its aim
	mostAsked    = 400  // of those, and others that do not suit its pods
	tradingShare = 0.25 // of the patience with a plan
)

// trade lets the machines of an outcome trade.
func (w *work) trade(o outcome, patience int) outcome {
	if w.q.guests != nil {
		return o // another offer may bring other guests
	}
	r := w.run(o.strategy, o.left, o.budgets)
	t := &trading{filler: r.filler}
	t.know()
	t.open(o.machines)
	for n := 0; n < mostPasses && t.steps < patience; n++ {
		if t.pass(patience) < passGain*o.price {
			break
		}
	}
	r.machines = t.close()
	return r.outcome()
}

// open sets out the machines.
func (t *trading) open(machines []machine) {
	t.movable, t.kin = make([]bool, len(t.q.classes)), make([]int, len(t.q.classes))
	numbers := map[[2]int]int{}
	for _, m := range machines {
		for _, x := range m.takes {
			if t.kin[x.class] > 0 {
				continue
			}
			key := [2]int{t.q.classes[x.class].Profile, t.light[x.class]}
			if numbers[key] == 0 {
				numbers[key] = len(numbers) + 1
			}
			t.kin[x.class], t.movable[x.class] = numbers[key], t.mayMove(x.class)
		}
		if p := t.st.PoolOf(m.offer); t.st.Offers[m.offer].IsReserved() || t.st.AsksVariety(m.offer) || !p.Budget.Unlimited() {
			t.aside = append(t.aside, m)
			continue
		}
		t.seat(&m)
		for range m.copies {
			one := m.clone()
			one.copies = 1
			t.machines = append(t.machines, one)
		}
	}
}

// mayMove reports whether pods of the class may leave their machine: nobody is there for their sake, nor they for another's.
func (t *trading) mayMove(class int) bool {
	c := &t.q.classes[class]
	p := t.q.profile(c)
	near := func(r topology.Rule) bool { return r.Form == topology.Near }
	return c.members == nil && len(c.Ports) == 0 && !p.Follows() && !slices.ContainsFunc(p.Host, near) &&
		!slices.ContainsFunc(p.HostIn, func(g int) bool { return t.q.Book.Groups[g].Form == topology.Near })
}

// seat makes the machine one of the cheapest offer that holds its pods.
func (t *trading) seat(m *machine) {
	able := t.survivors(m)
	for _, o := range t.st.VariantOf(m.offer).ByPrice {
		if able.Has(o) {
			copies := m.copies
			*m = t.laden(o, m.takes)
			m.copies, m.price = copies, float64(t.st.Offers[o].Price)
			return
		}
	}
}

// close returns the machines, alike ones together where they still are. One that has given all of its pods away is not bought.
func (t *trading) close() []machine {
	out := t.aside
	for _, m := range t.machines {
		if len(m.takes) == 0 {
			continue
		}
		if last := len(out) - 1; last >= 0 && out[last].offer == m.offer && slices.Equal(out[last].takes, m.takes) {
			out[last].copies++
			continue
		}
		m.worth = t.valueOf(&m)
		out = append(out, m)
	}
	return out
}

// aim is a cheaper offer for a machine.
type aim struct {
	machine, offer int
	need           float64 // what must be given away for it, by what it saves
}

// pass lets each machine try for a cheaper offer, those first that need least for it. It returns what that saved.
func (t *trading) pass(patience int) float64 {
	var aims []aim
	for i := range t.machines {
		if a, ok := t.aim(i); ok {
			aims = append(aims, a)
		}
	}
	slices.SortStableFunc(aims, func(a, b aim) int { return cmp.Compare(a.need, b.need) })
	saved := 0.0
	for _, a := range aims {
		if t.steps > patience {
			break
		}
		before := t.machines[a.machine].price
		if now, ok := t.aim(a.machine); ok { // it may have traded with others since
			t.approach(now)
		}
		saved += before - t.machines[a.machine].price
	}
	return saved
}

// aim returns the cheaper offer that saves most for what must be given away.
func (t *trading) aim(i int) (aim, bool) {
	m := &t.machines[i]
	used, ports, scale := m.used(t.work), m.podPorts(t.q), t.st.Room(m.offer)
	byPrice := t.st.VariantOf(m.offer).ByPrice
	at, _ := slices.BinarySearchFunc(byPrice, m.price, func(o int, price float64) int { return cmp.Compare(float64(t.st.Offers[o].Price), price) })
	best := aim{machine: i, offer: -1}
	for n, seen := at-1, 0; n >= max(at-mostAsked, 0) && seen < mostCheaper; n-- {
		o := byPrice[n]
		t.steps++
		shape := t.st.ShapeOf(o)
		if shape.Broken || t.q.Ports.ClashAny(shape.List, ports) ||
			slices.ContainsFunc(m.takes, func(x take) bool { return !t.accepts.Sets[x.set].Has(o) }) {
			continue
		}
		seen++
		saved := 1 - float64(t.st.Offers[o].Price)/m.price
		if need := beyond(used, shape.Room, scale) / saved; best.offer < 0 || need < best.need {
			best.offer, best.need = o, need
		}
	}
	return best, best.offer >= 0
}

// beyond is how much more is used than there is room, in parts of the scale.
func beyond(used, room, scale resources.Vector) float64 {
	sum := 0.0
	for r, n := range used {
		if over := n - room[r]; over > 0 {
			sum += float64(over) / float64(max(scale[r], 1))
		}
	}
	return sum
}

// approach trades until the machine gets by with the offer, or finds no partner any more.
func (t *trading) approach(a aim) {
	m := &t.machines[a.machine]
	s := &seller{trading: t, number: a.machine, offer: a.offer, room: t.st.Room(a.offer), scale: t.st.Room(m.offer), used: m.used(t.work)}
	s.rest = s.used.Clone()
	for n := 0; !s.used.Fits(s.room); n++ {
		best, ok := s.find()
		if !ok || n == fewTrades {
			return
		}
		t.exchange(a.machine, best)
		s.used = m.used(t.work)
	}
	t.seat(m)
}

// exchange carries out a trade of the machine.
func (t *trading) exchange(machine int, x deal) {
	a, b := &t.machines[machine], &t.machines[x.partner]
	t.move(x.give, a, b)
	if x.get >= 0 {
		t.move(x.get, b, a)
		if t.kin[x.get] == t.kin[x.give] {
			return
		}
	}
	a.host, b.host = t.tallied(a, -1), t.tallied(b, -1)
}

// move moves a pod from one machine to another; host is left as it is.
func (t *trading) move(class int, from, to *machine) {
	i := slices.IndexFunc(from.takes, func(x take) bool { return x.class == class })
	k := slices.IndexFunc(to.takes, func(x take) bool { return x.class == class })
	if k < 0 {
		k = len(to.takes)
		to.takes = append(to.takes, take{class: class, set: from.takes[i].set})
	}
	to.takes[k].n++
	if from.takes[i].n--; from.takes[i].n == 0 {
		from.takes = slices.Delete(from.takes, i, i+1)
	}
	ask := t.q.classes[class].Ask
	from.free.Take(ask, -1)
	to.free.Take(ask, 1)
}

// tallied returns the tally of the machine's pods, but for one of a class.
func (t *trading) tallied(m *machine, without int) topology.Tally {
	var out topology.Tally
	for _, x := range m.takes {
		n := x.n
		if x.class == without {
			n--
		}
		if n > 0 {
			t.tally(&out, &t.q.classes[x.class], n)
		}
	}
	return out
}

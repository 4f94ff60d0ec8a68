package packing

import (
	"cmp"
	"slices"

	"github.com/joiner-sh/joiner/internal/model/resources"
)

// filler fills machines with pods of the classes that are left.
type filler struct {
	*work
	near    float64 // how close to the best score a class must be; 0: near
	here    bool    // it fills nodes that are there
	strict  bool    // there, wishes about hosts count like demands
	apart   bool    // no machine gets a large part of a class
	careful bool    // it tries more than one way to fill a machine
	barred  int     // a class that does not come onto the machine, plus one; 0: none
	left    []int   // by class; what the filler may still place
	cursors []cursor
	room    []four  // what is left on the machine
	best    float64 // score of the cursors
	seats   []int32 // by class, while a machine is filled: its index in takes plus one
	begun   bool    // the machine held something before it was filled
}

// near is how close to the best score a class usually must be for its size
// to decide: large pods are placed first, small ones fill the gaps.
const near = 0.95

// fill adds pods of the shelf's classes to the machine, so that they are worth
// as much as possible together: again and again it takes the class with which
// alone the room that is left would be filled best, but only half of what fits,
// so that the next class can even out what the first leaves over. It returns
// the worth of what it added. Classes that do not accept the machine must not
// be on the shelf.
func (f *filler) fill(m *machine, s *shelf) float64 {
	f.cursors, f.begun = f.cursors[:0], len(m.takes) > 0
	for _, row := range s.rows {
		f.cursors = append(f.cursors, cursor{row: row, left: -1})
	}
	f.steps += len(s.rows) * max(1, f.facts.fours/2)
	f.seats = slices.Grow(f.seats, len(f.q.classes))[:len(f.q.classes)]
	for i := range m.takes {
		f.seats[m.takes[i].class] = int32(i + 1)
	}
	worth := 0.0
	for f.weigh(m) {
		worth += f.takeRow(m, &f.cursors[f.choose()])
	}
	for i := range m.takes {
		f.seats[m.takes[i].class] = 0
	}
	m.worth += worth
	return worth
}

// takeRow adds pods of the class at the cursor; if it has fewer than would do,
// those of the next in the row, which are much alike, make up for it. It
// returns what they are worth.
func (f *filler) takeRow(m *machine, k *cursor) float64 {
	worth := 0.0
	first := f.facts.bulk[k.row[k.at]]
	for want := f.want(k); want > 0; {
		class := k.row[k.at]
		n := f.portion(m, k, want)
		if n > 0 {
			f.seat(m, class, n)
			k.left, k.free, k.quick = k.left-n, false, false
			want -= n
			worth += float64(n) * f.worth[class]
		}
		if want == 0 {
			break
		}
		k.advance()
		f.measure(m)
		if !f.settle(k, m, first) || f.facts.bulk[k.row[k.at]] < alike*first {
			break
		}
	}
	return worth
}

// alike is how much of the bulk of one class another must have to stand in for it.
const alike = 0.7

// want returns how many pods like those at the cursor to add at once.
func (f *filler) want(k *cursor) int {
	n := int(min(k.fits, 1e6))
	if len(f.cursors) > 1 {
		n = max(1, n/2)
	}
	return n
}

// fewClasses is up to how many classes a machine holds for it to pay to exchange
// one for another: on machines of many, a gap is a small part of the whole.
const fewClasses = 12

// carefully betters a machine that has been filled as usual: other balances of
// size and proportion are tried first, then each class of the best is left out for once.
func (f *filler) carefully(m *machine, empty machine, s *shelf) {
	if len(m.takes) > fewClasses {
		return
	}
	for _, f.near = range [...]float64{0.8, 0.99} {
		try := empty.clone()
		if f.fill(&try, s); try.worth > m.worth {
			*m = try
		}
	}
	f.near = 0
	for len(m.takes) <= fewClasses && f.swap(m, empty, s) {
	}
}

// swap takes one pod, or all, of some class off the machine and fills it again
// with others, if that is worth more.
func (f *filler) swap(m *machine, empty machine, s *shelf) bool {
	for _, t := range m.takes {
		for i, off := range [2]int{1, t.n} {
			if i > 0 && off == 1 {
				continue
			}
			if try := f.without(m, empty, t.class, off, s); try.worth > m.worth*(1+1e-9) {
				*m = try
				return true
			}
		}
	}
	return false
}

// without returns the machine with so many pods of a class exchanged for others.
func (f *filler) without(m *machine, empty machine, class, off int, s *shelf) machine {
	try := empty.clone()
	for _, t := range m.takes {
		n := t.n
		if t.class == class {
			n -= off
		}
		if n > 0 {
			f.add(&try, t.class, n)
			try.worth += float64(n) * f.worth[t.class]
			f.left[t.class] -= n
		}
	}
	kept := slices.Clone(try.takes)
	f.barred = class + 1
	f.fill(&try, s)
	f.barred = 0
	for _, t := range kept {
		f.left[t.class] += t.n
	}
	return try
}

// weigh looks anew at the best class of each row, and drops the rows that have
// none any more. It reports whether there are any.
func (f *filler) weigh(m *machine) bool {
	bulk := f.bulk(m.free)
	f.measure(m)
	f.best = 0
	kept := 0
	for i := range f.cursors {
		k := &f.cursors[i]
		if k.quick && k.left > 0 {
			k.fits = fits(k.per, f.room)
			k.score = k.fits * k.worth
			f.steps++
		}
		if (!k.quick || k.left == 0 || k.fits == 0) && !f.settle(k, m, bulk) {
			continue
		}
		if k.score > f.best {
			f.best = k.score
		}
		if kept < i {
			f.cursors[kept] = *k
		}
		kept++
	}
	f.cursors = f.cursors[:kept]
	return kept > 0
}

// measure notes what is left on the machine.
func (f *filler) measure(m *machine) {
	f.room = f.room[:0]
	for q := range f.facts.fours {
		room := four{leastRoom, leastRoom, leastRoom, leastRoom}
		for i := range min(4, len(m.free)-4*q) {
			room[i] = max(float64(m.free[4*q+i]), leastRoom)
		}
		f.room = append(f.room, room)
	}
}

// choose returns the cursor at which to go on: of those that would fill the room nearly best, the one with
// the dearest pods.
func (f *filler) choose() int {
	enough := cmp.Or(f.near, near) * f.best
	best, worth := 0, -1.0
	for i := range f.cursors {
		if k := &f.cursors[i]; k.score >= enough && k.worth > worth {
			best, worth = i, k.worth
		}
	}
	return best
}

// portion returns how many of so many pods of the class at the cursor can be added.
func (f *filler) portion(m *machine, k *cursor, n int) int {
	class := k.row[k.at]
	c := &f.q.classes[class]
	n = c.Ask.Times(m.free, min(n, k.left, f.most(m, class)))
	if len(c.Ports) > 0 {
		n = min(n, 1)
	}
	for n > 0 && m.offer >= 0 && !f.diverse(m, class, n) {
		n /= 2
	}
	return n
}

// add puts n units of the class on the machine.
func (f *filler) add(m *machine, class, n int) {
	f.charge(m, class, n)
	for i := range m.takes {
		if t := &m.takes[i]; t.class == class {
			t.n += n
			return
		}
	}
	m.takes = append(m.takes, take{class: class, n: n, set: f.set(class)})
}

// seat does the same while the machine is filled.
func (f *filler) seat(m *machine, class, n int) {
	f.charge(m, class, n)
	if i := f.seats[class]; i > 0 {
		m.takes[i-1].n += n
		return
	}
	m.takes = append(m.takes, take{class: class, n: n, set: f.set(class)})
	f.seats[class] = int32(len(m.takes))
}

// charge takes what n units need from the machine.
func (f *filler) charge(m *machine, class, n int) {
	c := &f.q.classes[class]
	if p := f.q.profile(c); len(p.Host)+len(p.HostIn) >= rulesAStep {
		f.steps += (len(p.Host) + len(p.HostIn)) / rulesAStep
	}
	m.free.Take(c.Ask, n)
	m.ports = append(m.ports, c.Lists...)
	f.tally(&m.host, c, n)
}

// bulk is the size of an amount, to compare by: what fits into a room has no
// more bulk than it.
func (w *work) bulk(v resources.Vector) float64 {
	sum := 0.0
	for i, x := range v {
		sum += float64(max(x, 0)) * w.weight[i]
	}
	return sum
}

package packing

import (
	"cmp"
	"math"
	"slices"
	"sort"

	"github.com/joiner-sh/joiner/internal/model/hashkey"
	"github.com/joiner-sh/joiner/internal/model/resources"
)

// shelf is the classes that one kind of machine accepts, in rows of classes that
// ask for resources in about the same proportion, the larger first. To fill a
// machine it is enough to look at the largest of each row that still fits.
type shelf struct {
	rows [][]int
}

// mostOwn is how many classes each get a row of their own: with so few, all of
// them are looked at.
const mostOwn = 96

func (w *work) shelve(classes []int) *shelf {
	w.know()
	s := &shelf{}
	if len(classes) <= mostOwn {
		s.rows = make([][]int, len(classes))
		for i := range classes {
			s.rows[i] = classes[i : i+1 : i+1]
		}
		return s
	}
	number := slices.Repeat([]int{-1}, len(w.facts.directions)) // by direction: its row
	of, sizes := make([]int, len(classes)), []int(nil)          // by class its row, by row its classes
	for i, c := range classes {
		d := w.facts.direction[c]
		if number[d] < 0 {
			number[d], sizes = len(sizes), append(sizes, 0)
		}
		of[i] = number[d]
		sizes[of[i]]++
	}
	all := make([]int, len(classes))
	s.rows = make([][]int, len(sizes))
	for r, n := range sizes {
		s.rows[r], all = all[:0:n], all[n:]
	}
	for i, c := range classes {
		s.rows[of[i]] = append(s.rows[of[i]], c)
	}
	for _, row := range s.rows {
		slices.SortStableFunc(row, func(a, b int) int { return cmp.Compare(w.facts.bulk[b], w.facts.bulk[a]) })
	}
	return s
}

// direction appends the proportion of what the class asks for, in steps of half
// an octave; of pods, of which machines rarely hold as many as they may, in steps of four octaves.
func (c *class) direction(b []byte, dims resources.Dimensions) []byte {
	first := 0.0
	for r, n := range c.Ask {
		switch {
		case n <= 0:
			b = append(b, 0)
		case first == 0:
			first = float64(n)
			b = append(b, 1)
		default:
			steps := 2.0
			if dims[r] == resources.Pods {
				steps = 0.25
			}
			b = hashkey.Int(append(b, 2), int(math.Floor(steps*math.Log2(float64(n)/first)))*8+r)
		}
	}
	return b
}

// drop takes out the classes that have nothing left, once they are many.
func (s *shelf) drop(left []int) {
	total := 0
	for i, row := range s.rows {
		s.rows[i] = slices.DeleteFunc(row, func(c int) bool { return left[c] == 0 })
		total += len(s.rows[i])
	}
	s.rows = slices.DeleteFunc(s.rows, func(row []int) bool { return len(row) == 0 })
}

// cursor is a place in a row, while one machine is filled.
type cursor struct {
	row   []int
	at    int
	left  int     // of the class at the cursor: how many may still come onto the machine
	fits  float64 // how many would fit if there were enough of them
	score float64 // what they would be worth
	free  bool    // the rules about hosts allow some, as long as none of the class is added
	quick bool    // nothing but room and number keeps the class away, as long as none of it is added
	per   []four  // facts.per of the class
	worth float64 // of one
}

// facts is what filling looks at all the time, side by side: by class.
type facts struct {
	per   []four // by class × resource in fours: one by what a unit asks for, plenty if it asks for nothing
	fours int    // by class
	bulk  []float64
	share []int // how many units of it one machine holds at most if it is shared out
	ports []bool
	base  []int // by group about hosts: the whole class that alone has to do with it, or -1
	rules []rules

	direction  []int          // by class: the number of the proportion of what it asks for
	directions map[string]int // their numbers
}

// four is amounts of four resources; most pods ask for no more.
type four [4]float64

// What is asked for by nobody fits plenty of times into the least of rooms.
const (
	plenty    = 1e300
	leastRoom = 1e-280
)

// rules says how the rules about hosts concern a class.
type rules byte

const (
	ruled   rules = iota // what is on the machine of other classes may count
	ownRule              // only what is on it of the class itself counts
	noRule               // none does
)

// know notes the facts about the classes that have come since.
func (w *work) know() {
	w.facts.fours = (len(w.st.Dims) + 3) / 4
	if w.facts.directions == nil {
		w.facts.directions = map[string]int{}
	}
	var key []byte
	for c := len(w.facts.bulk); c < len(w.q.classes); c++ {
		class := &w.q.classes[c]
		for q := range w.facts.fours {
			per := four{plenty, plenty, plenty, plenty}
			for i := range min(4, len(class.Ask)-4*q) {
				if n := class.Ask[4*q+i]; n > 0 {
					per[i] = 1 / float64(n)
				}
			}
			w.facts.per = append(w.facts.per, per)
		}
		w.facts.bulk, w.facts.ports = append(w.facts.bulk, class.bulk), append(w.facts.ports, len(class.Ports) > 0)
		w.facts.share = append(w.facts.share, max(1, (w.q.classes[class.base].all+3)/4))
		w.facts.rules = append(w.facts.rules, w.rulesOf(class))
		key = class.direction(key[:0], w.st.Dims)
		n, ok := w.facts.directions[string(key)]
		if !ok {
			n = len(w.facts.directions)
			w.facts.directions[string(key)] = n
		}
		w.facts.direction = append(w.facts.direction, n)
		for _, m := range class.members {
			w.facts.rules[m.class] = ruled // bundles bring more of it
		}
	}
}

// rulesOf says how the rules about hosts concern the class. Groups that count one profile only have one class
// on a machine: its parts are in different domains.
func (w *work) rulesOf(c *class) rules {
	if c.members != nil {
		return ruled
	}
	p := w.q.profile(c)
	if len(p.Host) == 0 && len(p.HostIn) == 0 {
		return noRule
	}
	if w.facts.base == nil {
		w.facts.base = w.q.bases()
	}
	own := func(group int) bool { return w.facts.base[group] == c.base }
	for i := range p.Host {
		if !own(p.Host[i].Group) {
			return ruled
		}
	}
	for _, g := range p.HostIn {
		if !own(g) {
			return ruled
		}
	}
	return ownRule
}

// bases returns, by group, the whole class that alone has to do with it, or -1.
func (q *queue) bases() []int {
	const none, many = -2, -1
	out := slices.Repeat([]int{none}, len(q.Book.Groups))
	note := func(group, base int) {
		if out[group] != base && out[group] != none {
			base = many
		}
		out[group] = base
	}
	for i := range q.classes {
		c := &q.classes[i]
		p := q.profile(c)
		for r := range p.Host {
			note(p.Host[r].Group, c.base)
		}
		for _, g := range p.HostIn {
			note(g, c.base)
		}
	}
	return out
}

// fits returns how many units that take such parts of an amount fit into the
// room, fractions counted, at most 1e9: 0 where not one does.
func fits(parts, room []four) float64 {
	fits := 1e9
	for q := range parts {
		x, y := &parts[q], &room[q]
		if n := x[0] * y[0]; n < fits {
			fits = n
		}
		if n := x[1] * y[1]; n < fits {
			fits = n
		}
		if n := x[2] * y[2]; n < fits {
			fits = n
		}
		if n := x[3] * y[3]; n < fits {
			fits = n
		}
	}
	if fits < 1-1e-9 {
		return 0
	}
	return max(fits, 1) // what fits exactly may be off by a rounding
}

// perOf returns facts.per of the class.
func (w *work) perOf(class int) []four { return w.facts.per[class*w.facts.fours:][:w.facts.fours] }

// advance moves the cursor to the next class.
func (k *cursor) advance() { k.at, k.left, k.free, k.quick = k.at+1, -1, false, false }

// settle moves the cursor to the first class that may come onto the machine,
// and reports whether there is one. Room only shrinks while a machine is
// filled, so what was passed over need not be looked at again.
func (f *filler) settle(k *cursor, m *machine, bulk float64) bool {
	for ; k.at < len(k.row); k.advance() {
		class := k.row[k.at]
		if f.facts.bulk[class] > bulk && len(k.row)-k.at > 8 {
			rest := k.row[k.at:]
			k.at += sort.Search(len(rest), func(i int) bool { return f.facts.bulk[rest[i]] <= bulk })
			k.left, k.free, k.quick = -1, false, false
			if k.at == len(k.row) {
				return false
			}
			class = k.row[k.at]
		}
		f.steps++
		if class+1 == f.barred {
			continue
		}
		if k.left < 0 {
			k.left = f.allowance(m, class)
		}
		if k.left == 0 {
			continue
		}
		k.per = f.perOf(class)
		if k.fits = fits(k.per, f.room); k.fits == 0 || f.facts.ports[class] && f.q.clashes(&f.q.classes[class], m.ports) {
			continue
		}
		if !f.free(k, m, class) {
			continue
		}
		k.worth = f.worth[class]
		k.quick = !f.facts.ports[class] && (k.free || f.facts.rules[class] == noRule)
		k.score = k.fits * k.worth
		return true
	}
	return false
}

// rulesAStep is how many rules about other pods are as much work as a class that has none.
const rulesAStep = 8

// free reports whether the rules about hosts let the class at the cursor onto the machine.
func (f *filler) free(k *cursor, m *machine, class int) bool {
	rules := f.facts.rules[class]
	if rules == noRule || k.free {
		return true
	}
	p := f.q.profile(&f.q.classes[class])
	f.steps += (len(p.Host) + len(p.HostIn)) / rulesAStep
	if f.most(m, class) == 0 {
		return false
	}
	k.free = rules == ownRule // until some of it are added
	return true
}

// allowance is how many units of the class the machine may get: what is left,
// and if classes are to be shared out, no more than a good part of all.
func (f *filler) allowance(m *machine, class int) int {
	n := f.left[class]
	if f.apart {
		most := f.facts.share[class]
		if f.begun {
			most -= m.of(class)
		}
		n = min(n, most)
	}
	return max(n, 0)
}

// of returns how many units of the class the machine holds.
func (m *machine) of(class int) int {
	for i := range m.takes {
		if m.takes[i].class == class {
			return m.takes[i].n
		}
	}
	return 0
}

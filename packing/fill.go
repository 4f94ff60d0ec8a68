package packing

import "cmp"

// filler fills machines with pods of the classes that are left.
type filler struct {
	*work
	near    float64 // how close to the best score an option must be; 0: near
	here    bool    // it fills nodes that are there
	strict  bool    // there, wishes about hosts count like demands
	left    []int   // by class; what the filler may still place
	options []option
}

// option is a class that a machine could take more of.
type option struct {
	class int
	left  int
	fits  float64 // how many would fit if there were enough of them
	score float64 // what they would be worth
}

// near is how close to the best score an option usually must be for its size
// to decide: large pods are placed first, small ones fill the gaps.
const near = 0.95

// fill adds pods of the given classes to the machine, so that they are worth
// as much as possible together: again and again it takes the class with which
// alone the room that is left would be filled best, but only half of what fits,
// so that the next class can even out what the first leaves over. It returns
// the worth of what it added. Classes that do not accept the machine must not
// be among the given.
func (f *filler) fill(m *machine, among []int) float64 {
	f.options = f.options[:0]
	for _, c := range among {
		if f.left[c] > 0 && f.q.classes[c].ask.fits(m.free) {
			f.options = append(f.options, option{class: c, left: f.left[c]})
		}
	}
	f.steps += len(among)
	worth := 0.0
	for f.weigh(m) {
		best := f.choose()
		o := &f.options[best]
		c := &f.q.classes[o.class]
		n := f.portion(m, o)
		if n == 0 {
			f.options = append(f.options[:best], f.options[best+1:]...)
			continue
		}
		f.add(m, o.class, n)
		o.left -= n
		worth += float64(n) * c.worth
	}
	m.worth += worth
	return worth
}

// weigh drops the options that fit no more and scores the others. It reports
// whether there are any.
func (f *filler) weigh(m *machine) bool {
	kept := f.options[:0]
	for _, o := range f.options {
		c := &f.q.classes[o.class]
		o.fits = c.ask.share(m.free)
		if o.left == 0 || o.fits < 1 || len(c.ports) > 0 && conflicts(c.ports, m.ports) {
			continue
		}
		if most := f.most(m, o.class); most < int(o.fits) {
			if most == 0 {
				continue
			}
			o.fits = float64(most)
		}
		o.score = o.fits * c.worth
		kept = append(kept, o)
	}
	f.steps += len(f.options)
	f.options = kept
	return len(kept) > 0
}

// share returns how often v fits into room, fractions counted, at most 1e9.
func (v vector) share(room vector) float64 {
	fits := 1e9
	for i, x := range v {
		if x > 0 {
			if x > room[i] {
				return 0
			}
			fits = min(fits, float64(room[i])/float64(x))
		}
	}
	return fits
}

func (f *filler) choose() int {
	most, enough := 0.0, cmp.Or(f.near, near)
	for _, o := range f.options {
		most = max(most, o.score)
	}
	best, worth := 0, -1.0
	for i, o := range f.options {
		if size := f.q.classes[o.class].worth; o.score >= enough*most && size > worth {
			best, worth = i, size
		}
	}
	return best
}

// portion returns how many pods of the option to add at once.
func (f *filler) portion(m *machine, o *option) int {
	c := &f.q.classes[o.class]
	n := int(o.fits)
	if len(f.options) > 1 {
		n = max(1, n/2)
	}
	n = c.ask.times(m.free, min(n, o.left, f.most(m, o.class)))
	if len(c.ports) > 0 {
		n = min(n, 1)
	}
	for n > 0 && m.offer >= 0 && !f.diverse(m, o.class, n) {
		n /= 2
	}
	return n
}

func (f *filler) add(m *machine, class, n int) {
	c := &f.q.classes[class]
	m.free.take(c.ask, n)
	m.ports = append(m.ports, c.ports...)
	f.tally(&m.host, c, n)
	for i := range m.takes {
		if t := &m.takes[i]; t.class == class {
			t.n += n
			return
		}
	}
	m.takes = append(m.takes, take{class: class, n: n, set: f.set(class)})
}

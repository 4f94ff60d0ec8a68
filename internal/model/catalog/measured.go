package catalog

import (
	"cmp"
	"maps"
	"slices"

	"github.com/joiner-sh/joiner/internal/model/resources"
)

// Measured has the real resources of nodes of one type and one image. The zero value: no node was measured.
type Measured struct {
	// Memory is the smallest amount that a kubelet reported, in bytes; 0 if not measured. It replaces the estimate,
	// which is a few percent too low.
	Memory int64

	// Disk and Pods depend on the NodeClass, which may set the size of a volume or the number of pods. So they map the
	// computed amount to the real one. They are sorted by Computed, without duplicates, at most mostCorrections.
	Disk, Pods []Correction

	Seen Day // the last day on which a node reported these amounts
}

// Correction is the real amount of nodes with a certain computed amount.
type Correction struct {
	Computed int64 // computed from the instance type and the NodeClass
	Real     int64 // reported by the Nodes
}

// Day is a day as the number of days since 1 January 1970, in UTC.
type Day int64

// mostCorrections is the maximum number of corrections per type and image, in case each NodeClass has another volume
// size.
const mostCorrections = 16

// refresh is how many days Seen may lag behind, so that not every joining node changes the measurements.
const refresh = 7

// Report has the resources of a node when it was ready, and those assumed when it was launched.
type Report struct {
	Image, Type        string            // "ami-…", "m5.large"
	Promised, Reported resources.Amounts // amounts that the plan assumed, and those of the Node
	Day                Day               // of the report
}

// Measurements are the measured amounts of all types and images.
type Measurements map[Sample]Measured

// Sample identifies measured nodes: their image and type.
type Sample struct {
	Image string // "ami-0123"
	Type  string // "m5.large"
}

// Note adds a report, and returns whether that changed the measurements. Impossible amounts (0, or more than twice the
// promised amount) are ignored.
func (m Measurements) Note(r Report) bool {
	if r.Image == "" || r.Type == "" {
		return false
	}
	sample := Sample{r.Image, r.Type}
	was := m[sample]
	is := was
	if memory := r.Reported.Memory; memory > 0 && memory <= 2*r.Promised.Memory {
		is.Memory = least(was.Memory, memory)
	}
	is.Disk = corrected(was.Disk, r.Promised.EphemeralStorage, r.Reported.EphemeralStorage)
	is.Pods = corrected(was.Pods, r.Promised.Pods, r.Reported.Pods)
	if is.Memory == 0 && len(is.Disk) == 0 && len(is.Pods) == 0 {
		return false
	}
	if r.Day >= was.Seen+refresh {
		is.Seen = r.Day
	}
	if is.equal(was) {
		return false
	}
	m[sample] = is
	return true
}

// corrected returns the corrections after the report of a node with this promised amount. Before the first report, the
// promised amount is the computed one, later the measured one. If two NodeClasses have the same computed amount and
// different real ones, the smaller one is kept: a plan then promises too little for one of them, and never too much.
func corrected(was []Correction, promised, reported int64) []Correction {
	if promised <= 0 || reported <= 0 {
		return was
	}
	is, isKnown := slices.Clone(was), false
	for i, c := range is {
		if c.Computed == promised || c.Real == promised {
			is[i].Real, isKnown = min(c.Real, reported), true
		}
	}
	if isKnown || len(is) >= mostCorrections {
		return is
	}
	return sorted(append(is, Correction{promised, reported}))
}

func sorted(list []Correction) []Correction {
	slices.SortFunc(list, func(a, b Correction) int { return cmp.Compare(a.Computed, b.Computed) })
	return list
}

// of returns the real amount for a computed one.
func of(corrections []Correction, computed int64) int64 {
	for _, c := range corrections {
		if c.Computed == computed {
			return c.Real
		}
	}
	return computed
}

// Merge returns the combined measurements; the result does not depend on the order. Neither argument is changed.
func (m Measurements) Merge(other Measurements) Measurements {
	out := Measurements{}
	for _, from := range []Measurements{m, other} {
		for sample, b := range from {
			a := out[sample]
			out[sample] = Measured{
				Memory: least(a.Memory, b.Memory), Seen: max(a.Seen, b.Seen),
				Disk: mergeCorrections(a.Disk, b.Disk), Pods: mergeCorrections(a.Pods, b.Pods),
			}
		}
	}
	return out
}

func mergeCorrections(a, b []Correction) []Correction {
	out := slices.Clone(a)
	for _, c := range b {
		if i := slices.IndexFunc(out, func(o Correction) bool { return o.Computed == c.Computed }); i >= 0 {
			out[i].Real = min(out[i].Real, c.Real)
		} else {
			out = append(out, c)
		}
	}
	out = sorted(out)
	return out[:min(len(out), mostCorrections)]
}

// Forget deletes samples that no node has reported since the day before, and returns whether there were any.
func (m Measurements) Forget(before Day) bool {
	was := len(m)
	for sample, is := range m {
		if is.Seen < before {
			delete(m, sample)
		}
	}
	return len(m) < was
}

// least returns the smaller of two amounts; 0 means unknown.
func least(a, b int64) int64 {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}

// Equal reports whether both have the same amounts.
func (m Measurements) Equal(other Measurements) bool { return maps.EqualFunc(m, other, Measured.equal) }

func (m Measured) equal(o Measured) bool {
	return m.Memory == o.Memory && m.Seen == o.Seen && slices.Equal(m.Disk, o.Disk) && slices.Equal(m.Pods, o.Pods)
}

package catalog

import (
	"cmp"
	"maps"
	"slices"

	"github.com/joiner-sh/joiner/internal/model/resources"
)

// Measured is what nodes of one type from one image turned out to have. The zero value: none was seen.
type Measured struct {
	// Memory is the least that a kubelet reported, in bytes; 0: not measured.
	// It replaces the estimate, which is on the low side by some hundredths.
	Memory int64

	// Disk and Pods depend on the NodeClass, which may set the size of a volume
	// or the number of pods. So they map the computed amount to the real one.
	// Sorted by Computed, each once, mostCorrections at most.
	Disk, Pods []Correction

	Seen Day // the last day on which a node reported it
}

// Correction is the real amount of nodes with this computed amount.
type Correction struct {
	Computed int64 // from the instance type and the NodeClass
	Real     int64 // of the Nodes
}

// Day is a day as the number of days since 1 January 1970, in UTC.
type Day int64

// mostCorrections bounds what is kept of a type and image, should each NodeClass have another volume.
const mostCorrections = 16

// refresh is how many days Seen may lie behind, so that not every node that joins is a change.
const refresh = 7

// Report has what a node had when it was ready, and what was promised when it was launched.
type Report struct {
	Image, Type        string            // "ami-…", "m5.large"
	Promised, Reported resources.Amounts // amounts that the plan assumed, and those of the Node
	Day                Day               // of the report
}

// Measurements are those of all types and images.
type Measurements map[Sample]Measured

// Sample is what is measured: nodes of a type from an image.
type Sample struct {
	Image string // "ami-0123"
	Type  string // "m5.large"
}

// Note takes up a report and says whether that changed anything. What cannot
// be true (no memory, twice as much as was promised) counts as not reported.
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

// corrected returns the corrections after the report of a node with this promised
// amount. Before the first report, the promised amount is the computed one, later
// the measured one. If two NodeClasses have the same computed amount and different
// real ones, the smaller one is kept: a plan then promises too little for one of
// them, and never too much.
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

// Merge returns what both say together, which does not depend on their order.
// Neither is altered.
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

// Forget drops what no node has said since the day before, and reports whether there was any.
func (m Measurements) Forget(before Day) bool {
	was := len(m)
	for sample, is := range m {
		if is.Seen < before {
			delete(m, sample)
		}
	}
	return len(m) < was
}

// least returns the smaller of two amounts, of which 0 is one that is not known.
func least(a, b int64) int64 {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}

// Equal reports whether both say the same.
func (m Measurements) Equal(other Measurements) bool { return maps.EqualFunc(m, other, Measured.equal) }

func (m Measured) equal(o Measured) bool {
	return m.Memory == o.Memory && m.Seen == o.Seen && slices.Equal(m.Disk, o.Disk) && slices.Equal(m.Pods, o.Pods)
}

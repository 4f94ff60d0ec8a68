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

	// Disk and Pods have a correction for each computed amount, because the NodeClass may set the size of a volume or
	// the number of pods. They are sorted by Computed, without duplicates, at most mostCorrections each. Disk is in
	// bytes.
	Disk, Pods []Correction

	Seen Day // a day on which a node reported these amounts; the last such day is less than refresh days later
}

// Correction is the real amount of the nodes that have a given computed amount.
type Correction struct {
	Computed int64 // computed from the instance type and the NodeClass
	Real     int64 // the smallest that these nodes reported
}

// Day is a day as the number of days since 1 January 1970, in UTC.
type Day int64

// mostCorrections is the maximum number of corrections of disk, and of pods, per type and image, in case each NodeClass
// has another volume size.
const mostCorrections = 16

// refresh is after how many days a report updates Seen, so that not every joining node changes the measurements.
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

// Note adds a report, and returns whether that changed the measurements. Impossible amounts are ignored: 0, and for
// memory more than twice the promised amount.
func (m Measurements) Note(r Report) bool {
	if r.Image == "" || r.Type == "" {
		return false
	}
	sample := Sample{r.Image, r.Type}
	before := m[sample]
	after := before
	if memory := r.Reported.Memory; memory > 0 && memory <= 2*r.Promised.Memory {
		after.Memory = least(before.Memory, memory)
	}
	after.Disk = corrected(before.Disk, r.Promised.EphemeralStorage, r.Reported.EphemeralStorage)
	after.Pods = corrected(before.Pods, r.Promised.Pods, r.Reported.Pods)
	if after.Memory == 0 && len(after.Disk) == 0 && len(after.Pods) == 0 {
		return false
	}
	if r.Day >= before.Seen+refresh {
		after.Seen = r.Day
	}
	if after.equal(before) {
		return false
	}
	m[sample] = after
	return true
}

// corrected returns the corrections after the report of a node with this promised amount. The promised amount is the
// computed one before the first report, and later the measured one, so it is compared with both. If two NodeClasses
// have the same computed amount and different real ones, the smaller one is kept, so that a plan rather promises too
// little for one of them than too much for the other.
func corrected(before []Correction, promised, reported int64) []Correction {
	if promised <= 0 || reported <= 0 {
		return before
	}
	after, isKnown := slices.Clone(before), false
	for i, c := range after {
		if c.Computed == promised || c.Real == promised {
			after[i].Real, isKnown = min(c.Real, reported), true
		}
	}
	if isKnown || len(after) >= mostCorrections {
		return after
	}
	return sorted(append(after, Correction{promised, reported}))
}

// sorted sorts list in place by the computed amount, and returns it.
func sorted(list []Correction) []Correction {
	slices.SortFunc(list, func(a, b Correction) int { return cmp.Compare(a.Computed, b.Computed) })
	return list
}

// of returns the real amount for a computed one; the computed amount if there is no correction for it.
func of(corrections []Correction, computed int64) int64 {
	for _, c := range corrections {
		if c.Computed == computed {
			return c.Real
		}
	}
	return computed
}

// Merge returns the combined measurements of m and other, with the smaller amount where they differ; m.Merge(other)
// equals other.Merge(m). Neither is changed.
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

// mergeCorrections returns the corrections of a and b; if both have the same computed amount, the smaller real one.
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

// Forget deletes the samples whose day Seen is earlier than the given day, and returns whether there were any.
func (m Measurements) Forget(day Day) bool {
	count := len(m)
	for sample, measured := range m {
		if measured.Seen < day {
			delete(m, sample)
		}
	}
	return len(m) < count
}

// least returns the smaller of two amounts, of which 0 means unknown: the other one if one is unknown.
func least(a, b int64) int64 {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}

// Equal reports whether both have the same samples with the same amounts and days.
func (m Measurements) Equal(other Measurements) bool { return maps.EqualFunc(m, other, Measured.equal) }

// equal reports whether both have the same amounts and day.
func (m Measured) equal(o Measured) bool {
	return m.Memory == o.Memory && m.Seen == o.Seen && slices.Equal(m.Disk, o.Disk) && slices.Equal(m.Pods, o.Pods)
}

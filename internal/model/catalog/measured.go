package catalog

import (
	"cmp"
	"maps"
	"slices"

	"github.com/joiner-sh/joiner/internal/model/resources"
)

// Measured has the real resources of nodes of one type and one image. The zero value means that no node was measured.
type Measured struct {
	// Memory is the smallest amount that a kubelet reported, in bytes; 0 if not measured. It replaces the estimated
	// memory, which is a few percent too low.
	Memory int64

	// Disk and Pods have a correction for each computed amount, because NodeClasses may differ in the size of the
	// volume or the number of pods. They are sorted by Computed, without duplicates, at most maxCorrections each. Disk
	// is in bytes.
	Disk, Pods []Correction

	// Seen is a day on which a node reported its amounts. The last report is at most refreshDays-1 days later.
	Seen Day
}

// Correction is the real amount of the nodes that have a given computed amount.
type Correction struct {
	Computed int64 // computed from the instance type and the NodeClass
	Real     int64 // the smallest amount that these nodes reported
}

// Day is a day as the number of days since 1 January 1970, in UTC.
type Day int64

// maxCorrections is the maximum number of corrections of disk, and of pods, per type and image. The limit is for
// clusters in which each NodeClass has another volume size.
const maxCorrections = 16

// refreshDays is the number of days after which a report updates Seen. Earlier reports do not update it; otherwise
// every joining node would change the measurements.
const refreshDays = 7

// Report has the resources that a node reported when it was ready, and those that its plan assumed.
type Report struct {
	Image, Type        string            // "ami-…", "m5.large"
	Expected, Reported resources.Amounts // the amounts that the plan assumed, and those that the kubelet reported
	Day                Day               // day of the report
}

// Measurements are the measured amounts of all types and images.
type Measurements map[Sample]Measured

// Sample identifies measured nodes: their image and type.
type Sample struct {
	Image string // "ami-0123"
	Type  string // "m5.large"
}

// Add adds a report, and returns whether the measurements have changed. Impossible amounts are ignored: 0, and memory
// of more than twice the expected amount.
func (m Measurements) Add(r Report) bool {
	if r.Image == "" || r.Type == "" {
		return false
	}
	sample := Sample{r.Image, r.Type}
	before := m[sample]
	after := before
	if memory := r.Reported.Memory; memory > 0 && memory <= 2*r.Expected.Memory {
		after.Memory = minKnown(before.Memory, memory)
	}
	after.Disk = addCorrection(before.Disk, r.Expected.EphemeralStorage, r.Reported.EphemeralStorage)
	after.Pods = addCorrection(before.Pods, r.Expected.Pods, r.Reported.Pods)
	if after.Memory == 0 && len(after.Disk) == 0 && len(after.Pods) == 0 {
		return false
	}
	if r.Day >= before.Seen+refreshDays {
		after.Seen = r.Day
	}
	if after.equal(before) {
		return false
	}
	m[sample] = after
	return true
}

// addCorrection returns the corrections with the report of a node added. A plan expects the computed amount before the
// first report, and the measured amount later. So addCorrection compares the expected amount with both. If nodes with
// the same computed amount report different amounts, for example those of two NodeClasses, the smallest is kept: a plan
// may expect too little, but not too much.
func addCorrection(before []Correction, expected, reported int64) []Correction {
	if expected <= 0 || reported <= 0 {
		return before
	}
	after, isKnown := slices.Clone(before), false
	for i, c := range after {
		if c.Computed == expected || c.Real == expected {
			after[i].Real, isKnown = min(c.Real, reported), true
		}
	}
	if isKnown || len(after) >= maxCorrections {
		return after
	}
	return sortCorrections(append(after, Correction{expected, reported}))
}

func sortCorrections(list []Correction) []Correction {
	slices.SortFunc(list, func(a, b Correction) int { return cmp.Compare(a.Computed, b.Computed) })
	return list
}

// correctedAmount returns the real amount for a computed one; the computed amount if there is no correction for it.
func correctedAmount(corrections []Correction, computed int64) int64 {
	for _, c := range corrections {
		if c.Computed == computed {
			return c.Real
		}
	}
	return computed
}

// Merge returns the combined measurements of m and other. Where they differ, it takes the smaller amount and
// the later day, so m.Merge(other) equals other.Merge(m). Neither is changed.
func (m Measurements) Merge(other Measurements) Measurements {
	out := Measurements{}
	for _, from := range []Measurements{m, other} {
		for sample, added := range from {
			merged := out[sample]
			out[sample] = Measured{
				Memory: minKnown(merged.Memory, added.Memory), Seen: max(merged.Seen, added.Seen),
				Disk: mergeCorrections(merged.Disk, added.Disk), Pods: mergeCorrections(merged.Pods, added.Pods),
			}
		}
	}
	return out
}

// mergeCorrections returns the corrections of a and b. If both have a computed amount, the smaller real one is taken.
func mergeCorrections(a, b []Correction) []Correction {
	out := slices.Clone(a)
	for _, c := range b {
		if i := slices.IndexFunc(out, func(o Correction) bool { return o.Computed == c.Computed }); i >= 0 {
			out[i].Real = min(out[i].Real, c.Real)
		} else {
			out = append(out, c)
		}
	}
	out = sortCorrections(out)
	return out[:min(len(out), maxCorrections)]
}

// Forget deletes the samples whose Seen is earlier than the day, and returns whether there were any.
func (m Measurements) Forget(day Day) bool {
	count := len(m)
	for sample, measured := range m {
		if measured.Seen < day {
			delete(m, sample)
		}
	}
	return len(m) < count
}

// minKnown returns the smaller of two amounts. 0 means unknown: if one amount is unknown, minKnown returns the other.
func minKnown(a, b int64) int64 {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}

// Equal reports whether both have the same samples with the same amounts and days.
func (m Measurements) Equal(other Measurements) bool { return maps.EqualFunc(m, other, Measured.equal) }

func (m Measured) equal(o Measured) bool {
	return m.Memory == o.Memory && m.Seen == o.Seen && slices.Equal(m.Disk, o.Disk) && slices.Equal(m.Pods, o.Pods)
}

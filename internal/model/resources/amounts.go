// Package resources computes with amounts of resources: the requests of pods and the capacity of nodes.
//
// In: amounts by resource, as integers (millicores, bytes, pieces).
// Out: sums, differences, and whether an amount fits into another.
// Never: a Kubernetes type, or a change of existing Amounts; only a Vector can be changed.
package resources

import (
	"cmp"
	"math"
	"math/bits"
	"slices"
)

// Names of the resources that have their own field in Amounts.
const (
	CPU              = "cpu"
	Memory           = "memory"
	EphemeralStorage = "ephemeral-storage"
	Pods             = "pods"
)

// Amounts holds an amount of each resource. The zero value has 0 of every resource. Values may be shared freely: no
// function changes the slice Extended.
type Amounts struct {
	CPU              int64 // millicores
	Memory           int64 // bytes
	EphemeralStorage int64 // bytes
	Pods             int64 // pieces

	// Extended holds the other resources, sorted by name, without zeros.
	Extended []Extended
}

// Extended is an amount of a resource that only some nodes have, such as nvidia.com/gpu.
type Extended struct {
	Name  string // "nvidia.com/gpu"
	Value int64  // pieces
}

// Of returns the amount of the named resource; 0 if a has none of it.
func (a Amounts) Of(name string) int64 {
	switch name {
	case CPU:
		return a.CPU
	case Memory:
		return a.Memory
	case EphemeralStorage:
		return a.EphemeralStorage
	case Pods:
		return a.Pods
	}
	i, ok := slices.BinarySearchFunc(a.Extended, name, byName)
	if !ok {
		return 0
	}
	return a.Extended[i].Value
}

// With returns a with the amount of the named resource set to value.
func (a Amounts) With(name string, value int64) Amounts {
	switch name {
	case CPU:
		a.CPU = value
		return a
	case Memory:
		a.Memory = value
		return a
	case EphemeralStorage:
		a.EphemeralStorage = value
		return a
	case Pods:
		a.Pods = value
		return a
	}
	i, ok := slices.BinarySearchFunc(a.Extended, name, byName)
	ext := slices.Clone(a.Extended)
	switch {
	case ok && value == 0:
		ext = slices.Delete(ext, i, i+1)
	case ok:
		ext[i].Value = value
	case value != 0:
		ext = slices.Insert(ext, i, Extended{name, value})
	}
	a.Extended = ext
	return a
}

// Names returns the names of all resources with an amount other than 0: cpu, memory, ephemeral-storage and pods first,
// then the others by name.
func (a Amounts) Names() []string {
	var names []string
	for _, name := range []string{CPU, Memory, EphemeralStorage, Pods} {
		if a.Of(name) != 0 {
			names = append(names, name)
		}
	}
	for _, e := range a.Extended {
		names = append(names, e.Name)
	}
	return names
}

// Add returns a + b. Add, Sub and Times saturate at the limits of int64 instead of wrapping around.
func (a Amounts) Add(b Amounts) Amounts { return a.combine(b, add) }

// Sub returns a - b; the result may be negative.
func (a Amounts) Sub(b Amounts) Amounts { return a.combine(b, sub) }

// Max returns, for each resource, the larger of both amounts.
func (a Amounts) Max(b Amounts) Amounts {
	return a.combine(b, func(x, y int64) int64 { return max(x, y) })
}

// Times returns n times a.
func (a Amounts) Times(n int64) Amounts {
	return a.combine(Amounts{}, func(x, _ int64) int64 { return times(x, n) })
}

func add(x, y int64) int64 {
	sum := x + y
	switch {
	case x > 0 && y > 0 && sum < 0:
		return math.MaxInt64
	case x < 0 && y < 0 && sum >= 0:
		return math.MinInt64
	}
	return sum
}

func sub(x, y int64) int64 {
	difference := x - y
	switch {
	case x >= 0 && y < 0 && difference < 0:
		return math.MaxInt64
	case x < 0 && y > 0 && difference >= 0:
		return math.MinInt64
	}
	return difference
}

func times(x, n int64) int64 {
	high, low := bits.Mul64(magnitude(x), magnitude(n))
	isNegative := (x < 0) != (n < 0)
	switch {
	case high == 0 && low <= math.MaxInt64:
		return x * n
	case isNegative:
		return math.MinInt64
	}
	return math.MaxInt64
}

// magnitude returns the absolute value of x. It is correct for the smallest int64, too.
func magnitude(x int64) uint64 {
	if x < 0 {
		return -uint64(x)
	}
	return uint64(x)
}

// IsNegative reports whether any amount is below 0.
func (a Amounts) IsNegative() bool {
	return a.CPU < 0 || a.Memory < 0 || a.EphemeralStorage < 0 || a.Pods < 0 ||
		slices.ContainsFunc(a.Extended, func(e Extended) bool { return e.Value < 0 })
}

// RaiseNegatives returns a with every negative amount raised to 0.
func (a Amounts) RaiseNegatives() Amounts { return a.Max(Amounts{}) }

func (a Amounts) combine(b Amounts, f func(x, y int64) int64) Amounts {
	return Amounts{
		CPU:              f(a.CPU, b.CPU),
		Memory:           f(a.Memory, b.Memory),
		EphemeralStorage: f(a.EphemeralStorage, b.EphemeralStorage),
		Pods:             f(a.Pods, b.Pods),
		Extended:         merge(a.Extended, b.Extended, f),
	}
}

// merge is combine for two lists that are sorted by name. The result is sorted, too, and has no zeros.
func merge(a, b []Extended, f func(x, y int64) int64) []Extended {
	if len(a) == 0 && len(b) == 0 {
		return nil
	}
	out := make([]Extended, 0, len(a)+len(b))
	keep := func(name string, value int64) {
		if value != 0 {
			out = append(out, Extended{name, value})
		}
	}
	for len(a) > 0 || len(b) > 0 {
		switch {
		case len(b) == 0 || len(a) > 0 && a[0].Name < b[0].Name:
			keep(a[0].Name, f(a[0].Value, 0))
			a = a[1:]
		case len(a) == 0 || b[0].Name < a[0].Name:
			keep(b[0].Name, f(0, b[0].Value))
			b = b[1:]
		default:
			keep(a[0].Name, f(a[0].Value, b[0].Value))
			a, b = a[1:], b[1:]
		}
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

// Fits reports whether each amount of a is at most that of room. An amount of 0 or less always fits, even into negative
// room: a node that is over-committed in memory still accepts a pod without memory requests.
func (a Amounts) Fits(room Amounts) bool {
	return a.firstLacking(room) == ""
}

// Lacking returns the names of the resources in which a exceeds room, in the order of Names.
func (a Amounts) Lacking(room Amounts) []string {
	var names []string
	for _, name := range a.Names() {
		if !fits(a.Of(name), room.Of(name)) {
			names = append(names, name)
		}
	}
	return names
}

// firstLacking returns the first name of Lacking, without allocations; empty if a fits into room.
func (a Amounts) firstLacking(room Amounts) string {
	switch {
	case !fits(a.CPU, room.CPU):
		return CPU
	case !fits(a.Memory, room.Memory):
		return Memory
	case !fits(a.EphemeralStorage, room.EphemeralStorage):
		return EphemeralStorage
	case !fits(a.Pods, room.Pods):
		return Pods
	}
	for _, e := range a.Extended {
		if !fits(e.Value, room.Of(e.Name)) {
			return e.Name
		}
	}
	return ""
}

func fits(amount, room int64) bool { return amount <= 0 || amount <= room }

// IsZero reports whether all amounts are 0.
func (a Amounts) IsZero() bool {
	return a.CPU == 0 && a.Memory == 0 && a.EphemeralStorage == 0 && a.Pods == 0 && len(a.Extended) == 0
}

// Equal reports whether all amounts are equal.
func (a Amounts) Equal(b Amounts) bool { return a.Compare(b) == 0 }

// Compare orders all Amounts: by CPU, memory, ephemeral storage, pods, then the extended resources.
func (a Amounts) Compare(b Amounts) int {
	return cmp.Or(
		cmp.Compare(a.CPU, b.CPU),
		cmp.Compare(a.Memory, b.Memory),
		cmp.Compare(a.EphemeralStorage, b.EphemeralStorage),
		cmp.Compare(a.Pods, b.Pods),
		slices.CompareFunc(a.Extended, b.Extended, func(x, y Extended) int {
			return cmp.Or(cmp.Compare(x.Name, y.Name), cmp.Compare(x.Value, y.Value))
		}),
	)
}

func byName(e Extended, name string) int { return cmp.Compare(e.Name, name) }

// Bulk returns the size of a as one number: the number of cores, plus 1 for every 4 GiB of memory. Most general purpose
// instances have 4 GiB per vCPU. Pods with a larger Bulk are harder to place.
func (a Amounts) Bulk() float64 { return float64(a.CPU)/1000 + float64(a.Memory)/(4<<30) }

package conversion

import (
	"cmp"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/joiner-sh/joiner/internal/model/resources"
)

// Amounts converts a list of resources to the solver's units: millicores for cpu, bytes or pieces for other resources.
// Fractions round up, as in kube-scheduler. Amounts above maxAmount are limited to it, so that sums do not overflow.
func Amounts(list corev1.ResourceList) resources.Amounts {
	var a resources.Amounts
	for name, quantity := range list {
		switch name {
		case corev1.ResourceCPU:
			a.CPU = bounded(milli(quantity))
		case corev1.ResourceMemory:
			a.Memory = bounded(whole(quantity))
		case corev1.ResourceEphemeralStorage:
			a.EphemeralStorage = bounded(whole(quantity))
		case corev1.ResourcePods:
			a.Pods = bounded(whole(quantity))
		default:
			if v := bounded(whole(quantity)); v != 0 {
				a.Extended = append(a.Extended, resources.Extended{Name: string(name), Value: v})
			}
		}
	}
	slices.SortFunc(a.Extended, func(x, y resources.Extended) int { return cmp.Compare(x.Name, y.Name) })
	return a
}

// maxAmount is more than any instance type has of a resource: 2^50 bytes (1 PiB), or 2^50 millicores. The largest
// instances have 32 TiB of memory and a third of a PiB of disk. A sum of thousands of such amounts does not overflow.
const maxAmount = 1 << 50

func bounded(v int64) int64 { return min(max(v, -maxAmount), maxAmount) }

// whole returns Quantity.Value, which rounds up, or the nearest int64 if the quantity is beyond the range of int64. For
// such a quantity, Quantity.Value itself returns 0, 1 or a negative number.
func whole(q resource.Quantity) int64 {
	switch {
	case q.CmpInt64(math.MaxInt64) >= 0:
		return math.MaxInt64
	case q.CmpInt64(math.MinInt64) <= 0:
		return math.MinInt64
	}
	return q.Value()
}

// milli returns Quantity.MilliValue, which rounds up, or the nearest int64 if the result is beyond the range of int64.
func milli(q resource.Quantity) int64 {
	switch {
	case q.CmpInt64(math.MaxInt64/1000) >= 0:
		return math.MaxInt64
	case q.CmpInt64(math.MinInt64/1000) <= 0:
		return math.MinInt64
	}
	return q.MilliValue()
}

// RequestAmounts converts a list of requests. A negative request, which the API server rejects, becomes 0, so that it
// does not make room for other pods.
func RequestAmounts(list corev1.ResourceList) resources.Amounts {
	return Amounts(list).RaiseNegatives()
}

// Quantities is the reverse of Amounts, without resources that are 0.
func Quantities(a resources.Amounts) corev1.ResourceList {
	out := corev1.ResourceList{}
	for _, name := range a.Names() {
		value := a.Of(name)
		switch name {
		case resources.CPU:
			out[corev1.ResourceCPU] = *resource.NewMilliQuantity(value, resource.DecimalSI)
		case resources.Memory, resources.EphemeralStorage:
			out[corev1.ResourceName(name)] = *resource.NewQuantity(value, resource.BinarySI)
		default:
			out[corev1.ResourceName(name)] = *resource.NewQuantity(value, resource.DecimalSI)
		}
	}
	return out
}

// floor is like whole, but rounds positive quantities down.
func floor(q resource.Quantity) int64 {
	v := whole(q)
	if v > 0 && q.CmpInt64(v) < 0 {
		v--
	}
	return v
}

// floorMilli is like milli, but rounds positive quantities down.
func floorMilli(q resource.Quantity) int64 {
	v := milli(q)
	if v > 0 && q.Cmp(*resource.NewMilliQuantity(v, resource.DecimalSI)) < 0 {
		v--
	}
	return v
}

package kube

import (
	"cmp"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/joiner-sh/joiner/capacity"
)

// Amounts returns a list of resources as the engine counts them: millicores for
// cpu, bytes or pieces for the rest. Fractions round up, as kube-scheduler
// does. More than any machine has is cut to maxAmount, so that sums do not overflow.
func Amounts(list corev1.ResourceList) capacity.Amounts {
	var a capacity.Amounts
	for name, quantity := range list {
		switch name {
		case corev1.ResourceCPU:
			a.CPU = bounded(milli(quantity))
		case corev1.ResourceMemory:
			a.Memory = bounded(quantity.Value())
		case corev1.ResourceEphemeralStorage:
			a.EphemeralStorage = bounded(quantity.Value())
		case corev1.ResourcePods:
			a.Pods = bounded(quantity.Value())
		default:
			if v := bounded(quantity.Value()); v != 0 {
				a.Extended = append(a.Extended, capacity.Extended{Name: string(name), Value: v})
			}
		}
	}
	slices.SortFunc(a.Extended, func(x, y capacity.Extended) int { return cmp.Compare(x.Name, y.Name) })
	return a
}

// maxAmount is more than any machine has of anything: 1 PiB, where the largest
// have 32 TiB of memory and a third of a PiB of disk. Thousands of it can be added up.
const maxAmount = 1 << 50

func bounded(v int64) int64 { return min(max(v, -maxAmount), maxAmount) }

// milli is Quantity.MilliValue, which wraps around for what an int64 cannot hold.
func milli(q resource.Quantity) int64 {
	switch v := q.Value(); {
	case v >= math.MaxInt64/1000:
		return math.MaxInt64
	case v <= math.MinInt64/1000:
		return math.MinInt64
	}
	return q.MilliValue()
}

// Quantities is the reverse of Amounts, without resources of which there is nothing.
func Quantities(a capacity.Amounts) corev1.ResourceList {
	out := corev1.ResourceList{}
	for _, name := range a.Names() {
		value := a.Of(name)
		switch name {
		case capacity.CPU:
			out[corev1.ResourceCPU] = *resource.NewMilliQuantity(value, resource.DecimalSI)
		case capacity.Memory, capacity.EphemeralStorage:
			out[corev1.ResourceName(name)] = *resource.NewQuantity(value, resource.BinarySI)
		default:
			out[corev1.ResourceName(name)] = *resource.NewQuantity(value, resource.DecimalSI)
		}
	}
	return out
}

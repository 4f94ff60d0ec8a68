package resources

import (
	"slices"
	"strings"
)

// Vector holds the amounts of some Dimensions, in their order. It can be changed in place, for code that compares and
// adds many amounts.
type Vector []int64

// Dimensions are the names of the resources of a Vector.
type Dimensions []string

// VectorsIn returns n vectors that use consecutive parts of cells.
func VectorsIn(cells []int64, n int) []Vector {
	out := make([]Vector, n)
	for i, each := 0, len(cells)/max(n, 1); i < n; i++ {
		out[i] = cells[i*each : (i+1)*each : (i+1)*each]
	}
	return out
}

// Of returns the amounts as a vector.
func (d Dimensions) Of(a Amounts) Vector {
	v := make(Vector, len(d))
	d.into(v, a)
	return v
}

// AttachableVolumes is the prefix of the resource names that count volumes attached by a CSI driver.
const AttachableVolumes = "attachable-volumes-csi-"

// Plenty is the amount of an unlimited resource.
const Plenty = 1 << 40

// Left sets v to all less used. Volumes of a CSI driver without a limit on the node are unlimited, as in
// kube-scheduler.
func (d Dimensions) Left(v Vector, all, used Amounts) {
	if !slices.ContainsFunc(d, isExtended) {
		all.Extended, used.Extended = nil, nil // no pod requests them
	}
	d.into(v, all.Sub(used))
	for i, name := range d {
		if strings.HasPrefix(name, AttachableVolumes) && all.Of(name) == 0 {
			v[i] = Plenty
		}
	}
}

// isExtended reports whether amounts of the resource are in Amounts.Extended.
func isExtended(name string) bool {
	return name != CPU && name != Memory && name != EphemeralStorage && name != Pods
}

func (d Dimensions) into(v Vector, a Amounts) {
	for i, name := range d {
		v[i] = a.Of(name)
	}
}

// Fits reports whether v is at most room; an amount of 0 or less always fits.
func (v Vector) Fits(room Vector) bool {
	for i, x := range v {
		if x > 0 && x > room[i] {
			return false
		}
	}
	return true
}

// Times returns how often v fits into room, at most limit times.
func (v Vector) Times(room Vector, limit int) int {
	n := int64(limit)
	for i, x := range v {
		if x > 0 {
			n = min(n, room[i]/x)
		}
	}
	return int(max(n, 0))
}

// Take subtracts n times w from v.
func (v Vector) Take(w Vector, n int) {
	for i, x := range w {
		v[i] -= x * int64(n)
	}
}

// Clone returns an independent copy.
func (v Vector) Clone() Vector { return append(Vector(nil), v...) }

// Lacking returns the index of the first resource in which v exceeds room, or -1.
func (v Vector) Lacking(room Vector) int {
	for i, x := range v {
		if x > 0 && x > room[i] {
			return i
		}
	}
	return -1
}

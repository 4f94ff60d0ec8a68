package resources

import (
	"slices"
	"strings"
)

// Vector holds the amounts of the resources in a Dimensions, in that order. A Vector can be changed in place, for code
// that compares and subtracts many amounts.
type Vector []int64

// Dimensions are the names of the resources of a Vector.
type Dimensions []string

// VectorsIn returns n vectors of length len(cells)/n that use consecutive parts of cells as their memory.
func VectorsIn(cells []int64, n int) []Vector {
	out := make([]Vector, n)
	for i, length := 0, len(cells)/max(n, 1); i < n; i++ {
		out[i] = cells[i*length : (i+1)*length : (i+1)*length]
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

// Plenty is the amount of an unlimited resource: more than all pods of a cluster can request.
const Plenty = 1 << 40

// Left sets v to the amounts that are left of all after used. A CSI driver for which all has no number of volumes has
// no limit on the node, as in kube-scheduler: its amount becomes Plenty.
func (d Dimensions) Left(v Vector, all, used Amounts) {
	if !slices.ContainsFunc(d, isExtended) {
		all.Extended, used.Extended = nil, nil // v has none of them, so do not subtract them
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

// into sets v to the amounts of a.
func (d Dimensions) into(v Vector, a Amounts) {
	for i, name := range d {
		v[i] = a.Of(name)
	}
}

// Fits reports whether v is at most room in every resource; an amount of 0 or less always fits.
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

// Lacking returns the index of the first resource in which v exceeds room, or -1 if v fits.
func (v Vector) Lacking(room Vector) int {
	for i, x := range v {
		if x > 0 && x > room[i] {
			return i
		}
	}
	return -1
}

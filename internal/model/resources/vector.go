package resources

import (
	"slices"
	"strings"
)

// Vector holds one amount for each of the resources of a Dimensions, in their order. It can be changed in place, for
// code that compares and subtracts many amounts.
type Vector []int64

// Dimensions are the names of the resources of a Vector.
type Dimensions []string

// VectorsIn returns n vectors of length len(cells)/n. Their memory is cells, divided into consecutive parts.
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
	d.fill(v, a)
	return v
}

// AttachableVolumes is the prefix of the resource names that count volumes attached by a CSI driver.
const AttachableVolumes = "attachable-volumes-csi-"

// Unlimited is the number of attachable volumes without a limit. It is more than all pods of a cluster can request.
const Unlimited = 1 << 40

// SetRemaining sets v to total minus used. A CSI driver without an amount in total has no limit on the node, as in
// kube-scheduler: v gets Unlimited for it.
func (d Dimensions) SetRemaining(v Vector, total, used Amounts) {
	if !slices.ContainsFunc(d, isExtended) {
		total.Extended, used.Extended = nil, nil // v has no extended resources, so subtracting them is not needed
	}
	d.fill(v, total.Sub(used))
	for i, name := range d {
		if strings.HasPrefix(name, AttachableVolumes) && total.Of(name) == 0 {
			v[i] = Unlimited
		}
	}
}

// isExtended reports whether amounts of the resource are in Amounts.Extended.
func isExtended(name string) bool {
	return name != CPU && name != Memory && name != EphemeralStorage && name != Pods
}

func (d Dimensions) fill(v Vector, a Amounts) {
	for i, name := range d {
		v[i] = a.Of(name)
	}
}

// Fits reports whether no amount of v exceeds that of room. An amount of 0 or less always fits.
func (v Vector) Fits(room Vector) bool {
	for i, x := range v {
		if x > 0 && x > room[i] {
			return false
		}
	}
	return true
}

// FitCount returns how many times v fits into room, but at most limit.
func (v Vector) FitCount(room Vector, limit int) int {
	n := int64(limit)
	for i, x := range v {
		if x > 0 {
			n = min(n, room[i]/x)
		}
	}
	return int(max(n, 0))
}

// SubtractTimes subtracts n times w from v.
func (v Vector) SubtractTimes(w Vector, n int) {
	for i, x := range w {
		v[i] -= x * int64(n)
	}
}

// Clone returns an independent copy.
func (v Vector) Clone() Vector { return append(Vector(nil), v...) }

// FirstLacking returns the index of the first resource in which v exceeds room, or -1 if v fits.
func (v Vector) FirstLacking(room Vector) int {
	for i, x := range v {
		if x > 0 && x > room[i] {
			return i
		}
	}
	return -1
}

package resources

import (
	"slices"
	"strings"
)

// Vector is an amount of each of some Dimensions, in their order: what is
// counted with where many amounts are compared and added up in place.
type Vector []int64

// Dimensions are the names of the resources that matter somewhere.
type Dimensions []string

// VectorsIn returns n vectors that lie in cells one after the other.
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

// AttachableVolumes begins the names of resources that stand for volumes attached by a CSI driver.
const AttachableVolumes = "attachable-volumes-csi-"

// Plenty is the room for resources without limit.
const Plenty = 1 << 40

// Left sets v to all less used. The volumes of a CSI driver for which the node has no limit are not limited, as in
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

// Fits reports whether v is no larger than room; what v does not ask for
// always fits.
func (v Vector) Fits(room Vector) bool {
	for i, x := range v {
		if x > 0 && x > room[i] {
			return false
		}
	}
	return true
}

// Times returns how often v fits into room, at most limit.
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

// Clone returns a copy that changes by itself.
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

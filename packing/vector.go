package packing

import (
	"maps"
	"slices"
	"strings"

	"github.com/joiner-sh/joiner/capacity"
	"github.com/joiner-sh/joiner/cluster"
)

// vector is an amount of each resource that somebody in the snapshot asks for,
// in the order of resources. It is what the engine counts with.
type vector []int64

// resources are the names of the resources that matter here: cpu, memory,
// ephemeral-storage and pods if asked for, then the others by name.
type resources []string

func resourcesOf(s cluster.Snapshot) resources {
	var common capacity.Amounts // not 0 where somebody asks for something
	others := map[string]bool{}
	for i := range s.Pods {
		asks := &s.Pods[i].Requests
		common.CPU |= asks.CPU
		common.Memory |= asks.Memory
		common.EphemeralStorage |= asks.EphemeralStorage
		common.Pods |= asks.Pods
		for _, e := range asks.Extended {
			others[e.Name] = true
		}
	}
	return append(resources(common.Names()), slices.Sorted(maps.Keys(others))...)
}

// vectorsIn returns n vectors that lie in cells one after the other.
func vectorsIn(cells []int64, n int) []vector {
	out := make([]vector, n)
	for i, each := 0, len(cells)/max(n, 1); i < n; i++ {
		out[i] = cells[i*each : (i+1)*each : (i+1)*each]
	}
	return out
}

// of returns the amounts as a vector.
func (r resources) of(a capacity.Amounts) vector {
	v := make(vector, len(r))
	r.into(v, a)
	return v
}

// volumesOfEBS is the resource that stands for volumes which the EBS driver attaches.
const volumesOfEBS = attachable + "ebs.csi.aws.com"

// attachable begins the names of resources that stand for volumes attached by a CSI driver.
const attachable = "attachable-volumes-csi-"

// plenty is the room for what nobody limits.
const plenty = 1 << 40

// left makes v what is left of all when so much is used. Volumes of a driver of which the
// node does not say how many it attaches are not limited, as for kube-scheduler.
func (r resources) left(v vector, all, used capacity.Amounts) {
	if !slices.ContainsFunc(r, isExtended) {
		all.Extended, used.Extended = nil, nil // nobody asks for them
	}
	r.into(v, all.Sub(used))
	for i, name := range r {
		if strings.HasPrefix(name, attachable) && all.Of(name) == 0 {
			v[i] = plenty
		}
	}
}

// isExtended reports whether amounts of the resource are in capacity.Amounts.Extended.
func isExtended(name string) bool {
	return name != capacity.CPU && name != capacity.Memory && name != capacity.EphemeralStorage && name != capacity.Pods
}

// weights returns how much of each resource makes as much bulk as others: a
// core is as bulky as 4 GiB, whatever else is asked for has none.
func (r resources) weights() []float64 {
	out := make([]float64, len(r))
	for i, name := range r {
		switch name {
		case capacity.CPU:
			out[i] = 1e-3
		case capacity.Memory:
			out[i] = 1.0 / (4 << 30)
		}
	}
	return out
}

func (r resources) into(v vector, a capacity.Amounts) {
	for i, name := range r {
		v[i] = a.Of(name)
	}
}

// fits reports whether v is no larger than room; what v does not ask for
// always fits.
func (v vector) fits(room vector) bool {
	for i, x := range v {
		if x > 0 && x > room[i] {
			return false
		}
	}
	return true
}

// times returns how often v fits into room, at most limit.
func (v vector) times(room vector, limit int) int {
	n := int64(limit)
	for i, x := range v {
		if x > 0 {
			n = min(n, room[i]/x)
		}
	}
	return int(max(n, 0))
}

// take subtracts n times w from v.
func (v vector) take(w vector, n int) {
	for i, x := range w {
		v[i] -= x * int64(n)
	}
}

func (v vector) clone() vector { return append(vector(nil), v...) }

// lacking returns the index of the first resource in which v exceeds room, or -1.
func (v vector) lacking(room vector) int {
	for i, x := range v {
		if x > 0 && x > room[i] {
			return i
		}
	}
	return -1
}

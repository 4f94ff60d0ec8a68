package podgroup

import (
	"maps"
	"slices"
	"strings"

	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/model/resources"
)

// Unoffered is the name of one dimension that replaces all unoffered resources, if pods request many of them. An
// unoffered resource is an extended resource that no node and no instance type has. Without the replacement, each
// unoffered resource would lengthen every vector. A pod that requests any of the replaced resources requests 1 of
// Unoffered.
const Unoffered = "unoffered"

// maxUnoffered is the maximum number of unoffered resources that keep their own dimensions.
const maxUnoffered = 8

// collapseUnoffered replaces the unoffered resources by the dimension Unoffered, if there are more than maxUnoffered.
// offered returns the extended resources of instance types. If offered is nil, nothing is replaced.
func (q *Queue) collapseUnoffered(s cluster.Snapshot, offered func() map[string]bool) {
	if offered == nil || len(q.Dims) <= maxUnoffered {
		return
	}
	known := maps.Clone(offered())
	for i := range s.Nodes {
		for _, e := range s.Nodes[i].Allocatable.Extended {
			known[e.Name] = true
		}
	}
	q.unoffered = map[string]bool{}
	for _, name := range q.Dims {
		// A node without an amount of attachable volumes has no limit for them.
		if !isBasic(name) && !known[name] && !strings.HasPrefix(name, resources.AttachableVolumes) {
			q.unoffered[name] = true
		}
	}
	if len(q.unoffered) <= maxUnoffered {
		q.unoffered = nil
		return
	}
	q.Dims = append(slices.DeleteFunc(q.Dims, func(name string) bool { return q.unoffered[name] }), Unoffered)
}

// isBasic reports whether the resource has a field of its own in resources.Amounts.
func isBasic(name string) bool {
	switch name {
	case resources.CPU, resources.Memory, resources.EphemeralStorage, resources.Pods:
		return true
	}
	return false
}

// Ask returns the amounts as a vector over the queue's dimensions. If Unoffered is a dimension, it is the last one.
func (q *Queue) Ask(a resources.Amounts) resources.Vector {
	v := q.Dims.Of(a)
	if q.FirstUnoffered(a) != "" {
		v[len(v)-1] = 1
	}
	return v
}

// FirstUnoffered returns the first resource in the amounts that Unoffered replaces; "" if there is none.
func (q *Queue) FirstUnoffered(a resources.Amounts) string {
	if q.unoffered == nil {
		return ""
	}
	for _, e := range a.Extended {
		if q.unoffered[e.Name] {
			return e.Name
		}
	}
	return ""
}

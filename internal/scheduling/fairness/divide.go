package fairness

import (
	"cmp"
	"maps"
	"slices"

	"github.com/joiner-sh/joiner/internal/model/cluster"
)

// Share limits the work that the solver may spend on one plan. The unit is the work for a pod with few rules.
type Share struct {
	// MaxPlanCost is the most that one plan may cost.
	MaxPlanCost int
	// CostlyAbove is a threshold: a kind of pods that costs more is costly.
	CostlyAbove int
	// MaxSliceCost is the most that a slice may cost; a slice is a separate plan for costly kinds (see Divide). A
	// single kind that costs more gets a slice of its own. Costly kinds need no slice if together they cost no more
	// than MaxSliceCost, and all kinds cost no more than MaxPlanCost.
	MaxSliceCost int
}

// DefaultShare returns the share that the controller starts with, which is also the largest. One plan holds 10,000
// kinds of ordinary pods. A slice holds 13 pods with 50 anti-affinity terms of two labels each.
func DefaultShare() Share { return Share{MaxPlanCost: 10_000, CostlyAbove: 40, MaxSliceCost: 1_500} }

// SliceState records which pods were already in a slice, and what pods cost the solver.
type SliceState struct {
	Served map[string]bool // UIDs of the pods that were in a slice
	Costs  map[string]int  // results of Cost by pod UID; Divide calls Cost for missing pods
	Last   string          // the namespace served last: the next slice starts with the namespace after it
}

// Division has the pods that are planned now, and the pods of the next slice.
type Division struct {
	Now       []cluster.Pod // planned together, now
	Slice     []cluster.Pod // the next slice of the other pods; nil if all of them were served
	Last      string        // the namespace served last in Slice
	NowCost   int           // cost of Now
	SliceCost int           // cost of Slice
	Later     int           // number of pods that are neither in Now nor in Slice
}

// Divide splits pods into the pods that are planned now, and slices of the other pods.
//
// All pods are planned together if they cost at most share.MaxPlanCost, and if the costly kinds (those that cost more
// than share.CostlyAbove each) cost at most share.MaxSliceCost together. Otherwise the costly kinds wait for a slice.
//
// share.MaxPlanCost is divided among the namespaces of the remaining kinds. A namespace that needs less than its equal
// part is planned in full; other namespaces get the rest of its part. Within a namespace, kinds of higher priority
// come first, then those that cost less.
//
// Slices serve namespaces in turn. Priority only orders the pods within a namespace, in plans and slices, so a costly
// pod of high priority does not delay other namespaces. Pods with required affinity to each other are in one slice,
// as far as the slice can hold them.
func Divide(pods []cluster.Pod, state SliceState, share Share) Division {
	kinds := kindsOf(pods, state.Costs)
	total, costly := 0, 0
	for i := range kinds {
		total += kinds[i].cost
		if kinds[i].cost > share.CostlyAbove {
			costly += kinds[i].cost
		}
	}
	if total <= share.MaxPlanCost && costly <= share.MaxSliceCost {
		return Division{Now: pods, NowCost: total}
	}
	now, later := splitByShare(kinds, share)
	out := Division{Now: podsOf(now)}
	for _, k := range now {
		out.NowCost += k.cost
	}
	notNow := 0 // number of pods in later
	var waiting []kind
	for _, k := range later {
		notNow += len(k.pods)
		if k = k.without(state.Served); len(k.pods) > 0 {
			waiting = append(waiting, k)
		}
	}
	slice, last := nextSlice(waiting, state.Last, share.MaxSliceCost)
	for _, k := range slice {
		out.SliceCost += k.cost
	}
	out.Slice, out.Last = podsOf(slice), last
	out.Later = notNow - len(out.Slice)
	return out
}

// kind is a run of identical pods of one namespace, in the order of their names. The solver handles them as one class.
type kind struct {
	pods []*cluster.Pod
	cost int
}

func (k kind) namespace() string { return k.pods[0].Namespace }

func (k kind) without(served map[string]bool) kind {
	k.pods = slices.DeleteFunc(slices.Clone(k.pods), func(p *cluster.Pod) bool { return served[p.UID] })
	return k
}

// kindsOf groups pods by kind, in the order of namespace and name.
func kindsOf(pods []cluster.Pod, costs map[string]int) []kind {
	all := make([]*cluster.Pod, len(pods))
	for i := range pods {
		all[i] = &pods[i]
	}
	if !slices.IsSortedFunc(all, byName) {
		slices.SortFunc(all, byName)
	}
	users := map[string]int{} // by extended resource: number of kinds that request it
	var out []kind
	for i, p := range all {
		if i > 0 && isAlike(all[i-1], p) {
			last := &out[len(out)-1]
			last.pods = append(last.pods, p)
			continue
		}
		out = append(out, kind{pods: all[i : i+1 : i+1]})
		for _, e := range p.Requests.Extended {
			users[e.Name]++
		}
	}
	for i := range out {
		out[i].cost = costOf(out[i].pods[0], costs, users)
	}
	return out
}

func byName(a, b *cluster.Pod) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name), cmp.Compare(a.UID, b.UID))
}

// isAlike reports whether two pods are certainly of one kind. It may be false for equal pods: it recognizes only pods
// that share their requirements in memory (SharesConstraints). Pods of one workload usually do, and follow each other
// by name.
func isAlike(a, b *cluster.Pod) bool {
	return a.Namespace == b.Namespace && a.Priority == b.Priority && a.SharesConstraints(b) && maps.Equal(a.Labels, b.Labels) &&
		a.Requests.Equal(b.Requests) && slices.Equal(a.HostPorts, b.HostPorts) && slices.Equal(a.Volumes, b.Volumes)
}

// splitByShare divides the kinds into those that are planned now and those that are planned later. A kind is planned
// later if it costs more than share.CostlyAbove, or if its namespace's part of share.MaxPlanCost is used up. The first
// kind that exceeds the part uses it up.
func splitByShare(kinds []kind, share Share) (now, later []kind) {
	byNamespace := map[string][]kind{}
	needs := map[string]int{}
	for _, k := range kinds {
		if k.cost > share.CostlyAbove {
			later = append(later, k)
			continue
		}
		byNamespace[k.namespace()] = append(byNamespace[k.namespace()], k)
		needs[k.namespace()] += k.cost
	}
	limit := fairLimit(slices.Sorted(maps.Values(needs)), share.MaxPlanCost)
	for _, namespace := range slices.Sorted(maps.Keys(byNamespace)) {
		ofNamespace := byNamespace[namespace]
		left := limit
		if needs[namespace] > limit {
			slices.SortStableFunc(ofNamespace, func(a, b kind) int {
				return cmp.Or(cmp.Compare(b.pods[0].Priority, a.pods[0].Priority), cmp.Compare(a.cost, b.cost))
			})
		}
		for _, k := range ofNamespace {
			if left -= k.cost; left >= 0 {
				now = append(now, k)
			} else {
				later = append(later, k)
			}
		}
	}
	return now, later
}

// fairLimit returns the highest common limit: if each need is capped at it, the needs sum to at most whole. needs
// must be sorted, lowest first.
func fairLimit(needs []int, whole int) int {
	for i, need := range needs {
		if part := whole / (len(needs) - i); need > part {
			return part
		}
		whole -= need
	}
	return int(^uint(0) >> 1) // no limit: all needs fit
}

// podsOf returns the pods of the kinds, sorted by namespace and name.
func podsOf(kinds []kind) []cluster.Pod {
	var all []*cluster.Pod
	for _, k := range kinds {
		all = append(all, k.pods...)
	}
	slices.SortFunc(all, byName)
	out := make([]cluster.Pod, 0, len(all))
	for _, p := range all {
		out = append(out, *p)
	}
	return out
}

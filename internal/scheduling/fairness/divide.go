package fairness

import (
	"cmp"
	"maps"
	"slices"

	"github.com/joiner-sh/joiner/internal/model/cluster"
)

// Share limits what is planned at once. Its fields are in units of cost: 1 for a pod that has a few rules, more for one with many.
type Share struct {
	// Whole is the most that one plan for all pods costs.
	Whole int
	// Pod is the most that pods of one kind cost to be planned with all others in any case.
	Pod int
	// Slice is the most that a slice costs, unless the first pods in it cost more. Kinds that cost more than Pod are planned
	// with all others as long as they cost no more than this together.
	Slice int
}

// Usual is the share that the controller begins with. Ten thousand kinds of ordinary pods are one plan. A slice holds about 13
// pods with 50 anti-affinity terms each.
func Usual() Share { return Share{Whole: 10_000, Pod: 40, Slice: 1_500} }

// Turns are which pods had their turn, and what is known of them.
type Turns struct {
	Served map[string]bool // UIDs of pods
	Costs  map[string]int  // what pods cost, by UID, as Cost says; it is asked about others
	Last   string          // the namespace that was served last; the next slice begins with the one after it
}

// Division says which pods are planned now, and which ones next.
type Division struct {
	Now   []cluster.Pod // planned together, at once
	Slice []cluster.Pod // the next slice of the others; nil if all of them had their turn
	Last  string        // the namespace that is served last in Slice
	Cost  int           // of Now
	Spent int           // what Slice costs
	Later int           // pods that are neither in Now nor in Slice
}

// Divide divides pods into those that are planned now and slices of the others.
//
// As long as all pods cost no more than share.Whole together, and those kinds that cost more than share.Pod no more than share.Slice,
// they are planned together. Otherwise these kinds wait for a slice. The rest shares share.Whole by namespace: one that needs less than its equal part is planned in full,
// and what it leaves goes to the others. Within a namespace pods of higher priority come first, then those that cost less.
//
// Slices serve namespaces in turn. Priority orders the pods of a namespace in both cases: a pod of high priority that costs
// much does not delay other namespaces. Pods that require each other's nearness are in one slice as far as it can hold them.
func Divide(pods []cluster.Pod, turns Turns, share Share) Division {
	kinds := kindsOf(pods, turns.Costs)
	total, costly := 0, 0
	for i := range kinds {
		total += kinds[i].cost
		if kinds[i].cost > share.Pod {
			costly += kinds[i].cost
		}
	}
	if total <= share.Whole && costly <= share.Slice {
		return Division{Now: pods, Cost: total}
	}
	now, later := cut(kinds, share)
	out := Division{Now: podsOf(now), Later: -1}
	for _, k := range now {
		out.Cost += k.cost
	}
	all := 0
	waiting := later[:0:0]
	for _, k := range later {
		all += len(k.pods)
		if k = k.without(turns.Served); len(k.pods) > 0 {
			waiting = append(waiting, k)
		}
	}
	slice, last := next(waiting, turns.Last, share.Slice)
	for _, k := range slice {
		out.Spent += k.cost
	}
	out.Slice, out.Last = podsOf(slice), last
	out.Later = all - len(out.Slice)
	return out
}

// kind is pods of one namespace that are alike, one after the other by name: to the solver they are one.
type kind struct {
	pods []*cluster.Pod
	cost int
}

func (k kind) namespace() string { return k.pods[0].Namespace }

// without returns the kind without the pods that are served.
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
	users := map[string]int{} // kinds, by extended resource that they ask for
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

// isAlike reports whether two pods are certainly of one kind. Pods of one workload, which come one after the other, mostly are.
func isAlike(a, b *cluster.Pod) bool {
	return a.Namespace == b.Namespace && a.Priority == b.Priority && a.SharesDemands(b) && maps.Equal(a.Labels, b.Labels) &&
		a.Requests.Equal(b.Requests) && slices.Equal(a.HostPorts, b.HostPorts) && slices.Equal(a.Volumes, b.Volumes)
}

// cut returns the kinds that are planned now and the others.
func cut(kinds []kind, share Share) (now, later []kind) {
	byNamespace := map[string][]kind{}
	needs := map[string]int{}
	for _, k := range kinds {
		if k.cost > share.Pod {
			later = append(later, k)
			continue
		}
		byNamespace[k.namespace()] = append(byNamespace[k.namespace()], k)
		needs[k.namespace()] += k.cost
	}
	level := levelOf(slices.Sorted(maps.Values(needs)), share.Whole)
	for _, namespace := range slices.Sorted(maps.Keys(byNamespace)) {
		own := byNamespace[namespace]
		left := level
		if needs[namespace] > level {
			slices.SortStableFunc(own, func(a, b kind) int {
				return cmp.Or(cmp.Compare(b.pods[0].Priority, a.pods[0].Priority), cmp.Compare(a.cost, b.cost))
			})
		}
		for _, k := range own {
			if left -= k.cost; left >= 0 {
				now = append(now, k)
			} else {
				later = append(later, k)
			}
		}
	}
	return now, later
}

// levelOf returns the most that each may have so that all together have no more than the whole; needs are sorted.
func levelOf(needs []int, whole int) int {
	for i, need := range needs {
		if part := whole / (len(needs) - i); need > part {
			return part
		}
		whole -= need
	}
	return int(^uint(0) >> 1) // each has what it needs
}

// podsOf returns the pods of kinds by namespace and name.
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

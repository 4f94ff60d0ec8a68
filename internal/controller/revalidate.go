package controller

import (
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/model/requirements"
	"github.com/joiner-sh/joiner/internal/model/resources"
	"github.com/joiner-sh/joiner/internal/scheduling/packing"
)

// leastKept is how much of a planned NodeClaim's pods must still wait for it to be created, measured by CPU and memory. With less
// a smaller one is planned.
const leastKept = 0.5

// stale counts what a plan lost because the cluster changed while it was made.
type stale struct {
	pods    int            // that are gone, bound, or have another place
	claims  map[string]int // planned NodeClaims that are not created, by cause
	isAgain bool           // some pods of these still wait, and are to be planned again at once
}

// The causes for which a planned NodeClaim is not created.
const (
	stalePods  = "its pods are gone"
	stalePart  = "most of its pods are gone"
	stalePool  = "its NodePool changed"
	staleLimit = "its NodePool reached a limit"
	staleRoom  = "a node came that has room for its pods"
)

// staleLabels are the causes as a metric names them.
var staleLabels = map[string]string{stalePods: "pods_gone", stalePart: "pods_changed", stalePool: "nodepool_changed", staleLimit: "limit", staleRoom: "node_came"}

// String writes "its pods are gone: 9; its NodePool changed: 1".
func (s stale) String() string {
	var out []string
	for _, cause := range slices.Sorted(maps.Keys(s.claims)) {
		out = append(out, cause+": "+count(s.claims[cause], "NodeClaim"))
	}
	return strings.Join(out, "; ")
}

// review holds a plan against a newer snapshot.
type review struct {
	before, now cluster.Snapshot
	market      catalog.Market
	// isLate is true of a plan that took so long that new nodes may have room for its pods.
	isLate bool

	pods   map[string]*cluster.Pod // of before
	wait   map[string]string       // UIDs of the pods of now, by "namespace/name"
	pools  map[string]*cluster.Pool
	old    map[string]*cluster.Pool
	fresh  []*cluster.Node              // nodes that the plan does not know, and that take pods
	usage  map[string]resources.Amounts // by pool, with what of the plan is kept
	counts map[string]int               // nodes, by pool
	stale  stale
}

// revalidated returns the plan, made for the snapshot r.before, without what does not hold by r.now.
func (r review) revalidated(plan packing.Plan) (packing.Plan, stale) {
	r.index()
	machines := make([]packing.Machine, 0, len(plan.Machines))
	plan.Price = 0
	for _, m := range plan.Machines {
		kept, cause := r.keep(m)
		if cause != "" {
			r.stale.claims[cause]++
			r.stale.isAgain = r.stale.isAgain || cause != stalePods
			continue
		}
		machines = append(machines, kept)
		plan.Price += kept.Price()
	}
	plan.Machines = machines
	nodes := map[string]bool{}
	for i := range r.now.Nodes {
		nodes[r.now.Nodes[i].Name] = !r.now.Nodes[i].Leaving
	}
	plan.Placements = slices.DeleteFunc(slices.Clone(plan.Placements), func(p packing.Placement) bool {
		isGone := !r.waits(p.Pod)
		if !isGone && !nodes[p.Node] {
			r.stale.isAgain = true
		}
		return isGone || !nodes[p.Node]
	})
	plan.Refusals = slices.DeleteFunc(slices.Clone(plan.Refusals), func(f packing.Refusal) bool { return !r.waits(f.Pod) })
	return plan, r.stale
}

func (r *review) index() {
	r.stale.claims = map[string]int{}
	r.pods, r.wait = map[string]*cluster.Pod{}, map[string]string{}
	for i := range r.before.Pods {
		r.pods[r.before.Pods[i].ID()] = &r.before.Pods[i]
	}
	for i := range r.now.Pods {
		r.wait[r.now.Pods[i].ID()] = r.now.Pods[i].UID
	}
	r.old, r.pools = poolsByName(r.before.Pools), poolsByName(r.now.Pools)
	r.usage, r.counts = map[string]resources.Amounts{}, map[string]int{}
	for name, p := range r.pools {
		r.usage[name], r.counts[name] = p.Usage, p.Nodes
	}
	known := map[string]bool{}
	for i := range r.before.Nodes {
		n := &r.before.Nodes[i]
		known[n.Name], known[n.Claim], known[n.ProviderID] = true, true, true
	}
	for i := range r.now.Nodes {
		n := &r.now.Nodes[i]
		isKnown := known[n.Name] || n.Claim != "" && known[n.Claim] || n.ProviderID != "" && known[n.ProviderID]
		if r.isLate && !isKnown && !n.Leaving {
			r.fresh = append(r.fresh, n)
		}
	}
}

func poolsByName(pools []cluster.Pool) map[string]*cluster.Pool {
	out := map[string]*cluster.Pool{}
	for i := range pools {
		out[pools[i].Name] = &pools[i]
	}
	return out
}

// waits reports whether the pod that was planned still needs a place.
func (r *review) waits(id string) bool {
	p := r.pods[id]
	return p != nil && r.wait[id] == p.UID
}

// keep returns the machine with the pods that still wait, or why it is not to be bought.
func (r *review) keep(m packing.Machine) (packing.Machine, string) {
	pool := r.pools[m.Pool]
	var kept []string
	all, left := resources.Amounts{}, resources.Amounts{}
	for _, id := range m.Pods {
		p := r.pods[id]
		if p == nil {
			continue
		}
		all = all.Add(p.Requests)
		if r.waits(id) {
			kept, left = append(kept, id), left.Add(p.Requests)
		}
	}
	r.stale.pods += len(m.Pods) - len(kept)
	switch {
	case len(kept) == 0:
		return m, stalePods
	case left.Bulk() < leastKept*all.Bulk():
		return m, stalePart
	case pool == nil || !isSamePool(r.old[m.Pool], pool):
		return m, stalePool
	case slices.ContainsFunc(r.fresh, func(n *cluster.Node) bool { return r.hasRoom(n, kept) }):
		return m, staleRoom
	case !r.isWithinLimits(m, pool):
		return m, staleLimit
	}
	if len(kept) < len(m.Pods) {
		m.Pods, m.Requests = kept, m.Requests.Sub(all.Sub(left))
	}
	return m, ""
}

// isSamePool reports whether NodeClaims that were planned for the pool as it was are right for the pool as it is.
func isSamePool(old, now *cluster.Pool) bool {
	return old != nil && old.UID == now.UID && now.Unusable == "" && old.NodeClass == now.NodeClass &&
		reflect.DeepEqual(old.Requirements, now.Requirements) && reflect.DeepEqual(old.Labels, now.Labels) &&
		slices.Equal(old.Taints, now.Taints) && slices.Equal(old.StartupTaints, now.StartupTaints)
}

// isWithinLimits reports whether the pool may have the machine with what else it has now. As long as it has no more than the plan
// knew, and its limits are the same, the plan has seen to that.
func (r *review) isWithinLimits(m packing.Machine, pool *cluster.Pool) bool {
	old := r.old[m.Pool]
	if reflect.DeepEqual(old.Limits, pool.Limits) && old.Nodes >= pool.Nodes && pool.Usage.Fits(old.Usage) {
		return true
	}
	most := resources.Amounts{}
	types := r.market.Types(m.NodeClass, m.Pool)
	for _, o := range m.Offerings {
		if i := slices.IndexFunc(types, func(t catalog.Type) bool { return t.Name == o.InstanceType }); i >= 0 {
			most = most.Max(types[i].Capacity)
		}
	}
	usage, nodes := r.usage[m.Pool].Add(most), r.counts[m.Pool]+1
	for name, ceiling := range pool.Limits.Ceiling {
		if usage.Of(name) > ceiling {
			return false
		}
	}
	if pool.Limits.Nodes != nil && nodes > *pool.Limits.Nodes {
		return false
	}
	r.usage[m.Pool], r.counts[m.Pool] = usage, nodes
	return true
}

// hasRoom reports whether one of the pods could run on the node, rules about other pods aside.
func (r *review) hasRoom(n *cluster.Node, pods []string) bool {
	free := n.Allocatable.Sub(n.Requested)
	return slices.ContainsFunc(pods, func(id string) bool {
		p := r.pods[id]
		_, isKeptOff := requirements.Untolerated(n.Taints, p.Tolerations)
		accepts := len(p.Required) == 0 || slices.ContainsFunc(p.Required, func(q requirements.Requirements) bool { return q.Accepts(n.Labels) })
		return !isKeptOff && accepts && p.Requests.Fits(free)
	})
}

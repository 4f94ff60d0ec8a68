package provisioner

import (
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/joiner-sh/joiner/internal/controller/loop"
	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/model/requirements"
	"github.com/joiner-sh/joiner/internal/model/resources"
	"github.com/joiner-sh/joiner/internal/scheduling/packing"
)

// minKeptShare is the share of a planned NodeClaim's pods, by CPU and memory, that must still need a node. Below this
// share the NodeClaim is not created, and a smaller one is planned.
const minKeptShare = 0.5

// StaleParts counts the parts of a plan that became invalid while the plan was made.
type StaleParts struct {
	pods       int            // pods that were deleted, bound or placed elsewhere
	Claims     map[string]int // number of planned NodeClaims that are not created, by cause
	mustReplan bool           // some pods of the invalid part still need nodes; they are planned again at once
}

// Causes for not creating a planned NodeClaim.
const (
	stalePods  = "its pods are gone"
	stalePart  = "most of its pods are gone"
	stalePool  = "its NodePool changed"
	staleLimit = "its NodePool reached a limit"
	StaleRoom  = "a new node has room for its pods"
)

// staleLabels are the causes as metric labels.
var staleLabels = map[string]string{
	stalePods:  "pods_gone",
	stalePart:  "pods_changed",
	stalePool:  "nodepool_changed",
	staleLimit: "limit",
	StaleRoom:  "node_came",
}

// String returns, for example, "its NodePool changed: 1 NodeClaim; its pods are gone: 9 NodeClaims".
func (s StaleParts) String() string {
	var out []string
	for _, cause := range slices.Sorted(maps.Keys(s.Claims)) {
		out = append(out, cause+": "+loop.Count(s.Claims[cause], "NodeClaim"))
	}
	return strings.Join(out, "; ")
}

// Review compares a plan with a newer snapshot.
type Review struct {
	Before, Now cluster.Snapshot // Before: the input of the plan; Now: the current state
	market      catalog.Market   // the available offerings
	// IsLate is true if the plan took so long that new nodes may have room for its pods.
	IsLate bool

	pods     map[string]*cluster.Pod      // the pods in Before, by "namespace/name"
	uids     map[string]string            // the UIDs of the pods in Now, by "namespace/name"
	pools    map[string]*cluster.Pool     // the pools in Now, by name
	oldPools map[string]*cluster.Pool     // the pools in Before, by name
	newNodes []*cluster.Node              // nodes in Now, but not in Before, that accept pods; only if IsLate
	usage    map[string]resources.Amounts // by pool: usage in Now plus the valid part of the plan
	counts   map[string]int               // by pool: nodes in Now plus the valid part of the plan
	stale    StaleParts
}

// Revalidate returns the part of the plan that is still valid in r.Now, and counts the rest. The plan must have been made
// for r.Before.
func (r Review) Revalidate(plan packing.Plan) (packing.Plan, StaleParts) {
	r.index()
	planned := make([]packing.PlannedNode, 0, len(plan.PlannedNodes))
	plan.Price = 0
	for _, node := range plan.PlannedNodes {
		kept, cause := r.revalidateNode(node)
		if cause != "" {
			r.stale.Claims[cause]++
			r.stale.mustReplan = r.stale.mustReplan || cause != stalePods
			continue
		}
		planned = append(planned, kept)
		plan.Price += kept.Price()
	}
	plan.PlannedNodes = planned
	acceptsPods := map[string]bool{} // by node name
	for i := range r.Now.Nodes {
		acceptsPods[r.Now.Nodes[i].Name] = !r.Now.Nodes[i].Leaving
	}
	plan.Placements = slices.DeleteFunc(slices.Clone(plan.Placements), func(p packing.Placement) bool {
		needsNode := r.stillNeedsNode(p.Pod)
		if needsNode && !acceptsPods[p.Node] {
			r.stale.mustReplan = true
		}
		return !needsNode || !acceptsPods[p.Node]
	})
	plan.Refusals = slices.DeleteFunc(slices.Clone(plan.Refusals), func(f packing.Refusal) bool { return !r.stillNeedsNode(f.Pod) })
	return plan, r.stale
}

func (r *Review) index() {
	r.stale.Claims = map[string]int{}
	r.pods, r.uids = map[string]*cluster.Pod{}, map[string]string{}
	for i := range r.Before.Pods {
		r.pods[r.Before.Pods[i].ID()] = &r.Before.Pods[i]
	}
	for i := range r.Now.Pods {
		r.uids[r.Now.Pods[i].ID()] = r.Now.Pods[i].UID
	}
	r.oldPools, r.pools = poolsByName(r.Before.Pools), poolsByName(r.Now.Pools)
	r.usage, r.counts = map[string]resources.Amounts{}, map[string]int{}
	for name, p := range r.pools {
		r.usage[name], r.counts[name] = p.Usage, p.Nodes
	}
	known := map[string]bool{} // names, claims and provider IDs of the nodes in Before
	for i := range r.Before.Nodes {
		n := &r.Before.Nodes[i]
		known[n.Name], known[n.Claim], known[n.ProviderID] = true, true, true
	}
	for i := range r.Now.Nodes {
		n := &r.Now.Nodes[i]
		isKnown := known[n.Name] || n.Claim != "" && known[n.Claim] || n.ProviderID != "" && known[n.ProviderID]
		if r.IsLate && !isKnown && !n.Leaving {
			r.newNodes = append(r.newNodes, n)
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

func (r *Review) stillNeedsNode(id string) bool {
	p := r.pods[id]
	return p != nil && r.uids[id] == p.UID
}

// revalidateNode returns the planned node with only the pods that still need a node. The second result is the cause if
// the planned node must not be created; else it is empty.
func (r *Review) revalidateNode(node packing.PlannedNode) (packing.PlannedNode, string) {
	pool := r.pools[node.Pool]
	var kept []string
	allRequests, keptRequests := resources.Amounts{}, resources.Amounts{}
	for _, id := range node.Pods {
		p := r.pods[id]
		if p == nil {
			continue
		}
		allRequests = allRequests.Add(p.Requests)
		if r.stillNeedsNode(id) {
			kept, keptRequests = append(kept, id), keptRequests.Add(p.Requests)
		}
	}
	r.stale.pods += len(node.Pods) - len(kept)
	switch {
	case len(kept) == 0:
		return node, stalePods
	case keptRequests.Bulk() < minKeptShare*allRequests.Bulk():
		return node, stalePart
	case pool == nil || !isSamePool(r.oldPools[node.Pool], pool):
		return node, stalePool
	case slices.ContainsFunc(r.newNodes, func(n *cluster.Node) bool { return r.hasRoom(n, kept) }):
		return node, StaleRoom
	case !r.isWithinLimits(node, pool):
		return node, staleLimit
	}
	if len(kept) < len(node.Pods) {
		node.Pods, node.Requests = kept, node.Requests.Sub(allRequests.Sub(keptRequests))
	}
	return node, ""
}

// isSamePool reports whether NodeClaims that were planned for the old pool are valid for the current pool.
func isSamePool(old, current *cluster.Pool) bool {
	return old != nil && old.UID == current.UID && current.Unusable == "" && old.NodeClass == current.NodeClass &&
		reflect.DeepEqual(old.Requirements, current.Requirements) && reflect.DeepEqual(old.Labels, current.Labels) &&
		slices.Equal(old.Taints, current.Taints) && slices.Equal(old.StartupTaints, current.StartupTaints)
}

// isWithinLimits reports whether the planned node, in addition to those accepted before, fits the current limits of the
// pool. If the limits have not changed and the pool has not grown, the plan respects them: no check is needed.
func (r *Review) isWithinLimits(node packing.PlannedNode, pool *cluster.Pool) bool {
	old := r.oldPools[node.Pool]
	if reflect.DeepEqual(old.Limits, pool.Limits) && old.Nodes >= pool.Nodes && pool.Usage.Fits(old.Usage) {
		return true
	}
	largest := resources.Amounts{}
	types := r.market.Types(node.NodeClass, node.Pool)
	for _, o := range node.Offerings {
		if i := slices.IndexFunc(types, func(t catalog.Type) bool { return t.Name == o.InstanceType }); i >= 0 {
			largest = largest.Max(types[i].Capacity)
		}
	}
	usage, nodes := r.usage[node.Pool].Add(largest), r.counts[node.Pool]+1
	for name, ceiling := range pool.Limits.Ceiling {
		if usage.Of(name) > ceiling {
			return false
		}
	}
	if pool.Limits.Nodes != nil && nodes > *pool.Limits.Nodes {
		return false
	}
	r.usage[node.Pool], r.counts[node.Pool] = usage, nodes
	return true
}

// hasRoom reports whether one of the pods could run on the node. It ignores rules about other pods.
func (r *Review) hasRoom(n *cluster.Node, pods []string) bool {
	free := n.Allocatable.Sub(n.Requested)
	return slices.ContainsFunc(pods, func(id string) bool {
		p := r.pods[id]
		_, isRepelled := requirements.Untolerated(n.Taints, p.Tolerations)
		accepts := len(p.Required) == 0 || slices.ContainsFunc(p.Required, func(q requirements.Requirements) bool { return q.Accepts(n.Labels) })
		return !isRepelled && accepts && p.Requests.Fits(free)
	})
}

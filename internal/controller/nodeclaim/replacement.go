package nodeclaim

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/controller/loop"
	"github.com/joiner-sh/joiner/internal/controller/nodestate"
	"github.com/joiner-sh/joiner/internal/disruption"
	"github.com/joiner-sh/joiner/internal/kube/snapshot"
	"github.com/joiner-sh/joiner/internal/node/lifecycle"
)

// Replacements finds room for the pods of expired nodes before the nodes are deleted. An expired node is tainted, so
// that the next plan includes its pods. It is deleted when the nodes launched for its pods are ready. The pool's
// budgets without a schedule limit how many nodes are replaced at once. Its methods are safe for concurrent use. With a
// nil receiver, expired nodes are drained without replacement.
type Replacements struct {
	Cache            client.Reader               // reads objects from the informers
	Cluster          loop.NodeReader             // reads Nodes and their pods from the informers
	PlannedEvictions *nodestate.PlannedEvictions // claims whose pods were in the last plan; the provisioner writes them
	Ledger           *snapshot.Ledger            // claims created by this process that the cache may not show yet
	Batch            *loop.Batch                 // collects requests for the next plan
	Statics          bool                        // whether static pools are kept at their number of replicas

	mu        sync.Mutex
	queued    map[types.UID]time.Time // since when claims wait for the budget
	rooms     map[string]poolRoom     // remaining budgets by pool name
	granted   map[types.UID]bool      // claims that may be replaced, but whose taint the cache may not show yet
	lastAsked time.Time               // when a plan was last requested
}

// poolRoom is what remains of a pool's budgets.
type poolRoom struct {
	counted   time.Time // when the pool's nodes were counted
	left      int       // number of nodes whose replacement may start before the next count
	isBlocked bool      // the budgets never allow a replacement
}

// CountInterval is the minimum interval between two counts of a pool's nodes.
const CountInterval = time.Second

// see returns the progress of the replacement of an expired claim. The claim is initialized, and node is its only Node.
func (r *Replacements) see(ctx context.Context, claim *karpv1.NodeClaim, node *corev1.Node, now time.Time) (lifecycle.Replacement, error) {
	if r == nil {
		return lifecycle.Replacement{}, nil
	}
	since := nodestate.ReplacingSince(claim)
	pods, err := r.movable(ctx, node.Name, now)
	if err != nil {
		return lifecycle.Replacement{}, err
	}
	if len(pods) == 0 {
		return lifecycle.Replacement{State: lifecycle.ReplacementReady, Since: since}, nil
	}
	pool, err := r.staticPool(ctx, claim)
	if err != nil {
		return lifecycle.Replacement{}, err
	}
	if pool != nil {
		return r.seeStatic(ctx, claim, pool, now)
	}
	if since.IsZero() || nodestate.IsOpen(node) { // not requested yet, or the Node is not tainted yet
		return r.admit(ctx, claim, since, now)
	}
	if !r.PlannedEvictions.HasPlannedPods(claim.Name) {
		r.askNow(claim, now)
		return lifecycle.Replacement{State: lifecycle.ReplacementRequested, Since: since}, nil
	}
	found, err := r.find(ctx, pods)
	state := lifecycle.ReplacementRequested
	switch found {
	case nodesReady:
		state = lifecycle.ReplacementReady
	case nodesLost:
		r.askNow(claim, now)
	case nodesComing:
	}
	return lifecycle.Replacement{State: state, Since: since}, err
}

// staticPool returns the claim's pool if the pool is static, else nil.
func (r *Replacements) staticPool(ctx context.Context, claim *karpv1.NodeClaim) (*karpv1.NodePool, error) {
	name := claim.Labels[karpv1.LabelNodePool]
	if !r.Statics || name == "" {
		return nil, nil
	}
	pool := &karpv1.NodePool{}
	err := r.Cache.Get(ctx, client.ObjectKey{Name: name}, pool)
	if apierrors.IsNotFound(err) || err == nil && !nodestate.MaintainsReplicas(pool) {
		return nil, nil
	}
	return pool, err
}

// seeStatic does for a claim of a static pool what see does for other claims. The loop of static pools creates one more
// node of the pool for each waiting claim. If limits.nodes leaves no room for one more node, the claim is deleted
// without a replacement.
func (r *Replacements) seeStatic(ctx context.Context, claim *karpv1.NodeClaim, pool *karpv1.NodePool,
	now time.Time) (lifecycle.Replacement, error) {
	since := nodestate.ReplacingSince(claim)
	out, err := r.admit(ctx, claim, since, now)
	out.NeedsNoPlan = true
	if err != nil || out.State != lifecycle.ReplacementRequested {
		return out, err
	}
	counts, err := r.countStatic(ctx, pool.Name)
	if err != nil {
		return out, err
	}
	limit := nodestate.NodeLimit(pool)
	isFull := limit != nil && counts.all >= *limit
	switch {
	case !since.IsZero() && counts.ready >= int(*pool.Spec.Replicas): // enough without this node
		out.State = lifecycle.ReplacementReady
	case isFull && (since.IsZero() || counts.coming == 0): // no room for a new node, and none is coming
		return lifecycle.Replacement{}, nil // no state: no replacement
	}
	return out, nil
}

type staticCounts struct {
	all    int // all claims
	ready  int // initialized claims that are neither deleted nor being replaced
	coming int // uninitialized claims that are neither deleted nor being replaced
}

func (r *Replacements) countStatic(ctx context.Context, pool string) (staticCounts, error) {
	var out staticCounts
	var list karpv1.NodeClaimList
	if err := r.Cache.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return out, fmt.Errorf("list nodeclaims: %w", err)
	}
	claims := make([]*karpv1.NodeClaim, 0, len(list.Items))
	for i := range list.Items {
		claims = append(claims, &list.Items[i])
	}
	moves := nodestate.MovesWithReplacement(claims)
	for _, c := range claims {
		if c.Labels[karpv1.LabelNodePool] != pool {
			continue
		}
		out.all++
		switch {
		case c.DeletionTimestamp != nil || nodestate.IsReplaced(c, moves): // counts only in all
		case c.StatusConditions().IsTrue(karpv1.ConditionInitialized):
			out.ready++
		default:
			out.coming++
		}
	}
	return out, nil
}

// movable returns, by "namespace/name", the pods that a drain of the Node evicts and that can run on another node.
func (r *Replacements) movable(ctx context.Context, node string, now time.Time) (map[string]bool, error) {
	pods, err := r.Cluster.PodsOn(ctx, node)
	if err != nil {
		return nil, err
	}
	out := map[string]bool{}
	for _, pod := range pods {
		if p := nodestate.DrainPodOf(pod); p.MustLeave(now) && !p.Daemon && p.Deleted.IsZero() {
			out[p.ID()] = true
		}
	}
	return out, nil
}

// plannedNodesState is the state of the nodes that were planned for the pods of an expired node.
type plannedNodesState int

const (
	nodesComing plannedNodesState = iota // a node is not initialized yet, or the state is unknown
	nodesReady                           // all nodes are initialized
	nodesLost                            // a node has failed: the next plan must find other nodes
)

// find returns the state of the nodes that were planned for the pods:
//   - nodesLost if a claim that was created for one of the pods has failed;
//   - else nodesComing if such a claim is not initialized yet;
//   - else nodesReady. Pods that were placed on existing nodes, or not placed, wait for no claim.
func (r *Replacements) find(ctx context.Context, pods map[string]bool) (plannedNodesState, error) {
	var list karpv1.NodeClaimList
	if err := r.Cache.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nodesComing, fmt.Errorf("list nodeclaims: %w", err)
	}
	known := map[types.UID]bool{}
	isComing := false
	for i := range list.Items {
		c := &list.Items[i]
		known[c.UID] = true
		switch {
		case c.StatusConditions().IsTrue(karpv1.ConditionInitialized) || !nodestate.WasCreatedFor(c, pods): // no wait
		case nodestate.EndsUninitialized(c):
			r.PlannedEvictions.NoteLost(c)
		default:
			isComing = true
		}
	}
	for _, c := range r.Ledger.Claims() {
		if !known[c.UID] && nodestate.WasCreatedFor(c, pods) {
			isComing = true // not in the cache yet
		}
	}
	switch {
	case r.PlannedEvictions.AnyLost(pods, known):
		return nodesLost, nil
	case isComing:
		return nodesComing, nil
	}
	return nodesReady, nil
}

// noteLost records the claim as lost if it ends before it is initialized. It does nothing for other claims.
func (r *Replacements) noteLost(claim *karpv1.NodeClaim) {
	if r != nil && nodestate.EndsUninitialized(claim) {
		r.PlannedEvictions.NoteLost(claim)
	}
}

// admit returns whether the pool's budgets allow the replacement of the claim:
//   - ReplacementRequested: the claim may be replaced now.
//   - ReplacementQueued: the claim must wait.
//   - No state: the budgets never allow a replacement, so the claim is drained without one.
func (r *Replacements) admit(ctx context.Context, claim *karpv1.NodeClaim, since, now time.Time) (lifecycle.Replacement, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !since.IsZero() || r.granted[claim.UID] {
		return lifecycle.Replacement{State: lifecycle.ReplacementRequested, Since: since}, nil
	}
	pool := claim.Labels[karpv1.LabelNodePool]
	room, ok := r.rooms[pool]
	if !ok || now.Sub(room.counted) >= CountInterval || now.Before(room.counted) { // before: the clock was set back
		var err error
		if room, err = r.count(ctx, pool, now); err != nil {
			return lifecycle.Replacement{}, err
		}
	}
	defer func() { r.storeRoom(pool, room) }()
	switch {
	case room.isBlocked:
		return lifecycle.Replacement{}, nil
	case room.left > 0:
		room.left--
		if r.granted == nil {
			r.granted = map[types.UID]bool{}
		}
		r.granted[claim.UID] = true
		delete(r.queued, claim.UID)
		return lifecycle.Replacement{State: lifecycle.ReplacementRequested}, nil
	}
	if r.queued == nil {
		r.queued = map[types.UID]time.Time{}
	}
	if r.queued[claim.UID].IsZero() {
		r.queued[claim.UID] = now
	}
	return lifecycle.Replacement{State: lifecycle.ReplacementQueued, Since: r.queued[claim.UID]}, nil
}

func (r *Replacements) storeRoom(pool string, room poolRoom) {
	if r.rooms == nil {
		r.rooms = map[string]poolRoom{}
	}
	r.rooms[pool] = room
}

// count returns for how many further nodes of the pool a replacement may start.
func (r *Replacements) count(ctx context.Context, name string, now time.Time) (poolRoom, error) {
	pool := &karpv1.NodePool{}
	err := r.Cache.Get(ctx, client.ObjectKey{Name: name}, pool)
	if apierrors.IsNotFound(err) {
		return poolRoom{counted: now, left: 1 << 30}, nil // the pool is gone: no budget applies
	}
	if err != nil {
		return poolRoom{}, fmt.Errorf("read nodepool %s: %w", name, err)
	}
	policy := nodestate.PolicyOf(pool, now)
	policy.Budgets = slices.DeleteFunc(policy.Budgets, func(b disruption.Budget) bool { return b.Schedule != nil })
	total, unavailable, err := r.countInitialized(ctx, name)
	if err != nil {
		return poolRoom{}, err
	}
	// most is the room if all nodes were available.
	most, left := policy.Room(disruption.Expired, total, 0, now), policy.Room(disruption.Expired, total, unavailable, now)
	return poolRoom{counted: now, left: left.Nodes, isBlocked: most.Nodes == 0}, nil
}

// countInitialized counts the initialized nodes of a pool (total), and which are leaving or not ready (unavailable).
func (r *Replacements) countInitialized(ctx context.Context, pool string) (total, unavailable int, err error) {
	var claims karpv1.NodeClaimList
	if err := r.Cache.List(ctx, &claims, client.UnsafeDisableDeepCopy); err != nil {
		return 0, 0, fmt.Errorf("list nodeclaims: %w", err)
	}
	ready, err := nodestate.ReadyNodes(ctx, r.Cache)
	if err != nil {
		return 0, 0, err
	}
	for i := range claims.Items {
		c := &claims.Items[i]
		if c.Labels[karpv1.LabelNodePool] != pool || !c.StatusConditions().IsTrue(karpv1.ConditionInitialized) {
			continue
		}
		total++
		if c.DeletionTimestamp != nil || !ready[c.Status.ProviderID] || nodestate.IsLeaving(c) || r.granted[c.UID] {
			unavailable++
		}
	}
	return total, unavailable, nil
}

// askNow requests a plan at once, but at most one per nodestate.MinPlanNowInterval.
func (r *Replacements) askNow(claim *karpv1.NodeClaim, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if gap := now.Sub(r.lastAsked); gap < 0 || gap >= nodestate.MinPlanNowInterval {
		r.lastAsked = now
		r.Batch.AskNow(string(claim.UID))
	}
}

func (r *Replacements) forget(claim types.UID) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.queued, claim)
	delete(r.granted, claim)
}

// replace records on the claim that its replacement is requested. It taints the claim's Node, so that the next plan
// finds room for its pods on other nodes. The Node stays in load balancers, because its pods run there until they are
// evicted.
func (c *Reconciler) replace(ctx context.Context, v View, now time.Time) (*karpv1.NodeClaim, error) {
	isNews := nodestate.ReplacingSince(v.Claim).IsZero()
	claim, err := c.Objects.PatchClaim(ctx, v.Claim, func(claim *karpv1.NodeClaim) {
		if !nodestate.ReplacingSince(claim).IsZero() {
			return
		}
		if claim.Annotations == nil {
			claim.Annotations = map[string]string{}
		}
		claim.Annotations[nodestate.AnnotationReplacing] = now.UTC().Format(time.RFC3339)
	})
	if err != nil {
		return nil, err
	}
	c.Newest.Note(claim)
	if !v.seen.Claim.Replacement.NeedsNoPlan {
		if _, err := c.Objects.PatchNode(ctx, v.node(), nodestate.CloseNode); err != nil {
			return nil, err
		}
	}
	if isNews {
		c.Log.Info("replacing NodeClaim", "NodeClaim", claim.Name, "nodePool", claim.Labels[karpv1.LabelNodePool],
			"reason", lifecycle.ReasonExpired, "Node", claim.Status.NodeName)
	}
	if v.seen.Claim.Replacement.NeedsNoPlan {
		return claim, nil
	}
	return nil, nil // the change of the Node triggers the next reconcile
}

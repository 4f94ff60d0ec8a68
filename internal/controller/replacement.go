package controller

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
	"github.com/joiner-sh/joiner/internal/disruption"
	"github.com/joiner-sh/joiner/internal/kube"
	"github.com/joiner-sh/joiner/internal/node/lifecycle"
)

// annotationReplacing on a claim that has expired is since when its replacement is asked for, RFC 3339. It outlives this
// process: whoever leads next goes on.
const annotationReplacing = "joiner.sh/replacing"

// replacingSince reads the note; zero if there is none.
func replacingSince(claim *karpv1.NodeClaim) time.Time {
	since, err := time.Parse(time.RFC3339, claim.Annotations[annotationReplacing])
	if err != nil {
		return time.Time{}
	}
	return since
}

// Replacements see to it that the pods of nodes that have expired get another place first. The node gets the taint that
// makes its pods work of the next plan; when what was bought for them is ready, it goes. How many nodes of a pool are
// replaced at once is bounded by its budgets, those with a schedule excepted. Its methods may be called at the same time,
// and on nil, which replaces nothing.
type Replacements struct {
	Cache      client.Reader
	Cluster    nodeReader
	Departures *Departures // of the Provisioner
	Ledger     *kube.Ledger
	Batch      *Batch
	Statics    bool // static pools are kept at their number of nodes

	mu      sync.Mutex
	queued  map[types.UID]time.Time // since when claims wait for their turn
	rooms   map[string]turns        // by pool
	granted map[types.UID]bool      // claims that got their turn and may not be seen closed yet
	hurried time.Time               // when a plan was asked for last
}

// turns is how many nodes of a pool may begin to be replaced until somebody counts again.
type turns struct {
	counted time.Time
	left    int
	isNever bool // the budgets allow none, whatever the others do
}

// turnsEvery is how often the nodes of a pool are counted at most.
const turnsEvery = time.Second

// see says how far the replacement of an expired claim has come. Its one Node is fit for pods.
func (r *Replacements) see(ctx context.Context, claim *karpv1.NodeClaim, node *corev1.Node, now time.Time) (lifecycle.Replacement, error) {
	if r == nil {
		return lifecycle.Replacement{}, nil
	}
	since := replacingSince(claim)
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
	if since.IsZero() || isOpen(node) {
		return r.turn(ctx, claim, since, now)
	}
	if !r.Departures.provided(claim.Name) {
		r.hurry(claim, now)
		return lifecycle.Replacement{State: lifecycle.ReplacementAsked, Since: since}, nil
	}
	found, err := r.find(ctx, pods)
	state := lifecycle.ReplacementAsked
	switch found {
	case placesReady:
		state = lifecycle.ReplacementReady
	case placesLost:
		r.hurry(claim, now)
	}
	return lifecycle.Replacement{State: state, Since: since}, err
}

// staticPool returns the claim's pool if it is kept at a number of nodes, else nil.
func (r *Replacements) staticPool(ctx context.Context, claim *karpv1.NodeClaim) (*karpv1.NodePool, error) {
	name := claim.Labels[karpv1.LabelNodePool]
	if !r.Statics || name == "" {
		return nil, nil
	}
	pool := &karpv1.NodePool{}
	err := r.Cache.Get(ctx, client.ObjectKey{Name: name}, pool)
	if apierrors.IsNotFound(err) || err == nil && !isKept(pool) {
		return nil, nil
	}
	return pool, err
}

// seeStatic is see for a claim of a static pool: its replacement is one more node of the pool, which Statics make of those
// that wait. Without room for one more within limits.nodes it goes without.
func (r *Replacements) seeStatic(ctx context.Context, claim *karpv1.NodeClaim, pool *karpv1.NodePool, now time.Time) (lifecycle.Replacement, error) {
	since := replacingSince(claim)
	out, err := r.turn(ctx, claim, since, now)
	out.Apart = true
	if err != nil || out.State != lifecycle.ReplacementAsked {
		return out, err
	}
	crew, err := r.crew(ctx, pool.Name)
	if err != nil {
		return out, err
	}
	limit := nodeLimit(pool)
	isFull := limit != nil && crew.all >= *limit
	switch {
	case !since.IsZero() && crew.ready >= int(*pool.Spec.Replicas):
		out.State = lifecycle.ReplacementReady
	case isFull && (since.IsZero() || crew.coming == 0):
		return lifecycle.Replacement{}, nil
	}
	return out, nil
}

// crew is how many claims a static pool has: all of them, and of those that stay the ones that are ready and the others.
type crew struct{ all, ready, coming int }

func (r *Replacements) crew(ctx context.Context, pool string) (crew, error) {
	var out crew
	var list karpv1.NodeClaimList
	if err := r.Cache.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return out, fmt.Errorf("list nodeclaims: %w", err)
	}
	claims := make([]*karpv1.NodeClaim, 0, len(list.Items))
	for i := range list.Items {
		claims = append(claims, &list.Items[i])
	}
	made := madeFor(claims)
	for _, c := range claims {
		if c.Labels[karpv1.LabelNodePool] != pool {
			continue
		}
		out.all++
		switch {
		case c.DeletionTimestamp != nil || isReplaced(c, made):
		case c.StatusConditions().IsTrue(karpv1.ConditionInitialized):
			out.ready++
		default:
			out.coming++
		}
	}
	return out, nil
}

// movable returns the pods of the Node, by "namespace/name", that could run elsewhere.
func (r *Replacements) movable(ctx context.Context, node string, now time.Time) (map[string]bool, error) {
	pods, err := r.Cluster.PodsOn(ctx, node)
	if err != nil {
		return nil, err
	}
	out := map[string]bool{}
	for _, pod := range pods {
		if p := drainPod(pod); p.MustLeave(now) && !p.Daemon && p.Deleted.IsZero() {
			out[p.ID()] = true
		}
	}
	return out, nil
}

// places is how far those are that pods were to have.
type places int

const (
	placesComing places = iota // or not known
	placesReady
	placesLost // the next plan has to find others
)

// find says how far the places for the pods are: a claim that was made for one of them may be on its way, or may have
// failed since. A pod that got a place on a node that is there, or none at all, has none to wait for.
func (r *Replacements) find(ctx context.Context, pods map[string]bool) (places, error) {
	var list karpv1.NodeClaimList
	if err := r.Cache.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return placesComing, fmt.Errorf("list nodeclaims: %w", err)
	}
	known := map[types.UID]bool{}
	isComing := false
	for i := range list.Items {
		c := &list.Items[i]
		known[c.UID] = true
		switch {
		case c.StatusConditions().IsTrue(karpv1.ConditionInitialized) || !isFor(c, pods):
		case isBroken(c):
			r.Departures.lose(c)
		default:
			isComing = true
		}
	}
	for _, c := range r.Ledger.Claims() {
		if !known[c.UID] && isFor(c, pods) {
			isComing = true // the cache does not show it yet
		}
	}
	switch {
	case r.Departures.isLost(pods, known):
		return placesLost, nil
	case isComing:
		return placesComing, nil
	}
	return placesReady, nil
}

// lose tells of a claim that ends before it is a node, as the cache shows it.
func (r *Replacements) lose(claim *karpv1.NodeClaim) {
	if r != nil && isBroken(claim) {
		r.Departures.lose(claim)
	}
}

// turn says whether the claim may be replaced now, or has to wait.
func (r *Replacements) turn(ctx context.Context, claim *karpv1.NodeClaim, since, now time.Time) (lifecycle.Replacement, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !since.IsZero() || r.granted[claim.UID] {
		return lifecycle.Replacement{State: lifecycle.ReplacementAsked, Since: since}, nil
	}
	pool := claim.Labels[karpv1.LabelNodePool]
	t, ok := r.rooms[pool]
	if !ok || now.Sub(t.counted) >= turnsEvery || now.Before(t.counted) {
		var err error
		if t, err = r.count(ctx, pool, now); err != nil {
			return lifecycle.Replacement{}, err
		}
	}
	defer func() { r.keep(pool, t) }()
	switch {
	case t.isNever:
		return lifecycle.Replacement{}, nil
	case t.left > 0:
		t.left--
		if r.granted == nil {
			r.granted = map[types.UID]bool{}
		}
		r.granted[claim.UID] = true
		delete(r.queued, claim.UID)
		return lifecycle.Replacement{State: lifecycle.ReplacementAsked}, nil
	}
	if r.queued == nil {
		r.queued = map[types.UID]time.Time{}
	}
	if r.queued[claim.UID].IsZero() {
		r.queued[claim.UID] = now
	}
	return lifecycle.Replacement{State: lifecycle.ReplacementQueued, Since: r.queued[claim.UID]}, nil
}

func (r *Replacements) keep(pool string, t turns) {
	if r.rooms == nil {
		r.rooms = map[string]turns{}
	}
	r.rooms[pool] = t
}

// count says how many nodes of the pool may begin to be replaced.
func (r *Replacements) count(ctx context.Context, name string, now time.Time) (turns, error) {
	pool := &karpv1.NodePool{}
	err := r.Cache.Get(ctx, client.ObjectKey{Name: name}, pool)
	if apierrors.IsNotFound(err) {
		return turns{counted: now, left: 1 << 30}, nil // nobody bounds it
	}
	if err != nil {
		return turns{}, fmt.Errorf("read nodepool %s: %w", name, err)
	}
	policy := policyOf(pool, now)
	policy.Budgets = slices.DeleteFunc(policy.Budgets, func(b disruption.Budget) bool { return b.Schedule != nil })
	total, out, err := r.census(ctx, name)
	if err != nil {
		return turns{}, err
	}
	most, left := policy.Room(disruption.Expired, total, 0, now), policy.Room(disruption.Expired, total, out, now)
	return turns{counted: now, left: left.Nodes, isNever: most.Nodes == 0}, nil
}

// census counts the nodes of a pool that have been fit for pods, and those of them that are leaving or broken.
func (r *Replacements) census(ctx context.Context, pool string) (total, out int, err error) {
	var claims karpv1.NodeClaimList
	if err := r.Cache.List(ctx, &claims, client.UnsafeDisableDeepCopy); err != nil {
		return 0, 0, fmt.Errorf("list nodeclaims: %w", err)
	}
	ready, err := readyNodes(ctx, r.Cache)
	if err != nil {
		return 0, 0, err
	}
	for i := range claims.Items {
		c := &claims.Items[i]
		if c.Labels[karpv1.LabelNodePool] != pool || !c.StatusConditions().IsTrue(karpv1.ConditionInitialized) {
			continue
		}
		total++
		if c.DeletionTimestamp != nil || !ready[c.Status.ProviderID] || isOnItsWayOut(c) || r.granted[c.UID] {
			out++
		}
	}
	return total, out, nil
}

// isOnItsWayOut reports whether the claim's node goes when what replaces it is there: it has expired, or is moved off.
func isOnItsWayOut(c *karpv1.NodeClaim) bool {
	return !replacingSince(c).IsZero() || c.Annotations[annotationMove] != ""
}

// madeFor are the moves, by ID, for which one of the claims has come or is on its way.
func madeFor(claims []*karpv1.NodeClaim) map[string]bool {
	out := map[string]bool{}
	for _, c := range claims {
		if id := c.Annotations[annotationReplaces]; id != "" && c.DeletionTimestamp == nil {
			out[id] = true
		}
	}
	return out
}

// isReplaced reports whether the claim's node is to stay no longer, as there is or will be another in its place: it has expired, or it is moved off. A
// move whose new node is lost is about to be undone, unless it is committed; until then its old node counts as before.
func isReplaced(c *karpv1.NodeClaim, madeFor map[string]bool) bool {
	mark, _ := moveOf(c)
	return !replacingSince(c).IsZero() || mark != nil && (mark.Committed || madeFor[mark.ID])
}

// hurry asks for a plan, once in a while.
func (r *Replacements) hurry(claim *karpv1.NodeClaim, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if gap := now.Sub(r.hurried); gap < 0 || gap >= hurryEvery {
		r.hurried = now
		r.Batch.Hurry(string(claim.UID))
	}
}

// forget drops what is remembered of a claim that is gone.
func (r *Replacements) forget(claim types.UID) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.queued, claim)
	delete(r.granted, claim)
}

// replace notes on the claim that its replacement is asked for, and closes its Node, so that the next plan finds another
// place for its pods. The Node stays in load balancers: its pods run on until there is that place.
func (c *Claims) replace(ctx context.Context, v view, now time.Time) (*karpv1.NodeClaim, error) {
	isNews := replacingSince(v.claim).IsZero()
	claim, err := c.Objects.PatchClaim(ctx, v.claim, func(claim *karpv1.NodeClaim) {
		if !replacingSince(claim).IsZero() {
			return
		}
		if claim.Annotations == nil {
			claim.Annotations = map[string]string{}
		}
		claim.Annotations[annotationReplacing] = now.UTC().Format(time.RFC3339)
	})
	if err != nil {
		return nil, err
	}
	c.newest.note(claim)
	if !v.seen.Claim.Replacement.Apart {
		if _, err := c.Objects.PatchNode(ctx, v.node(), closeNode); err != nil {
			return nil, err
		}
	}
	if isNews {
		c.Log.Info("replacing NodeClaim", "NodeClaim", claim.Name, "nodePool", claim.Labels[karpv1.LabelNodePool],
			"reason", lifecycle.ReasonExpired, "Node", claim.Status.NodeName)
	}
	if v.seen.Claim.Replacement.Apart {
		return claim, nil
	}
	return nil, nil // the Node's change leads back here
}

// closeNode keeps new pods off the Node.
func closeNode(node *corev1.Node) {
	disrupted := karpv1.DisruptedTaint()
	taints := slices.DeleteFunc(slices.Clone(node.Spec.Taints), func(t corev1.Taint) bool { return t.Key == disrupted.Key })
	node.Spec.Taints = append(taints, disrupted)
}

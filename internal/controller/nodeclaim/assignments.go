package nodeclaim

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/kube/conversion"
	"github.com/joiner-sh/joiner/internal/node/nomination"
)

// assignments has the exchanges of pods between Nodes that open: see package nomination. Each is also written to the
// annotation of its claims, which the cache shows later. The zero value has no exchanges. Its methods are safe for
// concurrent use.
type assignments struct {
	mu      sync.Mutex
	byClaim map[types.UID]claimPods // claims with recent exchanges
	granted map[string]grant        // by pod ID: recent bindings and nominations
	opened  map[types.UID]time.Time // claims whose Nodes opened recently: the cache may show them as closed
}

// claimPods has the pods of a claim after an exchange.
type claimPods struct {
	pods []string // "namespace/name"
	at   time.Time
}

// grant is the place of a pod on a Node, to which it is bound or nominated.
type grant struct {
	claim types.UID // of the Node
	zone  string
	at    time.Time
}

// bindTime is how long a pod counts as bound to the Node that it was granted, although the cache does not show it as
// bound. It is also how long the cache may lack a write of this process.
const bindTime = 10 * time.Second

// podsOf returns the pods that are planned for the claim, as "namespace/name".
func (a *assignments) podsOf(claim *karpv1.NodeClaim) []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.lockedPodsOf(claim))
}

func (a *assignments) lockedPodsOf(claim *karpv1.NodeClaim) []string {
	if after, ok := a.byClaim[claim.UID]; ok {
		return after.pods
	}
	return conversion.PodsOf(claim)
}

// decide decides which pods of the claim are bound to its Node now, and carries out the exchanges. It records that the
// bound pods have their places. It also returns the changed claims, this one last.
func (a *assignments) decide(
	ctx context.Context, cache client.Reader, claim *karpv1.NodeClaim, node *corev1.Node, now time.Time,
) (nomination.Decision, []*karpv1.NodeClaim, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.dropOld(now)
	reader := openingReader{cache: cache, claim: claim, node: node, now: now, assignments: a, indirect: map[string]bool{}}
	in, err := reader.input(ctx)
	if err != nil {
		return nomination.Decision{}, nil, err
	}
	d := nomination.Decide(in)
	var changed []*karpv1.NodeClaim
	for _, e := range d.Exchanges {
		later := reader.claims[e.Claim]
		a.apply(claim, later, e, now)
		if !slices.Contains(changed, later) {
			changed = append(changed, later)
		}
	}
	if len(changed) > 0 {
		changed = append(changed, claim)
	}
	a.lockedGrant(d.Bind, claim, in.Zone, now)
	return d, changed, nil
}

// open records that the Node of the claim opens, and that the claim's pods have their places.
func (a *assignments) open(claim *karpv1.NodeClaim, node *corev1.Node, now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.opened == nil {
		a.opened = map[types.UID]time.Time{}
	}
	a.opened[claim.UID] = now
	a.lockedGrant(a.lockedPodsOf(claim), claim, node.Labels[corev1.LabelTopologyZone], now)
}

func (a *assignments) lockedGrant(pods []string, claim *karpv1.NodeClaim, zone string, now time.Time) {
	if a.granted == nil {
		a.granted = map[string]grant{}
	}
	for _, id := range pods {
		a.granted[id] = grant{claim.UID, zone, now}
	}
}

// revoke records that the pod could not be bound.
func (a *assignments) revoke(id string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.granted, id)
}

// dropOld forgets what the cache shows by now.
func (a *assignments) dropOld(now time.Time) {
	maps.DeleteFunc(a.byClaim, func(_ types.UID, c claimPods) bool { return now.Sub(c.at) > bindTime })
	maps.DeleteFunc(a.granted, func(_ string, g grant) bool { return now.Sub(g.at) > bindTime })
	maps.DeleteFunc(a.opened, func(_ types.UID, at time.Time) bool { return now.Sub(at) > bindTime })
}

func (a *assignments) apply(claim, later *karpv1.NodeClaim, e nomination.Exchange, now time.Time) {
	if a.byClaim == nil {
		a.byClaim = map[types.UID]claimPods{}
	}
	without := func(pods []string, gone ...string) []string {
		return slices.DeleteFunc(slices.Clone(pods), func(id string) bool { return slices.Contains(gone, id) })
	}
	a.byClaim[claim.UID] = claimPods{append(without(a.lockedPodsOf(claim), e.Out), e.In...), now}
	a.byClaim[later.UID] = claimPods{append(without(a.lockedPodsOf(later), e.In...), e.Out), now}
}

// forget drops the exchanges of a claim whose Node is open.
func (a *assignments) forget(claim types.UID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.byClaim, claim)
}

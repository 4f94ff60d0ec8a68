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
	granted map[string]grant        // by pod ID: recent nominations
	opened  map[types.UID]time.Time // claims whose Nodes opened recently: the cache may show them as closed
}

// claimPods has the pods of a claim after an exchange.
type claimPods struct {
	pods []string // "namespace/name"
	at   time.Time
}

// grant is the nomination of a pod to an open Node.
type grant struct {
	zone string
	at   time.Time
}

// bindTime is how long a nominated pod counts as bound to its Node, although the cache does not show it as bound. It is
// also how long the cache may lack a write of this process.
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

// exchange exchanges pods of the claim, whose Node opens now, for pods of nodes that open later, and returns the changed
// claims, this one last. It records that the claim's pods get their places.
func (a *assignments) exchange(
	ctx context.Context, cache client.Reader, claim *karpv1.NodeClaim, node *corev1.Node, now time.Time,
) ([]*karpv1.NodeClaim, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	in, claims, err := a.input(ctx, cache, claim, node, now)
	if err != nil {
		return nil, err
	}
	var changed []*karpv1.NodeClaim
	for _, e := range nomination.Exchanges(in) {
		later := claims[e.Claim]
		a.apply(claim, later, e, now)
		if !slices.Contains(changed, later) {
			changed = append(changed, later)
		}
	}
	if len(changed) > 0 {
		changed = append(changed, claim)
	}
	maps.DeleteFunc(a.byClaim, func(_ types.UID, c claimPods) bool { return now.Sub(c.at) > bindTime }) // the annotation has them by now
	maps.DeleteFunc(a.granted, func(_ string, g grant) bool { return now.Sub(g.at) > bindTime })
	maps.DeleteFunc(a.opened, func(_ types.UID, at time.Time) bool { return now.Sub(at) > bindTime })
	if a.granted == nil {
		a.granted, a.opened = map[string]grant{}, map[types.UID]time.Time{}
	}
	a.opened[claim.UID] = now
	for _, id := range a.lockedPodsOf(claim) {
		a.granted[id] = grant{in.Zone, now}
	}
	return changed, nil
}

// input returns the input of package nomination, and the claims of in.Later by name. If the claim has no pods with a
// spread over zones, or very many nodes are not open yet, the input has only the Node.
func (a *assignments) input(
	ctx context.Context, cache client.Reader, claim *karpv1.NodeClaim, node *corev1.Node, now time.Time,
) (nomination.Input, map[string]*karpv1.NodeClaim, error) {
	in := nomination.Input{Zone: node.Labels[corev1.LabelTopologyZone]}
	reader := openingReader{cache: cache, claim: claim, zone: in.Zone, now: now, assignments: a}
	pods, err := reader.pendingPods(ctx, claim)
	if err != nil || !slices.ContainsFunc(pods, nomination.HasZoneSpread) {
		return in, nil, err
	}
	in, err = reader.input(ctx, pods)
	return in, reader.claims, err
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

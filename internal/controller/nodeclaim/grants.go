package nodeclaim

import (
	"context"
	"maps"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/kube/conversion"
	"github.com/joiner-sh/joiner/internal/node/nomination"
)

// grants has the pods that this process has bound or nominated a short time ago, so that the next decisions count them.
// The zero value has none. Its methods are safe for concurrent use.
type grants struct {
	mu    sync.Mutex
	byPod map[string]grant // by pod ID
}

// grant is the place of a pod on a Node, to which it is bound or nominated.
type grant struct {
	claim types.UID // of the Node
	zone  string
	at    time.Time
}

// bindTime is how long a granted pod counts as bound to its Node, although the cache does not show it as bound.
const bindTime = 10 * time.Second

// decide decides which pods of the claim are bound to its closed Node now, and records that they have their places.
func (g *grants) decide(
	ctx context.Context, cache client.Reader, claim *karpv1.NodeClaim, node *corev1.Node, now time.Time,
) (nomination.Decision, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	maps.DeleteFunc(g.byPod, func(_ string, old grant) bool { return now.Sub(old.at) > bindTime })
	reader := openingReader{cache: cache, claim: claim, node: node, granted: g.byPod, indirect: map[string]bool{}}
	in, err := reader.input(ctx)
	if err != nil {
		return nomination.Decision{}, err
	}
	decision := nomination.Decide(in)
	g.add(decision.Bind, claim, node, now)
	return decision, nil
}

// open records that the Node of the claim opens, and that all of the claim's pods have their places.
func (g *grants) open(claim *karpv1.NodeClaim, node *corev1.Node, now time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.add(conversion.PodsOf(claim), claim, node, now)
}

func (g *grants) add(pods []string, claim *karpv1.NodeClaim, node *corev1.Node, now time.Time) {
	if g.byPod == nil {
		g.byPod = map[string]grant{}
	}
	for _, id := range pods {
		g.byPod[id] = grant{claim.UID, node.Labels[corev1.LabelTopologyZone], now}
	}
}

// revoke records that the pod could not be bound.
func (g *grants) revoke(id string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.byPod, id)
}

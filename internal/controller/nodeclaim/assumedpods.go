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
	"github.com/joiner-sh/joiner/internal/node/podbinding"
)

// assumedPods has the pods that this process binds or nominates, until the cache shows them as bound. The next decisions
// count them. The zero value has none. Its methods are safe for concurrent use.
type assumedPods struct {
	mu    sync.Mutex
	byPod map[string]assumedPod // by pod ID
	view  *clusterView          // a recent reading of the cache; nil before the first one
}

// assumedPod is a pod that is bound or nominated to the Node of a claim.
type assumedPod struct {
	namespace string
	labels    map[string]string
	claim     types.UID
	node      string
	at        time.Time
}

// assumeTTL is how long a pod counts as bound although the cache does not show it as bound.
const assumeTTL = 10 * time.Second

// decide decides which pods of the claim are bound to its closed Node now, and assumes that they are bound.
func (a *assumedPods) decide(
	ctx context.Context, cache client.Reader, claim *karpv1.NodeClaim, node *corev1.Node, now time.Time,
) (podbinding.Decision, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	maps.DeleteFunc(a.byPod, func(_ string, p assumedPod) bool { return now.Sub(p.at) > assumeTTL })
	if a.view == nil || !a.view.isFresh(now) {
		a.view = newClusterView(cache, now)
	}
	reader := bindInputReader{cache: cache, claim: claim, node: node, assumed: a.byPod, view: a.view, schedulerOnly: map[string]bool{}}
	in, err := reader.input(ctx)
	if err != nil {
		return podbinding.Decision{}, err
	}
	decision := podbinding.Decide(in)
	for _, id := range decision.Bind {
		for i := range in.Pods {
			if p := &in.Pods[i]; p.ID() == id {
				a.add(id, assumedPod{p.Namespace, p.Labels, claim.UID, node.Name, now})
			}
		}
	}
	return decision, nil
}

// assume records that the pods are bound or nominated to the Node of the claim now.
func (a *assumedPods) assume(pods []*corev1.Pod, claim types.UID, node string, now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, p := range pods {
		a.add(p.Namespace+"/"+p.Name, assumedPod{p.Namespace, p.Labels, claim, node, now})
	}
}

func (a *assumedPods) add(id string, p assumedPod) {
	if a.byPod == nil {
		a.byPod = map[string]assumedPod{}
	}
	a.byPod[id] = p
}

// forget records that the pod could not be bound.
func (a *assumedPods) forget(id string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.byPod, id)
}

package workload

import (
	"math/rand/v2"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/kube/snapshot"
	"github.com/joiner-sh/joiner/internal/model/catalog"
)

// setup is a case under construction.
type setup struct {
	market func() (catalog.Market, error) // returns the offerings and prices
	pools  []*karpv1.NodePool

	pending []deployment  // deployments whose pods are pending
	pods    []*corev1.Pod // pending pods that no deployment creates

	nodes   int          // number of existing nodes
	running []deployment // the workload on the existing nodes; pods that do not fit are left out
	apart   bool         // an existing node has at most one pod of each deployment

	daemons []*appsv1.DaemonSet
}

// build builds the case. It shuffles the objects, because an informer's cache returns them in no useful order.
func (s setup) build() (Case, error) {
	market, err := s.market()
	if err != nil {
		return Case{}, err
	}
	o := snapshot.Objects{Pools: s.pools, DaemonSets: s.daemons}
	o.Pods = append(podsOf(s.pending), s.pods...)
	pending := len(o.Pods)
	if s.nodes > 0 {
		if o.Nodes, err = nodes(s.nodes, market); err != nil {
			return Case{}, err
		}
		o.Pods = append(o.Pods, bind(podsOf(s.running), o.Nodes, s.apart)...)
	}
	r := seededRandom(7)
	shuffle(r, o.Pods)
	shuffle(r, o.Nodes)
	return Case{Objects: o, Market: market, Pending: pending}, nil
}

func shuffle[T any](r *rand.Rand, list []T) {
	r.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
}

// roundSetup returns a case with n instance types at rounded prices in three zones, and a NodePool that allows all of
// them.
func roundSetup(n int, pending []deployment) setup {
	return setup{
		market:  func() (catalog.Market, error) { return roundMarket(n) },
		pools:   []*karpv1.NodePool{pool(poolName, bothArchs(), anyCapacityType())},
		pending: pending,
	}
}

// realSetup returns a case with the on-demand offerings of us-east-1, and a NodePool for amd64 (Intel and AMD).
func realSetup(pending []deployment) setup {
	return setup{market: realMarket, pools: []*karpv1.NodePool{pool(poolName, amd64(), onDemand())}, pending: pending}
}

package workload

import (
	"math/rand/v2"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/kube"
	"github.com/joiner-sh/joiner/internal/model/catalog"
)

// setup is a case in the making.
type setup struct {
	market func() (catalog.Market, error)
	pools  []*karpv1.NodePool

	pending []deployment
	pods    []*corev1.Pod // that wait too, where no deployment makes them

	nodes   int          // that are there
	running []deployment // what runs on them, as far as it fits
	apart   bool         // what runs has at most one pod of a deployment on a node

	daemons []*appsv1.DaemonSet
}

// build makes the case. Objects come in no order that means something, as from an API server.
func (s setup) build() (Case, error) {
	market, err := s.market()
	if err != nil {
		return Case{}, err
	}
	o := kube.Objects{Pools: s.pools, DaemonSets: s.daemons}
	o.Pods = append(podsOf(s.pending), s.pods...)
	pending := len(o.Pods)
	if s.nodes > 0 {
		if o.Nodes, err = nodes(s.nodes, market); err != nil {
			return Case{}, err
		}
		o.Pods = append(o.Pods, bind(podsOf(s.running), o.Nodes, s.apart)...)
	}
	r := dice(7)
	shuffle(r, o.Pods)
	shuffle(r, o.Nodes)
	return Case{Objects: o, Market: market, Pending: pending}, nil
}

func shuffle[T any](r *rand.Rand, list []T) {
	r.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
}

// roundSetup is the market of n types at round prices, in three zones, for a pool that takes any of it.
func roundSetup(n int, pending []deployment) setup {
	return setup{
		market:  func() (catalog.Market, error) { return roundMarket(n) },
		pools:   []*karpv1.NodePool{pool(poolName, bothArchs(), bothWays())},
		pending: pending,
	}
}

// realSetup is us-east-1 on demand, for a pool of Intel and AMD.
func realSetup(pending []deployment) setup {
	return setup{market: realMarket, pools: []*karpv1.NodePool{pool(poolName, intel(), onDemand())}, pending: pending}
}

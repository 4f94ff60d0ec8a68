package workload

import (
	corev1 "k8s.io/api/core/v1"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/model/catalog"
)

// The numbers of pods and deployments of the rows with real prices.
const pricedPods, pricedDeployments = 5000, 250

// pricedMix returns the deployments of most rows with real prices.
func pricedMix() []deployment { return mixedDeployments(pricedPods, pricedDeployments, 5) }

// prices returns the rows of the group Prices: us-east-1 with real on-demand prices.
func prices() []Workload {
	row := func(name, about string, kind Kind, s func() setup) Workload {
		return Workload{Name: name, About: about, Group: Prices, Kind: kind, Build: func() (Case, error) { return s().build() }}
	}
	changed := func(change func(int, *deployment)) func() setup {
		return func() setup { return realSetup(changeAll(pricedMix(), change)) }
	}
	return []Workload{
		row("thousand", "1,000 pods in 50 deployments, plain", Free, func() setup { return realSetup(mixedDeployments(1000, 50, 4)) }),
		row("plain", "5,000 pods in 250 deployments, plain", Free, func() setup { return realSetup(pricedMix()) }),
		row("usual-pool", "the pods of `plain`, on families c, m, r above generation 2, as in Karpenter's guide", Free, func() setup {
			s := realSetup(pricedMix())
			s.pools = []*karpv1.NodePool{pool(poolName, append(guideRequirements(), amd64(), onDemand())...)}
			return s
		}),
		row("small-machines", "the pods of `plain`, on instances of at most 32 vCPUs", Free, func() setup {
			s := realSetup(pricedMix())
			s.pools = []*karpv1.NodePool{pool(poolName, amd64(), onDemand(), atMost32CPUs())}
			return s
		}),
		row("spread", "the pods of `plain`, each deployment spread over zones", Constrained, changed(func(_ int, d *deployment) {
			d.spread(corev1.LabelTopologyZone, 1)
		})),
		row("anti-affinity", "the pods of `plain`, each with anti-affinity by host", Constrained, changed(apartByHost)),
		row("zone-affinity", "the pods of `plain`, each deployment within one zone", Constrained, changed(func(_ int, d *deployment) {
			d.requireAffinity(corev1.LabelTopologyZone)
		})),
		row("architectures", "the pods of `plain`, a third each for amd64, arm64, either", Free, func() setup { return withArchs(pricedMix()) }),
		row("daemonsets", "the pods of `plain`, with six DaemonSets", Free, func() setup {
			s := realSetup(pricedMix())
			s.daemons = daemonSets()
			return s
		}),
		row("existing-250", "the pods of `plain`, with 250 existing nodes that are nearly full", Free, func() setup {
			s := realSetup(pricedMix())
			s.nodes, s.running = 250, smallDeployments(16_000, 400, "old", 13) // more pods than fit on the nodes
			return s
		}),
		row("everything", "all of this at once, two pools, taints, preferences", Constrained, everything),
	}
}

// withArchs returns a case in which a third of the deployments require amd64, a third arm64, and the others neither.
func withArchs(deployments []deployment) setup {
	s := realSetup(changeAll(deployments, func(n int, d *deployment) {
		if n%3 < 2 {
			d.requireNodeLabel(corev1.LabelArchStable, []string{"amd64", "arm64"}[n%3])
		}
	}))
	s.pools = []*karpv1.NodePool{pool(poolName, bothArchs(), onDemand())}
	return s
}

// everything returns a case that combines the other rows. It has constraints of all kinds, two architectures,
// DaemonSets, existing nodes, and a NodePool with a taint for a tenth of the deployments.
func everything() setup {
	s := withArchs(nil)
	s.pending = changeAll(pricedMix(), func(n int, d *deployment) {
		mixedConstraints(n, d)
		if n%10 == 7 {
			d.tolerate("team", "data")
			d.requireNodeLabel("team", "data")
		}
		if n%10 == 8 {
			d.prefer(10, catalog.LabelCategory, "m")
		}
	})
	data := pool("data", bothArchs(), onDemand())
	data.Spec.Template.Labels = map[string]string{"team": "data"}
	data.Spec.Template.Spec.Taints = []corev1.Taint{{Key: "team", Value: "data", Effect: corev1.TaintEffectNoSchedule}}
	s.pools = append(s.pools, data)
	s.daemons = daemonSets()
	s.nodes, s.running, s.apart = 100, smallDeployments(5000, 200, "old", 14), true
	return s
}

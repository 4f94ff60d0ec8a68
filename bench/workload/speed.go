package workload

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
)

// roundTypes is the number of instance types, at rounded prices, in the market of the speed rows.
const roundTypes = 700

func speed() []Workload {
	build := func(pending func() []deployment) func() (Case, error) {
		return func() (Case, error) { return roundSetup(roundTypes, pending()).build() }
	}
	return []Workload{
		{
			Name: "identical-50000", About: "50,000 identical pods", Group: Speed, Target: Target{Ratio: 500},
			Build: build(func() []deployment { return identical(50_000) }),
		},
		{
			Name: "plain-10000", About: "10,000 pods in 500 deployments, plain", Group: Speed, Target: Target{Ratio: 300},
			Build: build(func() []deployment { return broadDeployments(10_000, 500, 1) }),
		},
		{
			Name: "spread-10000", About: "10,000 pods in 500 deployments, each spread over zones and hosts", Group: Speed, Kind: Constrained,
			Target: Target{Ratio: 100},
			Build:  build(func() []deployment { return changeAll(broadDeployments(10_000, 500, 1), zonesAndHosts) }),
		},
		{
			Name: "apart-10000", About: "10,000 pods in 500 deployments, each with anti-affinity by host", Group: Speed, Kind: Constrained,
			Target: Target{Ratio: 100},
			Build:  build(func() []deployment { return changeAll(broadDeployments(10_000, 500, 1), apartByHost) }),
		},
		{
			Name: "onto-1000-plain", About: "5,000 pods onto 1,000 nodes with 30,000 pods, plain", Group: Speed,
			Build: func() (Case, error) { return existingNodesSetup(false).build() },
		},
		{
			Name: "onto-1000-mixed", About: "5,000 pods onto 1,000 nodes with 30,000 pods, mixed constraints", Group: Speed, Kind: Constrained,
			Target: Target{Ratio: 50},
			Build:  func() (Case, error) { return existingNodesSetup(true).build() },
		},
		{
			Name: "mixed-100000", About: "100,000 pods in 5,000 deployments, 1,000 types, mixed constraints", Group: Speed, Kind: Constrained,
			Build: func() (Case, error) {
				return roundSetup(1000, changeAll(broadDeployments(100_000, 5000, 3), mixedConstraints)).build()
			},
			Smaller: func() (Case, error) {
				return roundSetup(1000, changeAll(broadDeployments(10_000, 500, 3), mixedConstraints)).build()
			},
			SmallerAbout: "10,000 pods in 500 deployments",
			Target:       Target{Seconds: 5, Bytes: 1 << 30},
		},
	}
}

func identical(n int) []deployment {
	return []deployment{newDeployment("web", n, 250, 512)}
}

func zonesAndHosts(_ int, d *deployment) {
	d.spread(corev1.LabelTopologyZone, 1)
	d.spread(corev1.LabelHostname, 1)
}

func apartByHost(_ int, d *deployment) { d.requireAntiAffinity(corev1.LabelHostname) }

// mixedConstraints gives seven of ten deployments constraints. The last digit of the deployment's number n selects the
// kind of constraint.
func mixedConstraints(n int, d *deployment) {
	switch n % 10 {
	case 0:
		d.spread(corev1.LabelTopologyZone, 1)
	case 1:
		zonesAndHosts(n, d)
	case 2:
		apartByHost(n, d)
	case 3:
		d.requireAffinity(corev1.LabelTopologyZone)
	case 4:
		d.requireNodeLabel(corev1.LabelArchStable, "arm64")
	case 5:
		d.prefer(50, corev1.LabelTopologyZone, threeZones[n/10%len(threeZones)].Name)
	case 6:
		d.spread(corev1.LabelTopologyZone, 2)
		d.requireNodeLabel(corev1.LabelArchStable, "amd64")
	}
}

// existingNodesSetup returns a case with 5,000 pending pods, and 1,000 nodes that run 30,000 pods and have room left.
// If constrained is true, the pods have mixed constraints.
func existingNodesSetup(constrained bool) setup {
	s := roundSetup(roundTypes, smallDeployments(5000, 250, "new", 11))
	s.nodes, s.running = 1000, smallDeployments(30_000, 1000, "old", 12)
	if constrained {
		s.apart = true // so that the running pods meet their anti-affinity
		s.pending = changeAll(s.pending, mixedConstraints)
		s.running = changeAll(s.running, func(n int, d *deployment) {
			if n%10 == 2 { // as in mixedConstraints
				apartByHost(n, d)
			}
		})
	}
	return s
}

// smallDeployments returns deployments like mixedDeployments, but with at most 500 millicores: the first nine values of
// millis. name is the prefix of the deployments' names.
func smallDeployments(pods, deployments int, name string, seed uint64) []deployment {
	out := mixedDeployments(pods, deployments, seed)
	random := seededRandom(seed + 1)
	for n := range out {
		milli := millis[random.IntN(9)]
		mib := max(milli*ratios[random.IntN(len(ratios))]/1000, 64) + int64(random.IntN(128))
		out[n] = newDeployment(fmt.Sprintf("%s-%04d", name, n), out[n].replicas, milli, mib)
	}
	return out
}

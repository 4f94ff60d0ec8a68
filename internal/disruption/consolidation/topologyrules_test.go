package consolidation_test

import (
	"slices"
	"testing"

	"github.com/joiner-sh/joiner/internal/disruption/consolidation"
	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/model/requirements"
	"github.com/joiner-sh/joiner/internal/scheduling/packing"
)

// TestRulesInSimulation: the simulation finds nodes for pods with spread and anti-affinity as kube-scheduler does. n0 is
// drained, and its only pod has the label app=a and needs half a core. The plan has no node for it.
func TestRulesInSimulation(t *testing.T) {
	t.Parallel()
	const cent = catalog.Dollar / 100
	market := marketOf(map[string]catalog.Price{catalog.OnDemand: cent}, 4)
	app := cluster.Selector{Labels: requirements.Exactly(requirements.Labels{"app": "a"})}
	spread := func(key string, maxSkew int) func(*cluster.Pod) {
		return func(p *cluster.Pod) { p.Spread = []cluster.Spread{{Key: key, MaxSkew: maxSkew, Selector: app}} }
	}
	apart := func(p *cluster.Pod) {
		p.AntiAffinity = []cluster.Term{{Key: "kubernetes.io/hostname", Namespaces: []string{"x"}, Selector: app}}
	}
	const zone, host = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
	type other struct {
		zone string
		pods int   // pods with the label app=a
		free int64 // free CPU, in millicores
	}
	for name, c := range map[string]struct {
		rule   func(*cluster.Pod)
		zone   string // of n0
		others []other
		lost   bool
	}{
		"host spread, nodes without such a pod": {rule: spread(host, 1), others: []other{{free: 600}}},
		"host spread, the drained node counts":  {rule: spread(host, 1), others: []other{{pods: 1, free: 600}}, lost: true},
		"host spread, larger skew":              {rule: spread(host, 2), others: []other{{pods: 1, free: 600}}},
		"host spread, the free node is full": {
			rule: spread(host, 1), others: []other{{pods: 1, free: 600}, {free: 400}}, lost: true},
		"anti-affinity":                    {rule: apart, others: []other{{free: 600}}},
		"anti-affinity to a pod":           {rule: apart, others: []other{{pods: 1, free: 600}}, lost: true},
		"anti-affinity to a pod elsewhere": {rule: apart, others: []other{{pods: 1, free: 600}, {free: 600}}},
		"zone spread, same zone":           {rule: spread(zone, 1), zone: "a", others: []other{{zone: "a", free: 600}, {zone: "b", pods: 1}}},
		"zone spread, the zone of the drained node counts": {
			rule: spread(zone, 1), zone: "a", others: []other{{zone: "b", pods: 1, free: 600}}, lost: true},
		"zone spread, pods on a full node count": {
			rule: spread(zone, 1), zone: "a", others: []other{{zone: "a", pods: 1}, {zone: "b", pods: 1, free: 600}}},
		"zone spread, larger skew":         {rule: spread(zone, 2), zone: "a", others: []other{{zone: "b", pods: 1, free: 600}}},
		"zone spread, node without a zone": {rule: spread(zone, 2), zone: "a", others: []other{{free: 600}}, lost: true},
		"host port": {
			rule: func(p *cluster.Pod) { p.HostPorts = []cluster.HostPort{{Port: 80}} }, others: []other{{free: 600}}, lost: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rows := []nodeSpec{{4, catalog.OnDemand, 4 * cent, []int64{500}}}
			for _, o := range c.others {
				rows = append(rows, nodeSpec{4, catalog.OnDemand, 4 * cent, []int64{4000 - o.free}})
			}
			in := fleetOf(market, rows...)
			p := &in.Snapshot.Nodes[0].Pods[0]
			p.Labels = requirements.Labels{"app": "a"}
			c.rule(p)
			kind := &cluster.PodKind{Namespace: "x", Labels: p.Labels}
			for i := range in.Snapshot.Nodes {
				n := &in.Snapshot.Nodes[i]
				n.Labels[host] = n.Name
				delete(n.Labels, zone)
				in, count := c.zone, 1
				if i > 0 {
					in, count = c.others[i-1].zone, c.others[i-1].pods
				}
				if in != "" {
					n.Labels[zone] = in
				}
				if count > 0 {
					n.Residents = []cluster.Resident{{PodKind: kind, Count: count}}
				}
			}
			got := consolidation.Unschedulable(in.Snapshot, packing.Plan{}, []string{"n0"}, nil)
			if want := []string{"x/p0-0"}; c.lost && !slices.Equal(got, want) || !c.lost && len(got) > 0 {
				t.Errorf("%v have no node, want any: %v", got, c.lost)
			}
		})
	}
}

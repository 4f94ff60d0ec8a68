package verify

import (
	"slices"

	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/model/resources"
	"github.com/joiner-sh/joiner/internal/scheduling/packing"
)

// Fits reports whether a node of this offering, for one of the snapshot's pools, can be launched and would accept all
// these pods. It checks labels and taints, and room and host ports together with the DaemonSet pods. It does not check
// rules about pods on other nodes, limits and minValues of the pool, or the unused instances of a reservation.
func Fits(s cluster.Snapshot, market catalog.Market, pool string, choice packing.Choice, pods []cluster.Pod) bool {
	i := slices.IndexFunc(s.Pools, func(p cluster.Pool) bool { return p.Name == pool })
	if i < 0 || s.Pools[i].Unusable != "" {
		return false
	}
	p := &s.Pools[i]
	types := market.Types(p.NodeClass, p.Name)
	typ := slices.IndexFunc(types, func(t catalog.Type) bool { return t.Name == choice.InstanceType })
	if typ < 0 {
		return false
	}
	o := newOffer(s, &types[typ], p, p.Labels, choice)
	if o == nil || len(o.problems) > 0 {
		return false
	}
	o.dropPendingDaemonPods(s, types)
	var sum resources.Amounts
	var taken []cluster.HostPort
	for i := range pods {
		if !suits(pods[i].Required, pods[i].Tolerations, o.labels, p.Taints) || o.hasPortConflict(pods[i].HostPorts) ||
			conflicts(pods[i].HostPorts, taken) {
			return false
		}
		taken = append(taken, pods[i].HostPorts...)
		sum = sum.Add(pods[i].Requests)
	}
	return len(o.lackingResources(sum)) == 0
}

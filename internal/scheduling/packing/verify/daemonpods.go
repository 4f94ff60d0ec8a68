package verify

import (
	"cmp"
	"slices"

	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/scheduling/packing"
)

// dropPendingDaemonPods removes from an offer the DaemonSet pods that do not fit, if no offering that the pool allows
// has room for the pods of all its DaemonSets. On every node, some of these pods then stay pending. DaemonSets of
// kube-system are kept first, then the smallest.
func (o *offer) dropPendingDaemonPods(s cluster.Snapshot, types []catalog.Type) {
	if !o.isTooSmall() || !areAllTooSmall(s, o, types) {
		return
	}
	left := o.typ.Allocatable
	var kept, others []*cluster.Daemon
	for _, d := range o.daemonPods {
		if d.Namespace == "kube-system" {
			left = left.Sub(d.Requests)
			kept = append(kept, d)
		} else {
			others = append(others, d)
		}
	}
	share := func(d *cluster.Daemon) float64 {
		return max(float64(d.Requests.CPU)/float64(max(o.typ.Allocatable.CPU, 1)),
			float64(d.Requests.Memory)/float64(max(o.typ.Allocatable.Memory, 1)))
	}
	slices.SortStableFunc(others, func(a, b *cluster.Daemon) int {
		return cmp.Or(cmp.Compare(share(a), share(b)), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	for _, d := range others {
		if rest := left.Sub(d.Requests); !rest.IsNegative() {
			left = rest
			kept = append(kept, d)
		}
	}
	o.daemonPods = kept
	o.sumDaemonPods()
}

// isTooSmall reports whether a node of the offer is too small for its DaemonSet pods alone.
func (o *offer) isTooSmall() bool { return o.typ.Allocatable.Sub(o.daemonRequests).IsNegative() }

// areAllTooSmall reports whether every offering that like.pool may launch, with the labels like.extra, is too small for
// its DaemonSet pods.
func areAllTooSmall(s cluster.Snapshot, like *offer, types []catalog.Type) bool {
	for i := range types {
		for _, offering := range types[i].Offerings {
			choice := packing.Choice{
				InstanceType: types[i].Name,
				Zone:         offering.Zone,
				CapacityType: offering.CapacityType,
				Price:        offering.Price,
				Reservation:  offering.Reservation.ID,
			}
			other := newOffer(s, &types[i], like.pool, like.extra, choice)
			if other != nil && len(other.unmetRequirements()) == 0 && !other.isTooSmall() {
				return false
			}
		}
	}
	return true
}

package controller

import (
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/kube"
	"github.com/joiner-sh/joiner/internal/model/cluster"
)

// Departures records which claims the last plan saw as leaving: nodes for their pods have been requested. It also records
// which pods have lost such a node since, because its claim ended before the node was initialized. Its methods may be called
// concurrently. The zero value is empty, and nil records nothing.
type Departures struct {
	mu    sync.Mutex
	begun int             // plans
	known map[string]bool // claims
	lost  map[string]int  // pods, "namespace/name", and how many plans had begun when they lost their place
	ended map[types.UID]int
}

// begin records that a plan starts, which sees the cluster as it is now or later. It returns the number of the plan.
func (d *Departures) begin() int {
	if d == nil {
		return 0
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.begun++
	return d.begun
}

// planned records that the plan with the number, made for the snapshot, was carried out.
func (d *Departures) planned(number int, s cluster.Snapshot) {
	if d == nil {
		return
	}
	known := map[string]bool{}
	for i := range s.Nodes {
		if n := &s.Nodes[i]; n.Leaving && n.Claim != "" {
			known[n.Claim] = true
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.known = known
	for pod, at := range d.lost {
		if at < number {
			delete(d.lost, pod)
		}
	}
	for claim, at := range d.ended {
		if len(known) == 0 && at < number {
			delete(d.ended, claim) // no leaving claim waits for it
		}
	}
}

// provided reports whether nodes for the claim's pods were requested.
func (d *Departures) provided(claim string) bool {
	if d == nil {
		return false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.known[claim]
}

// lose records that a claim ends before its node was initialized. Plans that start from now on can see that.
func (d *Departures) lose(claim *karpv1.NodeClaim) {
	if d == nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, ok := d.ended[claim.UID]; ok {
		return
	}
	if d.ended == nil {
		d.lost, d.ended = map[string]int{}, map[types.UID]int{}
	}
	d.ended[claim.UID] = d.begun
	for _, pod := range kube.PodsOf(claim) {
		d.lost[pod] = d.begun
	}
}

// isLost reports whether one of the pods has lost its node since the last plan started. claims are all existing claims;
// others are forgotten.
func (d *Departures) isLost(pods map[string]bool, claims map[types.UID]bool) bool {
	if d == nil {
		return false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for claim := range d.ended {
		if !claims[claim] {
			delete(d.ended, claim)
		}
	}
	for pod := range d.lost {
		if pods[pod] {
			return true
		}
	}
	return false
}

// isBroken reports whether the claim is being deleted before its node was initialized.
func isBroken(claim *karpv1.NodeClaim) bool {
	return claim.DeletionTimestamp != nil && !claim.StatusConditions().IsTrue(karpv1.ConditionInitialized)
}

// isFor reports whether the claim was created for one of the pods.
func isFor(claim *karpv1.NodeClaim, pods map[string]bool) bool {
	return slices.ContainsFunc(kube.PodsOf(claim), func(id string) bool { return pods[id] })
}

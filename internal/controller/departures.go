package controller

import (
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/kube"
	"github.com/joiner-sh/joiner/internal/model/cluster"
)

// Departures remember which claims the last plan knew to be leaving: the places that their pods need have been asked
// for. They also remember which pods have lost such a place since, because the claim that was made for them ends before it
// is a node. Its methods may be called at the same time. The zero value knows none, and nil remembers none.
type Departures struct {
	mu    sync.Mutex
	begun int             // plans
	known map[string]bool // claims
	lost  map[string]int  // pods, "namespace/name", and how many plans had begun when they lost their place
	ended map[types.UID]int
}

// begin notes that a plan begins, which sees the cluster as it is now or later, and returns its number.
func (d *Departures) begin() int {
	if d == nil {
		return 0
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.begun++
	return d.begun
}

// planned notes that the plan of that number, for the snapshot, was carried out.
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
			delete(d.ended, claim) // nobody waits for it
		}
	}
}

// provided reports whether the places that the claim's pods need were asked for.
func (d *Departures) provided(claim string) bool {
	if d == nil {
		return false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.known[claim]
}

// lose notes that a claim which was to be a node ends, as plans that begin from now on can see.
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

// isLost reports whether one of the pods has lost its place since the last plan began; claims are all that there are.
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

// isBroken reports whether the claim ends before it is a node.
func isBroken(claim *karpv1.NodeClaim) bool {
	return claim.DeletionTimestamp != nil && !claim.StatusConditions().IsTrue(karpv1.ConditionInitialized)
}

// isFor reports whether the claim was made for one of the pods.
func isFor(claim *karpv1.NodeClaim, pods map[string]bool) bool {
	return slices.ContainsFunc(kube.PodsOf(claim), func(id string) bool { return pods[id] })
}

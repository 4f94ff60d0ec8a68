package nodestate

import (
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/kube/conversion"
	"github.com/joiner-sh/joiner/internal/model/cluster"
)

// PlannedEvictions records the leaving claims whose pods were in the last completed plan. It also records the pods that
// lost their planned node after that plan started, because the node's claim ended before the node was initialized.
// Its methods may be called concurrently. The zero value is empty, and a nil receiver records nothing.
type PlannedEvictions struct {
	mu      sync.Mutex
	started int               // number of started plans
	planned map[string]bool   // leaving claims in the last completed plan, by name
	lost    map[string]int    // by pod, "namespace/name": the number of started plans when the pod lost its planned node
	ended   map[types.UID]int // by claim that ended before initialization: the number of started plans at that time
}

// BeginPlan records the start of a plan. It must be called before the plan reads the state of the cluster. It returns
// the number of the plan.
func (d *PlannedEvictions) BeginPlan() int {
	if d == nil {
		return 0
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.started++
	return d.started
}

// EndPlan records that the plan with this number was carried out. s is the snapshot that the plan was made for.
func (d *PlannedEvictions) EndPlan(number int, s cluster.Snapshot) {
	if d == nil {
		return
	}
	planned := map[string]bool{}
	for i := range s.Nodes {
		if n := &s.Nodes[i]; n.Leaving && n.Claim != "" {
			planned[n.Claim] = true
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.planned = planned
	for pod, lostAt := range d.lost {
		if lostAt < number { // the plan started after the loss
			delete(d.lost, pod)
		}
	}
	for claim, endedAt := range d.ended {
		if len(planned) == 0 && endedAt < number {
			delete(d.ended, claim) // no leaving claim waits for the node of the ended claim
		}
	}
}

// HasPlannedPods reports whether the claim's pods were in the last completed plan.
func (d *PlannedEvictions) HasPlannedPods(claim string) bool {
	if d == nil {
		return false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.planned[claim]
}

// NoteLost records that a claim ends before its node was initialized: its pods have lost their planned node. Plans that
// start later see that the claim is gone.
func (d *PlannedEvictions) NoteLost(claim *karpv1.NodeClaim) {
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
	d.ended[claim.UID] = d.started
	for _, pod := range conversion.PodsOf(claim) {
		d.lost[pod] = d.started
	}
}

// AnyLost reports whether one of the pods has lost its planned node since the last completed plan started. claims has
// all existing claims. AnyLost drops the records of claims that no longer exist.
func (d *PlannedEvictions) AnyLost(pods map[string]bool, claims map[types.UID]bool) bool {
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

// EndsUninitialized reports whether the claim is being deleted although its node was never initialized.
func EndsUninitialized(claim *karpv1.NodeClaim) bool {
	return claim.DeletionTimestamp != nil && !claim.StatusConditions().IsTrue(karpv1.ConditionInitialized)
}

// WasCreatedFor reports whether the claim was created for one of the pods.
func WasCreatedFor(claim *karpv1.NodeClaim, pods map[string]bool) bool {
	return slices.ContainsFunc(conversion.PodsOf(claim), func(id string) bool { return pods[id] })
}

package poolhealth

import (
	"fmt"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/node/lifecycle"
)

// Registrations records the results of the last launches of each NodePool. Its methods are safe for concurrent use,
// and accept a nil receiver, which records nothing.
type Registrations struct {
	mu     sync.Mutex
	byPool map[types.UID]lifecycle.Outcomes
}

// Note adds the result of a claim's launch to its pool.
func (r *Registrations) Note(claim *karpv1.NodeClaim, joined bool) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, owner := range claim.OwnerReferences {
		if owner.Kind == "NodePool" {
			r.put(owner.UID, r.byPool[owner.UID].With(joined))
		}
	}
}

// Of returns the results of a pool. If none were recorded, it derives them from the pool's condition.
func (r *Registrations) Of(pool *karpv1.NodePool) lifecycle.Outcomes {
	if r == nil {
		return lifecycle.Outcomes{}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if known, ok := r.byPool[pool.UID]; ok {
		return known
	}
	c, _ := pool.StatusConditions().Find(karpv1.ConditionNodeRegistrationHealthy)
	outcomes := lifecycle.Outcomes{}
	if c.Status == metav1.ConditionTrue || c.Status == metav1.ConditionFalse {
		outcomes = lifecycle.OutcomesOf(c.Status == metav1.ConditionTrue)
	}
	r.put(pool.UID, outcomes)
	return outcomes
}

// Recall returns and records the same results as Of, except in one case: no result is known, and the pool's last
// registration is later than the last transition of its condition. Then Recall records that the pool is healthy: an
// earlier process saw the node register, and ended before it updated the condition. registered is the time of the
// pool's last registration.
func (r *Registrations) Recall(pool *karpv1.NodePool, registered time.Time) lifecycle.Outcomes {
	outcomes := r.Of(pool)
	recorded, _ := outcomes.Count()
	c, ok := pool.StatusConditions().Find(karpv1.ConditionNodeRegistrationHealthy)
	isNewer := ok && registered.After(c.LastTransitionTime.Time)
	if r == nil || recorded > 0 || !isNewer {
		return outcomes
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	outcomes = lifecycle.OutcomesOf(true)
	r.put(pool.UID, outcomes)
	return outcomes
}

// Forget resets the results of a pool.
func (r *Registrations) Forget(pool types.UID) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.put(pool, lifecycle.Outcomes{})
}

// put stores the results. The caller must hold the lock.
func (r *Registrations) put(pool types.UID, outcomes lifecycle.Outcomes) {
	if r.byPool == nil {
		r.byPool = map[types.UID]lifecycle.Outcomes{}
	}
	r.byPool[pool] = outcomes
}

// OutcomesText describes the results of a pool's launches.
func OutcomesText(outcomes lifecycle.Outcomes) string {
	recorded, failed := outcomes.Count()
	return fmt.Sprintf("%d of the last %d launches did not result in a node", failed, recorded)
}

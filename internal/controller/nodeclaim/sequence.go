package nodeclaim

import (
	"context"
	"maps"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/controller/loop"
	"github.com/joiner-sh/joiner/internal/controller/nodestate"
	"github.com/joiner-sh/joiner/internal/disruption/drain"
	"github.com/joiner-sh/joiner/internal/kube/conversion"
)

// TurnPoll is how often the controller checks whether the next pod may be evicted.
const TurnPoll = 500 * time.Millisecond

// sequences tracks the moves whose pods are evicted one after the other, across all nodes of a move. The order is
// nodestate.MoveMark.EvictionOrder. After a restart of the controller, the next pod does not wait for replacement pods
// that were missing before the restart. The zero value is empty. Its methods are safe for concurrent use.
type sequences struct {
	mu     sync.Mutex
	byMove map[string]*sequence // by the ID of the move
}

type sequence struct {
	next    string            // the pod to evict next
	since   time.Time         // when next was set
	isLate  bool              // a pod took longer than drain.MaxTurnTime: all pods are evicted at once, from all nodes
	atStart map[types.UID]int // how many scheduled pods each owner of ordered pods had at the start
}

// see returns which pod of the move may be evicted next from the claim's node, or a zero Turn if the pods need no
// order.
func (t *sequences) see(ctx context.Context, cache client.Reader, claim *karpv1.NodeClaim, now time.Time) (drain.Turn, error) {
	mark, err := nodestate.MoveOf(claim)
	if mark == nil || err != nil {
		return drain.Turn{}, nil // the loop of moves reports an unreadable mark
	}
	isOrdered := len(mark.EvictionOrder) > 0 && mark.Committed
	if !isOrdered || claim.Annotations[nodestate.AnnotationInterrupted] != "" {
		return drain.Turn{}, nil // the pods need no order, or the node must be drained fast
	}
	scheduled, err := readScheduled(ctx, cache, mark.EvictionOrder)
	if err != nil {
		return drain.Turn{}, err
	}
	turn := drain.Turn{Order: mark.EvictionOrder, Remaining: scheduled.ordered, Placed: true}
	next := turn.Next()
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.byMove[mark.ID]
	if s == nil {
		s = &sequence{atStart: scheduled.count}
		maps.DeleteFunc(s.atStart, func(owner types.UID, _ int) bool { return !scheduled.owners[owner] })
		maps.DeleteFunc(t.byMove, func(_ string, old *sequence) bool { return now.Sub(old.since) > nodestate.StaleAfter })
		if t.byMove == nil {
			t.byMove = map[string]*sequence{}
		}
		t.byMove[mark.ID] = s
	} else {
		for owner, n := range s.atStart { // fewer pods than at the start: the replacement of an evicted pod is not scheduled
			turn.Placed = turn.Placed && scheduled.count[owner] >= n
		}
	}
	if s.next != next {
		s.next, s.since = next, now
	}
	if s.isLate = s.isLate || now.Sub(s.since) >= drain.MaxTurnTime; s.isLate {
		return drain.Turn{}, nil
	}
	turn.Since = s.since
	return turn, nil
}

// scheduledPods has the scheduled pods that are not terminating and not finished.
type scheduledPods struct {
	ordered map[string]bool    // pods of the eviction order, as "namespace/name"
	count   map[types.UID]int  // number of scheduled pods by owner
	owners  map[types.UID]bool // owners of the pods in ordered
}

// readScheduled reads the scheduled pods in the namespaces of the order.
func readScheduled(ctx context.Context, cache client.Reader, order []string) (scheduledPods, error) {
	out := scheduledPods{map[string]bool{}, map[types.UID]int{}, map[types.UID]bool{}}
	isOrdered, namespaces := loop.SetOf(order), map[string]bool{}
	for _, id := range order {
		namespace, _, _ := strings.Cut(id, "/")
		namespaces[namespace] = true
	}
	for namespace := range namespaces {
		var list corev1.PodList
		if err := cache.List(ctx, &list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
			return out, err
		}
		for i := range list.Items {
			if p := &list.Items[i]; p.DeletionTimestamp == nil && p.Spec.NodeName != "" && !conversion.IsFinished(p) {
				out.add(p, isOrdered[nodestate.PodID(p)])
			}
		}
	}
	return out, nil
}

// add adds a scheduled pod. isOrdered is true for a pod of the eviction order.
func (a *scheduledPods) add(p *corev1.Pod, isOrdered bool) {
	if isOrdered {
		a.ordered[nodestate.PodID(p)] = true
	}
	if owner := metav1.GetControllerOf(p); owner != nil {
		a.count[owner.UID]++
		a.owners[owner.UID] = a.owners[owner.UID] || isOrdered
	}
}

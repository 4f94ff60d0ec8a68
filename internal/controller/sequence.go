package controller

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
	"github.com/joiner-sh/joiner/internal/disruption/drain"
	"github.com/joiner-sh/joiner/internal/kube"
)

// turnPoll is how often it is looked whether it is the turn of the next.
const turnPoll = 500 * time.Millisecond

// sequences knows how far the moves are whose pods leave one after the other (moveMark.Turns), from all of their nodes. What it remembers is lost when
// the process ends: then the next one waits no longer for a successor that is missing. The zero value knows none. Its methods may be called at the same time.
type sequences struct {
	mu sync.Mutex
	of map[string]*sequence // by the move's ID
}

// sequence is how far one move is.
type sequence struct {
	next  string // whose turn it is
	since time.Time
	late  bool              // somebody was waited for for too long: all leave, from all nodes
	had   map[types.UID]int // how many pods with a place there were when it began, by owner
}

// see returns whose turn it is on the way out of the claim; a zero Turn where there are none, or none any more. pods reads from the informers.
func (t *sequences) see(ctx context.Context, pods client.Reader, claim *karpv1.NodeClaim, now time.Time) (drain.Turn, error) {
	mark, err := moveOf(claim)
	if mark == nil || err != nil || len(mark.Turns) == 0 || !mark.Committed || claim.Annotations[annotationInterrupted] != "" {
		return drain.Turn{}, nil // it leaves alone, or in a hurry; what cannot be read is told elsewhere
	}
	all, err := placedPods(ctx, pods, mark.Turns)
	if err != nil {
		return drain.Turn{}, err
	}
	turn := drain.Turn{Order: mark.Turns, There: all.there, Placed: true}
	next := turn.Next()
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.of[mark.ID]
	if s == nil {
		s = &sequence{had: all.count}
		maps.DeleteFunc(s.had, func(owner types.UID, _ int) bool { return !all.owners[owner] })
		maps.DeleteFunc(t.of, func(_ string, old *sequence) bool { return now.Sub(old.since) > staleAfter })
		if t.of == nil {
			t.of = map[string]*sequence{}
		}
		t.of[mark.ID] = s
	} else {
		for owner, n := range s.had {
			turn.Placed = turn.Placed && all.count[owner] >= n
		}
	}
	if s.next != next {
		s.next, s.since = next, now
	}
	if s.late = s.late || now.Sub(s.since) >= drain.TurnMost; s.late {
		return drain.Turn{}, nil
	}
	turn.Since = s.since
	return turn, nil
}

// placed is what is known of pods with a place, those left out that are asked to leave, or have ended.
type placed struct {
	there  map[string]bool    // those of the order, as "namespace/name"
	count  map[types.UID]int  // how many there are, by owner
	owners map[types.UID]bool // of those of the order
}

func placedPods(ctx context.Context, pods client.Reader, order []string) (placed, error) {
	out := placed{map[string]bool{}, map[types.UID]int{}, map[types.UID]bool{}}
	isTurn, namespaces := setOf(order), map[string]bool{}
	for _, id := range order {
		namespace, _, _ := strings.Cut(id, "/")
		namespaces[namespace] = true
	}
	for namespace := range namespaces {
		var list corev1.PodList
		if err := pods.List(ctx, &list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
			return out, err
		}
		for i := range list.Items {
			if p := &list.Items[i]; p.DeletionTimestamp == nil && p.Spec.NodeName != "" && !kube.IsFinished(p) {
				out.add(p, isTurn[podID(p)])
			}
		}
	}
	return out, nil
}

func (a *placed) add(p *corev1.Pod, isTurn bool) {
	if isTurn {
		a.there[podID(p)] = true
	}
	if owner := metav1.GetControllerOf(p); owner != nil {
		a.count[owner.UID]++
		a.owners[owner.UID] = a.owners[owner.UID] || isTurn
	}
}

func podID(p *corev1.Pod) string { return p.Namespace + "/" + p.Name }

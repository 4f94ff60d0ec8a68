package nodestate

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/controller/loop"
	"github.com/joiner-sh/joiner/internal/disruption"
)

// Annotations that describe a move. They persist across restarts, so that the next leader continues it.
const (
	// AnnotationMove on the NodeClaim of a leaving node holds the move as JSON.
	AnnotationMove = "joiner.sh/move"
	// AnnotationReplaces on a replacement NodeClaim is the ID of the move.
	AnnotationReplaces = "joiner.sh/replaces"
)

// MoveMark is the annotation on the claims of all nodes that leave together.
type MoveMark struct {
	ID     string            `json:"id"`                      // unique ID of the move
	Reason disruption.Reason `json:"reason"`                  // why the move was started
	Begun  time.Time         `json:"begun"`                   // when the move was started
	Nodes  int               `json:"nodes"`                   // that go
	Claims int               `json:"claims"`                  // that are made in their place
	Pods   int               `json:"pods"`                    // that move
	Saving float64           `json:"savingPerHour,omitempty"` // that was promised, in dollars
	// PaysBack is after how many seconds it has saved what being paid twice costs, as was promised; 0: at once.
	PaysBack int64 `json:"paysBackSeconds,omitempty"`
	// Turns are the pods in the order in which they are evicted one after the other; empty: all at once. See consolidation.Move.
	Turns []string `json:"turns,omitempty"`
	// Committed: the move is not undone any more.
	Committed bool `json:"committed,omitempty"`
}

// MoveID returns an ID for the move of these claims at this time.
func MoveID(claims []*karpv1.NodeClaim, now time.Time) string {
	var names []string
	for _, c := range claims {
		names = append(names, string(c.UID))
	}
	slices.Sort(names)
	sum := sha256.Sum256([]byte(strings.Join(names, ",") + now.UTC().Format(time.RFC3339Nano)))
	return hex.EncodeToString(sum[:6])
}

// MoveOf returns the mark of a claim, or nil without one. An unreadable mark gives an error and a placeholder mark.
func MoveOf(claim *karpv1.NodeClaim) (*MoveMark, error) {
	text, ok := claim.Annotations[AnnotationMove]
	if !ok {
		return nil, nil
	}
	m := &MoveMark{}
	if err := json.Unmarshal([]byte(text), m); err != nil || m.ID == "" {
		return &MoveMark{ID: "unreadable " + claim.Name, Begun: claim.CreationTimestamp.Time},
			fmt.Errorf("annotation %s of NodeClaim %s cannot be read: %q", AnnotationMove, claim.Name, text)
	}
	return m, nil
}

// Put writes the annotation and the DisruptionReason condition to the claim.
func (m MoveMark) Put(claim *karpv1.NodeClaim, now time.Time) {
	if claim.Annotations == nil {
		claim.Annotations = map[string]string{}
	}
	text, _ := json.Marshal(m) // none of its fields can fail
	claim.Annotations[AnnotationMove] = string(text)
	claim.StatusConditions().Set(now, DisruptionReason(m.Reason))
}

// DropReason removes the DisruptionReason condition. It comes before dropMove: a claim that still has the mark is known to need cleanup,
// and a claim with only the condition is not.
func DropReason(claim *karpv1.NodeClaim) {
	claim.StatusConditions().Remove(karpv1.ConditionDisruptionReason)
}

// DropMove removes the mark from the claim.
func DropMove(claim *karpv1.NodeClaim) {
	delete(claim.Annotations, AnnotationMove)
}

// OpenNode removes the karpenter.sh/disrupted taint from the Node.
func OpenNode(node *corev1.Node) {
	node.Spec.Taints = slices.DeleteFunc(slices.Clone(node.Spec.Taints), func(t corev1.Taint) bool { return t.Key == karpv1.TaintDisrupted })
}

// ParallelClaims is how many NodeClaims of a move are written at once.
const ParallelClaims = 20

// StaleAfter is how long other decisions wait for the pods of nodes that are leaving: a PodDisruptionBudget may hold the
// pods for days.
const StaleAfter = 10 * time.Minute

// Said describes a move in a few words: "Underutilized: 3 nodes make way for 1, which saves $0.1230 an hour, pays back
// within 4m10s and moves 12 pods".
func (m MoveMark) Said() string {
	out := string(m.Reason) + ": " + loop.Count(m.Nodes, "node") + " makes way for " + strconv.Itoa(m.Claims)
	if m.Nodes != 1 {
		out = string(m.Reason) + ": " + loop.Count(m.Nodes, "node") + " make way for " + strconv.Itoa(m.Claims)
	}
	if m.Reason == disruption.Underutilized {
		out += ", which saves $" + strconv.FormatFloat(m.Saving, 'f', 4, 64) + " an hour"
		if m.PaysBack > 0 {
			out += ", pays back within " + (time.Duration(m.PaysBack) * time.Second).String()
		}
	}
	return out + " and moves " + loop.Count(m.Pods, "pod")
}

// AnnotationReplacing on an expired NodeClaim is the time, in RFC 3339, since when its replacement is requested. It persists across
// restarts, so that the next leader continues.
const AnnotationReplacing = "joiner.sh/replacing"

// ReplacingSince parses the annotation; zero without one.
func ReplacingSince(claim *karpv1.NodeClaim) time.Time {
	since, err := time.Parse(time.RFC3339, claim.Annotations[AnnotationReplacing])
	if err != nil {
		return time.Time{}
	}
	return since
}

// CloseNode adds the karpenter.sh/disrupted taint to the Node.
func CloseNode(node *corev1.Node) {
	disrupted := karpv1.DisruptedTaint()
	taints := slices.DeleteFunc(slices.Clone(node.Spec.Taints), func(t corev1.Taint) bool { return t.Key == disrupted.Key })
	node.Spec.Taints = append(taints, disrupted)
}

// SetDeadline writes the time after which the drain no longer waits for pods.
func SetDeadline(claim *karpv1.NodeClaim, at time.Time) {
	if claim.Annotations == nil {
		claim.Annotations = map[string]string{}
	}
	claim.Annotations[karpv1.AnnotationTerminationTimestamp] = at.UTC().Format(time.RFC3339)
}

// Cordon keeps new pods and load balancers off the Node.
func Cordon(node *corev1.Node) {
	CloseNode(node)
	if node.Labels == nil {
		node.Labels = map[string]string{}
	}
	node.Labels[karpv1.LabelExcludeFromLoadBalancers] = karpv1.ExcludedFromLoadBalancers
}

// IsOnItsWayOut reports whether the claim's node is deleted as soon as its replacement is ready: it has expired, or is part of a move.
func IsOnItsWayOut(c *karpv1.NodeClaim) bool {
	return !ReplacingSince(c).IsZero() || c.Annotations[AnnotationMove] != ""
}

// MadeFor returns the IDs of the moves that have a replacement among the claims.
func MadeFor(claims []*karpv1.NodeClaim) map[string]bool {
	out := map[string]bool{}
	for _, c := range claims {
		if id := c.Annotations[AnnotationReplaces]; id != "" && c.DeletionTimestamp == nil {
			out[id] = true
		}
	}
	return out
}

// IsReplaced reports whether another node replaces the claim's node: it has expired, or is part of a move. A move whose
// replacement is lost is about to be undone, unless it is committed; until then its old node counts as before.
func IsReplaced(c *karpv1.NodeClaim, madeFor map[string]bool) bool {
	mark, _ := MoveOf(c)
	return !ReplacingSince(c).IsZero() || mark != nil && (mark.Committed || madeFor[mark.ID])
}

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

// Annotations that describe a move. They persist across restarts, so that the next leader continues the move.
const (
	// AnnotationMove on the NodeClaim of a leaving node is the move as JSON.
	AnnotationMove = "joiner.sh/move"
	// AnnotationReplaces on a replacement NodeClaim is the ID of the move.
	AnnotationReplaces = "joiner.sh/replaces"
)

// MoveMark is the value of AnnotationMove. All claims that leave with the same move have an equal mark.
type MoveMark struct {
	ID      string            `json:"id"`                      // unique ID of the move
	Reason  disruption.Reason `json:"reason"`                  // why the move was started
	Started time.Time         `json:"begun"`                   // when the move was started
	Nodes   int               `json:"nodes"`                   // number of nodes that leave
	Claims  int               `json:"claims"`                  // number of replacement NodeClaims
	Pods    int               `json:"pods"`                    // number of pods that move
	Saving  float64           `json:"savingPerHour,omitempty"` // expected saving in dollars per hour; 0: the move has another reason
	// PaybackSeconds is the expected time, in seconds, until the saving exceeds the cost of paying for old and new nodes at
	// once; 0: no such cost.
	PaybackSeconds int64 `json:"paysBackSeconds,omitempty"`
	// EvictionOrder has the pods that are evicted one after the other, as "namespace/name". Empty: all pods are evicted
	// at once. See consolidation.Move.
	EvictionOrder []string `json:"turns,omitempty"`
	// Committed is true from the moment when the move can no longer be undone.
	Committed bool `json:"committed,omitempty"`
}

// MoveID returns an ID for the move that removes these claims and starts at now.
func MoveID(claims []*karpv1.NodeClaim, now time.Time) string {
	var uids []string
	for _, c := range claims {
		uids = append(uids, string(c.UID))
	}
	slices.Sort(uids)
	sum := sha256.Sum256([]byte(strings.Join(uids, ",") + now.UTC().Format(time.RFC3339Nano)))
	return hex.EncodeToString(sum[:6])
}

// MoveOf returns the mark of a claim, or nil if the claim has none. An unreadable mark gives an error and a placeholder
// mark.
func MoveOf(claim *karpv1.NodeClaim) (*MoveMark, error) {
	text, ok := claim.Annotations[AnnotationMove]
	if !ok {
		return nil, nil
	}
	m := &MoveMark{}
	if err := json.Unmarshal([]byte(text), m); err != nil || m.ID == "" {
		return &MoveMark{ID: "unreadable " + claim.Name, Started: claim.CreationTimestamp.Time},
			fmt.Errorf("annotation %s of NodeClaim %s cannot be read: %q", AnnotationMove, claim.Name, text)
	}
	return m, nil
}

// Put writes AnnotationMove and the DisruptionReason condition to the claim.
func (m MoveMark) Put(claim *karpv1.NodeClaim, now time.Time) {
	if claim.Annotations == nil {
		claim.Annotations = map[string]string{}
	}
	text, _ := json.Marshal(m) // all fields have types that can be marshaled
	claim.Annotations[AnnotationMove] = string(text)
	claim.StatusConditions().Set(now, DisruptionReason(m.Reason))
}

// DropReason removes the DisruptionReason condition. It must be written before DropMove: after a crash in between, the
// claim still has the mark, so the next leader undoes the move.
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

// ParallelClaims is how many NodeClaims or Nodes of a move are written concurrently.
const ParallelClaims = 20

// StaleAfter limits how long other decisions wait for the pods of a leaving node to be evicted. A PodDisruptionBudget
// may block their eviction for days.
const StaleAfter = 10 * time.Minute

// Summary describes the move in one line, for example "Underutilized: 3 nodes are replaced by 1, which saves $0.1230 an
// hour, pays back within 4m10s and moves 12 pods".
func (m MoveMark) Summary() string {
	out := string(m.Reason) + ": " + loop.Count(m.Nodes, "node") + " is replaced by " + strconv.Itoa(m.Claims)
	if m.Nodes != 1 {
		out = string(m.Reason) + ": " + loop.Count(m.Nodes, "node") + " are replaced by " + strconv.Itoa(m.Claims)
	}
	if m.Reason == disruption.Underutilized {
		out += ", which saves $" + strconv.FormatFloat(m.Saving, 'f', 4, 64) + " an hour"
		if m.PaybackSeconds > 0 {
			out += ", pays back within " + (time.Duration(m.PaybackSeconds) * time.Second).String()
		}
	}
	return out + " and moves " + loop.Count(m.Pods, "pod")
}

// AnnotationReplacing on an expired NodeClaim is the time, in RFC 3339, when its replacement was requested. It
// persists across restarts, so that the next leader continues the replacement.
const AnnotationReplacing = "joiner.sh/replacing"

// ReplacingSince returns the time in AnnotationReplacing; zero if there is none or it cannot be parsed.
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

// SetDeadline writes to the claim the time after which the drain deletes pods by force.
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

// IsLeaving reports whether the claim's node has expired or is part of a move. Such a node is deleted when its
// replacements, if any, are ready.
func IsLeaving(c *karpv1.NodeClaim) bool {
	return !ReplacingSince(c).IsZero() || c.Annotations[AnnotationMove] != ""
}

// MovesWithReplacement returns the IDs of the moves that have at least one replacement among the claims.
func MovesWithReplacement(claims []*karpv1.NodeClaim) map[string]bool {
	out := map[string]bool{}
	for _, c := range claims {
		if id := c.Annotations[AnnotationReplaces]; id != "" && c.DeletionTimestamp == nil {
			out[id] = true
		}
	}
	return out
}

// IsReplaced reports whether another node replaces the claim's node: the node has expired, or is part of a move that is
// committed or has a replacement. Any other move is about to be undone. withReplacement is the result of
// MovesWithReplacement.
func IsReplaced(c *karpv1.NodeClaim, withReplacement map[string]bool) bool {
	mark, _ := MoveOf(c)
	return !ReplacingSince(c).IsZero() || mark != nil && (mark.Committed || withReplacement[mark.ID])
}

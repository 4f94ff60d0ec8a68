package controller

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/disruption"
)

// What is written of a move. It outlives this process: whoever leads next goes on.
const (
	// annotationMove on a claim whose node goes is a moveMark as JSON.
	annotationMove = "joiner.sh/move"
	// annotationReplaces on a claim that was made in the place of others is the move's ID.
	annotationReplaces = "joiner.sh/replaces"
)

// moveMark is what the claims of all nodes that go together bear.
type moveMark struct {
	ID     string            `json:"id"`
	Reason disruption.Reason `json:"reason"`
	Begun  time.Time         `json:"begun"`
	Nodes  int               `json:"nodes"`                   // that go
	Claims int               `json:"claims"`                  // that are made in their place
	Pods   int               `json:"pods"`                    // that move
	Saving float64           `json:"savingPerHour,omitempty"` // that was promised, in dollars
	// PaysBack is after how many seconds it has saved what being paid twice costs, as was promised; 0: at once.
	PaysBack int64 `json:"paysBackSeconds,omitempty"`
	// Turns are the pods in the order in which they leave, one after the other; none: they leave together. See consolidation.Move.
	Turns []string `json:"turns,omitempty"`
	// Committed: the node goes, whatever comes.
	Committed bool `json:"committed,omitempty"`
}

// moveID names a move by the claims whose nodes go, and when.
func moveID(claims []*karpv1.NodeClaim, now time.Time) string {
	var names []string
	for _, c := range claims {
		names = append(names, string(c.UID))
	}
	slices.Sort(names)
	sum := sha256.Sum256([]byte(strings.Join(names, ",") + now.UTC().Format(time.RFC3339Nano)))
	return hex.EncodeToString(sum[:6])
}

// moveOf reads the mark of a claim. The first result is nil without one; what cannot be read is an error and a mark of its own.
func moveOf(claim *karpv1.NodeClaim) (*moveMark, error) {
	text, ok := claim.Annotations[annotationMove]
	if !ok {
		return nil, nil
	}
	m := &moveMark{}
	if err := json.Unmarshal([]byte(text), m); err != nil || m.ID == "" {
		return &moveMark{ID: "unreadable " + claim.Name, Begun: claim.CreationTimestamp.Time},
			fmt.Errorf("annotation %s of NodeClaim %s cannot be read: %q", annotationMove, claim.Name, text)
	}
	return m, nil
}

// put writes the mark on the claim.
func (m moveMark) put(claim *karpv1.NodeClaim, now time.Time) {
	if claim.Annotations == nil {
		claim.Annotations = map[string]string{}
	}
	text, _ := json.Marshal(m) // it has no field that could fail
	claim.Annotations[annotationMove] = string(text)
	claim.StatusConditions().Set(now, disruptionReason(m.Reason))
}

// dropReason takes off the claim why its node was to go. It comes before dropMove: of a claim that bears the mark it is known that there is
// something left to do, and of one that bears the reason alone nothing would be.
func dropReason(claim *karpv1.NodeClaim) {
	claim.StatusConditions().Remove(karpv1.ConditionDisruptionReason)
}

// dropMove takes the mark off the claim.
func dropMove(claim *karpv1.NodeClaim) {
	delete(claim.Annotations, annotationMove)
}

// openNode lets new pods come to the Node again.
func openNode(node *corev1.Node) {
	node.Spec.Taints = slices.DeleteFunc(slices.Clone(node.Spec.Taints), func(t corev1.Taint) bool { return t.Key == karpv1.TaintDisrupted })
}

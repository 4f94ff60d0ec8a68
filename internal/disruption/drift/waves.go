package drift

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Drifted is a node that is to be replaced because of drift.
type Drifted struct {
	Node  string    // name of the Node
	Since time.Time // when it got the condition Drifted; without the condition, when its NodeClaim was created
	// Target identifies the origin of the node's replacement, as the function Target returns it. Replacements with
	// equal targets either all join or all fail.
	Target string
}

// Failure is a target whose nodes failed.
type Failure struct {
	Target string    `json:"target"`          // see Drifted.Target
	At     time.Time `json:"at"`              // when the last NodeClaim failed
	Claims []string  `json:"claims"`          // names of the NodeClaims that failed
	Image  string    `json:"image,omitempty"` // image of the last failed NodeClaim
	Why    string    `json:"why"`             // one sentence
}

// WavesInput is the state of one pool.
type WavesInput struct {
	Drifted []Drifted // the nodes to replace
	// Moving has the target of each node that is being replaced for drift now. The target is empty for nodes that are
	// being drained, whose replacements are ready.
	Moving []string
	// Trying has the target of each young node that is not fit for pods yet: the replacements of the moving nodes, and
	// those of completed moves.
	Trying []string
	// Proven are the targets with more nodes that are fit for pods than nodes that failed.
	Proven map[string]bool
	// Failed has the failures of the targets whose nodes failed, including proven targets.
	Failed map[string]Failure
	Total  int // nodes of the pool
	// Canary is the number of nodes that are replaced first, to see whether their replacements join. Zero or less: one.
	Canary int
	// Wave is the number of nodes that are replaced at once after the canary: "3", or "10%" of the pool's nodes,
	// rounded up. Empty: limited by the budgets only.
	Wave string
	// Held is the reason why no node is replaced now, for example a change that the user must approve first; empty: not
	// held.
	Held string
}

// Target returns an identifier of the origin of nodes: hashes of pool and class, image, security groups. Nodes with
// equal targets either all join or all fail.
func Target(pool, class Stamp, image string, groups []string) string {
	return Short(strings.Join([]string{pool.Hash, pool.Version, class.Hash, class.Version, image, strings.Join(sorted(groups), ",")}, "|"))
}

// Waves returns the drifted nodes of a pool that may be replaced now, in the order in which they drifted. For each
// remaining node, stays has one sentence with the reason. Each drifted node is either in allowed or in stays. Budgets
// are not considered. For each target, the canary nodes are replaced first, and no more until the target is proven. If
// nodes of an unproven target failed, no more nodes are replaced for it.
func Waves(in WavesInput) (allowed []string, stays map[string]string) {
	stays = map[string]string{}
	// By target: started is the larger of the numbers in Moving and Trying, because most moves are in both.
	trying, started := map[string]int{}, map[string]int{}
	for _, target := range in.Moving {
		started[target]++
	}
	for _, target := range in.Trying {
		if trying[target]++; trying[target] > started[target] {
			started[target] = trying[target]
		}
	}
	inProgress, canary := len(in.Moving), max(in.Canary, 1)
	wave, bounded := waveOf(in.Wave, in.Total)
	for _, d := range slices.SortedFunc(slices.Values(in.Drifted), byAge) {
		failure, failed := in.Failed[d.Target]
		switch {
		case in.Held != "":
			stays[d.Node] = in.Held
		case failed && !in.Proven[d.Target]:
			stays[d.Node] = "a node with the same target did not become ready for pods: " + failure.Why
		case !in.Proven[d.Target] && started[d.Target] >= canary:
			stays[d.Node] = fmt.Sprintf("%s first: the others follow when the replacement is ready for pods", nodes(canary))
		case in.Proven[d.Target] && bounded && inProgress >= wave:
			stays[d.Node] = fmt.Sprintf("at most %s may be replaced at the same time: %d are being replaced", nodes(wave), inProgress)
		default:
			allowed = append(allowed, d.Node)
			started[d.Target]++
			inProgress++
		}
	}
	return allowed, stays
}

func byAge(a, b Drifted) int {
	return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.Node, b.Node))
}

func nodes(n int) string {
	if n == 1 {
		return "one node"
	}
	return strconv.Itoa(n) + " nodes"
}

// waveOf parses a wave: its number of nodes, and whether there is a limit at all. An invalid wave is one node;
// package nodestate reports the error.
func waveOf(text string, total int) (size int, bounded bool) {
	if text == "" {
		return 0, false
	}
	if percent, ok := strings.CutSuffix(text, "%"); ok {
		n, err := strconv.Atoi(percent)
		if err != nil || n < 0 {
			return 1, true
		}
		return max(1, (total*min(n, 100)+99)/100), true
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		return 1, true
	}
	return max(1, n), true
}

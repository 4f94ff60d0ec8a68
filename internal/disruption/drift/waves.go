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
	Node  string    // name of the NodeClaim
	Since time.Time // when the node was found to differ, or its creation
	// Target identifies what its replacement would be made from (Target). Replacements with equal targets join alike.
	Target string
}

// Failure is a target whose nodes failed.
type Failure struct {
	Target string    `json:"target"`          // see Drifted.Target
	At     time.Time `json:"at"`              // when the last NodeClaim failed
	Claims []string  `json:"claims"`          // names of the NodeClaims that failed
	Image  string    `json:"image,omitempty"` // that the last was started from
	Why    string    `json:"why"`             // one sentence
}

// WavesInput is the state of one pool.
type WavesInput struct {
	Drifted []Drifted // the nodes to replace
	// Moving has the target of each node that is being replaced for drift now; empty for those that are being drained, whose replacements are
	// ready.
	Moving []string
	// Trying has the target of each young node that is not initialized: the replacements of the moving nodes, and those whose move is over.
	Trying []string
	// Proven are the targets with an initialized node of the pool.
	Proven map[string]bool
	// Failed are the targets with failed nodes and none that is initialized.
	Failed map[string]Failure
	Total  int // nodes of the pool
	// Canary is how many nodes are replaced first, to see whether their replacements join. Zero or less: one.
	Canary int
	// Wave is how many are replaced at once after that: "3", or "10%" of the pool's nodes, rounded up. Empty: limited by the budgets only.
	Wave string
	// Held is why nothing is replaced until the user approves it; empty: nothing is held.
	Held string
}

// Target identifies what nodes are made from: hashes of pool and class, image, security groups. Nodes with equal targets join alike.
func Target(pool, class Stamp, image string, groups []string) string {
	return Short(strings.Join([]string{pool.Hash, pool.Version, class.Hash, class.Version, image, strings.Join(sorted(groups), ",")}, "|"))
}

// Waves returns which drifted nodes of a pool may be replaced now, those that drifted longest ago first, and for each of the others one
// sentence why not. Budgets are not considered. Per target, the canary nodes are first, and no more until a node with the target is
// initialized; a target with failed nodes gets no more. Each drifted node is in one of the results.
func Waves(in WavesInput) (allowed []string, stays map[string]string) {
	stays = map[string]string{}
	moving, trying := map[string]int{}, map[string]int{}
	for _, target := range in.Moving {
		moving[target]++
	}
	for _, target := range in.Trying {
		if trying[target]++; trying[target] > moving[target] {
			moving[target] = trying[target]
		}
	}
	all, canary := len(in.Moving), max(in.Canary, 1)
	wave, bounded := waveOf(in.Wave, in.Total)
	for _, d := range slices.SortedFunc(slices.Values(in.Drifted), byAge) {
		failure, failed := in.Failed[d.Target]
		switch {
		case in.Held != "":
			stays[d.Node] = in.Held
		case failed && !in.Proven[d.Target]:
			stays[d.Node] = "a node that was made from the same did not become fit for pods: " + failure.Why
		case !in.Proven[d.Target] && moving[d.Target] >= canary:
			stays[d.Node] = fmt.Sprintf("%s first: the others follow when what replaces it is fit for pods", nodes(canary))
		case in.Proven[d.Target] && bounded && all >= wave:
			stays[d.Node] = fmt.Sprintf("%s at once: %d are on their way", nodes(wave), all)
		default:
			allowed = append(allowed, d.Node)
			moving[d.Target]++
			all++
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

// waveOf parses a wave. An invalid one counts as one node, and is reported elsewhere.
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

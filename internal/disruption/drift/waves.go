package drift

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Drifted is a node that is to be replaced because it drifts.
type Drifted struct {
	Node  string
	Since time.Time
	// Target stands for what a node made in its place would be made from (Target). Alike targets join alike.
	Target string
}

// Failure is that a node made from a target did not become one.
type Failure struct {
	Target string    `json:"target"`
	At     time.Time `json:"at"`
	Claims []string  `json:"claims"`          // names of the NodeClaims that failed
	Image  string    `json:"image,omitempty"` // that the last was started from
	Why    string    `json:"why"`             // one sentence
}

// WavesInput is what is known of one pool.
type WavesInput struct {
	Drifted []Drifted
	// Moving are the targets of the nodes that are being replaced for drift now, once for each of them; empty for those that are being
	// emptied, what replaces them being there.
	Moving []string
	// Trying are the targets of young nodes that are made from them and not yet fit for pods, once for each: of those that the moving ones
	// wait for, and of those whose move is over.
	Trying []string
	// Proven are the targets that a node of the pool was made from that is fit for pods.
	Proven map[string]bool
	// Failed are the targets that nodes failed with, none of which is fit for pods.
	Failed map[string]Failure
	Total  int // nodes of the pool
	// Canary is how many nodes are replaced first, to see that what they are replaced by joins. Zero or less: one.
	Canary int
	// Wave is how many are replaced at once after that: "3", or "10%" of the pool's nodes, rounded up. Empty: as many as
	// the budgets allow.
	Wave string
	// Held says why nothing is replaced until the user says so; empty: nothing is held.
	Held string
}

// Target stands for what nodes are made from: hashes of pool and class, image, security groups. Those made from the same join alike.
func Target(pool, class Stamp, image string, groups []string) string {
	return Short(strings.Join([]string{pool.Hash, pool.Version, class.Hash, class.Version, image, strings.Join(sorted(groups), ",")}, "|"))
}

// Waves says which drifted nodes of a pool may be replaced now, those first that have drifted longest, and in one sentence for
// each of the others why it may not. Budgets are not its business. Per target, as many as the canary go first, and no more until a
// node made from it is fit for pods; a target whose nodes failed takes no more. Each drifted node is in one of the two results.
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

// waveOf reads a wave. What cannot be read is no more than one node; whose word it was is told elsewhere.
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

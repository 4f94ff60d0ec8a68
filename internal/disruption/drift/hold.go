package drift

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Breaker is how many nodes of a pool may drift at once by something that nobody changed in the cluster: it opens when at least
// Count nodes of a pool, and more than Share of all of them, would be replaced for it. A user's own change never opens it.
type Breaker struct {
	Count int     // Zero: BreakerCount
	Share float64 // of 1. Zero: BreakerShare
}

// The defaults of a Breaker.
const (
	BreakerCount = 5
	BreakerShare = 0.5
)

// Judged is a node of a pool with what was found of it.
type Judged struct {
	Name     string // of the claim
	Verdicts []Verdict
}

// Hold is a mass drift that waits for the user's word.
type Hold struct {
	Nodes   int    // that drift by it
	Total   int    // nodes of the pool
	Token   string // stands for what has changed: with it the user allows just this
	Message string // one sentence: what has changed
}

// Trip says whether the nodes of a pool drift for something that changed in AWS alone, and are too many to be replaced
// unasked. State is what was found in AWS, in any form: another state is another hold. A breaker that is open already stays so for
// as long as any node drifts by that: who waits for the user's word does not begin because other nodes have left or come.
func Trip(nodes []Judged, state string, b Breaker, isOpen bool) (Hold, bool) {
	h := Hold{Total: len(nodes)}
	byReason := map[Reason]int{}
	example := map[Reason]string{}
	for _, n := range slices.SortedFunc(slices.Values(nodes), func(a, b Judged) int { return cmp.Compare(a.Name, b.Name) }) {
		v, drifted := First(n.Verdicts)
		if !drifted || slices.ContainsFunc(n.Verdicts, func(v Verdict) bool { return !v.Ignored && !v.Outside }) {
			continue
		}
		h.Nodes++
		if byReason[v.Reason]++; example[v.Reason] == "" {
			example[v.Reason] = n.Name + ": " + v.Message
		}
	}
	isMass := h.Nodes >= cmp.Or(b.Count, BreakerCount) && float64(h.Nodes) > cmp.Or(b.Share, BreakerShare)*float64(h.Total)
	if !isMass && (!isOpen || h.Nodes == 0) {
		return Hold{}, false
	}
	var texts []string
	for _, r := range slices.Sorted(maps.Keys(byReason)) {
		texts = append(texts, fmt.Sprintf("%s of %d, for instance %s", r, byReason[r], example[r]))
	}
	h.Token = Short(state + fmt.Sprint(slices.Sorted(maps.Keys(byReason))))
	h.Message = fmt.Sprintf("%d of %d nodes drift at once because of something that changed outside of this cluster's objects: %s",
		h.Nodes, h.Total, strings.Join(texts, "; "))
	return h, true
}

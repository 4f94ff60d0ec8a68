package drift

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Breaker limits how many nodes of a pool may drift at once because of a change outside the cluster. It opens if at
// least Count nodes of a pool, and more than Share of the pool's nodes, would be replaced for the change. A user's
// change in the cluster never opens the breaker.
type Breaker struct {
	Count int     // Zero: BreakerCount
	Share float64 // from 0 to 1. Zero: BreakerShare
}

// The defaults of a Breaker.
const (
	BreakerCount = 5   // nodes
	BreakerShare = 0.5 // of the nodes of a pool
)

// NodeVerdicts is a node of a pool with its verdicts.
type NodeVerdicts struct {
	Name     string    // name of the NodeClaim
	Verdicts []Verdict // empty if the node has not drifted
}

// MassDrift has the nodes whose replacement waits for the user's approval: see FindMassDrift.
type MassDrift struct {
	Nodes   int    // number of drifted nodes
	Total   int    // number of nodes of the pool
	Token   string // identifies the change; the user approves exactly this change with it
	Message string // one sentence: the change
}

// FindMassDrift returns the mass drift of a pool; false if there is none. It is a mass drift if too many nodes drift
// because of a change in AWS alone, so replacing them needs approval. state is a text that identifies the observed
// state of AWS: another state results in another Token. An open breaker (isOpen) stays open while any node drifts
// because of that change, so that replacements do not start unapproved when other nodes come or go.
func FindMassDrift(nodes []NodeVerdicts, state string, b Breaker, isOpen bool) (MassDrift, bool) {
	mass := MassDrift{Total: len(nodes)}
	byReason := map[Reason]int{}
	example := map[Reason]string{}
	for _, n := range slices.SortedFunc(slices.Values(nodes), func(a, b NodeVerdicts) int { return cmp.Compare(a.Name, b.Name) }) {
		v, drifted := First(n.Verdicts)
		if !drifted || slices.ContainsFunc(n.Verdicts, func(v Verdict) bool { return !v.Ignored && !v.Outside }) {
			continue // not drifted, or the user has also made a change that counts
		}
		mass.Nodes++
		if byReason[v.Reason]++; example[v.Reason] == "" {
			example[v.Reason] = n.Name + ": " + v.Message
		}
	}
	isMass := mass.Nodes >= cmp.Or(b.Count, BreakerCount) && float64(mass.Nodes) > cmp.Or(b.Share, BreakerShare)*float64(mass.Total)
	staysOpen := isOpen && mass.Nodes > 0
	if !isMass && !staysOpen {
		return MassDrift{}, false
	}
	var texts []string
	for _, r := range slices.Sorted(maps.Keys(byReason)) {
		texts = append(texts, fmt.Sprintf("%s of %d, for instance %s", r, byReason[r], example[r]))
	}
	mass.Token = Short(state + fmt.Sprint(slices.Sorted(maps.Keys(byReason))))
	mass.Message = fmt.Sprintf("%d of %d nodes drift at once because of a change outside of this cluster's objects: %s",
		mass.Nodes, mass.Total, strings.Join(texts, "; "))
	return mass, true
}

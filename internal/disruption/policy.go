package disruption

import (
	"time"

	"github.com/joiner-sh/joiner/internal/model/catalog"
)

// Policy is what a pool allows: spec.disruption of a NodePool, and its annotations.
type Policy struct {
	// After is how long pods must have left a node in peace; nil for never.
	After *time.Duration
	// Method says which nodes may go to save money. Empty is WhenEmptyOrUnderutilized, as in a NodePool.
	Method Method
	// Static: the pool keeps a number of nodes whatever pods do. They go for drift only.
	Static bool
	// Budgets bound how many nodes may be leaving at once. The tightest that is active counts. None: no bound.
	Budgets []Budget
	// Paused says who paused the pool ("annotation joiner.sh/paused of the NodePool"): nothing is begun. Empty: nobody.
	Paused string
	// PausedUntil is when the pause ends by itself; zero: somebody must end it.
	PausedUntil time.Time

	// LeastSaving is what a move must save per hour, LeastShare which part of what its nodes cost now (0.1 for ten
	// percent). Zero: whatever consolidation takes to be worth it.
	LeastSaving catalog.Price
	LeastShare  float64
	// LeastLife is how old a node must be before it goes for money or for drift. Empty nodes go at any age.
	LeastLife time.Duration
	// MovesPerHour is how often a workload's pods may be moved, for each of its pods and hour. 0: DefaultMovesPerHour.
	MovesPerHour int

	// ObserveDrift: nodes that drifted are told of and stay.
	ObserveDrift bool
	// IgnoreDrift are fields whose changes are no drift: "amiSelectorTerms", "tags". Sorted.
	IgnoreDrift []string
	// Canary is how many drifted nodes are replaced first, alone; 0: DefaultCanary. Wave is how many at once after that, "3" or
	// "10%" of the pool's nodes; empty: as the budgets say.
	Canary int
	Wave   string

	// Problems are what is wrong with the policy, a sentence each. Of what they are about nothing is allowed: a budget
	// that cannot be read allows no node, an annotation none of the moves that it would have a say in.
	Problems []Problem
}

// What holds where a pool does not say.
const (
	DefaultMovesPerHour = 2
	DefaultCanary       = 1
)

// Method says which nodes may go to save money: spec.disruption.consolidationPolicy.
type Method string

// The methods.
const (
	WhenEmpty                Method = "WhenEmpty"                // only nodes that run nothing but what runs on every node
	WhenEmptyOrUnderutilized Method = "WhenEmptyOrUnderutilized" // also nodes whose pods fit elsewhere, or on something cheaper
	Balanced                 Method = "Balanced"                 // those only where the saving is worth the disturbance
)

// Allows reports whether a node may go for the reason, as far as the method says.
func (m Method) Allows(reason Reason) bool { return reason != Underutilized || m != WhenEmpty }

// LeastWorth is what consolidation.Rule.LeastWorth is for the method; 0 for the usual.
func (m Method) LeastWorth() float64 {
	if m == Balanced {
		return 0.5 // the share of the saving is at least half that of the disturbance, as Karpenter has it
	}
	return 0
}

// Problem is something in a policy that makes no sense.
type Problem struct {
	Field   string   // "spec.disruption.budgets[1].schedule", "joiner.sh/minimum-saving"
	Text    string   // a sentence without the field
	Reasons []Reason // for which nothing is done because of it; none: for no reason, it is merely told
}

// Forbidden returns the problem for which no node of the pool goes for the reason, if there is one.
func (p Policy) Forbidden(reason Reason) (Problem, bool) {
	for _, problem := range p.Problems {
		for _, r := range problem.Reasons {
			if r == reason {
				return problem, true
			}
		}
	}
	return Problem{}, false
}

// String is the field and what is wrong with it.
func (p Problem) String() string { return p.Field + ": " + p.Text }

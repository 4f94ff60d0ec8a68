package disruption

import (
	"time"

	"github.com/joiner-sh/joiner/internal/model/catalog"
)

// Policy is a pool's disruption policy: spec.disruption of a NodePool, and its annotations.
type Policy struct {
	// After is how long no pod must have come or gone; nil for never.
	After *time.Duration
	// Method selects which nodes may be disrupted to save money. Empty is WhenEmptyOrUnderutilized, as in a NodePool.
	Method Method
	// Static: the pool has a fixed number of nodes. They are disrupted for drift only.
	Static bool
	// Budgets limit how many nodes may be disrupted at once. The tightest active budget counts. None: no limit.
	Budgets []Budget
	// Paused is what paused the pool ("annotation joiner.sh/paused of the NodePool"): no disruption starts. Empty: not paused.
	Paused string
	// PausedUntil is when the pause ends by itself; zero: a user must end it.
	PausedUntil time.Time

	// LeastSaving is the least saving of a move per hour, LeastShare its least share of the nodes' price (0.1 for ten percent). Zero: the
	// defaults of consolidation.
	LeastSaving catalog.Price
	LeastShare  float64
	// LeastLife is the least age of a node before it is disrupted for money or drift. Empty nodes may be disrupted at any age.
	LeastLife time.Duration
	// MovesPerHour limits how often a workload's pods may be moved, per pod and hour. 0: DefaultMovesPerHour.
	MovesPerHour int

	// ObserveDrift: drifted nodes are reported and stay.
	ObserveDrift bool
	// IgnoreDrift lists fields whose changes do not count as drift: "amiSelectorTerms", "tags". Sorted.
	IgnoreDrift []string
	// Canary is how many drifted nodes are replaced first, alone; 0: DefaultCanary. Wave is how many at once after that, "3" or "10%" of the
	// pool's nodes; empty: limited by the budgets.
	Canary int
	Wave   string

	// Problems are the errors of the policy, a sentence each. What they affect is not allowed: an unreadable budget allows no node, an
	// unreadable annotation none of the moves that it affects.
	Problems []Problem
}

// Defaults of a pool.
const (
	DefaultMovesPerHour = 2
	DefaultCanary       = 1
)

// Method is spec.disruption.consolidationPolicy: which nodes may be disrupted to save money.
type Method string

// The methods.
const (
	WhenEmpty                Method = "WhenEmpty"                // only nodes that run nothing but what runs on every node
	WhenEmptyOrUnderutilized Method = "WhenEmptyOrUnderutilized" // also nodes whose pods fit elsewhere, or on something cheaper
	Balanced                 Method = "Balanced"                 // those only where the saving is worth the disturbance
)

// Allows reports whether the method allows disrupting a node for the reason.
func (m Method) Allows(reason Reason) bool { return reason != Underutilized || m != WhenEmpty }

// LeastWorth returns consolidation.Rule.LeastWorth for the method; 0 for the default.
func (m Method) LeastWorth() float64 {
	if m == Balanced {
		return 0.5 // the saving's share must be at least half of the disruption's, as in Karpenter
	}
	return 0
}

// Problem is an invalid setting of a policy.
type Problem struct {
	Field   string   // "spec.disruption.budgets[1].schedule", "joiner.sh/minimum-saving"
	Text    string   // a sentence without the field
	Reasons []Reason // reasons that are disabled by it; none: it is only reported
}

// Forbidden returns the problem that disables the reason for the pool, if there is one.
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

// String returns the field and its problem.
func (p Problem) String() string { return p.Field + ": " + p.Text }

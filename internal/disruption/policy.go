package disruption

import (
	"time"

	"github.com/joiner-sh/joiner/internal/model/catalog"
)

// Policy is a pool's disruption policy: spec.disruption of a NodePool, and its annotations.
type Policy struct {
	// After is spec.disruption.consolidateAfter: an empty or underutilized node is disrupted only if no pod has come to
	// it or left it for this long; nil: Never.
	After *time.Duration
	// Method selects which nodes may be disrupted to save money. Empty is WhenEmptyOrUnderutilized, as in a NodePool.
	Method Method
	// Static is true for a pool with a fixed number of nodes. Its nodes are disrupted for drift only.
	Static bool
	// Budgets limit how many nodes may be disrupted at once. The tightest active budget counts. None: no limit.
	Budgets []Budget
	// Paused is what paused the pool ("annotation joiner.sh/paused of the NodePool"): no disruption starts. Empty: not
	// paused.
	Paused string
	// PausedUntil is when the pause ends automatically; zero: a user must end it.
	PausedUntil time.Time

	// MinSaving is the minimum saving of a move per hour, MinSavingShare its minimum share of the nodes' price (0.1 for
	// ten percent). Zero: the defaults of consolidation.
	MinSaving      catalog.Price
	MinSavingShare float64
	// MinLifetime is the minimum age of a node before it is disrupted to save money or for drift. Empty nodes may be
	// disrupted at any age.
	MinLifetime time.Duration
	// MovesPerHour limits how often a workload's pods may be moved, per pod and hour. 0: DefaultMovesPerHour.
	MovesPerHour int

	// ObserveDrift is true if drifted nodes are reported, but stay.
	ObserveDrift bool
	// IgnoreDrift lists fields whose changes do not count as drift: "amiSelectorTerms", "tags". Sorted.
	IgnoreDrift []string
	// Canary is the number of drifted nodes that are replaced before all others; 0: DefaultCanary. Wave is the number
	// of nodes replaced at once after that, "3" or "10%" of the pool's nodes; empty: limited by the budgets.
	Canary int
	Wave   string

	// Problems are the invalid settings of the policy. Each disables disruption for its Reasons.
	Problems []Problem
}

// Defaults of a pool.
const (
	DefaultMovesPerHour = 2 // moves of each pod of a workload per hour
	DefaultCanary       = 1 // drifted nodes that are replaced first
)

// Method is spec.disruption.consolidationPolicy: the nodes that may be disrupted to save money.
type Method string

// The methods.
const (
	WhenEmpty                Method = "WhenEmpty"                // only nodes without pods other than DaemonSet and static pods
	WhenEmptyOrUnderutilized Method = "WhenEmptyOrUnderutilized" // also nodes whose pods fit other nodes, or a cheaper node
	Balanced                 Method = "Balanced"                 // WhenEmptyOrUnderutilized, if the saving is worth the disruption
)

// Allows reports whether the method allows disrupting a node for the reason.
func (m Method) Allows(reason Reason) bool { return reason != Underutilized || m != WhenEmpty }

// LeastWorth returns consolidation.Rule.LeastWorth for the method; 0 for the default.
func (m Method) LeastWorth() float64 {
	if m == Balanced {
		return 0.5 // as in Karpenter: the saved share of the price is at least half of the disrupted share
	}
	return 0
}

// Problem is an invalid setting of a policy.
type Problem struct {
	Field   string   // "spec.disruption.budgets[1].schedule", "joiner.sh/minimum-saving"
	Text    string   // a sentence without the field
	Reasons []Reason // reasons that the problem disables; none: it is only reported
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

package disruption

import (
	"time"

	"github.com/joiner-sh/joiner/catalog"
)

// Policy is what a pool allows: spec.disruption of a NodePool, and what its annotations say beyond that.
type Policy struct {
	// After is how long pods must have left a node in peace; nil for never.
	After *time.Duration
	// Method is which nodes go to save money.
	Method Method
	// Budgets bound how many nodes may be leaving at once. The tightest counts. None: no bound.
	Budgets []Budget
	// Paused says who paused the pool: nothing is begun. Empty: nobody.
	Paused string
	// LeastSaving, per hour, and LeastShare, of the price of the nodes that go, are what a move must save at least.
	LeastSaving catalog.Price
	LeastShare  float64
	// LeastLife is how old a node must be before it goes to save money.
	LeastLife time.Duration
}

// Method is which nodes of a pool go to save money. The values are those of consolidationPolicy.
type Method string

// The methods.
const (
	WhenEmpty         Method = "WhenEmpty"
	WhenUnderutilized Method = "WhenEmptyOrUnderutilized"
	Balanced          Method = "Balanced"
)

// Package workload builds the clusters that the benchmark plans for: pods, nodes, NodePools, instance types and prices.
//
// In: the numbers of pods, nodes and types; the embedded table of instance types; the folder of the traces.
// Out: Kubernetes objects and a market, the same ones in every run.
// Never: a clock, randomness without a seed, or a difference between the schedulers under test.
package workload

import (
	"time"

	"github.com/joiner-sh/joiner/internal/kube/snapshot"
	"github.com/joiner-sh/joiner/internal/model/catalog"
)

// Case is a cluster with pending pods, and the offerings for them.
type Case struct {
	Objects snapshot.Objects // the cluster
	Market  catalog.Market   // the offerings and their prices
	Pending int              // number of pending pods
}

// Now is the time at which every case is planned.
var Now = time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)

// View returns the time and the offerings of a case. A snapshot is built from Objects and View.
func (c Case) View() snapshot.View { return snapshot.View{Now: Now, Market: c.Market} }

// Kind determines the target for a workload's gap: how far a plan's price may be above the lower bound.
type Kind int

// The kinds.
const (
	Free        Kind = iota // pods without constraints on each other: within 3 % of the lower bound
	Constrained             // with spread, affinity or anti-affinity: within 8 %
	Preferring              // with preferred anti-affinity by host: within 8 % of the bound of plans that satisfy this preference
)

// Workload is one row of the benchmark.
type Workload struct {
	Name  string // name, which the flag -run matches
	About string // short description
	Group Group  // table of the report
	Kind  Kind   // determines the target for the gap

	// Build builds the case. Its only error is a missing file: see ErrMissing.
	Build func() (Case, error)

	// Smaller builds a smaller case for upstream, because upstream needs more than five minutes for the case of Build.
	// nil: upstream gets the same case. SmallerAbout describes the smaller case.
	Smaller      func() (Case, error)
	SmallerAbout string

	// OursOnly excludes upstream.
	OursOnly bool

	Target Target // further targets
}

// Target has the targets for a row in addition to that for the gap. A zero field sets no target.
type Target struct {
	Ratio   float64 // minimum of upstream's time divided by Joiner's
	Seconds float64 // maximum time of Joiner
	Bytes   uint64  // maximum memory of the process
}

// MaxGap returns how far above the lower bound the price of a plan may be, in percent.
func (k Kind) MaxGap() float64 {
	switch k {
	case Constrained, Preferring:
		return 8
	case Free:
	}
	return 3
}

// Group is a table of the report.
type Group string

// The groups.
const (
	Speed     Group = "speed"  // 700 types × 3 zones × 2 capacity types, round prices
	Prices    Group = "prices" // us-east-1 at its real on-demand prices
	Karpenter Group = "own"    // the pods and instance types of Karpenter's own benchmark
	Traces    Group = "traces" // recorded workloads of a production cluster
	Sizes     Group = "sizes"  // the same kinds of pods in growing numbers
)

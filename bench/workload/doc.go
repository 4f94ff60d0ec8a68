// Package workload makes the clusters that the benchmark plans for: pods, nodes, pools and what can be bought.
//
// In: how many pods, nodes and types; the embedded table of instance types; the traces, where they are.
// Out: Kubernetes objects and a market, the same ones in every run.
// Never: a clock, chance without a seed, or a word about who plans.
package workload

import (
	"time"

	"github.com/joiner-sh/joiner/internal/kube"
	"github.com/joiner-sh/joiner/internal/model/catalog"
)

// Case is a cluster with pods that wait, and what can be bought for them.
type Case struct {
	Objects kube.Objects
	Market  catalog.Market
	Pending int // pods that wait
}

// Now is the time at which every case is looked at.
var Now = time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)

// View is how a case is looked at.
func (c Case) View() kube.View { return kube.View{Now: Now, Market: c.Market} }

// Kind says which bar a workload is held to.
type Kind int

// The kinds.
const (
	Free        Kind = iota // pods without constraints among each other: within 3 % of the bound
	Constrained             // with spread, affinity or anti-affinity: within 8 %
	Wishing                 // with wishes about hosts that cost money: within 8 % of plans that meet them
)

// Workload is one row of the benchmark.
type Workload struct {
	Name  string // as in -run
	About string // what it is, in half a sentence
	Group Group
	Kind  Kind

	// Build makes it. It may fail only for want of a file: see ErrMissing.
	Build func() (Case, error)

	// Smaller is what upstream gets where the whole would take it more than five
	// minutes; nil: the same. SmallerAbout says what it is.
	Smaller      func() (Case, error)
	SmallerAbout string

	// OursOnly: upstream is not asked.
	OursOnly bool

	Aim Aim
}

// Aim is what the design asks of a row, besides the gap of its kind. Zero: nothing.
type Aim struct {
	Ratio   float64 // upstream's time is this many times ours
	Seconds float64 // ours, at most
	Bytes   uint64  // peak of the process, at most
}

// MostGap is how far above the bound a plan may be, in percent.
func (k Kind) MostGap() float64 {
	switch k {
	case Constrained, Wishing:
		return 8
	}
	return 3
}

// Group is a table of the report.
type Group string

// The groups, in the order of the report.
const (
	Speed  Group = "speed"  // 700 types × 3 zones × 2 ways of paying, round prices
	Prices Group = "prices" // us-east-1 as it is, on demand
	Own    Group = "own"    // upstream's own benchmark
	Traces Group = "traces" // what people really ran
	Sizes  Group = "sizes"  // one workload, growing
)

package packing

import (
	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/model/requirements"
	"github.com/joiner-sh/joiner/internal/model/resources"
	"github.com/joiner-sh/joiner/internal/scheduling/packing/refusal"
)

// Plan assigns every pod of a snapshot to a new node, to an existing node, or to none with the
// reason. It is complete enough to print, store, compare and replay.
type Plan struct {
	PlannedNodes []PlannedNode // in launch order: nodes with device-requesting pods last, then by price
	Placements   []Placement   // sorted by pod
	Refusals     []Refusal     // sorted by pod
	Omissions    []Omission    // sorted by pod; empty in nearly all plans

	Price      catalog.Price // of all new nodes per hour, each at its cheapest offering
	LowerBound catalog.Price // no plan for the pods on the new nodes costs less

	Pods    int    // pods considered
	Classes int    // number of groups of pods with equal requirements
	Steps   int    // work done, in the units of Effort
	Effort  Effort // the limit of Steps
}

// PlannedNode is a node to launch, as the input of a NodeClaim.
type PlannedNode struct {
	Name      string // "<pool>-1", unique in the plan; the NodeClaim gets a name of its own
	Pool      string
	NodeClass string

	// Requirements are those of the NodeClaim: the NodePool's, narrowed by the pods. Instance types
	// and capacity types are those of Offerings. Sorted by key.
	Requirements  []requirements.Requirement
	Labels        requirements.Labels
	Taints        []requirements.Taint
	StartupTaints []requirements.Taint

	Pods     []string          // "namespace/name", sorted
	Requests resources.Amounts // of its pods and of the DaemonSet pods on it

	// Relaxed are the NodePool's minValues that the node cannot keep because some of its pods
	// cannot, sorted by key. Requirements have the values that it does keep.
	Relaxed []Relaxation

	// Offerings can each host all the pods. The cheapest is first; never empty.
	Offerings []Choice
}

// Price returns the price of the cheapest offering, per hour.
func (m PlannedNode) Price() catalog.Price { return m.Offerings[0].Price }

// Choice is one offering of an instance type.
type Choice struct {
	InstanceType string
	Zone         string
	CapacityType string
	Price        catalog.Price
	Reservation  string // ID of the capacity reservation that an instance is taken from, or empty
}

// Placement is a pod that fits on a node that exists or is being launched.
type Placement struct {
	Pod  string // "namespace/name"
	Node string // name of the cluster.Node
}

// Omission is a pod that was planned without some of its preferences. The topology rules of all
// pods exceed the limit of one plan, and this pod is one of those with the most.
type Omission struct {
	Pod         string // "namespace/name"
	Preferences int    // number of ignored preferences about other pods
}

// Refusal is a pod that the plan does not place, and why.
type Refusal struct {
	Pod     string   // "namespace/name"
	Reasons []Reason // the one that Hint is about, then the most frequent first
	Hint    string   // the smallest change that would help, or empty
}

// The explanation of a refusal; see package refusal.
type (
	// Reason is one cause of a refusal, with its detail.
	Reason = refusal.Reason
	// Code is the kind of a cause.
	Code = refusal.Code
	// Relaxation is a change of the pod that would place it.
	Relaxation = refusal.Relaxation
)

// The causes of a refusal.
const (
	NoPool           = refusal.NoPool
	PoolUnusable     = refusal.PoolUnusable
	PoolEmpty        = refusal.PoolEmpty
	TaintUntolerated = refusal.TaintUntolerated
	LabelMissing     = refusal.LabelMissing
	LabelConflict    = refusal.LabelConflict
	TypeMismatch     = refusal.TypeMismatch
	TooSmall         = refusal.TooSmall
	HostPortTaken    = refusal.HostPortTaken
	NoCapacity       = refusal.NoCapacity
	ReservationFull  = refusal.ReservationFull
	LimitReached     = refusal.LimitReached
	MinValues        = refusal.MinValues
	TopologySpread   = refusal.TopologySpread
	PodAffinity      = refusal.PodAffinity
	PodAntiAffinity  = refusal.PodAntiAffinity
	Unplannable      = refusal.Unplannable
	EffortSpent      = refusal.EffortSpent
)

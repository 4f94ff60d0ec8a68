package packing

import (
	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/model/requirements"
	"github.com/joiner-sh/joiner/internal/model/resources"
	"github.com/joiner-sh/joiner/internal/scheduling/packing/refusal"
)

// Plan assigns each pod of a snapshot to a new node or an existing node, or has the reasons why the pod is
// unplaced. A Plan contains all data to print, store, compare and replay it.
type Plan struct {
	PlannedNodes []PlannedNode // in launch order: nodes with device-requesting pods last, then by price
	Placements   []Placement   // sorted by pod
	Refusals     []Refusal     // sorted by pod
	Omissions    []Omission    // sorted by pod; empty in nearly all plans

	Price      catalog.Price // price of all new nodes per hour, each at its cheapest offering
	LowerBound catalog.Price // lower bound of Price for any plan with the same pods on new nodes

	Pods    int    // pods considered
	Classes int    // number of groups of pods with equal requirements
	Steps   int    // work done, in the units of Effort
	Effort  Effort // the limit of Steps
}

// PlannedNode is a node to launch, as the input of a NodeClaim.
type PlannedNode struct {
	Name      string // "<pool>-1", unique in the plan; the NodeClaim has a different name
	Pool      string // name of the NodePool
	NodeClass string // name of the EC2NodeClass

	// Requirements are the requirements of the NodeClaim, sorted by key: the NodePool's requirements, narrowed to the
	// instance types, zones and capacity types of Offerings, and to the chosen custom labels.
	Requirements  []requirements.Requirement
	Labels        requirements.Labels  // labels of the NodeClaim
	Taints        []requirements.Taint // taints of the NodePool
	StartupTaints []requirements.Taint // startup taints of the NodePool

	Pods     []string          // "namespace/name", sorted
	Requests resources.Amounts // requests of its pods and its DaemonSet pods

	// Relaxed are the NodePool's minValues that the node cannot keep because of some of its pods, sorted by key. The
	// minValues in Requirements are lowered to the number of values that the node keeps.
	Relaxed []Relaxation

	// Offerings are the offerings that the node may be launched as, cheapest first; never empty. Each offering has room
	// for all the pods.
	Offerings []Choice
}

// Price returns the price of the cheapest offering, per hour.
func (pn PlannedNode) Price() catalog.Price { return pn.Offerings[0].Price }

// Choice is one offering of an instance type.
type Choice struct {
	InstanceType string        // for example "m7g.large"
	Zone         string        // name of the availability zone
	CapacityType string        // spot, on-demand or reserved
	Price        catalog.Price // price per hour
	Reservation  string        // ID of the capacity reservation of the offering, or empty
}

// Placement assigns a pod to a node that exists or is being launched.
type Placement struct {
	Pod  string // "namespace/name"
	Node string // name of the cluster.Node
}

// Omission is a pod that was planned without some of its preferences. This happens to the pods with the most
// topology rules if the rules of all pods exceed the limit of one plan.
type Omission struct {
	Pod         string // "namespace/name"
	Preferences int    // number of ignored preferences about other pods
}

// Refusal is a pod that the plan does not place, with the reasons.
type Refusal struct {
	Pod     string   // "namespace/name"
	Reasons []Reason // first the reason that Hint refers to, then the others by frequency
	Hint    string   // the smallest change that would help, or empty
}

// The explanation of a refusal; see package refusal.
type (
	// Reason is one cause of a refusal, with its detail.
	Reason = refusal.Reason
	// Code is the kind of a cause.
	Code = refusal.Code
	// Relaxation is a label with fewer values than minValues require.
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

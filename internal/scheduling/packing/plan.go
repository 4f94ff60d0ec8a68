package packing

import (
	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/model/requirements"
	"github.com/joiner-sh/joiner/internal/model/resources"
)

// Plan assigns every pod of a snapshot to a new node, to an existing node, or to none with the
// reason. It is complete enough to print, store, compare and replay.
type Plan struct {
	Machines   []Machine   // in launch order: nodes with device-requesting pods last, then by price
	Placements []Placement // sorted by pod
	Refusals   []Refusal   // sorted by pod
	Omissions  []Omission  // sorted by pod; empty in nearly all plans

	Price      catalog.Price // of all new nodes per hour, each at its cheapest offering
	LowerBound catalog.Price // no plan for the pods on the new nodes costs less

	Pods    int    // pods considered
	Classes int    // number of groups of pods with equal requirements
	Steps   int    // work done, in the units of Effort
	Effort  Effort // the limit of Steps
}

// Machine is a node to launch, as the input of a NodeClaim.
type Machine struct {
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
func (m Machine) Price() catalog.Price { return m.Offerings[0].Price }

// Relaxation is a label with fewer values than the NodePool's minValues require.
type Relaxation struct {
	Key         string
	Asked, Have int
}

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

// Reason is a cause, and the number of choices that it rules out.
type Reason struct {
	Code   Code
	Count  int    // offerings ruled out, or 1 if the cause is not about offerings
	Detail string // the label key, taint or resource
}

// Code is the cause of a refusal. The set is closed; CLI, events and metrics use the same codes.
type Code string

// The causes.
const (
	NoPool           Code = "NoPool"           // there is no NodePool at all
	PoolUnusable     Code = "PoolUnusable"     // the NodePool is not ready, static or being deleted; Detail: which and why
	PoolEmpty        Code = "PoolEmpty"        // the NodePool's own requirements leave no offering; Detail: which and the key
	TaintUntolerated Code = "TaintUntolerated" // Detail: the taint
	LabelMissing     Code = "LabelMissing"     // no NodePool offers the label; Detail: the key and the required values
	LabelConflict    Code = "LabelConflict"    // NodePool and pod require different values of a label; Detail: the key
	TypeMismatch     Code = "TypeMismatch"     // no offering with the required architecture, family, zone, …; Detail: the key
	TooSmall         Code = "TooSmall"         // no offering has the room; Detail: the resource
	HostPortTaken    Code = "HostPortTaken"    // Detail: the port
	NoCapacity       Code = "NoCapacity"       // EC2 has no capacity at present
	ReservationFull  Code = "ReservationFull"  // every instance of the capacity reservation is in use; Detail: its ID
	LimitReached     Code = "LimitReached"     // Detail: the NodePool and the limit
	MinValues        Code = "MinValues"        // too few distinct values would remain; Detail: "KEY: 2 of 3"
	TopologySpread   Code = "TopologySpread"   // a domain would have too many pods of a spread; Detail: the topology key
	PodAffinity      Code = "PodAffinity"      // no pod that a required affinity selects is there; Detail: the topology key
	PodAntiAffinity  Code = "PodAntiAffinity"  // a pod that anti-affinity forbids is there; Detail: the topology key
	Unplannable      Code = "Unplannable"      // the pod requires what cannot be planned; Detail: what
	EffortSpent      Code = "EffortSpent"      // the work allowed for one plan is used up
)

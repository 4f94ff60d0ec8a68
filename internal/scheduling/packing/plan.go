package packing

import (
	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/model/requirements"
	"github.com/joiner-sh/joiner/internal/model/resources"
)

// Plan says where every pod of a snapshot goes: onto a machine to buy, onto a
// node that is there, or nowhere and why. It is complete enough to print,
// store, compare and replay.
type Plan struct {
	Machines   []Machine   // in the order in which to buy them: those whose pods ask for devices last, of equals the cheapest first
	Placements []Placement // sorted by pod
	Refusals   []Refusal   // sorted by pod
	Omissions  []Omission  // sorted by pod; of nearly all plans none

	Price      catalog.Price // of all machines, each at its cheapest offering
	LowerBound catalog.Price // no plan that buys for the pods on Machines could cost less

	Pods    int    // pods considered
	Classes int    // pods that ask for the same thing are one class
	Steps   int    // work done, in the units of Effort
	Effort  Effort // how much it might have been
}

// Machine is a node to buy.
type Machine struct {
	Name      string // "<pool>-1", unique in the plan; the NodeClaim gets a name of its own
	Pool      string
	NodeClass string

	// Requirements are what the NodeClaim asks for: the pool's, narrowed by the
	// pods. Instance types and ways of paying are those of Offerings. Sorted by key.
	Requirements  []requirements.Requirement
	Labels        requirements.Labels
	Taints        []requirements.Taint
	StartupTaints []requirements.Taint

	Pods     []string          // "namespace/name", sorted
	Requests resources.Amounts // of the pods and of the DaemonSets that will come

	// Relaxed are the minValues of the pool that the machine cannot keep, because
	// some of its pods cannot; sorted by key. Requirements have what it does keep.
	Relaxed []Relaxation

	// Offerings could each host all the pods. Cheapest first, never empty.
	Offerings []Choice
}

// Price returns the price of the cheapest offering.
func (m Machine) Price() catalog.Price { return m.Offerings[0].Price }

// Relaxation is a label of which a machine keeps fewer values than its pool's minValues ask for.
type Relaxation struct {
	Key         string
	Asked, Have int
}

// Choice is an offering of a type.
type Choice struct {
	InstanceType string
	Zone         string
	CapacityType string
	Price        catalog.Price
	Reservation  string // id of the capacity reservation that it takes an instance of, or empty
}

// Placement is a pod that fits on a node that is there or on its way.
type Placement struct {
	Pod  string // "namespace/name"
	Node string // name of the cluster.Node
}

// Omission is a pod that was planned without some of its preferences: the rules of the pods together are more than a plan
// holds, and this pod is one of those with the most.
type Omission struct {
	Pod         string // "namespace/name"
	Preferences int    // how many of its preferences about other pods were left out
}

// Refusal is a pod that gets no place, and why.
type Refusal struct {
	Pod     string   // "namespace/name"
	Reasons []Reason // the one that Hint is about, then the most frequent first
	Hint    string   // the smallest change that would help, or empty
}

// Reason says how many choices were out of question for one cause.
type Reason struct {
	Code   Code
	Count  int    // choices it ruled out: offerings, or 1 where the cause is not about offerings
	Detail string // the key, taint or resource in question
}

// Code is the cause of a refusal: a closed set that the command line, events
// and metrics share.
type Code string

// The causes.
const (
	NoPool           Code = "NoPool"           // there is no NodePool at all
	PoolUnusable     Code = "PoolUnusable"     // the NodePool is not ready, static or being deleted; Detail: which and why
	PoolEmpty        Code = "PoolEmpty"        // the NodePool's own requirements leave nothing to buy; Detail: which and the key
	TaintUntolerated Code = "TaintUntolerated" // Detail: the taint
	LabelMissing     Code = "LabelMissing"     // no pool offers the label; Detail: the key and what is asked of it
	LabelConflict    Code = "LabelConflict"    // pool and pod disagree on a label; Detail: the key
	TypeMismatch     Code = "TypeMismatch"     // wrong architecture, family, zone, …; Detail: the key
	TooSmall         Code = "TooSmall"         // Detail: the resource
	HostPortTaken    Code = "HostPortTaken"    // Detail: the port
	NoCapacity       Code = "NoCapacity"       // EC2 is short of it now
	ReservationFull  Code = "ReservationFull"  // every instance of the capacity reservation is taken; Detail: its id
	LimitReached     Code = "LimitReached"     // Detail: the pool and the limit
	MinValues        Code = "MinValues"        // too few distinct values would remain; Detail: "KEY: 2 of 3"
	TopologySpread   Code = "TopologySpread"   // a domain would have too many pods of a spread; Detail: the key
	PodAffinity      Code = "PodAffinity"      // no pod that it must be near is there; Detail: the key
	PodAntiAffinity  Code = "PodAntiAffinity"  // a pod that it must not be near is there; Detail: the key
	Unplannable      Code = "Unplannable"      // the pod asks for what cannot be planned; Detail: what
	EffortSpent      Code = "EffortSpent"      // the work allowed for one plan is used up
)

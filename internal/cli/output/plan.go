package output

import (
	"github.com/joiner-sh/joiner/internal/scheduling/packing"
)

// Plan is a packing.Plan as JSON. Its fields are a stable interface: fields may be added, and no field changes its
// meaning. The lists are never null.
type Plan struct {
	Machines   []NodeClaim `json:"machines"`   // planned nodes, in launch order
	Placements []Placement `json:"placements"` // pods that existing nodes have room for
	Refusals   []Refusal   `json:"refusals"`   // unschedulable pods
	// Omissions are the pods that were planned without some of their preferences about other pods, because the affinity
	// and spread rules of all pods exceed the limit of a plan.
	Omissions []Omission `json:"omissions,omitempty"`

	PricePerHour      float64 `json:"pricePerHour"`      // US dollars; price of all planned nodes
	LowerBoundPerHour float64 `json:"lowerBoundPerHour"` // US dollars; no plan can cost less
	SolveSeconds      float64 `json:"solveSeconds"`      // duration of the planning
	Pods              int     `json:"pods"`              // number of pods, including unschedulable pods
	PodClasses        int     `json:"podClasses"`        // number of classes: groups of equal pods

	Context
}

// NodeClaim is a planned node.
type NodeClaim struct {
	Name         string            `json:"name"`         // in this plan only: "general-1"
	NodePool     string            `json:"nodePool"`     // its NodePool
	PricePerHour float64           `json:"pricePerHour"` // US dollars; price of the cheapest offering
	Pods         []string          `json:"pods"`         // "namespace/name"
	Requests     map[string]string `json:"requests"`     // requests of the pods and the DaemonSet pods
	Labels       map[string]string `json:"labels"`       // labels of the node, without the labels of the instance type
	Offerings    []Offering        `json:"offerings"`    // cheapest first
	// MinValuesRelaxed are the minValues of the NodePool that the planned node does not meet.
	MinValuesRelaxed []Relaxation `json:"minValuesRelaxed,omitempty"`
}

// Relaxation is a label with fewer values among the offerings of a planned node than minValues requires.
type Relaxation struct {
	Key       string `json:"key"`       // label
	MinValues int    `json:"minValues"` // required number of values
	Values    int    `json:"values"`    // number of values among the offerings
}

// Offering is an offering that a planned node may be launched with.
type Offering struct {
	InstanceType string  `json:"instanceType"` // "m5.large"
	Zone         string  `json:"zone"`         // "us-east-1a"
	CapacityType string  `json:"capacityType"` // on-demand, spot or reserved
	PricePerHour float64 `json:"pricePerHour"` // US dollars
	// CapacityReservationID is the capacity reservation of a reserved offering.
	CapacityReservationID string `json:"capacityReservationId,omitempty"`
}

// Placement assigns a pod to an existing node.
type Placement struct {
	Pod  string `json:"pod"`  // "namespace/name"
	Node string `json:"node"` // name of the existing node
}

// Refusal is an unschedulable pod.
type Refusal struct {
	Pod     string   `json:"pod"`     // "namespace/name"
	Reasons []Reason `json:"reasons"` // most frequent first
	Hint    string   `json:"hint"`    // the change that would help; empty: no such change is known
}

// Omission is a pod that was planned without some of its preferences about other pods.
type Omission struct {
	Pod         string `json:"pod"`         // "namespace/name"
	Preferences int    `json:"preferences"` // number of preferences that were left out
}

// Reason is one cause of a refusal.
type Reason struct {
	Code   string `json:"code"`   // "TooSmall"
	Count  int    `json:"count"`  // number of offerings with this reason
	Detail string `json:"detail"` // resource, label or other object of the reason
}

// PlanOf returns the plan as written to JSON. seconds is how long the planning took.
func PlanOf(p packing.Plan, seconds float64, context Context) Plan {
	out := Plan{
		Machines: []NodeClaim{}, Placements: []Placement{}, Refusals: []Refusal{},
		PricePerHour: p.Price.Dollars(), LowerBoundPerHour: p.LowerBound.Dollars(), SolveSeconds: seconds,
		Pods: p.Pods, PodClasses: p.Classes, Context: context,
	}
	for _, planned := range p.PlannedNodes {
		claim := NodeClaim{
			Name: planned.Name, NodePool: planned.Pool, PricePerHour: planned.Price().Dollars(), Pods: planned.Pods,
			Requests: planned.Requests.Map(), Labels: planned.Labels,
		}
		for _, o := range planned.Offerings {
			claim.Offerings = append(claim.Offerings, Offering{
				InstanceType: o.InstanceType, Zone: o.Zone, CapacityType: o.CapacityType, PricePerHour: o.Price.Dollars(),
				CapacityReservationID: o.Reservation,
			})
		}
		for _, r := range planned.Relaxed {
			claim.MinValuesRelaxed = append(claim.MinValuesRelaxed, Relaxation{Key: r.Key, MinValues: r.Asked, Values: r.Have})
		}
		out.Machines = append(out.Machines, claim)
	}
	for _, placed := range p.Placements {
		out.Placements = append(out.Placements, Placement{Pod: placed.Pod, Node: placed.Node})
	}
	for _, r := range p.Refusals {
		refusal := Refusal{Pod: r.Pod, Reasons: []Reason{}, Hint: r.Hint}
		for _, reason := range r.Reasons {
			refusal.Reasons = append(refusal.Reasons, Reason{Code: string(reason.Code), Count: reason.Count, Detail: reason.Detail})
		}
		out.Refusals = append(out.Refusals, refusal)
	}
	for _, o := range p.Omissions {
		out.Omissions = append(out.Omissions, Omission{Pod: o.Pod, Preferences: o.Preferences})
	}
	return out
}

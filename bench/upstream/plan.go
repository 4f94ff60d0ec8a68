package upstream

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"sigs.k8s.io/karpenter/pkg/controllers/provisioning/scheduling"
	karpscheduling "sigs.k8s.io/karpenter/pkg/scheduling"

	"github.com/joiner-sh/joiner/internal/kube/conversion"
	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/model/requirements"
	"github.com/joiner-sh/joiner/internal/scheduling/packing"
)

// maxOfferings is the maximum number of offerings of a planned node. Joiner's maximum is the same.
const maxOfferings = 60

// ErrStopped reports that upstream was stopped before it had a plan for all pods.
var ErrStopped = errors.New("upstream was stopped at the time limit")

// Results is upstream's result, with the data that Plan needs to convert it.
type Results struct {
	scheduling.Results
	cluster *Cluster
	pods    int // number of pending pods
}

// Solve makes the plan. It returns ErrStopped when the time limit is reached. A Run can be used for one Solve only.
func (r *Run) Solve(limit time.Duration) (Results, error) {
	ctx, cancel := context.WithTimeout(r.ctx, limit)
	defer cancel()
	results, err := r.scheduler.Solve(ctx, r.pods)
	out := Results{Results: results, cluster: r.cluster, pods: len(r.cluster.pending)}
	if errors.Is(err, context.DeadlineExceeded) {
		return out, ErrStopped
	}
	return out, err
}

// Plan returns the results as a packing.Plan, in which each new node has at most maxOfferings offerings, the cheapest
// ones.
func (r Results) Plan() (packing.Plan, error) {
	plan := packing.Plan{Pods: r.pods}
	truncated := r.TruncateInstanceTypes(planningContext(), scheduling.MaxInstanceTypes)
	for i, claim := range truncated.NewNodeClaims {
		m, err := plannedNode(claim, i+1)
		if err != nil {
			return plan, err
		}
		plan.PlannedNodes = append(plan.PlannedNodes, m)
		plan.Price += m.Price()
	}
	slices.SortStableFunc(plan.PlannedNodes, func(a, b packing.PlannedNode) int { return cmp.Compare(a.Price(), b.Price()) })
	for _, n := range r.ExistingNodes {
		for _, p := range n.Pods {
			plan.Placements = append(plan.Placements, packing.Placement{Pod: p.Namespace + "/" + p.Name, Node: n.Name()})
		}
	}
	slices.SortFunc(plan.Placements, func(a, b packing.Placement) int { return cmp.Compare(a.Pod, b.Pod) })
	for p, err := range r.PodErrors {
		plan.Refusals = append(plan.Refusals, packing.Refusal{
			Pod: p.Namespace + "/" + p.Name, Reasons: []packing.Reason{{Code: "Upstream", Count: 1, Detail: err.Error()}},
		})
	}
	slices.SortFunc(plan.Refusals, func(a, b packing.Refusal) int { return cmp.Compare(a.Pod, b.Pod) })
	return plan, nil
}

// plannedNode converts the n-th NodeClaim of the plan.
func plannedNode(claim *scheduling.NodeClaim, n int) (packing.PlannedNode, error) {
	class := claim.Spec.NodeClassRef.Name
	m := packing.PlannedNode{
		Name: fmt.Sprintf("%s-%d", claim.NodePoolName, n), Pool: claim.NodePoolName, NodeClass: class,
		Requests: conversion.Amounts(claim.Spec.Resources.Requests), Labels: claim.Labels,
	}
	for _, t := range claim.Spec.Taints {
		m.Taints = append(m.Taints, requirements.Taint{Key: t.Key, Value: t.Value, Effect: requirements.Effect(t.Effect)})
	}
	for _, p := range claim.Pods {
		m.Pods = append(m.Pods, p.Namespace+"/"+p.Name)
	}
	slices.Sort(m.Pods)
	m.Offerings = offerings(claim)
	if len(m.Offerings) == 0 {
		return m, fmt.Errorf("read upstream's plan: NodeClaim %s has no offering", m.Name)
	}
	return m, nil
}

// offerings returns the offerings that meet the claim's requirements, at most maxOfferings, cheapest first.
func offerings(claim *scheduling.NodeClaim) []packing.Choice {
	var out []packing.Choice
	for _, t := range claim.InstanceTypeOptions {
		for _, o := range t.Offerings.Available() {
			if !claim.Requirements.IsCompatible(o.Requirements, karpscheduling.AllowUndefinedWellKnownLabels) {
				continue
			}
			out = append(out, packing.Choice{
				InstanceType: t.Name, Zone: o.Zone(), CapacityType: o.CapacityType(),
				Price: priceOf(o.Price),
			})
		}
	}
	slices.SortFunc(out, func(a, b packing.Choice) int {
		return cmp.Or(cmp.Compare(a.Price, b.Price), cmp.Compare(a.InstanceType, b.InstanceType),
			cmp.Compare(a.Zone, b.Zone), cmp.Compare(a.CapacityType, b.CapacityType))
	})
	return out[:min(len(out), maxOfferings)]
}

func priceOf(dollars float64) catalog.Price {
	return catalog.Price(math.Round(dollars * float64(catalog.Dollar)))
}

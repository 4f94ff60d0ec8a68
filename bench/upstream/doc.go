// Package upstream runs the scheduler and the disruption controller of sigs.k8s.io/karpenter, called upstream here.
//
// In: the Kubernetes objects, instance types and prices that Joiner's solver gets.
// Out: upstream's plan, as a packing.Plan, so that one checker checks the plans of both schedulers.
// Never: a change to the input, or an advantage for either side. The time of a plan never includes the
// preparation that either side's controller does before it plans.
package upstream

// Package upstream runs the scheduler and the disruption controller of sigs.k8s.io/karpenter.
//
// In: the Kubernetes objects, instance types and prices that Joiner's solver gets.
// Out: upstream's plan, as a packing.Plan, so that one checker checks both.
// Never: a change to the input, or an advantage for either side. For neither side, the time of a plan includes the
// preparation that the controller does before it plans.
package upstream

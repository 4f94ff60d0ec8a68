// Package upstream drives the scheduler of sigs.k8s.io/karpenter as that project's own benchmark does.
//
// In: the Kubernetes objects and the market that our solver gets.
// Out: upstream's plan, as a packing.Plan, so that one checker judges both.
// Never: a change to what it is given, or help for either side: what a controller has done before it plans is done before.
package upstream

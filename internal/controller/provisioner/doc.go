// Package provisioner plans pending pods, creates the NodeClaims that they need, and emits events for pods that cannot
// be placed. It revalidates a plan before it creates NodeClaims.
//
// In: pending pods, offerings and prices.
// Out: NodeClaims, events on pods.
// Never: calls to AWS.
package provisioner

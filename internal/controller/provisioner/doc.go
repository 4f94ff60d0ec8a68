// Package provisioner plans pending pods, creates the NodeClaims that they need, and writes the events of pods that get none. It
// revalidates a plan before it creates NodeClaims.
//
// In: pending pods, the catalog.
// Out: NodeClaims, events on pods.
// Never: a call to AWS.
package provisioner

// Package provisioner plans pending pods and creates the NodeClaims that they need. A plan that is based on an outdated state
// is revalidated before NodeClaims are created.
//
// In: pending pods, the catalog.
// Out: NodeClaims, events on pods.
// Never: a call to AWS.
package provisioner

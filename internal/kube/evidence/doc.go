// Package evidence reads from the Kubernetes API what a diagnosis and a migration need.
//
// In: a client of the API server.
// Out: pods, controllers, Leases, events and permissions as values of the diagnosis; an installation of Karpenter or Joiner.
// Never: a write to the API server.
package evidence

// Package evidence reads from the Kubernetes API the input of a diagnosis and of a migration.
//
// In: a client of the API server.
// Out: pods, controllers, Leases, events and permissions as values of the diagnosis; an installation of Karpenter or
// Joiner.
// Never: a write to the API server.
package evidence

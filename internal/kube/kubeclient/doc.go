// Package kubeclient reads and writes single objects of the Kubernetes API: patches, deletions, events, CRDs, the pause
// and the controller's own records.
//
// In: a client of the API server; the change, event or record to write.
// Out: the object as the API server has it; errors classified by the caller's next step.
// Never: a decision, or a change to an object that another component owns.
package kubeclient

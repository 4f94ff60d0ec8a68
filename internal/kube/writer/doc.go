// Package writer creates, changes and deletes NodeClaims, and evicts pods.
//
// In: planned NodeClaims, changes to one object, and pods to evict.
// Out: the objects as the API server has them; errors classified by the caller's next step.
// Never: a decision, or a change to an object that another component owns.
package writer

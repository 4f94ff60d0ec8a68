// Package writer creates, changes and deletes NodeClaims, and evicts pods.
//
// In: planned NodeClaims, changes to one object, and pods to evict.
// Out: the objects as the API server has them; errors classified by what the caller does next.
// Never: a decision, or a change to an object that another component owns.
package writer

// Package conversion converts single objects of Kubernetes into values for decisions, and planned NodeClaims into
// objects.
//
// In: one object, and the objects that it refers to.
// Out: values of the model, or a sentence that says why a value cannot be made.
// Never: a call to the API server, state, or a change to an object in a cache; only Trim changes its argument.
package conversion

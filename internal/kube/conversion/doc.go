// Package conversion converts single objects of Kubernetes into values for decisions, and planned NodeClaims into
// objects.
//
// In: one object, and the objects that it refers to.
// Out: values for the solver and for other decisions, or a sentence that says why a value cannot be made.
// Never: a call to the API server, or a change to an object in a cache; Trim changes objects before they enter the
// cache.
package conversion

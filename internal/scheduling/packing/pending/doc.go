// Package pending has the input of one call of packing.Solve and the progress of its pending pods, grouped into classes.
//
// In: grouped pods, offerings with the accept sets of the pods, and existing nodes.
// Out: classes with their stages, their numbers of unplaced units, and the demands for the lower bound.
// Never: a planned node, a price, or the choice of a node.
package pending

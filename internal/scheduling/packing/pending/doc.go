// Package pending has the input of one call of packing.Solve and the progress of its pending pods, grouped into classes.
//
// In: grouped pods, offerings with the accept sets, and existing nodes.
// Out: classes with their stages, the number of unplaced units, and the demand that the lower bound counts.
// Never: a planned node, a price, or the choice of a node.
package pending

// Package driftcheck compares nodes with their NodePool and EC2NodeClass, and marks the nodes that have drifted. New
// images are rolled out in waves. If nodes with a new image fail, the class returns to the previous image.
//
// In: NodeClaims, NodePools, EC2NodeClasses, images.
// Out: the condition Drifted, the state of a rollout.
// Never: removing a node.
package driftcheck

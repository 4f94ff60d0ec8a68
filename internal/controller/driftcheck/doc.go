// Package driftcheck compares nodes with their NodePool and EC2NodeClass, and marks those that drifted. New images are rolled
// out in waves; images whose nodes fail are set back.
//
// In: NodeClaims, NodePools, EC2NodeClasses, images.
// Out: the condition Drifted, the state of a rollout.
// Never: the removal of a node.
package driftcheck

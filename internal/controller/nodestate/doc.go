// Package nodestate derives facts about a node that several loops need: whether this controller serves it, whether it
// is ready, which disruption policy applies to it, which move it is part of, and which pods its removal displaces.
//
// It also holds state that several loops share: the lock for nodes that are being disrupted, and the planned evictions.
//
// In: NodeClaims, Nodes, pods, NodePools.
// Out: facts, annotations that mark moves.
// Never: calls to AWS.
package nodestate

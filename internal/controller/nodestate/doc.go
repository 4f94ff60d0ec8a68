// Package nodestate answers what the loops ask about a node: whether this controller serves it, whether it is ready, which
// disruption policy applies, which move it is part of, and which pods its removal displaces.
//
// It also has the state that several loops change: the lock of nodes that are being disrupted, and the planned evictions.
//
// In: NodeClaims, Nodes, pods, NodePools.
// Out: answers, marks as annotations.
// Never: a call to AWS.
package nodestate

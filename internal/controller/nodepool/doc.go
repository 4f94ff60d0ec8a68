// Package nodepool reconciles a NodePool: its conditions, its resource totals, and the replicas of a static pool.
//
// In: a NodePool, its NodeClaims.
// Out: its status, NodeClaims of static pools.
// Never: calls to AWS.
package nodepool

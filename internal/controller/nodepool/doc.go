// Package nodepool reconciles a NodePool: its conditions and totals, and the replicas of a static pool.
//
// In: a NodePool, its NodeClaims.
// Out: its status, NodeClaims of static pools.
// Never: a call to AWS.
package nodepool

// Package interruptions handles the messages of the interruption queue: spot interruptions, rebalance recommendations,
// scheduled events, state changes, and ends of capacity reservations.
//
// In: messages of the queue.
// Out: taints, deletions of NodeClaims, unavailable offerings.
// Never: an action because of an instance of another cluster.
package interruptions

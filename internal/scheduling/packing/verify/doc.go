// Package verify holds a plan against the rules of Kubernetes and of the
// NodePools, as their documentation states them, and says what it breaks.
//
// In: a snapshot of the cluster, the market, and a plan made for them.
// Out: one sentence for each broken rule.
// Never: the solver's code, or an opinion on whether a plan is cheap.
//
// # What is checked
//
// Of planned nodes: the pool may be used; every offering exists, can be had, costs
// what the plan says and would give a node that the pool's requirements and all
// the pods accept, with room and host ports for them and for the DaemonSets' pods
// that come along; minValues; 60 types at most; the pool's limits; the instances that capacity
// reservations have left. Of nodes that are
// there: they take pods, and the pods accept them and fit. Of pods: each has one
// place or one refusal; pods that share a volume claim without a volume can reach
// it together; a refusal has an obstacle that is real, where one attempt shows it.
//
// # Rules between pods
//
// kube-scheduler binds one pod at a time. So there must be an order in which the
// planned pods can be bound, each to its planned place, with every spread
// constraint and affinity satisfied at each step (order). All nodes and planned nodes are
// there from the start: an empty planned node is a domain without pods. Anti-affinity
// is symmetric, so no order helps, and it is judged by who stands where at the end
// (apart).
//
// A planned node that keeps several offerings may come up in any domain of theirs. The
// rules must hold whichever offerings are launched, for all planned nodes at once: what helps
// (pods nearby, other domains being full) counts only if it is certain, what harms
// already if it is possible (reach, evenness.excess). One order must serve all of these worlds.
//
// A node that leaves is a domain until it has gone. That time is unknown, so an
// order may be for either time, but pods that stay on the node always count.
//
// # Where the order is not found
//
// Binding whatever passes is right for one spread constraint by itself, with pods
// held back that no rule keeps from going later. It can fail where a pod that is counted
// by one rule and kept by another goes too early, and where several pods could
// be the first of a series that asks for its own company. So if it fails, and the pods
// that rules tie together have at most maxStates ways of being partly bound, all orders
// are tried (search): up to there the verdict is exact. Beyond it a plan could be
// called wrong that is right, never the other way round.
package verify

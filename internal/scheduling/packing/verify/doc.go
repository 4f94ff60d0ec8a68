// Package verify checks a plan against the documented rules of Kubernetes and of the
// NodePools, and returns the violated rules.
//
// In: a snapshot of the cluster, the market, and a plan made for them.
// Out: one sentence for each violated rule.
// Never: a call of the solver's code, or a judgment whether a plan is cheap.
//
// # What is checked
//
// Planned nodes:
//
//   - The pool may be used, and its limits hold.
//   - Every offering exists, is available, and has the price in the plan.
//   - Every offering satisfies the pool's requirements and those of all pods, with room and host ports for the pods
//     and for the DaemonSet pods.
//   - minValues are met, with at most 60 instance types.
//   - Capacity reservations have enough unused instances.
//
// Existing nodes: they accept new pods, and their pods accept them and fit.
//
// Pods: each has one place or one refusal. Pods that share an unbound volume claim are in one zone. A refused pod
// really has no place, as far as trying each node and offering alone can show.
//
// # Rules between pods
//
// kube-scheduler binds one pod at a time. So there must be an order in which the
// planned pods can be bound, each to its planned place, with every spread
// constraint and affinity satisfied at each step (type order). All existing and planned nodes exist
// from the start: an empty planned node is a domain without pods. Anti-affinity
// is symmetric, so the order does not matter, and only the final locations of the pods are checked
// (type antiAffinityRule).
//
// A planned node with several offerings may be launched in any of their domains. The
// rules must hold whichever offerings are launched, for all planned nodes together. Facts that satisfy a rule
// (pods in the same domain, other domains being full) count only if they are certain. Facts that violate a rule
// count if they are possible (type reach, spreadState.excess). One order must work in all of these cases.
//
// A leaving node is a domain until it is gone. That time is unknown, so an
// order may be for the time before or after, but pods that stay on the node always count.
//
// # Limits of the check
//
// The order is found greedily: any pod that the rules allow is bound. Pods without spread and affinity rules wait
// until other pods need them. This search is exact for a single spread constraint. It can fail if a pod that one rule
// counts and another rule limits is bound too early. It can also fail if several pods could be the first pod of a
// group with affinity to itself. So if it fails, and the pods that rules connect have at most maxStates states, all
// orders are tried (order.search), and the result is exact. A state is a number of bound pods of each group. With
// more states, a valid plan may be reported as invalid, but an invalid plan is never reported as valid.
package verify

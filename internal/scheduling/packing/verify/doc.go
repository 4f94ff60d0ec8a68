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
//   - The pool is usable (cluster.Pool.Unusable is empty), and its limits hold.
//   - Every offering exists, is available, and has the price in the plan.
//   - Every offering satisfies the pool's requirements and those of all pods, with room and host ports for the pods
//     and for the DaemonSet pods.
//   - minValues are met, with at most 60 instance types.
//   - Capacity reservations have enough unused instances.
//
// Existing nodes: a node with planned pods accepts new pods. Each planned pod accepts the node, and fits on it.
//
// Pods: each has one place or one refusal. Pods that share an unbound volume claim are in one zone. For a
// refused pod, each node and each offering is tried alone, and none has a place for it. Combinations are not tried.
//
// # Rules between pods
//
// kube-scheduler binds one pod at a time. So there must be an order in which the
// planned pods can be bound, each to its planned place, with every spread
// constraint and affinity satisfied at each step (type order). The check assumes that the
// planned nodes exist before the first pod is bound: an empty planned node is a domain without pods. Anti-affinity
// is symmetric, so the order does not matter, and only the final locations of the pods are checked
// (type antiAffinityRule).
//
// A planned node with several offerings may be launched in any of their domains. The
// rules must hold whichever offerings are launched, for all planned nodes together. A fact that helps to satisfy
// a rule counts only if it is certain: for an affinity, a pod in the same domain; for a spread, the pods in the other
// domains. A fact that violates a rule counts if it is possible (type reach, spreadState.excess). One order must work
// in all of these cases.
//
// A leaving node is a domain until it is gone. It is unknown when the node goes. So
// an order is accepted if it is valid with the node as a domain, or without it. Pods that stay on the node always
// count.
//
// # Limits of the check
//
// The order is found greedily: any pod that the rules allow is bound. Pods without spread and affinity rules are held
// back until no other pod can be bound without them. This search is exact for a single spread constraint. It can fail
// if it binds a pod too early that one rule counts and another rule limits. It can also fail if several pods could be
// the first pod that an affinity counts. A state says how many pods of each group are bound. If the
// search fails, and the pods that rules connect have at most maxStates states, all orders are tried (order.search), and
// the result is exact. With more states, a valid plan may be reported as invalid, but an invalid plan is never reported
// as valid.
package verify

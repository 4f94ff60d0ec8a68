// Package topology says how pods spread over zones and hosts: spread
// constraints, pod affinity and pod anti-affinity, as kube-scheduler judges them.
//
// In: pods with their rules, what stands on the nodes, and where more can go.
// Out: how many pods of a kind go to each zone, and how many a machine may take.
// Never: an amount of a resource, a price of its own, or a choice of machine.
//
// # Groups, profiles, census
//
// A rule speaks of the pods that a selector matches and of the domains of a
// node label. Each distinct pair is a Group, once for all pods that have the rule. What a
// pod asks, and which groups count it, is its Profile; most pods of a workload
// share one, so the work grows with workloads, not with pods.
//
// Groups over kubernetes.io/hostname are judged machine by machine: a Tally
// holds the counts of one. All others are judged by domain, in a Census, before
// machines are chosen: Assign says how many pods go where, and the rest of the
// plan treats the pods of each domain as pods that ask for it.
package topology

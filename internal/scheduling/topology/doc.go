// Package topology evaluates topology spread constraints, pod affinity and pod
// anti-affinity as kube-scheduler does, and assigns pods to domains.
//
// In: pods with their rules, the pods on nodes, and the places where more pods can go.
// Out: how many pods go to each domain, and how many more pods a node may take.
// Never: an amount of a resource, the computation of a price, or a choice of an instance.
//
// # Groups, profiles, counts
//
// A rule refers to the pods that a selector matches and to the domains of a node label. A Group is one distinct
// combination of selected pods and node label; all pods with a rule about this combination share the Group. The Profile
// of a pod has its rules and the groups that count the pod. Most pods of a workload share a profile, so the time
// depends on the number of workloads, not of pods.
//
// Groups over kubernetes.io/hostname are evaluated node by node: a HostCounts has the counts of one node. A
// DomainCounts evaluates all other groups by domain, before offerings are chosen: Assign decides how many pods go to
// each domain. The rest of the plan treats those pods as if they required the domain.
package topology

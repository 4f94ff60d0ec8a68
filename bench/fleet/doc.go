// Package fleet simulates a cluster in simulated time, for benchmarks of consolidation.
//
// In: nodes with their pods, prices, and actions: nodes launched, cordoned, drained; pods created and deleted.
// Out: the cluster as Kubernetes objects, a call for each change, and its cost until now.
// Never: a decision, or a clock of the real world. The same actions at the same times give the same cluster.
//
// EC2 has the instance of a launched node after two seconds, and the node is ready after 45. Pods of a removed node are evicted at once.
// Their replacements go where kube-scheduler would put them by default (to the node with the most room). The node is paid for until their
// 30 seconds of grace period are over.
package fleet

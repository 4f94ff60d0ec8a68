// Package fleet simulates a cluster in simulated time, for benchmarks of consolidation.
//
// In: nodes with their pods, prices, and actions: nodes launched, cordoned, drained; pods created and deleted.
// Out: the cluster as Kubernetes objects, a call of the Watcher for each change, and the cost of the cluster so far.
// Never: its own decisions, or the real time. The same actions at the same times give the same cluster.
//
// The instance of a launched node exists after two seconds, and the node is ready after 45 seconds. The pods of a
// removed node are evicted at once (Remove), or one per second (RemoveGradually). A pod that replaces an evicted pod is
// bound to the node that kube-scheduler would choose by default (the one with the most room). A removed node is paid
// for until the grace period of its pods, 30 seconds, has passed since the last eviction.
package fleet

// Package fleet is a cluster in made-up time, for whoever gives nodes back.
//
// In: nodes with their pods, prices, and what is done: nodes launched, closed to new pods, emptied; pods that come and go.
// Out: the cluster as Kubernetes objects, word of each change, and what it has cost until now.
// Never: a decision, or a clock of the real world. The same deeds at the same times give the same cluster.
//
// A node that is launched is known to EC2 after two seconds and fit for pods after 45. Pods of a node that goes are evicted at once,
// their successors go where kube-scheduler would put them by default (to the node with the most room), and the node is paid for
// until they have had their 30 seconds.
package fleet

package permissions

import "slices"

// RuleScope is the scope of a rule, one of the constants below.
type RuleScope string

// Scopes of rules.
const (
	Cluster RuleScope = "cluster" // in all namespaces, and for cluster-scoped resources
	Own     RuleScope = "own"     // in the controller's own namespace
	System  RuleScope = "system"  // in kube-system
)

// Rule allows some verbs on some resources of one group.
type Rule struct {
	Where     RuleScope // scope; empty means Cluster
	Group     string    // API group; "" is the core group
	Resources []string  // "nodes", "pods/eviction"
	Names     []string  // resource names; nil: all
	Verbs     []string  // "get", "list", "watch", …
	// When is the path of the chart's value that must be set for the controller to need the rule, for instance
	// settings.featureGates.nodeOverlay. Empty: the rule is always needed.
	When string
	Why  string // the reason, in one line
	// Without says in one line what the controller does not do without the rule. Empty: the controller cannot run
	// without it.
	Without string
}

// Values of the chart that rules depend on.
const (
	WhenOverlays  = "settings.featureGates.nodeOverlay"
	WhenScheduler = "settings.schedulerConfig"
	WhenCRDs      = "crds.apply"
)

// Groups of the API.
const (
	karpenter = "karpenter.sh"
	aws       = "karpenter.k8s.aws"
)

// Names of the objects in the controller's own namespace. They equal config's default for --leader-election-name,
// kubeclient.MeasuredName, kubeclient.PauseName and kubeclient.MovesName.
const (
	LeaseName    = "karpenter-leader-election"
	MeasuredName = "joiner-measured-capacity"
	PauseName    = "joiner"
	TripsName    = "joiner-moves"
)

// Rules returns all rules, grouped by scope. The caller may change the result.
func Rules() []Rule {
	return slices.Concat(readRules(), changeRules(), crdRules(), namespaceRules())
}

// readRules returns the rules for reading. list is needed for API servers that cannot stream the initial state of a
// watch.
func readRules() []Rule {
	watch := []string{"list", "watch"}
	return []Rule{
		{Group: karpenter, Resources: []string{"nodepools"}, Verbs: watch, Why: "NodePools define what may be launched"},
		{
			Group:     karpenter,
			Resources: []string{"nodeclaims"},
			Verbs:     []string{"get", "list", "watch"},
			Why:       "the state of nodes in progress; get bypasses a cache that may be stale",
		},
		{
			Group:     karpenter,
			Resources: []string{"nodeoverlays"},
			Verbs:     watch,
			Why:       "prices and sizes that users set; an overlay without effect is reported",
			Without:   "a NodeOverlay without effect is not reported",
		},
		{Group: aws, Resources: []string{"ec2nodeclasses"}, Verbs: watch, Why: "the settings of instances"},
		{Resources: []string{"pods", "nodes"}, Verbs: watch, Why: "pending pods, and the free resources of nodes"},
		{Resources: []string{"persistentvolumeclaims", "persistentvolumes"}, Verbs: watch, Why: "the zones to which volumes bind pods"},
		{
			Group:     "storage.k8s.io",
			Resources: []string{"storageclasses", "csinodes", "volumeattachments"},
			Verbs:     watch,
			Why:       "the zones of volumes, how many volumes a node can attach, and which volumes are still attached to a terminating node",
		},
		{Resources: []string{"namespaces"}, Verbs: watch, Why: "pod affinity selects namespaces by label"},
		{Resources: []string{"namespaces"}, Names: []string{"kube-system"}, Verbs: []string{"get"}, Why: "its UID identifies this cluster"},
		{Group: "apps", Resources: []string{"daemonsets"}, Verbs: watch, Why: "the DaemonSet pods of every new node"},
		{Group: "policy", Resources: []string{"poddisruptionbudgets"}, Verbs: watch, Why: "which pods may be evicted"},
		{
			Resources: []string{"services", "replicationcontrollers"},
			Verbs:     watch,
			When:      WhenScheduler,
			Why:       "kube-scheduler derives the selectors of its default topology spread constraints from them",
		},
		{Group: "apps", Resources: []string{"replicasets", "statefulsets"}, Verbs: watch, When: WhenScheduler, Why: "the selectors of the default topology spread constraints, as for Services"},
	}
}

func changeRules() []Rule {
	return []Rule{
		{Group: karpenter, Resources: []string{"nodeclaims"}, Verbs: []string{"create", "patch", "delete"}, Why: "a NodeClaim for each instance"},
		{Group: karpenter, Resources: []string{"nodepools"}, Verbs: []string{"patch"}, Why: "the hash that shows drift, and failed rollouts"},
		{
			Group:     karpenter,
			Resources: []string{"nodeclaims/status", "nodepools/status"},
			Verbs:     []string{"patch"},
			Why:       "the progress, and problems",
		},
		{
			Group:     karpenter,
			Resources: []string{"nodeoverlays/status"},
			Verbs:     []string{"patch"},
			When:      WhenOverlays,
			Why:       "whether the overlay has an effect",
			Without:   "the status of NodeOverlays does not show whether they have an effect",
		},
		{
			Group:     aws,
			Resources: []string{"ec2nodeclasses"},
			Verbs:     []string{"patch"},
			Why:       "its finalizer, the hash that shows drift, and which of its images are good",
		},
		{Group: aws, Resources: []string{"ec2nodeclasses/status"}, Verbs: []string{"patch"}, Why: "the selected AWS resources, and problems"},
		{
			Resources: []string{"nodes"},
			Verbs:     []string{"patch", "delete"},
			Why:       "labels and taints of its own nodes, and the deletion of terminated nodes",
		},
		{
			Resources: []string{"pods/status"},
			Verbs:     []string{"patch"},
			Why:       "the nomination of pods to the nodes that were launched for them",
			Without:   "the room of pods that Joiner cannot bind may go to other pods, and more nodes are launched",
		},
		{
			Resources: []string{"pods/binding"},
			Verbs:     []string{"create"},
			Why:       "the binding of pods to the nodes that were launched for them, before other pods can be bound there",
			Without:   "pods are only nominated to new nodes, and kube-scheduler may bind other pods there",
		},
		{Resources: []string{"pods/eviction"}, Verbs: []string{"create"}, Why: "the drain of nodes, which honors PodDisruptionBudgets"},
		{Resources: []string{"pods"}, Verbs: []string{"delete"}, Why: "pods that are left when the grace period of a node ends"},
		{
			Group:     "events.k8s.io",
			Resources: []string{"events"},
			Verbs:     []string{"create", "patch"},
			Why:       "events on the objects of this API, pods and nodes",
			Without:   "no events are emitted",
		},
	}
}

func crdRules() []Rule {
	return []Rule{{
		Group: "apiextensions.k8s.io", Resources: []string{"customresourcedefinitions"}, Names: Definitions(),
		Verbs: []string{"create", "get", "patch"}, When: WhenCRDs, Why: "the leader updates the CRDs",
	}}
}

// namespaceRules returns the rules for the controller's own namespace and for kube-system.
func namespaceRules() []Rule {
	return []Rule{
		{
			Where:     Own,
			Group:     "coordination.k8s.io",
			Resources: []string{"leases"},
			Verbs:     []string{"create"},
			Why:       "leader election: only one of the controllers acts",
		},
		{
			Where:     Own,
			Group:     "coordination.k8s.io",
			Resources: []string{"leases"},
			Names:     []string{LeaseName},
			Verbs:     []string{"get", "update"},
			Why:       "leader election: the lease of the controller",
		},
		{
			Where:     Own,
			Resources: []string{"configmaps"},
			Verbs:     []string{"create"},
			Why:       "the measured sizes of nodes, kept for a restart",
			Without:   "the measured sizes of nodes are lost at every restart",
		},
		{
			Where:     Own,
			Resources: []string{"configmaps"},
			Names:     []string{MeasuredName},
			Verbs:     []string{"get", "update"},
			Why:       "the measured sizes of nodes, kept for a restart",
			Without:   "the measured sizes of nodes are lost at every restart",
		},
		{
			Where:     Own,
			Resources: []string{"configmaps"},
			Names:     []string{TripsName},
			Verbs:     []string{"get", "update"},
			Why:       "recent moves of pods, kept for a restart",
			Without:   "voluntary disruption is disabled, because recent moves of pods are unknown",
		},
		{
			Where:     Own,
			Resources: []string{"configmaps"},
			Names:     []string{PauseName},
			Verbs:     []string{"get"},
			Why:       "whether all NodePools are paused",
			Without:   "all NodePools are paused, because the global pause cannot be read",
		},
		{
			Where:     System,
			Resources: []string{"services"},
			Names:     []string{"kube-dns"},
			Verbs:     []string{"get"},
			Why:       "the address of cluster DNS for nodes",
			Without:   "nodes compute the address of cluster DNS from the service CIDR",
		},
		{
			Where:     System,
			Resources: []string{"configmaps"},
			Names:     []string{"aws-auth"},
			Verbs:     []string{"get"},
			Why:       "which node roles aws-auth maps, to explain why a node does not join",
			Without:   "the diagnosis does not show whether aws-auth is the reason why a node does not join",
		},
	}
}

// Definitions returns the names of the CRDs.
func Definitions() []string {
	return []string{"ec2nodeclasses." + aws, "nodeclaims." + karpenter, "nodeoverlays." + karpenter, "nodepools." + karpenter}
}

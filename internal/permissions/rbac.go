package permissions

import "slices"

// Where is the scope of a rule, one of the constants below.
type Where string

// Scopes of rules.
const (
	Cluster Where = "cluster" // in all namespaces, and for cluster-scoped resources
	Own     Where = "own"     // in the controller's own namespace
	System  Where = "system"  // in kube-system
)

// Rule allows some verbs on some resources of one group.
type Rule struct {
	Where     Where    // scope; empty means Cluster
	Group     string   // "" is Kubernetes' core
	Resources []string // "nodes", "pods/eviction"
	Names     []string // resource names; nil: all
	Verbs     []string // "get", "list", "watch", …
	// When is the path of the chart's value that must be set for the controller to need the rule, for instance
	// settings.featureGates.nodeOverlay. Empty: the rule is always needed.
	When string
	Why  string // the reason, in one line
	// Without says in one line what the controller does not do without the rule. Empty: the controller cannot run without it.
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

// Names of the objects in the controller's own namespace: config's default for --leader-election-name,
// kubeclient.MeasuredName, kubeclient.PauseName and kubeclient.TripsName.
const (
	LeaseName    = "karpenter-leader-election"
	MeasuredName = "joiner-measured-capacity"
	PauseName    = "joiner"
	TripsName    = "joiner-moves"
)

// Rules returns all rules, grouped by scope. The caller owns them.
func Rules() []Rule {
	return slices.Concat(seen(), done(), brought(), own())
}

// seen returns the rules for reading. list is needed for API servers that cannot stream the initial state of a watch.
func seen() []Rule {
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
		{Resources: []string{"pods", "nodes"}, Verbs: watch, Why: "who needs a place, and where there is one"},
		{Resources: []string{"persistentvolumeclaims", "persistentvolumes"}, Verbs: watch, Why: "the zones that volumes tie pods to"},
		{
			Group:     "storage.k8s.io",
			Resources: []string{"storageclasses", "csinodes", "volumeattachments"},
			Verbs:     watch,
			Why:       "the same, how many volumes a node takes, and which are still attached to one that leaves",
		},
		{Resources: []string{"namespaces"}, Verbs: watch, Why: "pod affinity selects namespaces by label"},
		{Resources: []string{"namespaces"}, Names: []string{"kube-system"}, Verbs: []string{"get"}, Why: "its UID identifies this cluster"},
		{Group: "apps", Resources: []string{"daemonsets"}, Verbs: watch, Why: "the pods that come to every new node"},
		{Group: "policy", Resources: []string{"poddisruptionbudgets"}, Verbs: watch, Why: "which pods may leave"},
		{
			Resources: []string{"services", "replicationcontrollers"},
			Verbs:     watch,
			When:      WhenScheduler,
			Why:       "kube-scheduler makes the selectors of its default spreads from them",
		},
		{Group: "apps", Resources: []string{"replicasets", "statefulsets"}, Verbs: watch, When: WhenScheduler, Why: "the same"},
	}
}

// done returns the rules for changes in all namespaces.
func done() []Rule {
	return []Rule{
		{Group: karpenter, Resources: []string{"nodeclaims"}, Verbs: []string{"create", "patch", "delete"}, Why: "a NodeClaim for each instance"},
		{Group: karpenter, Resources: []string{"nodepools"}, Verbs: []string{"patch"}, Why: "the hash by which drift is seen, and what failed"},
		{
			Group:     karpenter,
			Resources: []string{"nodeclaims/status", "nodepools/status"},
			Verbs:     []string{"patch"},
			Why:       "how far it is, and what is wrong",
		},
		{
			Group:     karpenter,
			Resources: []string{"nodeoverlays/status"},
			Verbs:     []string{"patch"},
			When:      WhenOverlays,
			Why:       "whether it counts",
			Without:   "NodeOverlays do not say whether they count",
		},
		{
			Group:     aws,
			Resources: []string{"ec2nodeclasses"},
			Verbs:     []string{"patch"},
			Why:       "its finalizer, the hash by which drift is seen, and which of its images are good",
		},
		{Group: aws, Resources: []string{"ec2nodeclasses/status"}, Verbs: []string{"patch"}, Why: "what was found for it, and what is wrong"},
		{
			Resources: []string{"nodes"},
			Verbs:     []string{"patch", "delete"},
			Why:       "labels and taints of its own nodes; the end of those that leave",
		},
		{Resources: []string{"pods/eviction"}, Verbs: []string{"create"}, Why: "nodes are emptied under PodDisruptionBudgets"},
		{Resources: []string{"pods"}, Verbs: []string{"delete"}, Why: "when the grace period of a node is over"},
		{
			Group:     "events.k8s.io",
			Resources: []string{"events"},
			Verbs:     []string{"create", "patch"},
			Why:       "what happened and why, on the objects that it is about",
			Without:   "nothing that happens is written down as an event",
		},
	}
}

// brought returns the rules for CRDs.
func brought() []Rule {
	return []Rule{{
		Group: "apiextensions.k8s.io", Resources: []string{"customresourcedefinitions"}, Names: Definitions(),
		Verbs: []string{"create", "get", "patch"}, When: WhenCRDs, Why: "the leader brings the definitions of the API up to date",
	}}
}

// own returns the rules for the controller's own namespace and for kube-system.
func own() []Rule {
	return []Rule{
		{Where: Own, Group: "coordination.k8s.io", Resources: []string{"leases"}, Verbs: []string{"create"}, Why: "one of the controllers acts"},
		{
			Where:     Own,
			Group:     "coordination.k8s.io",
			Resources: []string{"leases"},
			Names:     []string{LeaseName},
			Verbs:     []string{"get", "update"},
			Why:       "the same",
		},
		{
			Where:     Own,
			Resources: []string{"configmaps"},
			Verbs:     []string{"create"},
			Why:       "what nodes turned out to have, for the next start",
			Without:   "what nodes turned out to have is forgotten at every start",
		},
		{
			Where:     Own,
			Resources: []string{"configmaps"},
			Names:     []string{MeasuredName},
			Verbs:     []string{"get", "update"},
			Why:       "the same",
			Without:   "what nodes turned out to have is forgotten at every start",
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
			Why:       "which roles of nodes the cluster lets in, to say why one does not join",
			Without:   "it cannot be said of a node that does not join whether aws-auth is why",
		},
	}
}

// Definitions returns the names of the CRDs.
func Definitions() []string {
	return []string{"ec2nodeclasses." + aws, "nodeclaims." + karpenter, "nodeoverlays." + karpenter, "nodepools." + karpenter}
}

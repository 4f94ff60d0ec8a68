// Package cluster is the data model of the cluster at one instant: its pools, its nodes and the pods that need a node.
//
// In: the objects of the API server at one moment, as values.
// Out: a Snapshot, which never changes.
// Never: an API object, a client, or data that is looked up later.
package cluster

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/joiner-sh/joiner/internal/model/requirements"
	"github.com/joiner-sh/joiner/internal/model/resources"
)

// Snapshot is the input of decisions about the cluster. A snapshot and the values behind its pointers are never
// changed; a simulation changes a copy.
type Snapshot struct {
	Taken   time.Time // time of the snapshot
	Pools   []Pool    // sorted by name; including unusable pools
	Nodes   []Node    // sorted by name; including NodeClaims whose node has not joined
	Daemons []Daemon  // sorted by namespace and name
	Pods    []Pod     // the pods that need a node, sorted by namespace and name
}

// Pool is a NodePool with its template, its requirements and its limits.
type Pool struct {
	Name      string // name of the NodePool
	UID       string // UID of the NodePool
	NodeClass string // name of its EC2NodeClass
	Weight    int    // 0..100; a higher weight is preferred

	// Unusable is the reason why nothing may be launched for the pool now (pool not ready, being deleted or static,
	// NodeClass not ready); empty if the pool may be used.
	Unusable string
	// UnusableByIntent means that there is nothing to fix: the pool is static, being deleted or another controller's.
	UnusableByIntent bool

	Requirements     []requirements.Requirement // as the user wrote them, with minValues
	RelaxesMinValues bool                       // minValues are ignored where they cannot be met, so that pods can be scheduled
	Labels           requirements.Labels        // labels of the template
	Taints           []requirements.Taint       // taints of the template, without StartupTaints
	StartupTaints    []requirements.Taint       // startup taints of the template; another component removes them before pods run

	Limits Limits
	// Usage is the total capacity, and Nodes the number, of the pool's nodes and NodeClaims that are not terminating.
	// Both are compared with Limits.
	Usage resources.Amounts
	Nodes int
}

// WithoutNode returns the pool after one of its nodes is gone. capacity is the capacity of the node.
func (p Pool) WithoutNode(capacity resources.Amounts) Pool {
	p.Usage, p.Nodes = p.Usage.Sub(capacity).Max(resources.Amounts{}), max(p.Nodes-1, 0)
	return p
}

// Limits are the limits of a pool. A resource that is not in Ceiling is unlimited. With a ceiling of 0, no node of the
// pool may have any of the resource.
type Limits struct {
	Ceiling map[string]int64 // maximum amounts by resource name, in the units of resources.Amounts
	Nodes   *int             // maximum number of nodes; nil: unlimited
}

// Node is a node that is running, or whose instance is being launched or is joining.
type Node struct {
	Name       string // name of the Node; before the node joins, name of the NodeClaim
	Claim      string // name of its NodeClaim; empty for a node that Joiner did not launch
	ProviderID string // "aws:///us-east-1a/i-0123", empty until the launch
	Pool       string // name of its NodePool; empty for a node without one
	NodeClass  string // name of its EC2NodeClass

	Labels requirements.Labels // labels of the Node; before the node joins, labels of the NodeClaim
	// Taints are the taints that a pod must tolerate to run here when the node is ready. So, until the node is
	// initialized, startup taints and ephemeral taints are left out.
	Taints []requirements.Taint

	Capacity    resources.Amounts // capacity of the instance
	Allocatable resources.Amounts // part of Capacity that pods may request
	// Requested is the sum of the requests of the pods that are bound to the node or expected on it. The expected pods
	// are DaemonSet pods, the pods that the node was launched for, and the pods that the node is nominated for.
	Requested resources.Amounts
	HostPorts []HostPort // host ports of the pods whose requests are in Requested

	// Residents are the pods whose requests are in Requested, without the pods in Snapshot.Pods: they stay on the node
	// and may affect the placement of other pods.
	Residents []Resident

	Joined      bool // the Node object exists and is registered
	Initialized bool // it was ready for pods at least once
	// Leaving means that the node is being deleted or has the taint karpenter.sh/disrupted. It accepts no pods. Its own
	// pods need another node, unless karpenter.sh/do-not-disrupt or a PodDisruptionBudget forbids their eviction. A
	// node that is only cordoned is not leaving: see Cordoned.
	Leaving bool

	Created time.Time // creation of the NodeClaim, or of the Node if it has no NodeClaim

	// Pods are the pods that would need another node if this node terminated, sorted by namespace and name. They are
	// the pods that are bound to the node or expected on it, without finished pods, DaemonSet pods and static pods of
	// the kubelet.
	Pods []Pod
}

// CordonTaint returns the taint of a cordoned node (spec.unschedulable). Kubernetes adds it soon after the node is
// cordoned. In a snapshot every cordoned node has it, as the first of its taints.
func CordonTaint() requirements.Taint {
	return requirements.Taint{Key: "node.kubernetes.io/unschedulable", Effect: requirements.NoSchedule}
}

// Cordoned reports whether the node accepts only pods that tolerate CordonTaint. The pods on it stay. Spread
// constraints that do not honor taints still include the node.
func (n *Node) Cordoned() bool { return slices.Contains(n.Taints, CordonTaint()) }

// Daemon is a DaemonSet: one pod on every node that satisfies Required and whose taints are tolerated.
type Daemon struct {
	Namespace, Name string                      // namespace and name of the DaemonSet
	Requests        resources.Amounts           // requests of one pod, with Pods: 1
	Required        []requirements.Requirements // requirements on the node, as in Pod.Required
	Tolerations     []requirements.Toleration   // tolerations, including those that the DaemonSet controller adds
	HostPorts       []HostPort                  // host ports of one pod

	// Kind is how the DaemonSet's pods affect the placement of other pods; nil means unknown, treated as no effect.
	Kind *PodKind
}

// Pod has the fields of a pod that affect its placement.
type Pod struct {
	Namespace, Name string              // namespace and name of the pod
	UID             string              // UID of the pod
	Owner           string              // "ReplicaSet/web-5d4f", its controller; empty if it has none
	Labels          requirements.Labels // labels of the pod

	Requests resources.Amounts // init containers, sidecars and overhead included, with Pods: 1

	// Required are alternatives: the node must satisfy at least one of them. Each includes the pod's node selector.
	// Without alternatives, the pod accepts every node.
	Required    []requirements.Requirements
	Preferred   []Preference // highest weight first
	Tolerations []requirements.Toleration
	HostPorts   []HostPort

	Spread       []Spread // topology spread constraints
	Affinity     []Term   // the pods that must, or should, be in the same domain
	AntiAffinity []Term   // the pods that must not, or should not, be in the same domain

	// Volumes has the PersistentVolumeClaims ("namespace/name", sorted) that are not bound to a volume yet and that
	// other pods may also use. The volume is created in the zone where the first pod with the claim is scheduled, and
	// the other pods must run in the same zone.
	Volumes []string

	Priority int32     // spec.priority
	Created  time.Time // creation timestamp

	// Node is the name of the node that the pod still runs on, if that node is leaving; empty for a pending pod.
	Node string

	// Unplannable says which requirement of the pod is invalid or not supported by this version; empty for nearly all
	// pods.
	Unplannable string
}

// SharesConstraints reports whether the requirements, preferences, tolerations and topology rules of both pods are the
// same slices in memory, as for pods of one template. If they are not, their contents may still be equal.
func (p *Pod) SharesConstraints(o *Pod) bool {
	return isSameSlice(p.Required, o.Required) && isSameSlice(p.Preferred, o.Preferred) && isSameSlice(p.Tolerations, o.Tolerations) &&
		isSameSlice(p.Spread, o.Spread) && isSameSlice(p.Affinity, o.Affinity) && isSameSlice(p.AntiAffinity, o.AntiAffinity)
}

// isSameSlice reports whether a and b are the same slice in memory, or both empty.
func isSameSlice[T any](a, b []T) bool { return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0]) }

// ID returns "namespace/name".
func (p Pod) ID() string { return p.Namespace + "/" + p.Name }

// ComparePods orders pods by namespace and name, as in Snapshot.Pods.
func ComparePods(a, b Pod) int {
	return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
}

// Preference is a preferred requirement of the node.
type Preference struct {
	Weight       int                       // 1..100
	Requirements requirements.Requirements // preferred labels of the node
}

// HostPort is a port of the node that a pod uses.
type HostPort struct {
	IP       string // "", "0.0.0.0" or "::" for all addresses
	Port     int32  // 1..65535
	Protocol string // TCP, UDP or SCTP
}

// Conflicts reports whether two pods with these ports cannot run on one node.
func (h HostPort) Conflicts(o HostPort) bool {
	return h.Port == o.Port && h.Protocol == o.Protocol && (h.IP == o.IP || h.Everywhere() || o.Everywhere())
}

// Everywhere reports whether the port is used on all addresses of the node.
func (h HostPort) Everywhere() bool { return h.IP == "" || h.IP == "0.0.0.0" || h.IP == "::" }

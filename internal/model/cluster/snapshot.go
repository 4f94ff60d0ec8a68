// Package cluster is the cluster at one instant: its pools, its nodes and the
// pods that need a place.
//
// In: what the API server held at one moment, as values.
// Out: a Snapshot, which never changes.
// Never: an API object, a client, or anything that is looked up later.
package cluster

import (
	"slices"
	"time"

	"github.com/joiner-sh/joiner/internal/model/requirements"
	"github.com/joiner-sh/joiner/internal/model/resources"
)

// Snapshot is all that a decision may know about the cluster. It and what it
// points at are never altered; a "what if" copies what it changes.
type Snapshot struct {
	Taken   time.Time // time of the snapshot
	Pools   []Pool    // sorted by name; also those that may not be used, with the reason
	Nodes   []Node    // sorted by name; claims that have not joined are nodes too
	Daemons []Daemon  // sorted by namespace and name
	Pods    []Pod     // the pods that need a place, sorted by namespace and name
}

// Pool is a NodePool: what it may launch, and its limits.
type Pool struct {
	Name      string // of the NodePool
	UID       string // of the NodePool
	NodeClass string // name of its EC2NodeClass
	Weight    int    // 0..100, larger goes first

	// Unusable is the reason why nothing may be launched for the pool now (not ready,
	// being deleted, static, NodeClass not ready); empty if it may be used.
	Unusable string
	// Closed is true if the pool is unusable by intent (static, being deleted, another controller's), so there is nothing to fix.
	Closed bool

	Requirements  []requirements.Requirement // as written, with minValues
	Relaxable     bool                       // minValues give way where they cannot be met, rather than pods
	Labels        requirements.Labels        // of the template
	Taints        []requirements.Taint       // of the template
	StartupTaints []requirements.Taint       // removed by another component before pods run

	// Limits holds a ceiling for each resource it names. Nodes is the ceiling
	// on the number of nodes.
	Limits Limits
	// Usage is the capacity of the pool's nodes and claims that are not being deleted.
	Usage resources.Amounts
	Nodes int
}

// Limits are ceilings on what a pool may hold. A resource that is not in
// Ceiling is unlimited; with a ceiling of 0, no node may have it.
type Limits struct {
	Ceiling map[string]int64 // by resource name, in the units of capacity.Amounts
	Nodes   *int             // nil: unlimited
}

// Node is a node that is running, or whose instance is launched or joining.
type Node struct {
	Name       string // of the Node; of the NodeClaim until it has joined
	Claim      string // NodeClaim, empty for a node that is not ours
	ProviderID string // "aws:///us-east-1a/i-0123", empty until the launch
	Pool       string // name of its NodePool; empty for a node without one
	NodeClass  string // name of its EC2NodeClass

	Labels requirements.Labels // of the Node; before it joins, what the claim promises
	// Taints are those a pod must tolerate to run here once the node is ready:
	// startup and ephemeral taints are left out until it is initialized.
	Taints []requirements.Taint

	Capacity    resources.Amounts // of the instance
	Allocatable resources.Amounts // of this, what pods may request
	// Requested is the sum of the requests of its bound pods, and of the DaemonSet
	// pods that are expected on it.
	Requested resources.Amounts
	HostPorts []HostPort

	// Residents are all pods that stay on it, as far as the placement of others
	// depends on them: bound pods of every kind, DaemonSet pods too, and those that
	// it was launched for. Pods in Snapshot.Pods are not among them.
	Residents []Resident

	Joined      bool // the Node object exists and is registered
	Initialized bool // it has been ready for pods once
	// Leaving: being deleted or tainted as disrupted. It takes no pods, and its own, unless something protects
	// them, are to get another place. A node that is merely cordoned is not leaving: see Cordoned.
	Leaving bool

	Created time.Time // of the NodeClaim, or the Node if it has none

	// Pods are those that would need another place if the node went: bound,
	// not finished, not a DaemonSet's, not static. Sorted by namespace and name.
	Pods []Pod
}

// Cordon is the taint of a node that is closed to new pods (spec.unschedulable). Kubernetes puts it on soon
// after the node is cordoned; a snapshot has it at once, before other taints.
func Cordon() requirements.Taint {
	return requirements.Taint{Key: "node.kubernetes.io/unschedulable", Effect: requirements.NoSchedule}
}

// Cordoned reports whether only pods that tolerate Cordon may come to the node. It runs on as it is otherwise: its
// pods stay, and its domains count for spread constraints, unless those honor taints.
func (n *Node) Cordoned() bool { return slices.Contains(n.Taints, Cordon()) }

// Daemon is a DaemonSet: a pod for every node that it accepts.
type Daemon struct {
	Namespace, Name string                      // of the DaemonSet
	Requests        resources.Amounts           // of one pod, with Pods: 1
	Required        []requirements.Requirements // as in Pod
	Tolerations     []requirements.Toleration   // as the DaemonSet controller extends them
	HostPorts       []HostPort                  // of one pod

	// Kind is what one of its pods is to the places of others; nil if that is not known, and then no rule counts them.
	Kind *Kind
}

// Pod is a pod as far as its place is concerned.
type Pod struct {
	Namespace, Name string              // of the pod
	UID             string              // of the pod
	Owner           string              // "ReplicaSet/web-5d4f", its controller; empty if it has none
	Labels          requirements.Labels // of the pod

	Requests resources.Amounts // init containers, sidecars and overhead included, with Pods: 1

	// Required are alternatives: the node must satisfy at least one of them.
	// The node selector is part of each. None at all: any node will do.
	Required    []requirements.Requirements
	Preferred   []Preference // heaviest first
	Tolerations []requirements.Toleration
	HostPorts   []HostPort

	Spread       []Spread // topology spread constraints
	Affinity     []Term   // the pods that must, or should, be near
	AntiAffinity []Term   // and those that must not, or should not

	// Volumes names the volume claims that have no volume yet and that other
	// pods may use too ("namespace/name"): where the first of their pods goes, the
	// volume is made, and the others follow into that zone. Sorted.
	Volumes []string

	Priority int32     // spec.priority
	Created  time.Time // creation timestamp

	// Node is the name of the node the pod still runs on, if that node is
	// leaving; empty for a pending pod.
	Node string

	// Unplannable says which demand of the pod this version cannot plan for,
	// or what is wrong with it; empty for nearly all pods.
	Unplannable string
}

// SharesDemands reports whether what both pods demand of nodes, and of other pods,
// lies at the same place in memory, as for pods that were made from one template. If it
// does not, it may still be the same.
func (p *Pod) SharesDemands(o *Pod) bool {
	return same(p.Required, o.Required) && same(p.Preferred, o.Preferred) && same(p.Tolerations, o.Tolerations) &&
		same(p.Spread, o.Spread) && same(p.Affinity, o.Affinity) && same(p.AntiAffinity, o.AntiAffinity)
}

func same[T any](a, b []T) bool { return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0]) }

// ID returns "namespace/name".
func (p Pod) ID() string { return p.Namespace + "/" + p.Name }

// Preference is a preferred requirement of the node.
type Preference struct {
	Weight       int                       // 1..100
	Requirements requirements.Requirements // preferred labels of the node
}

// HostPort is a port that a pod takes on its node.
type HostPort struct {
	IP       string // "0.0.0.0" for all addresses
	Port     int32  // 1..65535
	Protocol string // TCP, UDP or SCTP
}

// Conflicts reports whether both cannot be taken on one node.
func (h HostPort) Conflicts(o HostPort) bool {
	return h.Port == o.Port && h.Protocol == o.Protocol && (h.IP == o.IP || h.Everywhere() || o.Everywhere())
}

// Everywhere reports whether the port is taken on all addresses of the node.
func (h HostPort) Everywhere() bool { return h.IP == "" || h.IP == "0.0.0.0" || h.IP == "::" }

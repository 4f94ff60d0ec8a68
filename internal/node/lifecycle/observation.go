// Package lifecycle decides the next action for one node, from the creation of its NodeClaim to the termination of its
// instance.
//
// In: the observed state of a NodeClaim, its instance and its Node, and the time.
// Out: the phase of the node and one action.
// Never: a client, a clock, or two actions from one call.
package lifecycle

import "time"

// Timeouts and polling intervals. LaunchTimeout and RegistrationTimeout equal Karpenter's, so that alerts keep their
// meaning.
const (
	// LaunchTimeout is how long launches may fail before the claim is deleted. It starts at the later of two times: the
	// claim's creation and Claim.FirstResponse. The wait for the first call to EC2 does not count: a waiting claim
	// costs nothing, and a new claim in its place would wait behind all others.
	LaunchTimeout = 5 * time.Minute
	// RegistrationTimeout is how long an instance may take to register, from its launch.
	RegistrationTimeout = 15 * time.Minute

	// MaxNominationWait is how long a ready Node may keep the taint for nominations. MaxCordon is how long after that the
	// Node may be cordoned instead. Both are longer while Node.IsBinding.
	MaxNominationWait = time.Second
	MaxCordon         = 10 * time.Second

	// JoinGrace is the time limit to join for an instance that was launched before its NodePool or EC2NodeClass
	// changed, if no cause is known that prevents the instance from joining. CureGrace is the time limit after such a
	// cause is fixed.
	JoinGrace = 45 * time.Second
	CureGrace = 30 * time.Second

	// LostTimeout is how long a registered Node may be missing. A restarted kubelet recreates its Node.
	LostTimeout = time.Minute

	// DrainSettleTime is the time after a Node's deletion in which the Node does not count as drained, even without
	// pods. The taint is set after the deletion, and kube-scheduler may have bound a pod before it saw the taint.
	DrainSettleTime = 2 * time.Second
	// Poll is the interval of checks of an instance that is shutting down and of a node that is being drained.
	Poll = 2 * time.Second

	// ConfirmPoll is the interval at which a Node is compared with its instance while a fact for the comparison is
	// missing. MismatchPoll is the interval for a Node that differs from its instance.
	ConfirmPoll  = 2 * time.Second
	MismatchPoll = 30 * time.Second

	// UntaggedPoll is the interval of checks of an instance that lost its tags.
	UntaggedPoll = 30 * time.Second

	// MaxReplacementWait limits two waits of an expired node: first until budgets allow its replacement, then until the
	// replacement is ready.
	MaxReplacementWait = 10 * time.Minute
)

// Observation is the complete input of Next: the observed state of one node.
type Observation struct {
	Claim    Claim    // the NodeClaim
	Instance Instance // its instance
	Node     Node     // its Node
}

// Claim is the observed state of the NodeClaim.
type Claim struct {
	Exists    bool      // false: the claim is gone, and only the Node is left
	Finalizer bool      // Joiner's finalizer is set, so the claim stays until its instance is terminated
	Created   time.Time // creation timestamp
	// Unlabelled is true if an older version of Joiner created the claim or its Node without a label that is required
	// now.
	Unlabelled bool

	// Deleted is the deletion timestamp; zero if the claim is not being deleted.
	Deleted time.Time
	// Grace is the terminationGracePeriod; nil: no limit.
	Grace *time.Duration
	// Deadline is when pods are deleted forcibly, according to the claim's annotation; zero without the annotation.
	Deadline time.Time
	// ExpireAfter is the age at which the node is replaced; nil: never.
	ExpireAfter *time.Duration
	// Replacement is the progress of an expired claim's replacement.
	Replacement Replacement

	Launched bool // its provider ID is set
	// LaunchedAt is the time of the launch; zero if unknown: then Created is used.
	LaunchedAt  time.Time
	Registered  bool // its Node is registered
	Initialized bool // its Node is initialized

	// OutdatedAt is when a claim without a Node is replaced, because its NodePool or EC2NodeClass changed, or because
	// the cause that kept its instance from joining is fixed. Zero: not outdated.
	OutdatedAt time.Time

	NodeClass NodeClass // state of its EC2NodeClass
	// Shortage is true if EC2 has no capacity for any offering that the claim accepts.
	Shortage bool
	// FirstResponse is when EC2 first answered a launch of the claim, or last throttled one. Zero: no answer since
	// this process started.
	FirstResponse time.Time
	// NotBefore is the earliest time of the next launch after a failure; zero: now.
	NotBefore time.Time
}

// Replacement is the replacement of an expired node before it is deleted.
type Replacement struct {
	State ReplacementState // progress of the replacement
	// NeedsNoPlan is true in a static NodePool, which temporarily gets one more node: no places are planned for the
	// pods, and the Node stays schedulable.
	NeedsNoPlan bool
	// Since is when the replacement was requested, according to the claim's annotation. Before the request, it is when
	// the replacement was queued. It is zero if the replacement is neither requested nor queued.
	Since time.Time
}

// ReplacementState is the progress of a replacement.
type ReplacementState int

// The states of a replacement.
const (
	ReplacementNone      ReplacementState = iota // the node is deleted without a replacement
	ReplacementQueued                            // the budgets allow no further node now
	ReplacementRequested                         // allowed; Since is zero until the claim records the request
	ReplacementReady                             // every pod that fits on another node has a place on a ready node
)

// NodeClass is the readiness of the claim's EC2NodeClass for launches.
type NodeClass int

// The states of an EC2NodeClass.
const (
	NodeClassUnknown NodeClass = iota // not reconciled yet
	NodeClassReady
	NodeClassNotReady
	NodeClassMissing
)

// InstanceState is the state of the instance in EC2.
type InstanceState int

// The states of an instance.
const (
	InstanceUnknown InstanceState = iota // not read, or EC2 did not answer
	InstanceAbsent                       // the instance does not exist, or is terminated
	InstanceRunning                      // pending, running or stopped: it exists and costs money
	InstanceEnding                       // shutting down
)

// Instance is the observed state of the instance.
type Instance struct {
	State InstanceState // observed state
	// Foreign is true if the instance has the tags of another cluster or of a node group. It is not terminated.
	Foreign bool
	// Untagged is true if the instance has no owner tags although a claim refers to it. It is not terminated, and its
	// claim stays until the instance is gone.
	Untagged bool
}

// Node is the observed state of the Nodes with the instance's provider ID. The fields Mismatch and Unconfirmed are
// about Nodes that Identity.Judge does not accept. Strays counts Nodes of earlier registrations. The other fields are
// about the Nodes that Identity.Judge accepts.
type Node struct {
	Count     int  // 0 or 1; more if several kubelets use one provider ID
	Finalizer bool // Joiner's finalizer is set

	// MissingSince is when the registered Node was first found missing; zero if it exists, or if no Node is registered
	// yet.
	MissingSince time.Time
	// Recreated is true if the Node lacks the metadata of its registration, because the kubelet has recreated it.
	Recreated bool
	// Mismatch is the difference between a Node with the provider ID and the instance. Unconfirmed is the fact that is
	// missing for the comparison. Count does not include these Nodes. Both texts are empty if there are none.
	Mismatch, Unconfirmed string
	// Strays is the number of further Nodes with the provider ID whose kubelet does not report, left over from
	// registrations under other names.
	Strays int

	Deleted           time.Time // its deletion timestamp; zero if it is not being deleted
	HasDisruptedTaint bool      // has the taint of a disrupted node, so that it gets no new pods
	Cordoned          bool      // HasDisruptedTaint, and excluded from load balancers

	Ready bool // its condition Ready is True
	// HasNominationTaint is true while the taint for nominations, or a cordon in its place, keeps pods off the Node: it is
	// closed. The next fields are about a closed Node. ReadySince is when it became ready, as seen by this process; zero if
	// it is not ready. BindAt is when to bind pods to it; zero: not now. IsBinding is true until kube-scheduler has probably
	// seen the bound pods. OpenAt is when the Node may open, or the next check while IsBinding; zero: now. ShouldCordon is
	// true if a cordon should replace the taint, because pods wait for nodes of other zones, or another taint is still
	// there. IsCordonedForPods is true after that.
	HasNominationTaint bool
	ReadySince         time.Time
	BindAt             time.Time
	IsBinding          bool
	OpenAt             time.Time
	ShouldCordon       bool
	IsCordonedForPods  bool
	Startup            string // a remaining startup taint; or empty
	Ephemeral          string // a remaining taint that Kubernetes sets on new nodes; or empty
	Lacks              string // a requested resource that the Node does not report yet; or empty

	Ailment HealthProblem // its health problem; always none if node repair is disabled

	Pods    int // number of pods that must be evicted before the instance is terminated
	Volumes int // number of volumes of evicted pods that are still attached
}

// Package lifecycle decides the next action for one node, from the creation of its NodeClaim to the termination of its instance.
//
// In: what was seen of a NodeClaim, its instance and its Node, and the time.
// Out: the phase of the node and one action.
// Never: a client, a clock, or two actions at once.
package lifecycle

import "time"

// The timeouts of a claim without progress, and the polling intervals while a node is removed. The first two equal Karpenter's, so
// alerts keep their meaning.
const (
	// LaunchTimeout is how long launches may fail before the claim is deleted. It counts from the claim's creation, and not
	// before EC2 has answered once: a claim that waits for its turn to call EC2 costs nothing, and a new claim would wait
	// behind all others.
	LaunchTimeout = 5 * time.Minute
	// RegistrationTimeout is how long an instance may take to register, from its launch.
	RegistrationTimeout = 15 * time.Minute

	// JoinGrace is how long an instance may take to join that was launched before its NodePool or EC2NodeClass changed, if no cause is
	// known that keeps it from joining. CureGrace is how long it may take after its cause is fixed.
	JoinGrace = 45 * time.Second
	CureGrace = 30 * time.Second

	// LostTimeout is how long a registered Node may be missing. A kubelet that restarts creates its Node again.
	LostTimeout = time.Minute

	// Settle is how long after the taint a node must have no pods before it counts as empty: kube-scheduler may have bound a
	// pod before it saw the taint.
	Settle = 2 * time.Second
	// Poll is the interval of checks of an instance that is shutting down and of a node that is being drained.
	Poll = 2 * time.Second

	// ConfirmPoll is the interval at which a Node is compared with an instance whose addresses EC2 has not returned yet, MismatchPoll with
	// one that differs.
	ConfirmPoll  = 2 * time.Second
	MismatchPoll = 30 * time.Second

	// UnmarkedPoll is the interval of checks of an instance that lost its tags.
	UnmarkedPoll = 30 * time.Second

	// ReplaceWithin is how long an expired node waits at most: for its turn, and again for its replacement.
	ReplaceWithin = 10 * time.Minute
)

// Seen is everything that the next action depends on.
type Seen struct {
	Claim   Claim    // the NodeClaim
	Machine Instance // its instance
	Node    Node     // its Node
}

// Claim is what was seen of the NodeClaim.
type Claim struct {
	Exists    bool      // false: only the Node is left
	Finalizer bool      // Joiner's finalizer is on it, so it stays until its instance is terminated
	Created   time.Time // creation timestamp
	// Unlabelled is true if an older version created it, or its Node, without a label that is required now.
	Unlabelled bool

	// Deleted is its deletion timestamp; zero if it is not being deleted.
	Deleted time.Time
	// Grace is the terminationGracePeriod; nil: no limit.
	Grace *time.Duration
	// Deadline is when pods are deleted forcibly, from the claim's annotation; zero without it.
	Deadline time.Time
	// ExpireAfter is the age at which the node is replaced; nil: never.
	ExpireAfter *time.Duration
	// Replacement is the progress of an expired claim's replacement.
	Replacement Replacement

	Launched bool // its provider ID is set
	// LaunchedAt is the time of the launch; zero if unknown: Created is used.
	LaunchedAt  time.Time
	Registered  bool
	Initialized bool

	// Outdated is when a claim without a Node is replaced, because its NodePool or EC2NodeClass changed, or because the cause that kept
	// its instance from joining is fixed; zero: it is not outdated.
	Outdated time.Time

	NodeClass NodeClass // state of its EC2NodeClass
	// Shortage is true if EC2 has capacity for no offering that the claim accepts.
	Shortage bool
	// Answered is when EC2 first answered its launch, or last throttled it; zero: not yet, as far as this process knows.
	Answered time.Time
	// NotBefore is the earliest time of the next launch after a failure; zero: now.
	NotBefore time.Time
}

// Replacement is what is done for the pods of an expired node before it is deleted.
type Replacement struct {
	State ReplacementState // progress of the replacement
	// Apart is true in a static NodePool, which gets one more node for a while: no plan is needed, and the Node stays open.
	Apart bool
	// Since is when it was queued, or when it was requested, from the claim's annotation; zero without it.
	Since time.Time
}

// ReplacementState is the progress of a replacement.
type ReplacementState int

// The states of a replacement.
const (
	ReplacementNone   ReplacementState = iota // not allowed: the node is deleted without one
	ReplacementQueued                         // the budgets allow no further node now
	ReplacementAsked                          // it is in progress
	ReplacementReady                          // every pod that fits elsewhere has a place on a ready node
)

// NodeClass is whether an instance may be launched with the claim's EC2NodeClass.
type NodeClass int

// The states of an EC2NodeClass.
const (
	NodeClassUnknown NodeClass = iota // not reconciled yet
	NodeClassReady
	NodeClassNotReady
	NodeClassMissing
)

// MachineState is the state of the instance in EC2.
type MachineState int

// The states of an instance.
const (
	MachineUnknown MachineState = iota // not read, or no answer
	MachineAbsent                      // there is none, or it is terminated
	MachineRunning                     // pending, running or stopped: it exists and costs money
	MachineEnding                      // shutting down
)

// Instance is the observed state of the instance.
type Instance struct {
	State MachineState // observed state
	// Foreign is true if it has the tags of another cluster or of a node group. It is not terminated.
	Foreign bool
	// Unmarked is true if it has no owner tags although a claim refers to it. It is not terminated, and its claim stays until it is gone.
	Unmarked bool
}

// Node is the observed state of the Nodes with the instance's provider ID. All fields but Strays, Mismatch and Unconfirmed are about
// the Nodes that Identity accepts.
type Node struct {
	Count     int  // 0 or 1; more if several kubelets use one provider ID
	Finalizer bool // ours is on it

	// Lost is since when the registered Node is missing; zero if there is one, or none has registered yet.
	Lost time.Time
	// Reborn is true if it lacks what registration sets: the kubelet created the Node again after the registration.
	Reborn bool
	// Mismatch says how a Node with the provider ID differs from the instance. Unconfirmed says what is missing for the comparison.
	// Both are about Nodes that Count does not include, and empty if there is none.
	Mismatch, Unconfirmed string
	// Strays is the number of further Nodes with the provider ID for which no kubelet reports, left over from registrations under
	// other names.
	Strays int

	Deleted  time.Time // its deletion timestamp; zero if it is not being deleted
	Closed   bool      // tainted as disrupted
	Cordoned bool      // Closed, and out of load balancers

	Ready     bool   // its condition Ready is True
	Startup   string // a startup taint that is still on it; or empty
	Ephemeral string // a taint that Kubernetes sets on new nodes, still on it; or empty
	Lacks     string // a requested resource that the node does not report yet; or empty

	Ailment Ailment // its health problem; always none if node repair is disabled

	Pods    int // that must be evicted before the instance is terminated
	Volumes int // still attached, of evicted pods
}

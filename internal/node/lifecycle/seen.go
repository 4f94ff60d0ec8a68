// Package lifecycle is the life of one node: Wanted, Bought, Joined, Ready, Draining, Gone.
//
// In: what was seen of a NodeClaim, its machine and its Node, and the time.
// Out: the phase it is in and the one thing to do next.
// Never: a client, a clock, or two things to do at once.
package lifecycle

import "time"

// The times after which a claim that got nowhere is given up, and the pauses of the way down. The first two equal
// Karpenter's, so that alerts keep their meaning.
const (
	// LaunchTimeout is how long EC2 may answer without a machine. It is measured from the claim's creation, and not before
	// EC2 has first answered: a claim that waits in line for a call it may make costs nothing, and another one in its place
	// would wait behind all others.
	LaunchTimeout = 5 * time.Minute
	// RegistrationTimeout is how long a machine may take to join, from when it was bought.
	RegistrationTimeout = 15 * time.Minute

	// JoinGrace is how long an instance may take to join that was launched before its NodePool or EC2NodeClass changed, where no cause is
	// known that keeps it from joining; and CureGrace how long one may take from when its cause is gone.
	JoinGrace = 45 * time.Second
	CureGrace = 30 * time.Second

	// LostTimeout is how long a Node that had joined may be missing. A kubelet that starts anew makes its Node again.
	LostTimeout = time.Minute

	// Settle is how long a node that was just closed to new pods is watched before it counts as empty: kube-scheduler
	// may have bound a pod to it before it saw the taint.
	Settle = 2 * time.Second
	// Poll is how often a machine that is ending, and a node that is being emptied, are looked at.
	Poll = 2 * time.Second

	// ConfirmPoll is how often a Node is compared again with an instance of which EC2 has not said enough, and MismatchPoll with one from
	// which it differs.
	ConfirmPoll  = 2 * time.Second
	MismatchPoll = 30 * time.Second

	// UnmarkedPoll is how often EC2 is asked about an instance that lost its tags.
	UnmarkedPoll = 30 * time.Second

	// ReplaceWithin is how long a node that has expired waits at most: for its turn, and again for its replacement.
	ReplaceWithin = 10 * time.Minute
)

// Seen is everything that decides what happens to a node next.
type Seen struct {
	Claim   Claim
	Machine Machine
	Node    Node
}

// Claim is what was seen of the NodeClaim.
type Claim struct {
	Exists    bool // false: the Node is all that is left
	Finalizer bool // ours is on it, so that it cannot vanish before its machine has
	Created   time.Time
	// Unlabelled: an older version made it, or its Node, and left out a label that is there by now.
	Unlabelled bool

	// Deleted is when it was asked to go; zero while it may live.
	Deleted time.Time
	// Grace is the terminationGracePeriod, nil for as long as it takes.
	Grace *time.Duration
	// Deadline is when pods are deleted by force, as noted on the claim; zero when there is no note.
	Deadline time.Time
	// ExpireAfter is the age to be replaced at, nil for never.
	ExpireAfter *time.Duration
	// Replacement is how far the replacement of a claim that has expired has come.
	Replacement Replacement

	Launched bool // the provider id is written on it
	// Bought is when that was; zero if nothing says so, which is as good as Created.
	Bought      time.Time
	Registered  bool
	Initialized bool

	// Outdated is from when on a claim without a Node is replaced, since its NodePool or EC2NodeClass now gives another launch, or since
	// what kept its instance from joining is gone; zero: it is not outdated.
	Outdated time.Time

	NodeClass NodeClass
	// Shortage: EC2 was asked and had none of what the claim accepts.
	Shortage bool
	// Answered is when EC2 first answered to its launch, or last said that it gets too many calls; zero: not yet, as far as
	// this process knows.
	Answered time.Time
	// NotBefore is the earliest time of the next attempt to launch after one that failed; zero: now.
	NotBefore time.Time
}

// Replacement is what is done for the pods of an expired node before it goes.
type Replacement struct {
	State ReplacementState
	// Apart: no plan decides on it, so that the Node need not be closed for it: it is in a static pool, which has one node
	// more for a while.
	Apart bool
	// Since when it is queued; or since when it was asked for, as noted on the claim, zero while there is no note.
	Since time.Time
}

// ReplacementState is how far a replacement has come.
type ReplacementState int

// The states of a replacement.
const (
	ReplacementNone   ReplacementState = iota // not allowed: the node goes without
	ReplacementQueued                         // as many nodes as the budgets allow are being replaced already
	ReplacementAsked                          // it has its turn
	ReplacementReady                          // every pod that can have another place has one on a node that is ready
)

// NodeClass is whether a machine may be bought with the claim's node class.
type NodeClass int

// The states of a node class.
const (
	NodeClassUnknown NodeClass = iota // not looked at yet, or its loop has not come to an end
	NodeClassReady
	NodeClassNotReady
	NodeClassMissing
)

// MachineState is what EC2 says of the instance.
type MachineState int

// The states of a machine.
const (
	MachineUnknown MachineState = iota // not asked, or no answer
	MachineAbsent                      // there is none, or it has ended
	MachineRunning                     // pending, running or stopped: it exists and costs money
	MachineEnding                      // told to end, not gone yet
)

// Machine is what was seen of the instance.
type Machine struct {
	State MachineState
	// Foreign: it carries the tags of another cluster or of a node group, so it is not ours to end.
	Foreign bool
	// Unmarked: it carries no owner's tags at all, although a claim has it. It is not terminated, and its claim stays until it is gone.
	Unmarked bool
}

// Node is what was seen of the Nodes that carry the machine's provider id. All but Strays, Mismatch and Unconfirmed is about those that
// are the machine's, as far as Identity can tell.
type Node struct {
	Count     int  // 0, 1, or more for a mistake that people make
	Finalizer bool // ours is on it

	// Lost is since when there is no Node although one had joined; zero when there is one, or none has joined yet.
	Lost time.Time
	// Reborn: it lacks what registration gives, so that it is another one than was registered, and nobody has prepared it.
	Reborn bool
	// Mismatch says why a Node that carries the provider id is not counted: it is not the instance's. Unconfirmed says what is missing
	// until that is known. Both are about other Nodes than those in Count, and empty where there is none.
	Mismatch, Unconfirmed string
	// Strays is how many more Nodes carry the provider id that no kubelet reports for, while one does for this Node: what
	// is left of registrations under other names.
	Strays int

	Deleted  time.Time // when it was asked to go; zero while it may live
	Closed   bool      // tainted as disrupted
	Cordoned bool      // Closed, and out of load balancers

	Ready     bool
	Startup   string // a startup taint that is still on it, or empty
	Ephemeral string // a taint that Kubernetes itself puts on young nodes, still on it, or empty
	Lacks     string // a resource that the claim asks for and the node does not report yet, or empty

	Ailment Ailment // what is wrong with it; always nothing where nodes are not repaired

	Pods    int // that must leave before the machine may end
	Volumes int // still attached, of pods that have left
}

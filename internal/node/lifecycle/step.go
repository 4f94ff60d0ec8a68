package lifecycle

import "time"

// Phase is how far a node has come.
type Phase string

// The phases. Every phase but Gone leads to Draining when its claim is deleted.
const (
	Wanted   Phase = "Wanted"   // there is a claim
	Bought   Phase = "Bought"   // there is a machine
	Joined   Phase = "Joined"   // there is a Node with its labels and taints
	Ready    Phase = "Ready"    // it has been ready for pods
	Draining Phase = "Draining" // on its way out
	Gone     Phase = "Gone"     // nothing is left of it
)

// Action is the one thing to do next.
type Action string

// The actions.
const (
	// Wait until Step.Until, or until something changes.
	Wait Action = "Wait"

	// Hold puts our finalizer on the claim. Nothing is bought for a claim without it.
	Hold Action = "Hold"
	// Label writes on the claim and its Nodes what older versions left out.
	Label Action = "Label"
	// Launch buys a machine, or finds the one that an earlier attempt has bought.
	Launch Action = "Launch"
	// Record writes on the claim the machine that was bought for it.
	Record Action = "Record"
	// Register gives the Node its labels, taints, finalizer and owner, and opens it for pods.
	Register Action = "Register"
	// HoldNode puts our finalizer back on a Node that lost it.
	HoldNode Action = "HoldNode"
	// Initialize marks the node as fit for pods.
	Initialize Action = "Initialize"

	// Replace closes the Node to new pods and has a place planned for those that it has, noting on the claim since when.
	Replace Action = "Replace"
	// DropStrays removes the Nodes that the machine has left behind.
	DropStrays Action = "DropStrays"

	// Delete the claim, for Step.Reason.
	Delete Action = "Delete"
	// SetDeadline notes on the claim when its pods will be deleted by force.
	SetDeadline Action = "SetDeadline"
	// DeleteNode asks for the Node to go; our finalizer keeps it until it is empty.
	DeleteNode Action = "DeleteNode"
	// Cordon keeps new pods off the Node.
	Cordon Action = "Cordon"
	// Evict the pods that package drain names.
	Evict Action = "Evict"
	// Terminate the machine.
	Terminate Action = "Terminate"
	// ReleaseNode takes our finalizer off the Node.
	ReleaseNode Action = "ReleaseNode"
	// Release takes our finalizer off the claim.
	Release Action = "Release"
)

// Step is the phase of a node and what to do next.
type Step struct {
	Phase  Phase
	Action Action

	// Reason says why: one of the Reason constants with Delete, one of the Wait constants with Wait.
	Reason string
	// Detail names the taint, the resource or the number that Reason is about.
	Detail string
	// Until is when to look again although nothing changed; zero: only a change matters.
	Until time.Time
}

// Reasons to delete a claim: values of the metric label reason.
const (
	ReasonLaunchTimeout       = "launch_timeout"
	ReasonRegistrationTimeout = "registration_timeout"
	ReasonOutdated            = "launch_outdated"
	ReasonShortage            = "insufficient_capacity"
	ReasonNodeClassNotReady   = "nodeclass_not_ready"
	ReasonExpired             = "expired"
	ReasonMachineGone         = "garbage_collected"
	ReasonNodeDeleted         = "node_deleted"
	// ReasonUnhealthy: Step.Detail is the condition. Its pods hardly run, and are deleted by force.
	ReasonUnhealthy = "unhealthy"
)

// Reasons to wait. Those of Bought and Joined are reasons of the claim's conditions, as Karpenter names them.
const (
	WaitNodeClass     = "NodeClassReadinessUnknown"
	WaitNextAttempt   = "LaunchFailed"
	WaitNode          = "NodeNotFound"
	WaitOneNode       = "MultipleNodesFound"
	WaitIdentity      = "NodeMismatch"    // Step.Detail says what differs between the Node and its instance
	WaitConfirmation  = "NodeUnconfirmed" // Step.Detail says what is missing for the comparison
	WaitReady         = "NodeNotReady"
	WaitStartupTaint  = "StartupTaintsExist"
	WaitEphemeral     = "KnownEphemeralTaintsExist"
	WaitResource      = "ResourceNotRegistered"
	WaitExpiry        = "NotExpired"
	WaitTurn          = "DisruptionBudget"
	WaitReplacement   = "AwaitingReplacement"
	WaitNothing       = "NothingToDo"
	WaitMachineAnswer = "MachineUnknown"
	WaitMachineEnd    = "MachineEnding"
	WaitUnmarked      = "InstanceTagsMissing"
	WaitSettle        = "Settling"
	WaitVolumes       = "AwaitingVolumeDetachment"
	WaitNodeGone      = "NodeDeleting"
)

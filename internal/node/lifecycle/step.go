package lifecycle

import "time"

// Phase is the phase of a node's life.
type Phase string

// The phases. Every phase but Gone leads to Draining when its claim is deleted.
const (
	Created    Phase = "Created"    // the claim exists, without an instance
	Launched   Phase = "Launched"   // the instance is launched
	Registered Phase = "Registered" // the Node is registered: it has its labels and taints
	Ready      Phase = "Ready"      // the node is initialized
	Draining   Phase = "Draining"   // the claim is being deleted
	Gone       Phase = "Gone"       // claim, Node and instance no longer exist
)

// Action is the kind of the next step.
type Action string

// The actions.
const (
	// Wait waits until Step.Until, or until a change.
	Wait Action = "Wait"

	// AddFinalizer adds the finalizer to the claim. Nothing is launched for a claim without it.
	AddFinalizer Action = "AddFinalizer"
	// AddLabels adds the labels that older versions of Joiner omitted to the claim and its Nodes.
	AddLabels Action = "AddLabels"
	// Launch launches an instance, or finds the instance of an earlier attempt.
	Launch Action = "Launch"
	// Record writes the ID of the launched instance to the claim.
	Record Action = "Record"
	// Register sets the Node's labels, taints, finalizer and owner, and removes the unregistered taint.
	Register Action = "Register"
	// BindPods binds pods that the Node was launched for to the closed Node.
	BindPods Action = "BindPods"
	// CordonForPods cordons the closed Node instead of the taint for nominations. DaemonSet pods tolerate a cordon.
	CordonForPods Action = "CordonForPods"
	// RemoveNominationTaint nominates the other pods that the Node was launched for, and opens the Node: it removes the taint
	// for nominations, and Joiner's cordon.
	RemoveNominationTaint Action = "RemoveNominationTaint"
	// AddNodeFinalizer adds the finalizer to a registered Node that lost it.
	AddNodeFinalizer Action = "AddNodeFinalizer"
	// Initialize marks the node as initialized.
	Initialize Action = "Initialize"

	// Replace writes the time of the replacement request to the claim. Unless the replacement needs no plan, Replace
	// also taints the Node, so that the next plan finds places for its pods on other nodes.
	Replace Action = "Replace"
	// DropStrays deletes the Nodes that Node.Strays counts.
	DropStrays Action = "DropStrays"

	// Delete deletes the claim, for Step.Reason.
	Delete Action = "Delete"
	// SetDeadline writes the time of the forced deletion of pods to the claim.
	SetDeadline Action = "SetDeadline"
	// DeleteNode deletes the Node; the finalizer keeps it until it is drained.
	DeleteNode Action = "DeleteNode"
	// Cordon taints the Node, so that it gets no new pods, and excludes it from load balancers.
	Cordon Action = "Cordon"
	// Evict evicts the pods that package drain selects.
	Evict Action = "Evict"
	// Terminate terminates the instance.
	Terminate Action = "Terminate"
	// RemoveNodeFinalizer removes the finalizer from the Node.
	RemoveNodeFinalizer Action = "RemoveNodeFinalizer"
	// RemoveFinalizer removes the finalizer from the claim.
	RemoveFinalizer Action = "RemoveFinalizer"
)

// Step is the phase of a node and its next action.
type Step struct {
	Phase  Phase  // current phase
	Action Action // next action

	// Reason is a Reason constant if Action is Delete, a Wait constant if Action is Wait, and empty otherwise.
	Reason string
	// Detail is what Reason or Action is about, such as a taint, a resource or a number of pods; empty if nothing.
	Detail string
	// Until is when to call Next again if nothing changes; zero: only after a change.
	Until time.Time
}

// Reasons to delete a claim: values of the label reason of karpenter_nodeclaims_disrupted_total.
const (
	ReasonLaunchTimeout       = "launch_timeout"
	ReasonRegistrationTimeout = "registration_timeout"
	ReasonOutdated            = "launch_outdated"
	ReasonShortage            = "insufficient_capacity"
	ReasonNodeClassNotReady   = "nodeclass_not_ready"
	ReasonExpired             = "expired"
	ReasonInstanceGone        = "garbage_collected"
	ReasonNodeDeleted         = "node_deleted"
	// ReasonUnhealthy has the condition type as Step.Detail. The node's pods are deleted forcibly.
	ReasonUnhealthy = "unhealthy"
)

// Reasons to wait. The reasons to wait for a launch, a Node or its readiness are also reasons of the claim's
// conditions, with Karpenter's names.
const (
	WaitNodeClass      = "NodeClassReadinessUnknown"
	WaitNextAttempt    = "LaunchFailed"
	WaitNode           = "NodeNotFound"
	WaitOneNode        = "MultipleNodesFound"
	WaitIdentity       = "NodeMismatch"    // Step.Detail is the difference between the Node and its instance
	WaitConfirmation   = "NodeUnconfirmed" // Step.Detail is the fact that is missing for the comparison
	WaitReady          = "NodeNotReady"
	WaitStartupTaint   = "StartupTaintsExist"
	WaitEphemeral      = "KnownEphemeralTaintsExist"
	WaitOpening        = "AwaitingTurn" // until Node.OpenAt, about MaxNominationWait + MaxCordon at most; not in a condition
	WaitResource       = "ResourceNotRegistered"
	WaitExpiry         = "NotExpired"
	WaitTurn           = "DisruptionBudget"    // budgets do not allow the replacement yet
	WaitReplacement    = "AwaitingReplacement" // the replacement is not ready
	WaitNothing        = "NothingToDo"
	WaitInstanceAnswer = "MachineUnknown" // the instance's state in EC2 is not known
	WaitInstanceEnd    = "MachineEnding"
	WaitUntagged       = "InstanceTagsMissing" // the user must terminate the instance
	WaitSettle         = "Settling"            // for DrainSettleTime
	WaitVolumes        = "AwaitingVolumeDetachment"
	WaitNodeGone       = "NodeDeleting"
)

package v1

// ConditionReady sums up the others on NodePool, NodeClaim, node class and overlay alike (ConditionSet).
const ConditionReady = "Ready"

// Reasons of every condition, which ConditionSet writes itself. The reason of a condition that is True is the condition's type.
const (
	// ReasonAwaitingReconciliation is that of a condition that nobody has looked at yet.
	ReasonAwaitingReconciliation = "AwaitingReconciliation"
	// ReasonReconcilingDependents is that of Ready=Unknown: one that it stands on is Unknown, and none is False.
	ReasonReconcilingDependents = "ReconcilingDependents"
	// ReasonUnhealthyDependents is that of Ready=False: one that it stands on is False.
	ReasonUnhealthyDependents = "UnhealthyDependents"
)

// Conditions of a NodePool. Ready stands on the first two; the others only inform.
const (
	// ConditionValidationSucceeded says that the spec holds what no schema can check.
	ConditionValidationSucceeded = "ValidationSucceeded"
	// ConditionNodeClassReady says that the node class exists and is ready.
	ConditionNodeClassReady = "NodeClassReady"
	// ConditionNodeRegistrationHealthy says whether the pool's last launches led to nodes.
	ConditionNodeRegistrationHealthy = "NodeRegistrationHealthy"
	// ConditionDisruptionPolicyValid is False where spec.disruption, or an annotation about it, makes no sense; it is not there
	// otherwise. What cannot be read allows nothing, and nodes are bought all the same.
	ConditionDisruptionPolicyValid = "DisruptionPolicyValid"
	// ConditionDisruptionPaused is True while nothing is begun with the pool's nodes by choice; it is not there otherwise.
	ConditionDisruptionPaused = "DisruptionPaused"
	// ConditionDriftHeld says that drifted nodes are not replaced, and why. It is there only while that is so.
	ConditionDriftHeld = "DriftHeld"
)

// Reasons of a NodePool's conditions.
const (
	ReasonNodePoolValidationFailed  = "NodePoolValidationFailed"  // the spec holds something that cannot be
	ReasonNodeClassNotFound         = "NodeClassNotFound"         // there is no such node class
	ReasonNodeClassTerminating      = "NodeClassTerminating"      // the node class is being deleted
	ReasonNodeClassReadinessUnknown = "NodeClassReadinessUnknown" // nobody has looked at the node class yet
	ReasonRegistrationFailed        = "RegistrationFailed"        // too many of the last launches led to no node
	ReasonDisruptionPolicyInvalid   = "DisruptionPolicyInvalid"   // the message names what makes no sense, and what is not done because of it
	ReasonMassDriftHeld             = "MassDriftHeld"             // too many nodes drift by what nobody changed in the cluster
	ReasonImageFailed               = "ImageFailed"               // nodes with the newest image failed; the last good one is used again
	ReasonCanaryFailed              = "CanaryFailed"              // nodes made from what is now asked for failed
)

// Conditions of a NodeClaim. Ready stands on the first three.
const (
	// ConditionLaunched says that the machine is bought.
	ConditionLaunched = "Launched"
	// ConditionRegistered says that the Node has joined and carries its labels and taints.
	ConditionRegistered = "Registered"
	// ConditionInitialized says that the Node is ready and offers all that was asked for. It goes back only when the kubelet
	// has made another Node.
	ConditionInitialized = "Initialized"
	// ConditionConsolidatable says that pods have left the node in peace for consolidateAfter.
	ConditionConsolidatable = "Consolidatable"
	// ConditionDrifted says that the node is not what its pool and node class now ask for; the reason names the part.
	ConditionDrifted = "Drifted"
	// ConditionDriftObserved is Drifted where the pool asks that drift is only told: nothing is replaced for it.
	ConditionDriftObserved = "DriftObserved"
	// ConditionDrained says that the pods that must leave a deleted node have left.
	ConditionDrained = "Drained"
	// ConditionVolumesDetached says that the volumes of a deleted node are detached.
	ConditionVolumesDetached = "VolumesDetached"
	// ConditionInstanceTerminating says that the cloud was told to end the machine.
	ConditionInstanceTerminating = "InstanceTerminating"
	// ConditionConsistentStateFound says that the node has what its instance type promised.
	ConditionConsistentStateFound = "ConsistentStateFound"
	// ConditionDisruptable is False while something keeps the node from being taken away by choice, with what as its reason; it is
	// not there otherwise.
	ConditionDisruptable = "Disruptable"
	// ConditionDisruptionReason has as its reason why the node is being taken away.
	ConditionDisruptionReason = "DisruptionReason"
)

// Reasons of a NodeClaim's conditions.
const (
	ReasonLaunchFailed                  = "LaunchFailed"                  // EC2 refused the launch
	ReasonNodeNotFound                  = "NodeNotFound"                  // the instance has not joined yet
	ReasonMultipleNodesFound            = "MultipleNodesFound"            // several Nodes say that they are this instance
	ReasonRegistrationHookPending       = "RegistrationHookPending"       // somebody else must finish first
	ReasonNodeNotReady                  = "NodeNotReady"                  // the kubelet does not report Ready
	ReasonStartupTaintsExist            = "StartupTaintsExist"            // a startup taint is still there
	ReasonKnownEphemeralTaintsExist     = "KnownEphemeralTaintsExist"     // a taint that Kubernetes takes away by itself is still there
	ReasonResourceNotRegistered         = "ResourceNotRegistered"         // a device plugin has not told of its devices yet
	ReasonDRADriverPoolsNotPublished    = "DRADriverPoolsNotPublished"    // a driver has not told of its devices yet
	ReasonDraining                      = "Draining"                      // pods have yet to leave
	ReasonTerminationGracePeriodElapsed = "TerminationGracePeriodElapsed" // the grace period ended before
	ReasonConsistencyCheckFailed        = "ConsistencyCheckFailed"        // the Node has less than was promised
)

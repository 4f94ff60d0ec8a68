package v1

// ConditionReady sums up the others on NodePool, NodeClaim and node class alike. See ConditionSet.
const ConditionReady = "Ready"

// Reasons that ConditionSet writes itself. The reason of a condition that is True is the condition's type.
const (
	// ReasonAwaitingReconciliation is the reason of a condition that nobody has looked at yet.
	ReasonAwaitingReconciliation = "AwaitingReconciliation"
	// ReasonReconcilingDependents is the reason of Ready=Unknown.
	ReasonReconcilingDependents = "ReconcilingDependents"
	// ReasonUnhealthyDependents is the reason of Ready=False.
	ReasonUnhealthyDependents = "UnhealthyDependents"
)

// Conditions of a NodePool. Ready stands on the first two; the third only informs.
const (
	// ConditionValidationSucceeded says that the spec holds what no schema can check.
	ConditionValidationSucceeded = "ValidationSucceeded"
	// ConditionNodeClassReady says that the node class exists and is ready.
	ConditionNodeClassReady = "NodeClassReady"
	// ConditionNodeRegistrationHealthy says whether the pool's last launches led to nodes.
	ConditionNodeRegistrationHealthy = "NodeRegistrationHealthy"
)

// Reasons of a NodePool's conditions.
const (
	ReasonNodePoolValidationFailed  = "NodePoolValidationFailed"
	ReasonNodeClassNotFound         = "NodeClassNotFound"
	ReasonNodeClassTerminating      = "NodeClassTerminating"
	ReasonNodeClassReadinessUnknown = "NodeClassReadinessUnknown"
	ReasonRegistrationFailed        = "RegistrationFailed"
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
	// ConditionDrained says that the pods that must leave a deleted node have left.
	ConditionDrained = "Drained"
	// ConditionVolumesDetached says that the volumes of a deleted node are detached.
	ConditionVolumesDetached = "VolumesDetached"
	// ConditionInstanceTerminating says that the cloud was told to end the machine.
	ConditionInstanceTerminating = "InstanceTerminating"
	// ConditionConsistentStateFound says that the node has what its instance type promised.
	ConditionConsistentStateFound = "ConsistentStateFound"
	// ConditionDisruptionReason holds, as its reason, why the node is being taken away.
	ConditionDisruptionReason = "DisruptionReason"
)

// Reasons of a NodeClaim's conditions.
const (
	ReasonLaunchFailed                  = "LaunchFailed"
	ReasonNodeNotFound                  = "NodeNotFound"
	ReasonMultipleNodesFound            = "MultipleNodesFound"
	ReasonRegistrationHookPending       = "RegistrationHookPending"
	ReasonNodeNotReady                  = "NodeNotReady"
	ReasonStartupTaintsExist            = "StartupTaintsExist"
	ReasonKnownEphemeralTaintsExist     = "KnownEphemeralTaintsExist"
	ReasonResourceNotRegistered         = "ResourceNotRegistered"
	ReasonDRADriverPoolsNotPublished    = "DRADriverPoolsNotPublished"
	ReasonDraining                      = "Draining"
	ReasonTerminationGracePeriodElapsed = "TerminationGracePeriodElapsed"
	ReasonConsistencyCheckFailed        = "ConsistencyCheckFailed"
)

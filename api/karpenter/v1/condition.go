package v1

// ConditionReady is True if all conditions that it depends on are True, and False if one of them is False.
const ConditionReady = "Ready"

// Reasons of any condition. ConditionSet writes them itself. The reason of a True condition is its type.
const (
	// ReasonAwaitingReconciliation is the reason of a condition that no controller has set yet.
	ReasonAwaitingReconciliation = "AwaitingReconciliation"
	// ReasonReconcilingDependents is the reason of Ready=Unknown: a condition that it depends on is Unknown, and none is False.
	ReasonReconcilingDependents = "ReconcilingDependents"
	// ReasonUnhealthyDependents is the reason of Ready=False: a condition that it depends on is False.
	ReasonUnhealthyDependents = "UnhealthyDependents"
)

// Conditions of a NodePool. Ready depends on the first two; the others inform only.
const (
	// ConditionValidationSucceeded is True if the spec passes the checks that the schema cannot express.
	ConditionValidationSucceeded = "ValidationSucceeded"
	// ConditionNodeClassReady is True if the EC2NodeClass exists and is ready.
	ConditionNodeClassReady = "NodeClassReady"
	// ConditionNodeRegistrationHealthy is True if the last instances of the NodePool registered as nodes.
	ConditionNodeRegistrationHealthy = "NodeRegistrationHealthy"
	// ConditionDisruptionPolicyValid is False if spec.disruption, or an annotation that extends it, is invalid. It is absent otherwise.
	// An invalid value allows no disruption. Launches are not affected.
	ConditionDisruptionPolicyValid = "DisruptionPolicyValid"
	// ConditionDisruptionPaused is True while no voluntary disruption of the NodePool's nodes is started. It is absent otherwise.
	ConditionDisruptionPaused = "DisruptionPaused"
	// ConditionDriftHeld is True while drifted nodes are not replaced; the message gives the cause. It is absent otherwise.
	ConditionDriftHeld = "DriftHeld"
)

// Reasons of a NodePool's conditions.
const (
	ReasonNodePoolValidationFailed  = "NodePoolValidationFailed"  // a value of the spec is invalid
	ReasonNodeClassNotFound         = "NodeClassNotFound"         // the EC2NodeClass does not exist
	ReasonNodeClassTerminating      = "NodeClassTerminating"      // the EC2NodeClass is being deleted
	ReasonNodeClassReadinessUnknown = "NodeClassReadinessUnknown" // the EC2NodeClass has not been reconciled yet
	ReasonRegistrationFailed        = "RegistrationFailed"        // too many of the last instances did not register
	ReasonDisruptionPolicyInvalid   = "DisruptionPolicyInvalid"   // the message names the invalid value and what is not done because of it
	ReasonMassDriftHeld             = "MassDriftHeld"             // too many nodes drifted by a change that was not made in the cluster
	ReasonImageFailed               = "ImageFailed"               // nodes with the newest image failed; the last good image is used again
	ReasonCanaryFailed              = "CanaryFailed"              // nodes with the current spec failed
)

// Conditions of a NodeClaim. Ready depends on the first three.
const (
	// ConditionLaunched is True once the instance is launched.
	ConditionLaunched = "Launched"
	// ConditionRegistered is True once the Node has joined and carries its labels and taints.
	ConditionRegistered = "Registered"
	// ConditionInitialized is True once the Node is ready and has the requested resources. It becomes False only if the kubelet
	// creates a new Node.
	ConditionInitialized = "Initialized"
	// ConditionConsolidatable is True if in the last consolidateAfter no pod was bound to the node and none left it.
	ConditionConsolidatable = "Consolidatable"
	// ConditionDrifted is True if the node differs from its NodePool or EC2NodeClass; the reason names the part.
	ConditionDrifted = "Drifted"
	// ConditionDriftObserved replaces Drifted if the NodePool's annotation joiner.sh/drift is observe. Drifted
	// nodes are then not replaced.
	ConditionDriftObserved = "DriftObserved"
	// ConditionDrained is True once the pods of a deleted node are evicted.
	ConditionDrained = "Drained"
	// ConditionVolumesDetached is True once the volumes of a deleted node are detached.
	ConditionVolumesDetached = "VolumesDetached"
	// ConditionInstanceTerminating is True once EC2 was asked to terminate the instance.
	ConditionInstanceTerminating = "InstanceTerminating"
	// ConditionConsistentStateFound is True if the node has the resources that its instance type promises.
	ConditionConsistentStateFound = "ConsistentStateFound"
	// ConditionDisruptable is False while something blocks voluntary disruption of the node; the reason says what. It is
	// absent otherwise.
	ConditionDisruptable = "Disruptable"
	// ConditionDisruptionReason has the cause of a disruption in progress as its reason.
	ConditionDisruptionReason = "DisruptionReason"
)

// Reasons of a NodeClaim's conditions.
const (
	ReasonLaunchFailed                  = "LaunchFailed"                  // EC2 refused the launch
	ReasonNodeNotFound                  = "NodeNotFound"                  // the instance has not joined yet
	ReasonMultipleNodesFound            = "MultipleNodesFound"            // several Nodes have the provider ID of this instance
	ReasonRegistrationHookPending       = "RegistrationHookPending"       // another controller must finish first
	ReasonNodeNotReady                  = "NodeNotReady"                  // the kubelet does not report Ready
	ReasonStartupTaintsExist            = "StartupTaintsExist"            // a startup taint is still there
	ReasonKnownEphemeralTaintsExist     = "KnownEphemeralTaintsExist"     // a taint that Kubernetes removes itself is still there
	ReasonResourceNotRegistered         = "ResourceNotRegistered"         // a device plugin has not reported its devices yet
	ReasonDRADriverPoolsNotPublished    = "DRADriverPoolsNotPublished"    // a DRA driver has not published its devices yet
	ReasonDraining                      = "Draining"                      // pods are still on the node
	ReasonTerminationGracePeriodElapsed = "TerminationGracePeriodElapsed" // the grace period ended before all volumes were detached
	ReasonConsistencyCheckFailed        = "ConsistencyCheckFailed"        // the Node has less than its instance type promises
)

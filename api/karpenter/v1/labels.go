package v1

import corev1 "k8s.io/api/core/v1"

// Labels on NodeClaims and Nodes.
const (
	// LabelNodePool holds the name of the NodePool that a node belongs to.
	LabelNodePool = Group + "/nodepool"
	// LabelCapacityType is the capacity type: spot, on-demand or reserved.
	LabelCapacityType = Group + "/capacity-type"
	// LabelRegistered is "true" on a Node once its claim is registered.
	LabelRegistered = Group + "/registered"
	// LabelInitialized is "true" on a Node once its claim is initialized.
	LabelInitialized = Group + "/initialized"
	// LabelDoNotSyncTaints is "true" on a Node whose bootstrap has set the NodeClaim's taints. They are then not
	// added at registration.
	LabelDoNotSyncTaints = Group + "/do-not-sync-taints"
	// LabelExcludeFromLoadBalancers, with the value ExcludedFromLoadBalancers, removes a draining Node from load
	// balancers.
	LabelExcludeFromLoadBalancers = corev1.LabelNodeExcludeBalancers
	// ExcludedFromLoadBalancers is the value of LabelExcludeFromLoadBalancers; it names the controller that set the
	// label. Karpenter uses the same value.
	ExcludedFromLoadBalancers = "karpenter"
)

// The values of LabelCapacityType.
const (
	CapacityTypeSpot     = "spot"
	CapacityTypeOnDemand = "on-demand"
	CapacityTypeReserved = "reserved"
)

// The values of the label kubernetes.io/arch on EC2.
const (
	ArchitectureAMD64 = "amd64"
	ArchitectureARM64 = "arm64"
)

// Annotations.
const (
	// AnnotationDoNotDisrupt on a pod or Node is "true" to block voluntary disruption of the node.
	AnnotationDoNotDisrupt = Group + "/do-not-disrupt"
	// AnnotationNodePoolHash on a NodePool and on its NodeClaims and Nodes is the drift hash of the NodePool's template,
	// in decimal.
	AnnotationNodePoolHash = Group + "/nodepool-hash"
	// AnnotationNodePoolHashVersion is the version of the algorithm of AnnotationNodePoolHash.
	AnnotationNodePoolHashVersion = Group + "/nodepool-hash-version"
	// AnnotationTerminationTimestamp is the time, in RFC 3339, at which the pods of a NodeClaim are deleted forcibly.
	AnnotationTerminationTimestamp = Group + "/nodeclaim-termination-timestamp"
	// AnnotationMinValuesRelaxed on a NodeClaim is "true" if minValues could not be satisfied, else "false".
	AnnotationMinValuesRelaxed = Group + "/nodeclaim-min-values-relaxed"
	// AnnotationDRADrivers on a NodeClaim lists the drivers whose devices its pods use, separated by commas.
	AnnotationDRADrivers = Group + "/requested-dra-drivers"
	// AnnotationPriceOverlay marks a NodeClaim whose price comes from a NodeOverlay.
	AnnotationPriceOverlay = Group + "/price-overlay-applied"
	// AnnotationCapacityOverlay marks a NodeClaim whose capacity comes from a NodeOverlay.
	AnnotationCapacityOverlay = Group + "/capacity-overlay-applied"
	// AnnotationBufferFakePod marks the virtual pods of a CapacityBuffer.
	AnnotationBufferFakePod = Group + "/capacity-buffer-fake-pod"
	// AnnotationBufferName is the name of the CapacityBuffer of a virtual pod.
	AnnotationBufferName = Group + "/capacity-buffer-name"
	// AnnotationBufferNamespace is the namespace of the CapacityBuffer of a virtual pod.
	AnnotationBufferNamespace = Group + "/capacity-buffer-namespace"
	// AnnotationProviderCompatibility is a leftover of Karpenter's v1alpha5 API that may still be on old objects.
	AnnotationProviderCompatibility = "compatibility." + Group + "/provider"
)

// KeyClusterUID marks ownership: an annotation on NodeClaims and a tag on every AWS resource that Joiner creates. Its value
// is the UID of the cluster's namespace kube-system, which differs between two clusters with the same name.
const KeyClusterUID = "joiner.sh/cluster-uid"

// FinalizerTermination is on NodeClaims and Nodes until their instance is terminated.
const FinalizerTermination = Group + "/termination"

// Taints. See DisruptedTaint and UnregisteredTaint.
const (
	// TaintDisrupted (NoSchedule) keeps new pods off a Node that is being drained.
	TaintDisrupted = Group + "/disrupted"
	// TaintUnregistered (NoExecute) keeps pods off a Node until its labels and taints are in place. The Node's bootstrap sets this taint.
	TaintUnregistered = Group + "/unregistered"
)

// DisruptedTaint returns the taint that keeps new pods off a Node that is being drained.
func DisruptedTaint() corev1.Taint {
	return corev1.Taint{Key: TaintDisrupted, Effect: corev1.TaintEffectNoSchedule}
}

// UnregisteredTaint returns the taint that keeps pods off a Node until its labels and taints are in place. The kubelet
// registers the Node with this taint, because the user data puts it into the kubelet's configuration.
func UnregisteredTaint() corev1.Taint {
	return corev1.Taint{Key: TaintUnregistered, Effect: corev1.TaintEffectNoExecute}
}

// ResourceNodes is the resource name that limits the number of nodes in the limits of a NodePool.
const ResourceNodes corev1.ResourceName = "nodes"

// WellKnownLabels returns the well-known labels of every cloud; see also awsv1.WellKnownLabels. A new node can meet a
// requirement on such a label. A requirement on any other label can only be met by a NodePool that sets the label.
func WellKnownLabels() []string {
	return []string{
		LabelNodePool,
		corev1.LabelTopologyZone,
		corev1.LabelTopologyRegion,
		corev1.LabelInstanceTypeStable,
		corev1.LabelArchStable,
		corev1.LabelOSStable,
		LabelCapacityType,
		corev1.LabelWindowsBuild,
	}
}

// StableLabel returns the current name of a label that Kubernetes renamed, and any other key unchanged.
func StableLabel(key string) string {
	switch key {
	case corev1.LabelFailureDomainBetaZone:
		return corev1.LabelTopologyZone
	case corev1.LabelFailureDomainBetaRegion:
		return corev1.LabelTopologyRegion
	case corev1.LabelInstanceType:
		return corev1.LabelInstanceTypeStable
	case "beta.kubernetes.io/arch":
		return corev1.LabelArchStable
	case "beta.kubernetes.io/os":
		return corev1.LabelOSStable
	}
	return key
}

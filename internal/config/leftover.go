package config

// Leftover is a value of Karpenter's Helm chart before 1.0 that later versions ignore. Joiner's chart ignores it, too,
// and prints Replacement.
type Leftover struct {
	Path        string // "settings.aws.defaultInstanceProfile"
	Replacement string // what to set instead, or that there is no replacement
}

// Leftovers returns all leftovers, sorted by path. A path also stands for all values below it.
func Leftovers() []Leftover {
	const (
		profile       = "set spec.instanceProfile of the EC2NodeClass"
		role          = "assign the controller's role by IRSA or EKS Pod Identity; the controller assumes no other role"
		maxPods       = "set spec.kubelet.maxPods of the EC2NodeClass to override the VPC CNI's pod limit"
		eni           = "no replacement: pods that request vpc.amazonaws.com/pod-eni get nodes that have it"
		logs          = "set logLevel"
		drift         = "no replacement: drift is always on; limit it with the NodePool's disruption budgets"
		tags          = "set spec.tags of the EC2NodeClass"
		noReplacement = "no replacement"
	)
	return []Leftover{
		{"aws.defaultInstanceProfile", profile},
		{"clusterEndpoint", "set settings.clusterEndpoint"},
		{"clusterName", "set settings.clusterName"},
		{"controller.batchIdleDuration", "set settings.batchIdleDuration"},
		{"controller.batchMaxDuration", "set settings.batchMaxDuration"},
		{"controller.errorOutputPaths", "set logErrorOutputPaths"},
		{"controller.logEncoding", noReplacement},
		{"controller.logLevel", logs},
		{"controller.outputPaths", "set logOutputPaths"},
		{"defaultProvisioner", "create a NodePool"},
		{"logConfig", logs},
		{"logEncoding", noReplacement},
		{"settings.assumeRoleARN", role},
		{"settings.assumeRoleDuration", role},
		{"settings.aws.assumeRoleARN", role},
		{"settings.aws.assumeRoleDuration", role},
		{"settings.aws.clusterCABundle", "set settings.clusterCABundle"},
		{"settings.aws.clusterEndpoint", "set settings.clusterEndpoint"},
		{"settings.aws.clusterName", "set settings.clusterName"},
		{"settings.aws.defaultInstanceProfile", profile},
		{"settings.aws.enableENILimitedPodDensity", maxPods},
		{"settings.aws.enablePodENI", eni},
		{"settings.aws.interruptionQueueName", "set settings.interruptionQueue"},
		{"settings.aws.isolatedVPC", "set settings.isolatedVPC"},
		{"settings.aws.nodeNameConvention", noReplacement},
		{"settings.aws.reservedENIs", "set settings.reservedENIs"},
		{"settings.aws.tags", tags},
		{"settings.aws.vmMemoryOverheadPercent", "set settings.vmMemoryOverheadPercent"},
		{"settings.defaultInstanceProfile", profile},
		{"settings.enableENILimitedPodDensity", maxPods},
		{"settings.enablePodENI", eni},
		{"settings.featureGates.drift", drift},
		{"settings.featureGates.driftEnabled", drift},
		{"settings.interruptionQueueName", "set settings.interruptionQueue"},
		{"settings.nodeNameConvention", noReplacement},
		{"settings.tags", tags},
	}
}

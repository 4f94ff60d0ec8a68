package config

// Leftover is a value of Karpenter's chart before 1.0. Newer charts of Karpenter ignore it, and Joiner's chart reports it.
type Leftover struct {
	Path string // "settings.aws.defaultInstanceProfile"
	Says string // the replacement
}

// Leftovers returns these values, sorted by path. A path includes everything below it.
func Leftovers() []Leftover {
	const (
		class      = "set spec.instanceProfile of the EC2NodeClass"
		noRole     = "give the controller's role by IRSA or Pod Identity; no other role is assumed"
		noLimit    = "set spec.kubelet.maxPods of the EC2NodeClass, where another number than the VPC CNI's is wanted"
		eni        = "nothing takes its place: pods that ask for vpc.amazonaws.com/pod-eni get nodes that have it"
		logs       = "set logLevel"
		drift      = "nothing takes its place: drift is always on; a NodePool's budgets bound it"
		newClass   = "set spec.tags of the EC2NodeClass"
		unnumbered = "nothing takes its place"
	)
	return []Leftover{
		{"aws.defaultInstanceProfile", class},
		{"clusterEndpoint", "set settings.clusterEndpoint"},
		{"clusterName", "set settings.clusterName"},
		{"controller.batchIdleDuration", "set settings.batchIdleDuration"},
		{"controller.batchMaxDuration", "set settings.batchMaxDuration"},
		{"controller.errorOutputPaths", "set logErrorOutputPaths"},
		{"controller.logEncoding", unnumbered},
		{"controller.logLevel", logs},
		{"controller.outputPaths", "set logOutputPaths"},
		{"defaultProvisioner", "make a NodePool"},
		{"logConfig", logs},
		{"logEncoding", unnumbered},
		{"settings.assumeRoleARN", noRole},
		{"settings.assumeRoleDuration", noRole},
		{"settings.aws.assumeRoleARN", noRole},
		{"settings.aws.assumeRoleDuration", noRole},
		{"settings.aws.clusterCABundle", "set settings.clusterCABundle"},
		{"settings.aws.clusterEndpoint", "set settings.clusterEndpoint"},
		{"settings.aws.clusterName", "set settings.clusterName"},
		{"settings.aws.defaultInstanceProfile", class},
		{"settings.aws.enableENILimitedPodDensity", noLimit},
		{"settings.aws.enablePodENI", eni},
		{"settings.aws.interruptionQueueName", "set settings.interruptionQueue"},
		{"settings.aws.isolatedVPC", "set settings.isolatedVPC"},
		{"settings.aws.nodeNameConvention", unnumbered},
		{"settings.aws.reservedENIs", "set settings.reservedENIs"},
		{"settings.aws.tags", newClass},
		{"settings.aws.vmMemoryOverheadPercent", "set settings.vmMemoryOverheadPercent"},
		{"settings.defaultInstanceProfile", class},
		{"settings.enableENILimitedPodDensity", noLimit},
		{"settings.enablePodENI", eni},
		{"settings.featureGates.drift", drift},
		{"settings.featureGates.driftEnabled", drift},
		{"settings.interruptionQueueName", "set settings.interruptionQueue"},
		{"settings.nodeNameConvention", unnumbered},
		{"settings.tags", newClass},
	}
}

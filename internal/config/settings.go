// Package config defines the settings of the controller: flag, environment variable, default and validation of each.
//
// In: the command line's arguments and the environment.
// Out: Settings, notes on settings without effect, or an error that names the setting and the fix.
// Never: a setting that is read anywhere else, or an invalid value that is silently replaced.
package config

import "time"

// Settings configure the controller. Flags and variables have Karpenter's names, so that a configuration of Karpenter
// works unchanged.
type Settings struct {
	// ClusterName is the name of the EKS cluster.
	ClusterName string
	// ClusterEndpoint is the URL at which nodes reach the API server. Empty: the controller reads it from EKS.
	ClusterEndpoint string
	// ClusterCABundle is the API server's certificate authority, PEM in base64. Empty: the controller reads it from
	// EKS.
	ClusterCABundle string
	// Kubeconfig is the path of a kubeconfig file. Empty: $KUBECONFIG, the pod's service account, or the user's default
	// file, in this order.
	Kubeconfig string
	// Region is the AWS region. Empty: the AWS SDK determines it.
	Region string

	// BatchIdle is the time without a new pending pod after which a plan is made. BatchMax is the maximum time from the
	// first pending pod to the plan.
	BatchIdle, BatchMax time.Duration

	// SchedulerConfig is YAML or JSON (not a path) with kube-scheduler's default topology spread constraints, for
	// conversion.ReadDefaultSpread.
	SchedulerConfig string
	// PreferencePolicy is Respect or Ignore. With Ignore, preferences of pods do not affect plans.
	PreferencePolicy string
	// MinValuesPolicy is Strict or BestEffort. With BestEffort, minValues of NodePools are relaxed if they cannot be
	// met.
	MinValuesPolicy string

	// MemoryOverheadPercent is the fraction of an instance's memory that is not available to its node: 0.075 is 7.5 %.
	MemoryOverheadPercent float64
	// ReservedENIs is the number of network interfaces of each instance that the VPC CNI does not use for pods.
	ReservedENIs int
	// IsolatedVPC means that services without a VPC endpoint cannot be reached. The Price List API is not called. IAM
	// is not called for instance profiles that an EC2NodeClass names. An EC2NodeClass with a role still needs IAM.
	IsolatedVPC bool
	// InterruptionQueue is the name of the SQS queue to which EventBridge delivers the interruption messages of EC2 and
	// AWS Health. Empty: no messages are received, so nodes are not drained before an interruption.
	InterruptionQueue string
	// SubnetRefresh is the maximum interval at which the subnets and security groups of EC2NodeClasses are resolved.
	// AMIRefresh is the maximum interval for AMIs. The controller resolves all of them at the shorter interval.
	SubnetRefresh, AMIRefresh time.Duration

	// ZonalShift prevents launches in zones with an active ARC zonal shift of the cluster; see package eks.
	ZonalShift bool

	// DisableDryRun disables the dry run of a launch that validates EC2NodeClasses.
	DisableDryRun bool
	// ShortageBackoff is how long an offering is skipped after the first insufficient-capacity error; see
	// ec2.Shortages.
	ShortageBackoff time.Duration
	// LateAfter is the time after the launch when the controller diagnoses why an instance has no Node.
	LateAfter time.Duration
	// EC2Limits are the EC2 API limits of the account, by action ("CreateFleet", "Describe*"), if they differ from the
	// published defaults; see package ratelimit.
	EC2Limits map[string]Rate

	// BreakerCount and BreakerShare limit how many orphaned instances or NodeClaims the controller garbage-collects at
	// once. If the orphans of a kind exceed both limits, the controller removes none of
	// them. BreakerShare is a share of all objects of the kind.
	BreakerCount int
	BreakerShare float64
	// DriftBreakerCount and DriftBreakerShare limit drift that no change in the cluster caused. If at least
	// DriftBreakerCount nodes of a NodePool, and more than DriftBreakerShare of its nodes, drift at once, none is
	// replaced until the user allows it.
	DriftBreakerCount int
	DriftBreakerShare float64

	// ReservedCapacity allows launches into the capacity reservations that EC2NodeClasses select. It is the feature
	// gate ReservedCapacity, and on by default.
	ReservedCapacity bool
	// SpotToSpot allows consolidation to replace spot instances with cheaper spot instances. It is the feature gate
	// SpotToSpotConsolidation, and off by default.
	SpotToSpot bool
	// NodeOverlays applies NodeOverlays to instance types. It is the feature gate NodeOverlay.
	NodeOverlays bool
	// NodeRepair replaces nodes that are unhealthy for too long. It is the feature gate NodeRepair.
	NodeRepair bool
	// StaticPools keeps NodePools with spec.replicas at that number of nodes. It is the feature gate StaticCapacity.
	StaticPools bool

	// KubeQPS limits the calls to the API server per second. KubeBurst limits the calls of a burst.
	KubeQPS   float64
	KubeBurst int
	// MetricsPort is the port of /metrics, ProbePort that of /healthz and /readyz; 0 disables them.
	MetricsPort, ProbePort int
	// BindAddress is the IP address on which both ports listen. Empty: all addresses.
	BindAddress string
	// Profiling serves /debug/pprof on MetricsPort.
	Profiling bool
	// MemoryLimit is the memory limit of the container in bytes; -1 for none. The soft limit of the Go runtime is 90 %
	// of MemoryLimit.
	MemoryLimit int64

	// LeaderElection enables leader election with the Lease LeaderElectionName. The Lease has Karpenter's name by
	// default, so that only one of Joiner and Karpenter is active. An empty LeaderElectionNamespace means the pod's
	// namespace.
	LeaderElection                              bool
	LeaderElectionName, LeaderElectionNamespace string

	// ApplyCRDs makes each controller apply missing CRDs when it starts, and the leader update older ones.
	ApplyCRDs bool

	// LogLevel is debug, info or error.
	LogLevel string
}

// Rate is a rate limit: a burst of calls, and the calls per second after that.
type Rate struct {
	Burst     float64 // calls at once
	PerSecond float64 // calls per second after the burst
}

// Defaults of Settings that other packages use.
const (
	BatchIdle       = time.Second
	BatchMax        = 10 * time.Second
	KubeQPS         = 200
	KubeBurst       = 300
	RefreshInterval = time.Minute
	ShortageBackoff = 3 * time.Minute
	BreakerCount    = 10
	BreakerShare    = 0.25

	DriftBreakerCount = 5
	DriftBreakerShare = 0.5

	LateAfter = 90 * time.Second
)

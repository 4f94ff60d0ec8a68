// Package config is every setting of the controller, once: its flag, its environment variable, its default, its check.
//
// In: the command line's arguments and the environment.
// Out: Settings, notes on what was asked for and is not done, or an error that names the setting and the fix.
// Never: a setting that is read anywhere else, or a wrong value that is silently replaced.
package config

import "time"

// Settings are how the controller behaves. Flags and variables have the names that Karpenter gives them, so that an
// installation can be moved over as it is.
type Settings struct {
	// ClusterName is the name of the EKS cluster.
	ClusterName string
	// ClusterEndpoint is the URL of the API server as nodes reach it. Empty: EKS is asked.
	ClusterEndpoint string
	// ClusterCABundle is the API server's certificate authority, PEM in base64. Empty: EKS is asked.
	ClusterCABundle string
	// Kubeconfig is the file with the way to the API server. Empty: $KUBECONFIG, the pod's service account, or the
	// user's default file, in this order.
	Kubeconfig string
	// Region is the AWS region. Empty: the AWS SDK finds it.
	Region string

	// BatchIdle is how long no new pending pod may appear before a plan is made; BatchMax the longest wait in all.
	BatchIdle, BatchMax time.Duration

	// SchedulerConfig is a text (not a path) with the cluster's default topology spread constraints, YAML or JSON: kube.ReadUsualSpread.
	SchedulerConfig string
	// PreferencePolicy is Respect, or Ignore: then what pods merely prefer is not planned for.
	PreferencePolicy string
	// MinValuesPolicy is Strict, or BestEffort: then minValues of NodePools give way where they cannot be met.
	MinValuesPolicy string

	// MemoryOverheadPercent is the share of an instance's memory that never reaches its nodes: 0.075.
	MemoryOverheadPercent float64
	// ReservedENIs are network interfaces of each instance that the VPC CNI keeps from pods.
	ReservedENIs int
	// IsolatedVPC: there is no way to services without an endpoint in the VPC. The Price List is not asked, and IAM not about
	// instance profiles that an EC2NodeClass names; one that names a role instead needs IAM all the same.
	IsolatedVPC bool
	// InterruptionQueue is the name of the SQS queue that EventBridge delivers EC2's and Health's notices to. Empty: there is
	// none, and machines end without notice.
	InterruptionQueue string
	// SubnetRefresh and AMIRefresh are how often node classes look for subnets and security groups, and for images.
	SubnetRefresh, AMIRefresh time.Duration

	// ZonalShift: nothing is launched in zones from which the cluster's traffic is shifted away: package shift.
	ZonalShift bool

	// DisableDryRun: EC2 is not asked about a launch before there is one.
	DisableDryRun bool
	// ShortageBackoff is how long what EC2 was short of is not asked for again after the first time: ec2.Shortages.
	ShortageBackoff time.Duration
	// LateAfter is how long after its launch an instance may be without a Node before it is looked into why.
	LateAfter time.Duration
	// EC2Limits are EC2's limits of API calls, by action ("CreateFleet", "Describe*"), where they are not those that every
	// account begins with: package budget.
	EC2Limits map[string]Rate

	// BreakerCount and BreakerShare are how much the sweeper may remove at once: it removes nothing when more than so many things, and
	// more than this share of all of their kind, have lost their counterpart.
	BreakerCount int
	BreakerShare float64
	// DriftBreakerCount and DriftBreakerShare are how many nodes of a NodePool may drift at once by what nobody changed in the cluster:
	// with at least so many nodes, and more than this share of the pool's, nothing is replaced until the user says so.
	DriftBreakerCount int
	DriftBreakerShare float64

	// ReservedCapacity: capacity reservations that EC2NodeClasses select are launched into. On unless the feature gate says
	// otherwise.
	ReservedCapacity bool
	// SpotToSpot: spot instances are replaced by cheaper spot instances. Off unless the feature gate says so.
	SpotToSpot bool
	// NodeOverlays count: the feature gate NodeOverlay is on.
	NodeOverlays bool
	// NodeRepair: nodes that are unwell for too long are replaced: the feature gate NodeRepair is on.
	NodeRepair bool
	// StaticPools: NodePools with spec.replicas are kept at that number of nodes: the feature gate StaticCapacity is on.
	StaticPools bool

	// KubeQPS and KubeBurst bound the calls to the API server, per second and at once.
	KubeQPS   float64
	KubeBurst int
	// MetricsPort and ProbePort are where /metrics and /healthz, /readyz answer; 0 for nowhere.
	MetricsPort, ProbePort int
	// BindAddress is the IP address that both are on. Empty: all of the machine's.
	BindAddress string
	// Profiling serves /debug/pprof on MetricsPort.
	Profiling bool
	// MemoryLimit is the container's, in bytes, 90 % of which the garbage collector tries to stay under; -1 for none.
	MemoryLimit int64

	// LeaderElection and the Lease it is held by. The default name is Karpenter's: of the two, only one acts.
	LeaderElection                              bool
	LeaderElectionName, LeaderElectionNamespace string

	// ApplyCRDs: the controller that acts brings the CustomResourceDefinitions of the API up to date.
	ApplyCRDs bool

	// LogLevel is debug, info or error.
	LogLevel string
}

// Rate is so many calls at once, and so many a second after that.
type Rate struct {
	Burst     float64
	PerSecond float64
}

// Default values of Settings that matter outside of this package.
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

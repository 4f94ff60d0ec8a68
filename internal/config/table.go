package config

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// setting is one row of table: the flag of a setting, its default, its help and its parser.
type setting struct {
	flag     string                  // "batch-max-duration"; the variable is BATCH_MAX_DURATION
	fallback string                  // default, as text
	help     string                  // for the command's help and the reference documentation
	isBool   bool                    // the flag may be given without a value
	set      func(text string) error // parses and stores the value
}

// bothNames returns the flag and the variable of the setting: "--log-level (LOG_LEVEL)".
func (s setting) bothNames() string { return fmt.Sprintf("--%s (%s)", s.flag, s.variable()) }

func (s setting) variable() string {
	return strings.ToUpper(strings.ReplaceAll(s.flag, "-", "_"))
}

// table returns the supported settings; their parsers store the values in c.
func (c *Settings) table() []setting {
	return []setting{
		{flag: "cluster-name", help: "name of the EKS cluster (required)", set: clusterName(&c.ClusterName)},
		{flag: "cluster-endpoint", help: "URL of the API server as nodes reach it; read from EKS if empty", set: address(&c.ClusterEndpoint)},
		{
			flag: "cluster-ca-bundle",
			help: "the API server's certificate authority, PEM in base64; read from EKS if empty",
			set:  authority(&c.ClusterCABundle),
		},
		{flag: "kubeconfig", help: "kubeconfig file; the pod's service account when empty", set: text(&c.Kubeconfig)},
		{flag: "aws-region", help: "AWS region; found by the AWS SDK when empty", set: region(&c.Region)},

		{
			flag:     "batch-idle-duration",
			fallback: "1s",
			help:     "plan when no new pending pod has appeared for this long",
			set:      duration(&c.BatchIdle, 0),
		},
		{flag: "batch-max-duration", fallback: "10s", help: "plan at the latest after this long", set: duration(&c.BatchMax, 0)},

		{flag: "scheduler-config", help: "YAML or JSON text of a KubeSchedulerConfiguration, or of {podTopologySpread: {defaultConstraints: [...]}}, with the default topology spread constraints; not a path", set: text(&c.SchedulerConfig)},

		{
			flag:     "preference-policy",
			fallback: "Respect",
			help:     "Respect preferences of pods, or Ignore them",
			set:      oneOf(&c.PreferencePolicy, "Respect", "Ignore"),
		},

		{flag: "min-values-policy", fallback: "Strict", help: "if minValues cannot be satisfied, leave pods pending (Strict) or launch with fewer instance types (BestEffort)", set: oneOf(&c.MinValuesPolicy, "Strict", "BestEffort")},

		{
			flag:     "vm-memory-overhead-percent",
			fallback: "0.075",
			help:     "fraction of an instance's memory that the hypervisor uses",
			set:      fractionBelowOne(&c.MemoryOverheadPercent),
		},
		{
			flag:     "reserved-enis",
			fallback: "0",
			help:     "network interfaces of each instance that pods cannot use",
			set:      count(&c.ReservedENIs, 0, 100),
		},
		{
			flag:     "isolated-vpc",
			fallback: "false",
			help:     "do not call the Price List API, and do not ask IAM about the instance profiles that EC2NodeClasses name",
			isBool:   true,
			set:      boolean(&c.IsolatedVPC),
		},
		{
			flag: "feature-gates",
			help: "NAME=true or NAME=false, separated by commas; ReservedCapacity is on by default; supported are " + gateNames(),
			set:  parseGates(c.gates(), slices.Collect(maps.Keys(c.unsupportedGates()))),
		},
		{flag: "interruption-queue", help: "name of the SQS queue that receives EC2 interruption events; interruption handling is disabled when empty", set: queue(&c.InterruptionQueue)},
		{
			flag:     "subnet-refresh-interval",
			fallback: "1m",
			help:     "interval of reading subnets and security groups",
			set:      duration(&c.SubnetRefresh, time.Second),
		},
		{flag: "ami-refresh-interval", fallback: "1m", help: "interval of reading AMIs", set: duration(&c.AMIRefresh, time.Second)},

		{
			flag:     "enable-zonal-shift",
			fallback: "false",
			help:     "launch nothing in zones with an active ARC zonal shift of the cluster",
			isBool:   true,
			set:      boolean(&c.ZonalShift),
		},
		{
			flag:     "disable-dry-run",
			fallback: "false",
			help:     "do not validate EC2NodeClasses with dry runs of EC2 launches",
			isBool:   true,
			set:      boolean(&c.DisableDryRun),
		},
		{flag: "shortage-backoff", fallback: "3m", help: "how long to skip an offering after an insufficient-capacity error; while the shortage lasts, one launch per interval probes it", set: duration(&c.ShortageBackoff, time.Second)},
		{flag: "late-after", fallback: "90s", help: "diagnose an instance that has not joined the cluster this long after its launch, and report the cause; after 15m it is terminated in any case", set: durationBelow(&c.LateAfter, time.Second, registrationTimeout)},
		{flag: "ec2-api-limits", help: "EC2 API limits of the account, if they differ from those that AWS publishes: ACTION=BURST:RATE_PER_SECOND, for example CreateFleet=100:20,Describe*=200:40", set: rates(&c.EC2Limits)},
		{flag: "breaker-count", fallback: "10", help: "garbage-collect up to this many orphaned instances or NodeClaims at once, regardless of --breaker-share", set: count(&c.BreakerCount, 1, 1_000_000)},
		{flag: "breaker-share", fallback: "0.25", help: "garbage-collect nothing if more than this fraction of all instances or NodeClaims would be removed at once; 1 for no limit", set: fractionAboveZero(&c.BreakerShare)},
		{flag: "drift-breaker-count", fallback: "5", help: "replace fewer than this many drifted nodes of a NodePool regardless of --drift-breaker-share; both count only drift that a change in AWS caused", set: count(&c.DriftBreakerCount, 1, 1_000_000)},
		{flag: "drift-breaker-share", fallback: "0.5", help: "hold drift replacement until the user allows it, if more than this fraction of a NodePool's nodes drifts at once; 1 for no limit", set: fractionAboveZero(&c.DriftBreakerShare)},

		{flag: "kube-client-qps", fallback: "200", help: "calls to the API server per second", set: rate(&c.KubeQPS)},
		{flag: "kube-client-burst", fallback: "300", help: "burst of calls to the API server", set: count(&c.KubeBurst, 1, 1_000_000)},
		{flag: "metrics-port", fallback: "8080", help: "port of /metrics, 0 for none", set: count(&c.MetricsPort, 0, 65535)},
		{flag: "health-probe-port", fallback: "8081", help: "port of /healthz and /readyz, 0 for none", set: count(&c.ProbePort, 0, 65535)},
		{flag: "bind-address", help: "IP address of both ports; all addresses when empty", set: ip(&c.BindAddress)},
		{
			flag:     "enable-profiling",
			fallback: "false",
			help:     "serve /debug/pprof on the metrics port",
			isBool:   true,
			set:      boolean(&c.Profiling),
		},
		{flag: "memory-limit", fallback: "-1", help: "the container's memory in bytes, -1 for no limit", set: bytes(&c.MemoryLimit)},

		{
			flag:     "disable-leader-election",
			fallback: "false",
			help:     "run the controllers without holding the Lease",
			isBool:   true,
			set:      negatedBoolean(&c.LeaderElection),
		},
		{flag: "leader-election-name", fallback: "karpenter-leader-election", help: "name of the Lease", set: objectName(&c.LeaderElectionName)},
		{
			flag: "leader-election-namespace",
			help: "namespace of the Lease; that of the pod when empty",
			set:  namespace(&c.LeaderElectionNamespace),
		},

		{
			flag:     "apply-crds",
			fallback: "true",
			help:     "install and update the CRDs; a newer CRD in the cluster is never downgraded",
			isBool:   true,
			set:      boolean(&c.ApplyCRDs),
		},

		{flag: "log-level", fallback: "info", help: "debug, info or error", set: oneOf(&c.LogLevel, "debug", "info", "error")},
	}
}

func (c *Settings) byFlag() map[string]setting {
	out := map[string]setting{}
	for _, s := range c.table() {
		out[s.flag] = s
	}
	return out
}

// gates returns the supported feature gates, with the field of c that each sets.
func (c *Settings) gates() map[string]*bool {
	return map[string]*bool{
		"NodeOverlay":             &c.NodeOverlays,
		"NodeRepair":              &c.NodeRepair,
		"ReservedCapacity":        &c.ReservedCapacity,
		"SpotToSpotConsolidation": &c.SpotToSpot,
		"StaticCapacity":          &c.StaticPools,
	}
}

// unsupportedGates returns the feature gates of Karpenter that have no effect, with the consequence.
func (c *Settings) unsupportedGates() map[string]string {
	return map[string]string{
		"CapacityBuffer": "CapacityBuffers are ignored: no spare capacity is kept",
	}
}

func gateNames() string { return strings.Join(slices.Sorted(maps.Keys((&Settings{}).gates())), ", ") }

// check validates combinations of settings.
func (c *Settings) check() error {
	switch {
	case c.ClusterName == "":
		return errors.New("--cluster-name (CLUSTER_NAME) is not set: give the name of the EKS cluster")
	case c.BatchIdle > c.BatchMax:
		return fmt.Errorf("--batch-idle-duration (BATCH_IDLE_DURATION) is %s, longer than --batch-max-duration (BATCH_MAX_DURATION), which is %s: shorten the first or lengthen the second",
			c.BatchIdle, c.BatchMax)
	case c.MetricsPort != 0 && c.MetricsPort == c.ProbePort:
		return fmt.Errorf("--metrics-port (METRICS_PORT) and --health-probe-port (HEALTH_PROBE_PORT) are both %d: give one of them another port", c.ProbePort)
	}
	if endpointRegion := regionOf(c.ClusterEndpoint); endpointRegion != "" && c.Region != "" && endpointRegion != c.Region {
		return fmt.Errorf("--cluster-endpoint (CLUSTER_ENDPOINT) is that of a cluster in %s, and --aws-region (AWS_REGION) is %s: one of them belongs to another cluster",
			endpointRegion, c.Region)
	}
	return nil
}

// unsupported returns the settings of Karpenter that are accepted and have no effect, by flag. Settings that only
// concern Karpenter's internals have no note.
func unsupported() map[string]unsupportedSetting {
	return map[string]unsupportedSetting{
		"aws-feature-gates":                   {"", "gated features are not built yet"},
		"eks-control-plane":                   {"", ""},
		"karpenter-service":                   {"", ""},
		"cpu-requests":                        {"", ""},
		"log-output-paths":                    {"stdout", "logs go to stderr"},
		"log-error-output-paths":              {"stderr", "logs go to stderr"},
		"ignore-dra-requests":                 {"true", "pods that request DRA devices are not scheduled"},
		"disable-controller-warmup":           {"", ""},
		"disable-cluster-state-observability": {"", ""},
	}
}

// unsupportedSetting is what notes reports about a setting without effect.
type unsupportedSetting struct {
	harmless string // Karpenter's default; Joiner behaves as with this value
	note     string // the note for any value but harmless; empty: all values are harmless
}

func text(to *string) func(string) error {
	return func(s string) error {
		*to = s
		return nil
	}
}

// address returns a parser of a URL that has only scheme, host and port; empty is allowed.
func address(to *string) func(string) error {
	return func(s string) error {
		u, err := url.Parse(s)
		if s != "" && (err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Hostname() == "") {
			return fmt.Errorf("want a full URL, for instance https://ABCD.gr7.us-east-1.eks.amazonaws.com%s", schemeHint(s))
		}
		if s != "" && (strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil) {
			return fmt.Errorf("want scheme, host and port alone%s", originHint(u))
		}
		if port := u.Port(); port != "" && count(new(int), 1, 65535)(port) != nil {
			return fmt.Errorf("its port is %s, want 1 to 65535", port)
		}
		if s != "" && u.Scheme == "http" && regionOf(s) != "" {
			return fmt.Errorf("EKS serves only https (did you mean https://%s?)", u.Host)
		}
		*to = s
		return nil
	}
}

// ip returns a parser of an IP address; empty is allowed.
func ip(to *string) func(string) error {
	return func(s string) error {
		if _, err := netip.ParseAddr(s); s != "" && err != nil {
			return fmt.Errorf("want an IP address, for instance 127.0.0.1%s", addressHint(s))
		}
		*to = s
		return nil
	}
}

func duration(to *time.Duration, minimum time.Duration) func(string) error {
	return func(s string) error {
		d, err := time.ParseDuration(s)
		if err != nil {
			return fmt.Errorf("want a duration with its unit, for instance 10s or 1m30s%s", durationHint(s))
		}
		if d < minimum || d < 0 {
			return fmt.Errorf("want at least %s", minimum)
		}
		*to = d
		return nil
	}
}

// registrationTimeout is the time after the launch when an instance without a Node is terminated. It equals
// lifecycle.RegistrationTimeout.
const registrationTimeout = 15 * time.Minute

func durationBelow(to *time.Duration, minimum, limit time.Duration) func(string) error {
	return func(s string) error {
		var d time.Duration
		if err := duration(&d, minimum)(s); err != nil {
			return err
		}
		if d >= limit {
			return fmt.Errorf("want less than %s, after which an instance that has not joined is terminated", limit)
		}
		*to = d
		return nil
	}
}

func count(to *int, minimum, maximum int) func(string) error {
	return func(s string) error {
		n, err := strconv.Atoi(s)
		if err != nil || n < minimum || n > maximum {
			return fmt.Errorf("want a whole number from %d to %d%s", minimum, maximum, numberHint(s, minimum, maximum))
		}
		*to = n
		return nil
	}
}

// minMemory is the minimum memory limit in bytes. A smaller number is probably in another unit.
const minMemory = 64 << 20

// bytes returns a parser of a number of bytes, at least minMemory, or -1.
func bytes(to *int64) func(string) error {
	return func(s string) error {
		n, err := strconv.ParseInt(s, 10, 64)
		if err != nil || n < -1 {
			return fmt.Errorf("want a number of bytes, or -1 for no limit%s", bytesHint(s))
		}
		if n != -1 && n < minMemory {
			return fmt.Errorf("want a number of bytes, at least %d (64 MiB), or -1 for no limit%s", minMemory, mebibytesHint(n))
		}
		*to = n
		return nil
	}
}

func fractionBelowOne(to *float64) func(string) error {
	return func(s string) error {
		f, err := strconv.ParseFloat(s, 64)
		if err != nil || !(f >= 0 && f < 1) { // also rejects NaN
			return fmt.Errorf("want a fraction of 1, for instance 0.075 for 7.5 %%%s", fractionHint(s))
		}
		*to = f
		return nil
	}
}

func fractionAboveZero(to *float64) func(string) error {
	return func(s string) error {
		f, err := strconv.ParseFloat(s, 64)
		if err != nil || !(f > 0 && f <= 1) {
			return fmt.Errorf("want a fraction of 1, for instance 0.25 for a quarter%s", fractionHint(s))
		}
		*to = f
		return nil
	}
}

// rate returns a parser of a number of calls, above 0 and below a million.
func rate(to *float64) func(string) error {
	return func(s string) error {
		f, err := strconv.ParseFloat(s, 64)
		if err != nil || !(f > 0 && f < 1e6) {
			return errors.New("want a number of calls per second above 0, for instance 200")
		}
		*to = f
		return nil
	}
}

func boolean(to *bool) func(string) error {
	return func(s string) error {
		b, err := strconv.ParseBool(s)
		if err != nil {
			return fmt.Errorf("want true or false%s", booleanHint(s))
		}
		*to = b
		return nil
	}
}

func negatedBoolean(to *bool) func(string) error {
	set := boolean(to)
	return func(s string) error {
		if err := set(s); err != nil {
			return err
		}
		*to = !*to
		return nil
	}
}

// parseGates returns a parser of a list of feature gates, which stores the state of the supported ones. It accepts the
// unsupported gates of Karpenter, which gateNotes reports. An unknown name is an error, because a misspelled gate would
// otherwise silently keep its default.
func parseGates(to map[string]*bool, accepted []string) func(string) error {
	known := append(slices.Sorted(maps.Keys(to)), accepted...)
	return func(s string) error {
		states := map[string]bool{}
		for _, gate := range strings.FieldsFunc(s, func(r rune) bool { return r == ',' }) {
			name, state, isSet := strings.Cut(strings.TrimSpace(gate), "=")
			if name == "" {
				continue
			}
			if !slices.Contains(known, name) {
				return fmt.Errorf("there is no feature gate %s%s: there are %s", name, gateHint(name, known),
					strings.Join(slices.Sorted(slices.Values(known)), ", "))
			}
			on, err := strconv.ParseBool(state)
			if err != nil && !isSet {
				return fmt.Errorf("want %s=true or %s=false (did you mean %s=true?)", name, name, name)
			}
			if err != nil {
				return fmt.Errorf("want %s=true or %s=false%s", name, name, booleanHint(state))
			}
			if before, isListed := states[name]; isListed && before != on {
				return fmt.Errorf("%s is listed twice, on and off: remove one", name)
			}
			states[name] = on
			if to[name] != nil { // nil: an unsupported gate
				*to[name] = on
			}
		}
		return nil
	}
}

// oneOf returns a parser that accepts one of the words in upper or lower case, and stores it as it is written in words.
func oneOf(to *string, words ...string) func(string) error {
	return func(s string) error {
		for _, w := range words {
			if strings.EqualFold(s, w) {
				*to = w
				return nil
			}
		}
		return fmt.Errorf("want one of %s%s", strings.Join(words, ", "), wordHint(s, words))
	}
}

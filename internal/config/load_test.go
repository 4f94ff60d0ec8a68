package config

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"
)

// load reads settings from flags and variables. CLUSTER_NAME is c, unless a variable sets it.
func load(args string, variables ...string) (Settings, []Note, error) {
	env := map[string]string{"CLUSTER_NAME": "c"}
	for _, v := range variables {
		key, value, _ := strings.Cut(v, "=")
		env[key] = value
	}
	return Load(strings.Fields(args), func(name string) (string, bool) {
		v, ok := env[name]
		return v, ok
	})
}

func TestPrecedence(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		args string
		env  string
		want time.Duration
	}{
		"default":              {"", "", 10 * time.Second},
		"variable":             {"", "BATCH_MAX_DURATION=20s", 20 * time.Second},
		"empty variable":       {"", "BATCH_MAX_DURATION=", 10 * time.Second},
		"flag wins":            {"--batch-max-duration=30s", "BATCH_MAX_DURATION=20s", 30 * time.Second},
		"flag in two words":    {"--batch-max-duration 40s", "", 40 * time.Second},
		"flag with one hyphen": {"-batch-max-duration 50s", "", 50 * time.Second},
		"after a boolean flag": {"--isolated-vpc --batch-max-duration 50s", "", 50 * time.Second},
	} {
		got, _, err := load(c.args, c.env)
		if err != nil || got.BatchMax != c.want {
			t.Errorf("%s: BatchMax %s, error %v; want %s", name, got.BatchMax, err, c.want)
		}
	}
}

func TestDefaults(t *testing.T) {
	t.Parallel()
	got, notes, err := load("")
	want := Settings{
		ReservedCapacity: true,
		ClusterName:      "c", BatchIdle: BatchIdle, BatchMax: BatchMax, PreferencePolicy: "Respect",
		MinValuesPolicy: "Strict", MemoryOverheadPercent: 0.075,
		SubnetRefresh: RefreshInterval, AMIRefresh: RefreshInterval, ShortageBackoff: ShortageBackoff, LateAfter: LateAfter,
		BreakerCount: BreakerCount, BreakerShare: BreakerShare, DriftBreakerCount: DriftBreakerCount,
		DriftBreakerShare: DriftBreakerShare, KubeQPS: KubeQPS, KubeBurst: KubeBurst,
		MetricsPort: 8080, ProbePort: 8081, MemoryLimit: -1,
		LeaderElection: true, ApplyCRDs: true, LeaderElectionName: "karpenter-leader-election", LogLevel: "info",
	}
	if err != nil || !reflect.DeepEqual(got, want) || notes != nil {
		t.Errorf("got %+v, notes %v, error %v\nwant %+v, no notes, no error", got, notes, err, want)
	}
}

func TestEC2Limits(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]map[string]Rate{
		"CreateFleet=100:20":                    {"CreateFleet": {100, 20}},
		"CreateFleet=100:20,Describe*=200:40.5": {"CreateFleet": {100, 20}, "Describe*": {200, 40.5}},
		"CreateFleet=100:20,":                   {"CreateFleet": {100, 20}},
		"CreateFleet":                           nil, // nil: want an error
		"CreateFleet=100":                       nil,
		"CreateFleet=100:0":                     nil,
		"CreateFleet=0.5:1":                     nil,
		"=100:20":                               nil,
		"[=100:20":                              nil,

		"CreateFleet=100:20,TerminateInstances=50": nil,
	} {
		got, _, err := load("--ec2-api-limits=" + text)
		if want == nil && (err == nil || !strings.Contains(err.Error(), "want ACTION=BURST:RATE_PER_SECOND")) {
			t.Errorf("%s: limits %v, error %v; want an error with ACTION=BURST:RATE_PER_SECOND", text, got.EC2Limits, err)
		}
		if want != nil && (err != nil || !reflect.DeepEqual(got.EC2Limits, want)) {
			t.Errorf("%s: limits %v, error %v; want %v", text, got.EC2Limits, err, want)
		}
	}
}

func TestBindAddress(t *testing.T) {
	t.Parallel()
	for _, address := range []string{"127.0.0.1", "::1"} {
		got, _, err := load("", "BIND_ADDRESS="+address)
		if err != nil || got.BindAddress != address {
			t.Errorf("stored address %q, error %v; want %s", got.BindAddress, err, address)
		}
	}
}

func TestErrorsNameSettingAndFix(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		args, env string
		want      []string
	}{
		"no cluster name":    {"", "CLUSTER_NAME=", []string{"CLUSTER_NAME", "name of the EKS cluster"}},
		"no unit":            {"", "BATCH_MAX_DURATION=10", []string{"BATCH_MAX_DURATION", `"10"`, "for instance 10s"}},
		"negative":           {"--batch-idle-duration=-1s", "", []string{"--batch-idle-duration", "at least"}},
		"idle above max":     {"--batch-idle-duration=1m", "", []string{"--batch-idle-duration", "--batch-max-duration"}},
		"not a URL":          {"", "CLUSTER_ENDPOINT=eks", []string{"CLUSTER_ENDPOINT", "full URL"}},
		"not base64":         {"", "CLUSTER_CA_BUNDLE=%%", []string{"CLUSTER_CA_BUNDLE", "base64"}},
		"percentage":         {"", "VM_MEMORY_OVERHEAD_PERCENT=7.5", []string{"VM_MEMORY_OVERHEAD_PERCENT", "0.075"}},
		"port out of range":  {"--metrics-port 99999", "", []string{"--metrics-port", "65535"}},
		"name as address":    {"--bind-address=localhost", "", []string{"--bind-address", `"localhost"`, "127.0.0.1"}},
		"same port twice":    {"--metrics-port 8081", "", []string{"--metrics-port", "--health-probe-port"}},
		"not a boolean":      {"--isolated-vpc=maybe", "", []string{"--isolated-vpc", "true or false"}},
		"unknown level":      {"", "LOG_LEVEL=loud", []string{"LOG_LEVEL", "debug, info, error"}},
		"unknown policy":     {"", "MIN_VALUES_POLICY=Lax", []string{"MIN_VALUES_POLICY", "Strict, BestEffort"}},
		"gate without state": {"", "FEATURE_GATES=NodeOverlay", []string{"FEATURE_GATES", "NodeOverlay=true"}},
		"unknown flag":       {"--batch-max 3s", "", []string{"--batch-max", "did you mean --batch-max-duration", "--help"}},
		"stray word":         {"now", "", []string{`"now"`}},
		"no value":           {"--cluster-name", "", []string{"--cluster-name has no value"}},
		"NaN":                {"", "VM_MEMORY_OVERHEAD_PERCENT=NaN", []string{"VM_MEMORY_OVERHEAD_PERCENT"}},
		"QPS of 0":           {"", "KUBE_CLIENT_QPS=0", []string{"KUBE_CLIENT_QPS", "200"}},
	} {
		_, _, err := load(c.args, c.env)
		if err == nil {
			t.Errorf("%s: no error", name)
			continue
		}
		if strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: more than one line: %q", name, err)
		}
		for _, want := range c.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %q does not contain %q", name, err, want)
			}
		}
	}
}

func TestFeatureGates(t *testing.T) {
	t.Parallel()
	for value, wantOverlays := range map[string]bool{
		"NodeOverlay=true":                  true,
		"NodeRepair=true, NodeOverlay=true": true,
		"NodeOverlay=false":                 false,
		"ReservedCapacity=true":             false,
		"CapacityBuffer=true":               false,
	} {
		got, _, err := load("", "FEATURE_GATES="+value)
		if err != nil || got.NodeOverlays != wantOverlays {
			t.Errorf("%s: NodeOverlays is %t, error %v; want %t", value, got.NodeOverlays, err, wantOverlays)
		}
		if wantRepair := strings.Contains(value, "NodeRepair=true"); got.NodeRepair != wantRepair {
			t.Errorf("%s: NodeRepair is %t; want %t", value, got.NodeRepair, wantRepair)
		}
	}
	for value, want := range map[string]bool{"ReservedCapacity=false": false, "ReservedCapacity=true": true, "NodeOverlay=true": true} {
		if got, _, err := load("", "FEATURE_GATES="+value); err != nil || got.ReservedCapacity != want {
			t.Errorf("%s: ReservedCapacity is %t, error %v; want %t", value, got.ReservedCapacity, err, want)
		}
	}
	if got, _, err := load(""); err != nil || got.NodeOverlays {
		t.Errorf("by default, NodeOverlays is %t, error %v; want false, as in Karpenter", got.NodeOverlays, err)
	}
}

func TestNotesOnUnsupportedSettings(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		args, env string
		want      string // the setting in the note; empty: no note
	}{
		"queue":               {"", "INTERRUPTION_QUEUE=q", ""},
		"by flag":             {"--ignore-dra-requests=false", "", "--ignore-dra-requests (IGNORE_DRA_REQUESTS)"},
		"harmless value":      {"", "IGNORE_DRA_REQUESTS=true", ""},
		"zonal shift":         {"--enable-zonal-shift=true", "", ""},
		"gates at default":    {"", "FEATURE_GATES=ReservedCapacity=true,NodeRepair=false", ""},
		"unsupported gate on": {"", "FEATURE_GATES=CapacityBuffer=true", "--feature-gates (FEATURE_GATES)"},
		"supported gates on":  {"", "FEATURE_GATES=NodeOverlay=true,NodeRepair=true,StaticCapacity=true", ""},
		"harmless setting":    {"", "CPU_REQUESTS=2000", ""},
		"default log paths":   {"", "LOG_OUTPUT_PATHS=stdout", ""},
	} {
		_, notes, err := load(c.args, c.env)
		got := ""
		for _, n := range notes {
			got += n.Setting
		}
		if err != nil || got != c.want {
			t.Errorf("%s: notes %q, error %v; want %q", name, got, err, c.want)
		}
	}
}

func TestHelp(t *testing.T) {
	t.Parallel()
	if _, _, err := load("--help"); !errors.Is(err, ErrHelp) {
		t.Errorf("--help returns %v, want ErrHelp", err)
	}
	var c Settings
	for _, s := range c.table() {
		if !strings.Contains(Help(), "--"+s.flag) || s.help == "" {
			t.Errorf("help does not explain --%s", s.flag)
		}
	}
}

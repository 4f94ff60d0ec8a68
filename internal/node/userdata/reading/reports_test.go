package reading_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/node/bootstrap"
	"github.com/joiner-sh/joiner/internal/node/userdata"
	"github.com/joiner-sh/joiner/internal/node/userdata/reading"
)

// reported has, by file name in testdata/reports, the expected problems of EC2NodeClasses modelled on public bug
// reports. Each text must be part of one problem, in this order; no text means no problem. One of the problems must be
// fatal if the first text begins with "!", else none.
var reported = map[string][]string{
	"N01":  {"!malformed header line"},
	"N02":  {"maxPodsExpression has no effect: the NodeConfig that Joiner writes sets maxPods (29), and wins: write spec.kubelet.maxPods"},
	"N02b": {"maxPods (110) has no effect: the NodeConfig that Joiner writes sets it to 29, and wins: write spec.kubelet.maxPods"},
	"N04":  nil,
	"N05":  {"settings.bootstrap-containers.myscript has no source, and releases of Bottlerocket such as this one, before 1.31,"},
	"N06":  {"!line 2, column 1: settings.kernel.sysctl.net.core.somaxconn must be text, but is a number"},
	"N08":  {"!line 2, column 1: the kubelet is not allowed to set the label kubernetes.io/cluster/demo on its own node"},
	"N11":  {"the script changes"},
	"N12":  nil,
	"N12b": nil,
	"N13":  nil,
	"N40":  {"starts the kubelet by /etc/eks/bootstrap.sh itself", "no node registers with the taint"},
	"W03":  {"!line 6, column 8"},
	"W04":  nil,
	"W05":  nil,
	"W06":  {"!settings.container-registry.credentials must be a list of tables, but is a table"},
	"W09":  {"the kubelet's configuration has no field (memorySwapBehavior), and the kubelet ignores it: write memorySwap: {swapBehavior: …}"},
	"W10":  {"(region) in spec.cluster", "(hybrid) in spec"},
	"W11":  {"(extraArgs) in spec.kubelet"},
	"W13":  {"maxPods (50) has no effect"},
	"W14":  {"clusterDNS (169.254.20.10) has no effect: the NodeConfig that Joiner writes sets it to 10.100.0.10, and wins: write spec.kubelet.clusterDNS"},
	"L08":  {"!settings.kernel.sysctl.net.core.somaxconn must be text"},
	"L10":  {"!InstanceIdNodeName is a feature gate of nodeadm, not of the kubelet; as it is, the kubelet does not start: write it into spec.featureGates"},
	"K01":  nil,
	"K06":  {"!podsPerCore is unknown to Bottlerocket: set maxPods"},
}

// TestReported: user data modelled on public bug reports has the expected problems.
func TestReported(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/reports/*.yaml")
	if err != nil || len(files) != len(reported) {
		t.Fatalf("testdata/reports has %d files, want %d (error %v)", len(files), len(reported), err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".yaml")
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, fatal := problemsOf(t, file)
			wants := reported[name]
			if len(got) != len(wants) {
				t.Fatalf("%d problems, want %d: %q", len(got), len(wants), got)
			}
			for i, want := range wants {
				want, wantFatal := strings.CutPrefix(want, "!")
				if !strings.Contains(got[i], want) || i == 0 && wantFatal != fatal {
					t.Errorf("problem %q (any is fatal: %t), want %q, fatal as in the first entry of %q", got[i], fatal, want, wants)
				}
			}
		})
	}
}

// problemsOf returns the problems of the EC2NodeClass in a file, for a cluster with Kubernetes 1.36. fatal is true if
// one of them is fatal.
func problemsOf(t *testing.T, file string) (problems []string, fatal bool) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for doc := range strings.SplitSeq(string(data), "\n---\n") {
		var class struct {
			Kind string `json:"kind"`
			Spec struct {
				UserData         string              `json:"userData"`
				Kubelet          json.RawMessage     `json:"kubelet"`
				AMISelectorTerms []map[string]string `json:"amiSelectorTerms"`
			} `json:"spec"`
		}
		if err := yaml.Unmarshal([]byte(doc), &class); err != nil {
			continue // a NodePool, which has other fields
		}
		if class.Kind == "EC2NodeClass" {
			return problemsOfClass(t, class.Spec.AMISelectorTerms[0]["alias"], class.Spec.UserData, class.Spec.Kubelet)
		}
	}
	t.Fatalf("%s has no EC2NodeClass", file)
	return nil, false
}

// problemsOfClass returns the problems of user data, with an AMI alias and spec.kubelet as JSON.
func problemsOfClass(t *testing.T, alias, own string, kubelet []byte) (problems []string, fatal bool) {
	t.Helper()
	n := node("", own)
	n.Taints, n.Labels = nil, nil
	n.Kubelet = bootstrap.Kubelet{MaxPods: n.Kubelet.MaxPods}
	if len(kubelet) > 0 {
		if err := json.Unmarshal(kubelet, &n.Kubelet); err != nil {
			t.Fatal(err)
		}
	}
	name, release, _ := strings.Cut(alias, "@")
	n.Family = map[string]string{
		"al2": catalog.AL2, "al2023": catalog.AL2023, "bottlerocket": catalog.Bottlerocket, "windows2022": catalog.Windows2022,
	}[name]
	in := userdata.Input{Family: n.Family, Own: own, Cluster: n.Cluster.Name, Version: "1.36"}
	if release != "latest" {
		in.Image = name + "-" + release
	}
	data, err := bootstrap.UserData(n)
	if err != nil {
		if problem, ok := reading.MergeProblem(in); ok {
			return []string{problem.String()}, true
		}
		return []string{err.Error()}, true
	}
	in.Data, in.Cluster = data, "" // the reports are about clusters with other names
	r := reading.Read(in)
	for _, p := range r.Problems {
		problems = append(problems, p.String())
	}
	_, fatal = r.Fatal()
	return problems, fatal
}

// TestBottlerocketSettings: settings that Bottlerocket's API rejects are reported before launch with their position.
// Valid settings are not reported.
func TestBottlerocketSettings(t *testing.T) {
	t.Parallel()
	for userData, want := range map[string]string{
		"[settings.kernel]\nlockdown = \"strict\"":              "settings.kernel.lockdown must be one of none, integrity, confidentiality",
		"[settings.kernel]\nlockdown = true":                    "lockdown must be text, but is true or false",
		"[settings.kernel.sysctl]\n\"vm.max_map_count\" = true": "settings.kernel.sysctl.vm.max_map_count must be text",
		"[settings.kernel.sysctl]\n\"../etc\" = \"1\"":          ") of settings.kernel.sysctl must be a name",
		"[settings.kernel.sysctl.net.core]\nsomaxconn = \"1\"":  "settings.kernel.sysctl.net must be text, but is a table",
		"[settings.kernel.modules.udf]\nallowed = \"false\"":    "settings.kernel.modules.udf.allowed must be true or false, but is text",
		"[settings.kernel.modules.udf]\nallow = false":          "settings.kernel.modules.udf.allow is unknown to Bottlerocket",
		"[settings.kernel]\nmodules = [\"udf\"]":                "settings.kernel.modules must be a table, but is a list",
		"[settings.boot.kernel-parameters]\nconsole = \"tty0\"": "settings.boot.kernel-parameters.console must be a list, but is text",
		"[settings.boot.kernel-parameters]\nconsole = [0]":      "an entry of settings.boot.kernel-parameters.console must be text",
		"[settings.boot]\nreboot-to-reconcile = \"yes\"":        "reboot-to-reconcile must be true or false",
		"[settings.host-containers.admin]\nenabled = \"true\"":  "settings.host-containers.admin.enabled must be true or false, but is text",
		"[settings.host-containers.admin]\nuserdata = \"aGk=\"": "settings.host-containers.admin.userdata is unknown",
		"[settings.host-containers.my_admin]\nenabled = true":   "a key (my_admin) of settings.host-containers must be letters, digits and dashes",
		"[settings.ntp]\ntime-servers = \"169.254.169.123\"":    "settings.ntp.time-servers must be a list of hosts, but is text",
		"[settings.ntp]\ntime-servers = [1]":                    "an entry of settings.ntp.time-servers must be text",
		"[settings.dns]\nname-servers = [\"ns.example.com\"]":   "an entry of settings.dns.name-servers must be an IP address",
		"[settings.dns]\nname-servers = \"10.0.0.2\"":           "settings.dns.name-servers must be a list, but is text",
		"[settings.dns]\nsearch-list = [\"Example.COM\"]":       "must be a host name in lower case",
		"[settings.network]\nno-proxy = \"localhost\"":          "settings.network.no-proxy must be a list, but is text",
		"[settings.network]\nhosts = {\"10.0.0.1\" = [\"a\"]}":  "settings.network.hosts must be a list, but is a table",
		"[settings.network]\nhosts = [[\"10.0.0\", [\"a\"]]]":   "must be an IP address",
		"[settings.network]\nhttp-proxy = \"http://p:3128\"":    "settings.network.http-proxy is unknown",
		"[settings.pki.mine]\ntrusted = \"true\"":               "settings.pki.mine.trusted must be true or false",
		"[settings.container-runtime]\nsnapshotter = \"zfs\"":   "snapshotter must be one of overlayfs, soci",
		"[settings.metrics]\nsend-metrics = 0":                  "settings.metrics.send-metrics must be true or false, but is a number",
		"[settings.updates]\nseed = -1":                         "settings.updates.seed must be a number from 0 to 4294967295",
		"[settings.updates]\nversion-lock = \"newest\"":         "version-lock must be \"latest\" or a version",
		"[settings.autoscaling]\nshould-wait = \"true\"":        "should-wait must be true or false",
		"[settings.cloudformation]\nstack-name = 1":             "stack-name must be text",
		"[settings.aws]\nconfig = \"[default]\"":                "settings.aws.config must be base64",
		"[settings]\nmotd = 1":                                  "settings.motd must be text, but is a number",
		"[settings.motd]\ntext = \"x\"":                         "settings.motd must be text, but is a table",
		"[settings.ecs]\ncluster = \"x\"":                       "settings.ecs is unknown to Bottlerocket",
		"[settings.kubelet]\nmax-pods = 1":                      "settings.kubelet is unknown to Bottlerocket",
		"[settings.kubernetes]\nshutdown-grace-period = \"30\"": "shutdown-grace-period must be a duration",
		"[settings.kubernetes]\npod-pids-limit = 1.5":           "pod-pids-limit must be a whole number",
		"[settings.kubernetes]\ncloud-provider = \"gce\"":       "cloud-provider must be \"aws\", \"external\" or \"\"",
		"[settings.kubernetes]\nbootstrap-token = \"secret\"":   "bootstrap-token must be a bootstrap token",
		"[settings.network]\nhttps-proxy = \"http://\"":         "https-proxy must be a URL or a host",

		"[settings.kernel.hugepages.transparent]\nenabled = \"yes\"":               "enabled must be one of never, madvise, always",
		"[settings.host-containers.admin]\nuser-data = \"not base64!\"":            "settings.host-containers.admin.user-data must be base64",
		"[settings.bootstrap-containers.a]\nsource = \"x\"\nmode = \"often\"":      "mode must be one of off, once, always",
		"[settings.bootstrap-containers.a]\nsource = \"a b\"\nmode = \"once\"":     "source must be a URL or a host",
		"[settings.bootstrap-commands.a]\ncommands = [[\"ls\"]]\nmode = \"once\"":  "must begin with apiclient",
		"[settings.bootstrap-commands.a]\ncommands = [\"apiclient get\"]":          "must be a list of words, but is text",
		"[settings.pki.mine]\ndata = \"-----BEGIN CERTIFICATE-----\"":              "settings.pki.mine.data must be base64 of certificates",
		"[settings.container-registry]\nmirrors = \"m.example.com\"":               "settings.container-registry.mirrors must be a list, but is text",
		"[settings.container-registry.mirrors]\n\"docker.io\" = \"m.example.com\"": "must be a list, but is text",
		"[settings.container-runtime]\nmax-concurrent-downloads = \"4\"":           "max-concurrent-downloads must be a number, but is text",
		"[settings.oci-defaults.capabilities]\nNET_ADMIN = true":                   "settings.oci-defaults.capabilities.NET_ADMIN is unknown",
		"[settings.oci-defaults.capabilities]\nnet-admin = \"yes\"":                "net-admin must be true or false",
		"[settings.oci-defaults.resource-limits.max-open-files]\nhard-limit = 10":  "lacks soft-limit",
		"[settings.kubernetes]\ncpu-manager-policy = \"exclusive\"":                "cpu-manager-policy must be one of none, static",
		"[settings.kubernetes]\ncpu-manager-policy = \"Static\"":                   "cpu-manager-policy must be one of none, static: Bottlerocket would apply none of the settings",
		"[settings.kubernetes.eviction-soft]\n\"memory.available\" = \"15%\"":      "settings.kubernetes.eviction-soft (memory.available) has no grace period; as it is, the kubelet does not start",
		"[settings.kubernetes]\ncontainer-log-max-size = \"10 MB\"":                "container-log-max-size must be an amount",
		"[settings.kubernetes.eviction-soft]\n\"memory\" = \"5%\"":                 "a key (memory) of settings.kubernetes.eviction-soft must be one of memory.available",
		"[settings.kubelet-device-plugins.nvidia.time-slicing]\nreplicas = 1":      "replicas must be a number from 2",
		"[settings.kubernetes]\ncpu-manager-policy-options = [\"full-pcpu-only\"]": "an entry of settings.kubernetes.cpu-manager-policy-options must be one of full-pcpus-only",
		"[settings.kubernetes.memory-manager-reserved-memory.0]\nmemory = \"1Gi\"": "lacks enabled",

		"[[settings.container-registry.credentials]]\nregistry = \"a\"\nusername = 5":                              "username must be text, but is a number",
		"[settings.kubelet-device-plugins.nvidia.mig.profile]\n\"A100\" = \"1g.5gb\"":                              "must be a GPU model such as a100.40gb",
		"[[settings.container-registry.mirrors]]\nregistry = \"docker.io\"\nendpoints = [\"m\"]":                   "endpoints is unknown to Bottlerocket",
		"[[settings.container-registry.credentials]]\nregistry = \"a\"\nauth = \"user:password\"":                  "auth must be base64",
		"[settings.oci-defaults.resource-limits.max-open-files]\nhard-limit = \"10\"\nsoft-limit = 10":             "hard-limit must be a number or \"unlimited\"",
		"[settings.kubernetes]\nshutdown-grace-period = \"30s\"\nshutdown-grace-period-for-critical-pods = \"1m\"": "shutdown-grace-period-for-critical-pods (1m0s) must be at most shutdown-grace-period (30s)",
		"[settings.kubernetes.static-pods.a]\nenabled = true\nmanifest = \"apiVersion: v1\"":                       "settings.kubernetes.static-pods.a.manifest must be base64",
		"[settings.kubelet-device-plugins.nvidia.mig.profile]\n\"a100.40gb\" = \"1g5gb\"":                          "must be a MIG profile",
		"[settings.kubernetes.memory-manager-reserved-memory.0]\nenabled = true\nmemory = 1":                       "must be text, but is a number",
	} {
		n := node(catalog.Bottlerocket, userData+"\n")
		data, err := bootstrap.UserData(n)
		if err != nil {
			t.Errorf("%s: cannot be merged: %v", userData, err)
			continue
		}
		in := userdata.Input{Family: n.Family, Image: "bottlerocket-aws-k8s-1.36-x86_64-v1.53.0-0123abcd", Own: n.UserData, Data: data}
		fatal, ok := reading.Read(in).Fatal()
		if !ok || !strings.Contains(fatal.Cause, want) || fatal.At.Line == 0 {
			t.Errorf("%s:\n%v, want a fatal problem with a line and %q", userData, fatal, want)
		}
	}
	for _, userData := range validSettings {
		if r := readNode(t, node(catalog.Bottlerocket, userData+"\n")); len(r.Problems) > 0 {
			t.Errorf("%s: problems %v, want none", userData, r.Problems)
		}
	}
}

// validSettings are settings that Bottlerocket accepts.
var validSettings = []string{
	"[settings.kubelet-device-plugins.nvidia]\nenabled = true\ndevice-sharing-strategy = \"mps\"\n[settings.kubelet-device-plugins.nvidia.mps]\nreplicas = 4",
	"[settings.kubelet-device-plugins.nvidia]\ndevice-partitioning-strategy = \"mig\"\n[settings.kubelet-device-plugins.nvidia.mig.profile]\n\"a100.40gb\" = \"1g.5gb\"\n\"h100.80gb\" = \"2\"",
	"[settings.kubernetes]\nmemory-reservation-policy = \"TieredReservation\"\nmemory-throttling-factor = 0.9\ncontainer-runtime-endpoint = \"unix:///run/a.sock\"",
	"[settings.kubernetes]\ncpu-manager-policy-options = [\"full-pcpus-only\", \"strict-cpu-reservation\"]\ncloud-provider = \"\"\nreserved-cpus = \"0-1\"",
	"[settings.kubernetes.memory-manager-reserved-memory.0]\nenabled = true\nmemory = \"1Gi\"\nhugepages-2Mi = \"0\"",
	"[settings.kubernetes.topology-manager-policy-options]\nprefer-closest-numa-nodes = true\nmax-allowable-numa-nodes = \"8\"",
	"[settings.kubernetes]\nshutdown-grace-period = \"60s\"\nshutdown-grace-period-for-critical-pods = \"30s\"",
	"[settings.kubernetes.eviction-soft]\n\"memory.available\" = \"15%\"\n[settings.kubernetes.eviction-soft-grace-period]\n\"memory.available\" = \"30s\"",
	"[settings.boot.kernel]\nconsole = [\"tty0\"]\n[settings.boot.init]\n\"systemd.log_level\" = [\"debug\"]",
	"[settings.ntp]\ntime-servers = [\"fd00:ec2::123\", \"0.amazon.pool.ntp.org\"]\noptions = [\"iburst\"]",
	"[settings.network]\nhttps-proxy = \"http://user:p^s|s%@proxy.example.com:3128\"",
	"[settings.network]\nhttps-proxy = \"proxy.example.com:3128\"\nno-proxy = [\"10.0.0.0/8\"]",
	"[settings.host-containers.a]\nenabled = true\nsource = \"localhost:5000/admin@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\"",
	"[settings.kubernetes]\nprovider-id = \"aws:///eu-west-1a/i-0123456789abcdef0\"",
	"[settings.kernel]\nlockdown = \"integrity\"\n[settings.kernel.sysctl]\n\"net.ipv4.ip_local_port_range\" = \"1024 65535\"\n\"vm.max_map_count\" = \"262144\"",
	"[settings.kernel.modules.udf]\nallowed = false\n[settings.kernel.modules.ip_vs]\nautoload = true",
	"[settings.kernel.hugepages.static]\nessential = true\n[settings.kernel.hugepages.static.2Mi]\ncount = \"512\"",
	"[settings.boot]\nreboot-to-reconcile = true\n[settings.boot.kernel-parameters]\n\"usbcore.quirks\" = [\"0781:5580:bk\"]\nsplash = []",
	"[settings.host-containers.admin]\nenabled = true\nsuperpowered = true\nsource = \"public.ecr.aws/a/b:v1\"\nuser-data = \"aGk=\"",
	"[settings.bootstrap-containers.a]\nsource = \"1.dkr.ecr.eu-west-1.amazonaws.com/x:1\"\nmode = \"always\"\nessential = false\nuser-data = \"\"",
	"[settings.bootstrap-commands.a]\ncommands = [[\"apiclient\", \"set\", \"motd=x\"]]\nmode = \"once\"\nessential = true",
	"[settings.ntp]\ntime-servers = [\"169.254.169.123\", \"time.example.com\"]\noptions = [\"minpoll\", \"1\"]",
	"[settings.dns]\nname-servers = [\"10.0.0.2\", \"fd00::2\"]\nsearch-list = [\"example.com\"]",
	"[settings.network]\nhttps-proxy = \"http://p:3128\"\nno-proxy = [\"localhost\", \".internal\"]\nhosts = [[\"10.0.0.1\", [\"a.example.com\", \"b\"]]]",
	"[settings.pki.mine]\ndata = \"LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCg==\"\ntrusted = true",
	"[[settings.container-registry.mirrors]]\nregistry = \"*\"\nendpoint = [\"https://m.example.com\"]\n[[settings.container-registry.credentials]]\nregistry = \"docker.io\"\nauth = \"dTpw\"",
	"[settings.container-registry.mirrors]\n\"docker.io\" = [\"https://m.example.com\"]",
	"[settings.container-runtime]\nmax-concurrent-downloads = 4\nsnapshotter = \"soci\"\n[settings.container-runtime-plugins.soci-snapshotter]\npull-mode = \"parallel-pull-unpack\"",
	"[settings.oci-defaults.capabilities]\nnet-admin = true\n[settings.oci-defaults.resource-limits.max-open-files]\nhard-limit = \"unlimited\"\nsoft-limit = 65536",
	"[settings.metrics]\nsend-metrics = false\nmetrics-url = \"https://m.example.com/v1\"\nservice-checks = [\"kubelet\"]",
	"[settings.updates]\nseed = 7\nversion-lock = \"1.46.0\"\nignore-waves = false",
	"[settings]\nmotd = \"hello\"\n[settings.aws]\nregion = \"eu-west-1\"\nconfig = \"W2RlZmF1bHRd\"",
	"[settings.autoscaling]\nshould-wait = false\n[settings.cloudformation]\nshould-signal = false\n[settings.oci-hooks]\nlog4j-hotpatch-enabled = false",
	"[settings.kubelet-device-plugins.nvidia]\ndevice-sharing-strategy = \"time-slicing\"\n[settings.kubelet-device-plugins.nvidia.time-slicing]\nreplicas = 4",
	"[settings.kubernetes.credential-providers.ecr-credential-provider]\nenabled = true\ncache-duration = \"30m\"\nimage-patterns = [\"*.dkr.ecr.us-east-1.amazonaws.com\"]",
}

// TestKubeletConfiguration: fields that the kubelet ignores are reported. Fields with which the kubelet does not start,
// marked by "!", are fatal problems.
func TestKubeletConfiguration(t *testing.T) {
	t.Parallel()
	for config, want := range map[string]string{
		"featureGates: [NodeSwap]":   "!featureGates must be a table, but is a list",
		"maxPodz: 5":                 "has no field (maxPodz), and the kubelet ignores it: write: maxPods",
		"max-pods: 5":                "has no field (max-pods), and the kubelet ignores it: write: maxPods",
		"nodeLabels: {a: b}":         "write it as a flag, into spec.kubelet.flags: --node-labels",
		"memorySwap: LimitedSwap":    "!memorySwap must be a table, but is text",
		"podPidsLimit: \"100\"":      "!podPidsLimit must be a number, but is text",
		"podPidsLimit: 1.5":          "!podPidsLimit must be a whole number",
		"registryPullQPS: -1":        "!registryPullQPS must be a number from 0",
		"failSwapOn: \"false\"":      "!failSwapOn must be true or false, but is text",
		"shutdownGracePeriod: 30":    "!shutdownGracePeriod must be a duration such as \"30s\", but is a number",
		"shutdownGracePeriod: 30sec": "!shutdownGracePeriod must be a duration",
		"systemReserved: {cpu: 1}":   "!systemReserved.cpu must be text, but is a number; as it is, the kubelet does not start: write the value in quotes",
		"kind: KubeletConfig":        "!kind of the kubelet's configuration must be KubeletConfiguration",
		"containerLogMaxFiles: 1":    "!containerLogMaxFiles must be a number from 2",
		"containerLogMaxSize: 50MB":  "!containerLogMaxSize must be an amount such as \"10Mi\"",
		"reservedSystemCPUs: all":    "!reservedSystemCPUs must be processors such as \"0-3,7\"",
		"tlsMinVersion: \"1.2\"":     "!tlsMinVersion must be one of VersionTLS10",
		"shutdownGracePeriod: 500ms": "!shutdownGracePeriod must be 0 or at least 1s",
		"imageMaximumGCAge: 1m":      "!imageMaximumGCAge (1m0s) must be more than imageMinimumGCAge (2m0s)",

		"featureGates: {InstanceIdNodeName: true}":  "!InstanceIdNodeName is a feature gate of nodeadm",
		"featureGates: {FastImagePull: true}":       "!FastImagePull is a feature gate of nodeadm",
		"featureGates: {NoSuchGateAtAll: true}":     "!knows no such feature gate (NoSuchGateAtAll)",
		"featureGates: {NodeSwap: \"true\"}":        "!an entry of featureGates must be true or false, but is text",
		"memorySwap: {swapBehaviour: LimitedSwap}":  "(swapBehaviour) in memorySwap, and the kubelet ignores it: write: swapBehavior",
		"memorySwap: {swapBehavior: UnlimitedSwap}": "!memorySwap.swapBehavior must be one of NoSwap, LimitedSwap",
		"systemReserved: {gpu: \"1\"}":              "!a key (gpu) of systemReserved must be one of cpu",
		"evictionHard: {memory.free: \"5%\"}":       "!a key (memory.free) of evictionHard must be one of memory.available",
		"evictionSoft: {memory.available: \"5%\"}":  "!evictionSoft (memory.available) has no grace period",
		"allowedUnsafeSysctls: net.core.somaxconn":  "!allowedUnsafeSysctls must be a list, but is text",
		"cpuManagerPolicy: exclusive":               "!cpuManagerPolicy must be one of none, static",
		"apiVersion: kubelet.config.k8s.io/v1":      "!apiVersion of the kubelet's configuration must be kubelet.config.k8s.io/v1beta1",
		"authentication: {x509: {clientCA: /a}}":    "(clientCA) in authentication.x509, and the kubelet ignores it",
		"containerLogMonitorInterval: 1s":           "!containerLogMonitorInterval must be at least 3s",
		"shutdownGracePeriodCriticalPods: 10s":      "!shutdownGracePeriodCriticalPods (10s) must be at most shutdownGracePeriod (0s)",
		"enforceNodeAllocatable: [pod]":             "!an entry (pod) of enforceNodeAllocatable must be one of none, pods, system-reserved, kube-reserved; as it is, the kubelet does not start: write pods",
		"enforceNodeAllocatable: [none, pods]":      "!enforceNodeAllocatable has none and other entries",

		"crashLoopBackOff: {maxContainerRestartPeriod: 400s}":                   "!crashLoopBackOff.maxContainerRestartPeriod must be from 1s to 5m0s",
		"enforceNodeAllocatable: [pods, system-reserved]":                       "!enforceNodeAllocatable has system-reserved without systemReservedCgroup; as it is, the kubelet does not start: set systemReservedCgroup",
		"maxParallelImagePulls: 5\n      serializeImagePulls: true":             "!maxParallelImagePulls must be 1 where serializeImagePulls is true",
		"kubeReservedCgroup: /kube\n      reservedSystemCPUs: 0-1":              "!kubeReservedCgroup cannot be combined with reservedSystemCPUs",
		"shutdownGracePeriod: 30s\n      shutdownGracePeriodCriticalPods: 1m":   "!shutdownGracePeriodCriticalPods (1m0s) must be at most shutdownGracePeriod (30s)",
		"imageGCHighThresholdPercent: 85\n      imageGCLowThresholdPercent: 90": "!imageGCLowThresholdPercent must be less",
	} {
		r := readNode36(t, nodeConfigHead+"kubelet:\n    config:\n      "+config+"\n")
		want, fatal := strings.CutPrefix(want, "!")
		// A field is in line 6 of the NodeConfig, and a second field in line 7.
		if len(r.Problems) != 1 || !strings.Contains(r.Problems[0].String(), want) || r.Problems[0].IsFatal() != fatal ||
			!strings.Contains(r.Problems[0].String(), ", line 6, ") && !strings.Contains(r.Problems[0].String(), ", line 7, ") {
			t.Errorf("%s: %q, want one problem with %q (fatal: %t)", config, r.Problems, want, fatal)
		}
	}
	for _, config := range []string{
		"shutdownGracePeriod: 30s", "featureGates: {NodeSwap: true}", "memorySwap: {swapBehavior: LimitedSwap}", "podPidsLimit: 100",
		"systemReserved: {cpu: 100m, memory: 100Mi}", "authentication: {anonymous: {enabled: false}}", "registerNode: true",
		"cpuManagerPolicyOptions: {full-pcpus-only: \"true\"}", "logging: {format: json}",
		"singleProcessOOMKill: true", "topologyManagerPolicy: best-effort",
		"kind: KubeletConfiguration", "evictionMinimumReclaim: {memory.available: 0Mi}",
		"allowedUnsafeSysctls: [net.core.somaxconn]", "readOnlyPort: 0",
		"containerLogMaxSize: 50Mi", "reservedSystemCPUs: 0-1,3", "tlsMinVersion: VersionTLS12", "containerLogMonitorInterval: 10s",
		"shutdownGracePeriod: 60s\n      shutdownGracePeriodCriticalPods: 10s", "imageMaximumGCAge: 0s", "imageMaximumGCAge: 24h",
		"enforceNodeAllocatable: [pods, kube-reserved]\n      kubeReservedCgroup: /kube", "enforceNodeAllocatable: [none]",
		"maxParallelImagePulls: 5",
		"maxParallelImagePulls: 5\n      serializeImagePulls: false", "clusterDNS: 10.100.0.10",
		"shutdownGracePeriodByPodPriority: [{priority: 1, shutdownGracePeriodSeconds: 5}]",
	} {
		if r := readNode36(t, nodeConfigHead+"kubelet:\n    config:\n      "+config+"\n"); len(r.Problems) > 0 {
			t.Errorf("%s: problems %v, want none", config, r.Problems)
		}
	}
}

// readNode36 reads a NodeConfig of the user, merged with Joiner's, for Kubernetes 1.36. Joiner's part sets no eviction
// or image GC thresholds, which would override those of the user.
func readNode36(t *testing.T, own string) userdata.Reading {
	t.Helper()
	n := node(catalog.AL2023, own)
	n.Kubelet.EvictionHard, n.Kubelet.ImageGCHighThresholdPercent = nil, nil
	data, err := bootstrap.UserData(n)
	if err != nil {
		t.Fatal(err)
	}
	return reading.Read(userdata.Input{Family: n.Family, Own: own, Data: data, Cluster: n.Cluster.Name,
		Endpoint: n.Cluster.Endpoint, Version: "1.36"})
}

// nodeConfigHead is the beginning of a NodeConfig, up to the first field of its spec.
const nodeConfigHead = "apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\nspec:\n  "

// haveOnly reports whether there is exactly one problem, with the text want, or no problem if want is empty.
func haveOnly(problems []userdata.Problem, want string) bool {
	if want == "" {
		return len(problems) == 0
	}
	return len(problems) == 1 && strings.Contains(problems[0].String(), want)
}

// TestNodeadmGates: nodeadm ignores the kubelet's feature gates. For nodes named by instance ID, the problem names the
// mapping of the node role that they need.
func TestNodeadmGates(t *testing.T) {
	t.Parallel()
	for gates, want := range map[string]string{
		"{InstanceIdNodeName: true}":  "system:node:{{SessionName}}",
		"{InstanceIdNodeName: false}": "",
		"{FastImagePull: true}":       "",
		"{NodeSwap: true}":            "NodeSwap is a feature gate of the kubelet, and nodeadm ignores it in spec.featureGates: write it into spec.kubelet.config.featureGates",
		"{InstanceIDNodeName: true}":  "write: InstanceIdNodeName",
	} {
		r := readNode36(t, nodeConfigHead+"featureGates: "+gates+"\n")
		if got := fmt.Sprint(r.Problems); !haveOnly(r.Problems, want) {
			t.Errorf("%s: problems %s, want %q (empty: none)", gates, got, want)
		}
		if _, fatal := r.Fatal(); fatal {
			t.Errorf("%s: problems %v, want no fatal one", gates, r.Problems)
		}
	}
	flags := nodeConfigHead + "kubelet:\n    flags: [\"--feature-gates=InstanceIdNodeName=true\"]\n"
	if fatal, ok := readNode36(t, flags).Fatal(); !ok || !strings.Contains(fatal.Cause, "feature gate of nodeadm") {
		t.Errorf("InstanceIdNodeName as a flag of the kubelet: %v, want a fatal problem", fatal)
	}
}

// TestIgnoredTables: the user's tables outside of [settings] are reported.
func TestIgnoredTables(t *testing.T) {
	t.Parallel()
	for own, want := range map[string]string{
		"[setting.kubernetes]\nlog-level = 2\n":                   "line 1, column 2: Bottlerocket reads [settings] only, and ignores the table (setting) beside it: write: settings",
		"[settings]\nmotd = \"a\"\n[kubernetes]\nlog-level = 2\n": "line 3, column 2: Bottlerocket reads [settings] only, and ignores the table (kubernetes) beside it: write it below [settings]",
	} {
		r := readNode(t, node(catalog.Bottlerocket, own))
		if got := fmt.Sprint(r.Problems); len(r.Problems) != 1 || !strings.Contains(got, want) {
			t.Errorf("%s: problems %s, want one with %q", own, got, want)
		}
	}
}

// TestNodeadmValues: values with which nodeadm fails are reported.
func TestNodeadmValues(t *testing.T) {
	t.Parallel()
	for spec, want := range map[string]string{
		"instance: {localStorage: {strategy: RAID5}}":                                           "strategy must be one of RAID0, RAID10, Mount, None",
		"instance: {localStorage: {strategy: RAID10, mountPath: /mnt/k8s}}":                     "",
		"instance: {localStorage: {strategy: mount, disabledMounts: [Containerd]}}":             "",
		"containerd: {config: \"[plugins\"}":                                                    "spec.containerd.config is not valid TOML",
		"containerd: {config: \"[plugins.'io.containerd.cri.v1.images']\\nsnapshotter = 'a'\"}": "",
	} {
		r := readNode36(t, nodeConfigHead+spec+"\n")
		if got := fmt.Sprint(r.Problems); !haveOnly(r.Problems, want) {
			t.Errorf("%s: problems %s, want %q (empty: none)", spec, got, want)
		}
	}
}

// TestOverridden: each of the user's values that has no effect is reported, with the effective value and the place
// where the user can set it.
func TestOverridden(t *testing.T) {
	t.Parallel()
	const head = nodeConfigHead
	for _, test := range []struct{ family, own, want string }{
		{catalog.AL2023, head + "kubelet: {maxPodsExpression: \"ips\"}\n",
			"maxPodsExpression has no effect: the NodeConfig that Joiner writes sets maxPods (29)"},
		{catalog.AL2023, head + "kubelet: {config: {evictionHard: {memory.available: 9%}}}\n", "evictionHard.memory.available (9%) has no effect: the NodeConfig that Joiner writes sets it to 5%, and wins: write spec.kubelet.evictionHard"},
		{catalog.AL2023, head + "kubelet: {config: {imageGCHighThresholdPercent: 70}}\n", "imageGCHighThresholdPercent (70) has no effect"},
		{catalog.AL2023, head + "kubelet: {config: {clusterDNS: [10.0.0.1]}}\n", "clusterDNS (10.0.0.1) has no effect"},
		{catalog.AL2023, head + "kubelet: {config: {registerWithTaints: [{key: a, effect: NoSchedule}]}}\n", "registerWithTaints has no effect: the NodeConfig that Joiner writes sets it, and wins: write taints into the NodePool"},
		{catalog.AL2023, head + "cluster: {cidr: 10.9.0.0/16}\n", "cluster.cidr (10.9.0.0/16) has no effect"},
		{catalog.AL2023, head + "kubelet: {flags: [--max-pods=7]}\n", "the flag --max-pods (7) wins over maxPods (29), with which Joiner plans: remove the flag, and write spec.kubelet.maxPods"},
		{catalog.AL2023, head + "kubelet: {flags: [--cluster-dns=10.0.0.1]}\n",
			"the flag --cluster-dns (10.0.0.1) wins over clusterDNS (10.100.0.10)"},
		{catalog.Bottlerocket, "[settings.kubernetes]\nmax-pods = 7\n", "settings.kubernetes.max-pods (7) has no effect: Joiner sets it to 29, and wins: write spec.kubelet.maxPods"},
		{catalog.Bottlerocket, "[settings.kubernetes]\ncluster-dns-ip = \"10.0.0.1\"\n",
			"settings.kubernetes.cluster-dns-ip (10.0.0.1) has no effect: Joiner sets it to 10.100.0.10"},
		{catalog.Bottlerocket, "[settings.kubernetes.eviction-hard]\n\"pid.available\" = \"3%\"\n", "settings.kubernetes.eviction-hard.pid.available (3%) has no effect: Joiner replaces that table: write spec.kubelet.evictionHard"},
		{catalog.Bottlerocket, "[settings.kubernetes.node-taints]\nmine = [\"a:NoSchedule\"]\n", "settings.kubernetes.node-taints.mine has no effect: Joiner replaces that table: write taints into the NodePool"},
		{catalog.Bottlerocket, "[settings.kubernetes.node-labels]\nteam = \"b\"\n", "settings.kubernetes.node-labels.team has no effect: Joiner sets it, and wins: write labels into the NodePool"},
		{catalog.Bottlerocket, "[settings.kubernetes]\nmax-pods = 29\ncluster-dns-ip = [\"10.100.0.10\"]\n", ""},
		{catalog.AL2023, head + "kubelet: {config: {maxPods: 29, shutdownGracePeriod: 30s}}\n", ""},
	} {
		r := readNode(t, node(test.family, test.own))
		if got := fmt.Sprint(r.Problems); !haveOnly(r.Problems, test.want) {
			t.Errorf("%s: problems %s, want %q (empty: none)", test.own, got, test.want)
		}
		for _, p := range r.Problems {
			if p.Kind != userdata.Overridden || p.IsFatal() {
				t.Errorf("%s: problem of kind %s, %s; want one of kind Overridden that is not fatal", test.own, p.Kind, p.Harm)
			}
		}
	}
}

// TestShortErrors: an error quotes at most a readable part of the user's text.
func TestShortErrors(t *testing.T) {
	t.Parallel()
	word := strings.Repeat("x", 50_000)
	for family, own := range map[string]string{
		catalog.Bottlerocket: "[settings]\nmotd = " + word + "\n", catalog.AL2023: "Content-Type: " + word + "\n\n",
		catalog.AL2: "Content-Type: " + word + "\n\n",
	} {
		if _, err := bootstrap.UserData(node(family, own)); err == nil || len(err.Error()) > 500 {
			t.Errorf("%s: error %.600v, want one of at most 500 bytes", family, err)
		}
	}
}

// TestSizesFirst: user data that exceeds EC2's limit is neither merged nor read.
func TestSizesFirst(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("[settings.a]\n", 60_000) // 780,000 bytes
	for _, family := range []string{catalog.AL2, catalog.AL2023, catalog.Bottlerocket, catalog.Windows2022, catalog.Custom} {
		_, err := bootstrap.UserData(node(family, long))
		if err == nil || len(err.Error()) > 300 || !strings.Contains(err.Error(), "780000 bytes, EC2 takes 16384") {
			t.Errorf("%s: error %.300v, want a short one with both sizes", family, err)
		}
		r := reading.Read(userdata.Input{Family: family, Own: long})
		if len(r.Problems) != 1 || r.Problems[0].Kind != userdata.TooLong {
			t.Errorf("%s: problems %.300v, want only TooLong", family, r.Problems)
		}
	}
}

// TestOtherSystems: user data for another system, and flags with invalid values, are reported.
func TestOtherSystems(t *testing.T) {
	t.Parallel()
	const call = "#!/bin/bash\n/etc/eks/bootstrap.sh prod --kubelet-extra-args '%s'\n"
	for _, c := range []struct{ family, own, want string }{
		{catalog.AL2, "apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\nspec: {}\n",
			"a NodeConfig is for nodeadm of AL2023; an image of AL2 does not read it"},
		{catalog.Windows2022, "#!/bin/bash\necho hi\n", "it is a shell script, which Windows does not run"},
		{catalog.Windows2022, "[settings.kubernetes]\nmax-pods = 3\n", "which Windows does not run"},
		{catalog.Windows2022, "Write-Host hi\n", ""},
		{catalog.AL2, fmt.Sprintf(call, "--cpu-manager-policy=Static"), "--cpu-manager-policy must be one of none, static; as it is, the kubelet does not start: write --cpu-manager-policy=static"},
		{catalog.AL2, fmt.Sprintf(call, "--topology-manager-policy=single-numa"), "--topology-manager-policy must be one of none, best-effort"},
		{catalog.AL2, fmt.Sprintf(call, "--cpu-manager-policy=static"), ""},
	} {
		r := readNode(t, node(c.family, c.own))
		found := c.want == ""
		for _, p := range r.Problems {
			found = found || strings.Contains(p.String(), c.want)
			if c.want == "" && (p.Kind == userdata.SettingInvalid || p.Kind == userdata.OtherFamily) {
				t.Errorf("%s %q: problem %s, want no SettingInvalid or OtherFamily", c.family, c.own, p)
			}
		}
		if !found {
			t.Errorf("%s %q: problems %v, want one with %q", c.family, c.own, r.Problems, c.want)
		}
	}
}

package userdata

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// kind is what a setting of Bottlerocket has to be, in words.
type kind string

const (
	number       kind = "a number"
	truth        kind = "true or false"
	prose        kind = "text"
	listOfWords  kind = "a list of text"
	tableOfWords kind = "a table of text"
	anything     kind = "anything"
)

// settingKinds are the settings of Kubernetes that Bottlerocket knows. Whether a
// value of the right kind makes sense is left to the instance.
// Source: settings-extensions/kubernetes of github.com/bottlerocket-os/bottlerocket-settings-sdk.
var settingKinds = map[string]kind{
	"allowed-unsafe-sysctls": listOfWords, "api-server": prose, "authentication-mode": prose, "bootstrap-token": prose,
	"cloud-provider": prose, "cluster-certificate": prose, "cluster-dns-ip": anything, "cluster-domain": prose, "cluster-name": prose,
	"container-log-max-files": number, "container-log-max-size": prose, "container-log-max-workers": number,
	"container-log-monitor-interval": prose, "cpu-cfs-quota-enforced": truth, "cpu-manager-policy": prose,
	"cpu-manager-policy-options": listOfWords, "cpu-manager-reconcile-period": prose, "credential-providers": anything,
	"device-ownership-from-security-context": truth, "event-burst": number, "event-qps": number, "eviction-hard": tableOfWords,
	"eviction-max-pod-grace-period": number, "eviction-soft": tableOfWords, "eviction-soft-grace-period": tableOfWords,
	"hostname-override": prose, "hostname-override-source": prose, "ids-per-pod": anything,
	"image-gc-high-threshold-percent": anything, "image-gc-low-threshold-percent": anything, // a number, or a number as text
	"image-maximum-gc-age": prose, "image-minimum-gc-age": prose, "kube-api-burst": number, "kube-api-qps": number,
	"kube-reserved": tableOfWords, "kubelet-extra-config": prose, "log-level": number, "max-parallel-image-pulls": number,
	"max-pods": number, "memory-manager-policy": prose, "memory-manager-reserved-memory": anything, "memory-swap-behavior": prose,
	"node-ip": prose, "node-labels": tableOfWords, "node-taints": anything, "pod-infra-container-image": prose, "pod-pids-limit": number,
	"provider-id": prose, "registry-burst": number, "registry-qps": number, "reserved-cpus": prose, "seccomp-default": truth,
	"server-certificate": prose, "server-key": prose, "server-tls-bootstrap": truth, "shutdown-grace-period": prose,
	"shutdown-grace-period-for-critical-pods": prose, "single-process-oom-kill": truth, "standalone-mode": truth,
	"static-pods": anything, "static-pods-enabled": truth, "system-reserved": tableOfWords, "topology-manager-policy": prose,
	"topology-manager-policy-options": anything, "topology-manager-scope": prose,
}

// settingTables are what images for EKS know right below [settings].
// Source: bottlerocket-settings-models, variant aws-k8s, of the same repository.
const settingTables = "autoscaling aws boot bootstrap-commands bootstrap-containers cloudformation container-registry container-runtime " +
	"container-runtime-plugins dns host-containers kernel kubelet-device-plugins kubernetes metrics motd network ntp nvidia-container-runtime " +
	"oci-defaults oci-hooks pki updates xfs"

// settingFields are the fields of KubeletConfiguration that settings become.
// Source: the settings reference of bottlerocket.dev, settings.kubernetes.
var settingFields = map[string]string{
	"allowed-unsafe-sysctls": "allowedUnsafeSysctls", "cluster-domain": "clusterDomain", "container-log-max-files": "containerLogMaxFiles",
	"container-log-max-size": "containerLogMaxSize", "container-log-max-workers": "containerLogMaxWorkers",
	"container-log-monitor-interval": "containerLogMonitorInterval", "cpu-cfs-quota-enforced": "cpuCFSQuota",
	"cpu-manager-policy": "cpuManagerPolicy", "cpu-manager-reconcile-period": "cpuManagerReconcilePeriod", "event-burst": "eventBurst",
	"event-qps": "eventRecordQPS", "eviction-hard": "evictionHard", "eviction-max-pod-grace-period": "evictionMaxPodGracePeriod",
	"eviction-soft": "evictionSoft", "eviction-soft-grace-period": "evictionSoftGracePeriod",
	"image-gc-high-threshold-percent": "imageGCHighThresholdPercent", "image-gc-low-threshold-percent": "imageGCLowThresholdPercent",
	"kube-api-burst": "kubeAPIBurst", "kube-api-qps": "kubeAPIQPS", "kube-reserved": "kubeReserved", "max-pods": "maxPods",
	"memory-manager-policy": "memoryManagerPolicy", "pod-pids-limit": "podPidsLimit", "registry-burst": "registryBurst",
	"registry-qps": "registryPullQPS", "seccomp-default": "seccompDefault", "server-tls-bootstrap": "serverTLSBootstrap",
	"shutdown-grace-period":                   "shutdownGracePeriod",
	"shutdown-grace-period-for-critical-pods": "shutdownGracePeriodCriticalPods", "single-process-oom-kill": "singleProcessOOMKill",
	"system-reserved": "systemReserved", "topology-manager-policy": "topologyManagerPolicy", "topology-manager-scope": "topologyManagerScope",
}

// numbersAsText are settings that Bottlerocket takes as text and the kubelet as a number.
var numbersAsText = []string{"image-gc-high-threshold-percent", "image-gc-low-threshold-percent"}

// judgeSettings refuses settings of another kind than Bottlerocket's, and those
// that it does not know: it would take none of them, and the node would never join.
func (r *reader) judgeSettings(settings map[string]any, spots map[string]Spot) {
	for _, table := range slices.Sorted(maps.Keys(settings)) {
		if !slices.Contains(strings.Fields(settingTables), table) {
			r.unknownSetting("settings."+table, table, strings.Fields(settingTables), spots)
		}
	}
	kubernetes, ok := settings["kubernetes"].(map[string]any)
	if _, given := settings["kubernetes"]; given && !ok {
		r.problem(SettingInvalid, Certain, NeverJoins, spots["settings.kubernetes"], "settings.kubernetes has to be a table: Bottlerocket would take none of the settings")
	}
	known := slices.Sorted(maps.Keys(settingKinds))
	for _, key := range slices.Sorted(maps.Keys(kubernetes)) {
		path := "settings.kubernetes." + key
		want, ok := settingKinds[key]
		if !ok {
			r.unknownSetting(path, key, known, spots)
			continue
		}
		if wrong := misfit(path, kubernetes[key], want); wrong != "" {
			r.problem(SettingInvalid, Certain, NeverJoins, spots[path], "%s: Bottlerocket would take none of the settings", wrong)
		}
	}
}

// newestImage is the release of Bottlerocket that the lists above were read for.
var newestImage = [2]int{1, 53}

// unknownSetting says that Bottlerocket may not know a setting. It is certain
// where the image is none that came after the lists, and where the name is all
// but one that is known.
func (r *reader) unknownSetting(path, key string, known []string, spots map[string]Spot) {
	near := nearest(key, known)
	certainty, may := Likely, "may be"
	if release, ok := releaseOf(r.in.Image); near != "" || ok && !later(release, newestImage) {
		certainty, may = Certain, "is"
	}
	name := path
	if !isTelling(key) {
		name = "a setting of " + strings.TrimSuffix(strings.TrimSuffix(path, key), ".")
	}
	p := r.problem(SettingUnknown, certainty, NeverJoins, spots[path],
		"%s %s unknown to Bottlerocket, which then takes none of the settings and does not join", name, may)
	if near != "" {
		p.with("write", near)
	} else {
		p.with("take it out", "")
	}
}

// releaseOf reads the release in "bottlerocket-aws-k8s-1.33-x86_64-v1.46.0-abcdef".
func releaseOf(image string) (release [2]int, ok bool) {
	if SystemOf(image) != bottlerocketSystem {
		return release, false
	}
	for _, word := range strings.Split(image, "-") {
		if n, err := fmt.Sscanf(word, "v%d.%d", &release[0], &release[1]); err == nil && n == 2 {
			return release, true
		}
	}
	return release, false
}

func later(a, b [2]int) bool { return a[0] > b[0] || a[0] == b[0] && a[1] > b[1] }

// misfit says that a value, or one within it, is not what it has to be; empty if it is.
func misfit(name string, value any, want kind) string {
	is := "a date"
	switch v := value.(type) {
	case int64, float64:
		is = string(number)
	case bool:
		is = string(truth)
	case string:
		is = string(prose)
	case []any:
		is = "a list"
		if want == listOfWords {
			return misfits(name, v)
		}
	case map[string]any:
		is = "a table"
		if want == tableOfWords {
			var all []any
			for _, key := range slices.Sorted(maps.Keys(v)) {
				all = append(all, v[key])
			}
			return misfits(name, all)
		}
	}
	if want == anything || is == string(want) {
		return ""
	}
	return fmt.Sprintf("%s has to be %s, and is %s", name, want, is)
}

func misfits(name string, all []any) string {
	for _, v := range all {
		if wrong := misfit("what is in "+name, v, prose); wrong != "" {
			return wrong
		}
	}
	return ""
}

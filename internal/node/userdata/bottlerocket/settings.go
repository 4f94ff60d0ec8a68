package bottlerocket

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/joiner-sh/joiner/internal/node/userdata"
)

// settingFields maps settings to the resulting fields of KubeletConfiguration.
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

// numbersAsText are settings that Bottlerocket also accepts as text, and the kubelet only as numbers.
var numbersAsText = []string{"image-gc-high-threshold-percent", "image-gc-low-threshold-percent"}

// judgeSettings reports settings that Bottlerocket rejects: a wrong type, a wrong value, an unknown name. Because of
// one such setting Bottlerocket applies none of the settings, and the node never joins.
func judgeSettings(r *userdata.Reader, settings map[string]any, positions map[string]userdata.Position) {
	groups, c := settingGroups(), &settingsCheck{r: r, positions: positions}
	known := slices.Sorted(maps.Keys(groups))
	for _, group := range slices.Sorted(maps.Keys(settings)) {
		path := "settings." + group
		check, ok := groups[group]
		switch {
		case ok:
			check(c, path, path, settings[group])
		case slices.Contains(strings.Fields(laterGroups), group):
			anyTable(c, path, path, settings[group])
			if !mayBeNewer(r) {
				reportUnknownSetting(r, path, group, nil, c.positionOf(path))
			}
		default:
			reportUnknownSetting(r, path, group, known, c.positionOf(path))
		}
	}
	c.reportContradictions(settings)
}

// mayBeNewer reports whether the image may be of a release newer than newestImage: its release is newer, or unknown.
func mayBeNewer(r *userdata.Reader) bool {
	release, ok := releaseOf(r.In.Image)
	return !ok || isLater(release, newestImage)
}

// newestImage is the newest release of Bottlerocket, major and minor, whose settings settingGroups holds.
var newestImage = [2]int{1, 53}

// reportUnknownSetting reports a setting that is not in settingGroups. The problem is Certain if the image is not newer
// than newestImage, or if the key resembles one of known.
func reportUnknownSetting(r *userdata.Reader, path, key string, known []string, position userdata.Position) {
	near := userdata.Nearest(key, known)
	certainty, verb := userdata.Likely, "may be"
	if near != "" || !mayBeNewer(r) {
		certainty, verb = userdata.Certain, "is"
	}
	name := path
	if !userdata.IsQuotable(key) {
		name = "a setting of " + strings.TrimSuffix(strings.TrimSuffix(path, key), ".")
	}
	p := r.Report(userdata.SettingUnknown, certainty, userdata.NeverJoins, position,
		"%s %s unknown to Bottlerocket, which then applies none of the settings and does not join", name, verb)
	if near != "" {
		p.Suggest("write", near)
	} else {
		p.Suggest("remove it", "")
	}
}

// releaseOf returns the release in an image's name, {1, 46} for "bottlerocket-aws-k8s-1.33-x86_64-v1.46.0-abcdef" and
// for "bottlerocket-v1.46.0". ok is false for other names.
func releaseOf(image string) (release [2]int, ok bool) {
	if !strings.HasPrefix(image, "bottlerocket-") {
		return release, false
	}
	for _, word := range strings.Split(image, "-") {
		if n, err := fmt.Sscanf(word, "v%d.%d", &release[0], &release[1]); err == nil && n == 2 {
			return release, true
		}
	}
	return release, false
}

func isLater(a, b [2]int) bool { return a[0] > b[0] || a[0] == b[0] && a[1] > b[1] }

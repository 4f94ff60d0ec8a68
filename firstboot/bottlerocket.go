package firstboot

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2"
)

// fields are the fields of KubeletConfiguration that settings of Bottlerocket become.
// Source: the settings reference of bottlerocket.dev, settings.kubernetes.
var fields = map[string]string{
	"allowed-unsafe-sysctls":                  "allowedUnsafeSysctls",
	"cluster-domain":                          "clusterDomain",
	"container-log-max-files":                 "containerLogMaxFiles",
	"container-log-max-size":                  "containerLogMaxSize",
	"container-log-max-workers":               "containerLogMaxWorkers",
	"container-log-monitor-interval":          "containerLogMonitorInterval",
	"cpu-cfs-quota-enforced":                  "cpuCFSQuota",
	"cpu-manager-policy":                      "cpuManagerPolicy",
	"cpu-manager-reconcile-period":            "cpuManagerReconcilePeriod",
	"event-burst":                             "eventBurst",
	"event-qps":                               "eventRecordQPS",
	"eviction-hard":                           "evictionHard",
	"eviction-max-pod-grace-period":           "evictionMaxPodGracePeriod",
	"eviction-soft":                           "evictionSoft",
	"eviction-soft-grace-period":              "evictionSoftGracePeriod",
	"image-gc-high-threshold-percent":         "imageGCHighThresholdPercent",
	"image-gc-low-threshold-percent":          "imageGCLowThresholdPercent",
	"kube-api-burst":                          "kubeAPIBurst",
	"kube-api-qps":                            "kubeAPIQPS",
	"kube-reserved":                           "kubeReserved",
	"max-pods":                                "maxPods",
	"memory-manager-policy":                   "memoryManagerPolicy",
	"pod-pids-limit":                          "podPidsLimit",
	"registry-burst":                          "registryBurst",
	"registry-qps":                            "registryPullQPS",
	"seccomp-default":                         "seccompDefault",
	"server-tls-bootstrap":                    "serverTLSBootstrap",
	"shutdown-grace-period":                   "shutdownGracePeriod",
	"shutdown-grace-period-for-critical-pods": "shutdownGracePeriodCriticalPods",
	"single-process-oom-kill":                 "singleProcessOOMKill",
	"system-reserved":                         "systemReserved",
	"topology-manager-policy":                 "topologyManagerPolicy",
	"topology-manager-scope":                  "topologyManagerScope",
}

// numbers are settings that Bottlerocket takes as text and the kubelet as a number.
var numbers = map[string]bool{"image-gc-high-threshold-percent": true, "image-gc-low-threshold-percent": true}

// bottlerocket reads the settings of Kubernetes. Labels and taints become flags.
func bottlerocket(text string) (Kubelet, error) {
	var doc struct {
		Settings struct {
			Kubernetes map[string]any `toml:"kubernetes"`
		} `toml:"settings"`
	}
	if err := toml.Unmarshal([]byte(text), &doc); err != nil {
		return Kubelet{}, fmt.Errorf("spec.userData: read as Bottlerocket settings: %w", err)
	}
	settings := doc.Settings.Kubernetes
	doubts, err := judge(settings)
	if err != nil {
		return Kubelet{}, err
	}
	k := Kubelet{Config: map[string]any{}, Doubts: doubts}
	for _, key := range slices.Sorted(maps.Keys(settings)) {
		value := settings[key]
		switch field, ok := fields[key]; {
		case key == "cluster-dns-ip":
			k.Config["clusterDNS"] = list(value)
		case ok && numbers[key]:
			n, err := strconv.ParseInt(fmt.Sprint(value), 10, 64)
			if err != nil {
				return Kubelet{}, fmt.Errorf("spec.userData: settings.kubernetes.%s: %v is no number", key, value)
			}
			k.Config[field] = n
		case ok:
			k.Config[field] = value
		}
	}
	if labels := nodeLabels(settings["node-labels"]); labels != "" {
		k.Flags = append(k.Flags, "--node-labels="+labels)
	}
	if taints := nodeTaints(settings["node-taints"]); taints != "" {
		k.Flags = append(k.Flags, "--register-with-taints="+taints)
	}
	return k, nil
}

func list(value any) []any {
	if l, ok := value.([]any); ok {
		return l
	}
	return []any{value}
}

func nodeLabels(value any) string {
	table, _ := value.(map[string]any)
	var out []string
	for _, key := range slices.Sorted(maps.Keys(table)) {
		out = append(out, fmt.Sprintf("%s=%v", key, table[key]))
	}
	return strings.Join(out, ",")
}

// nodeTaints writes key = ["value:effect", …] as the kubelet's flag has it.
func nodeTaints(value any) string {
	table, _ := value.(map[string]any)
	var out []string
	for _, key := range slices.Sorted(maps.Keys(table)) {
		for _, one := range list(table[key]) {
			text := fmt.Sprint(one)
			if strings.HasPrefix(text, ":") {
				out = append(out, key+text)
				continue
			}
			out = append(out, key+"="+text)
		}
	}
	return strings.Join(out, ",")
}

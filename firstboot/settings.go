package firstboot

import (
	"fmt"
	"maps"
	"slices"
)

// kind is what a setting of Bottlerocket has to be, in words.
type kind string

const (
	number       kind = "a number"
	truth        kind = "true or false"
	word         kind = "text"
	listOfWords  kind = "a list of text"
	tableOfWords kind = "a table of text"
	anything     kind = "anything"
)

// kinds are the settings of Kubernetes that Bottlerocket knows. Whether a value
// of the right kind makes sense is left to the instance.
// Source: settings-extensions/kubernetes of github.com/bottlerocket-os/bottlerocket-settings-sdk.
var kinds = map[string]kind{
	"allowed-unsafe-sysctls": listOfWords, "api-server": word, "authentication-mode": word, "bootstrap-token": word,
	"cloud-provider": word, "cluster-certificate": word, "cluster-dns-ip": anything, "cluster-domain": word, "cluster-name": word,
	"container-log-max-files": number, "container-log-max-size": word, "container-log-max-workers": number,
	"container-log-monitor-interval": word, "cpu-cfs-quota-enforced": truth, "cpu-manager-policy": word,
	"cpu-manager-policy-options": listOfWords, "cpu-manager-reconcile-period": word, "credential-providers": anything,
	"device-ownership-from-security-context": truth, "event-burst": number, "event-qps": number, "eviction-hard": tableOfWords,
	"eviction-max-pod-grace-period": number, "eviction-soft": tableOfWords, "eviction-soft-grace-period": tableOfWords,
	"hostname-override": word, "hostname-override-source": word, "ids-per-pod": anything,
	"image-gc-high-threshold-percent": anything, "image-gc-low-threshold-percent": anything, // a number, or a number as text
	"image-maximum-gc-age": word, "image-minimum-gc-age": word, "kube-api-burst": number, "kube-api-qps": number,
	"kube-reserved": tableOfWords, "kubelet-extra-config": word, "log-level": number, "max-parallel-image-pulls": number,
	"max-pods": number, "memory-manager-policy": word, "memory-manager-reserved-memory": anything, "memory-swap-behavior": word,
	"node-ip": word, "node-labels": tableOfWords, "node-taints": anything, "pod-infra-container-image": word, "pod-pids-limit": number,
	"provider-id": word, "registry-burst": number, "registry-qps": number, "reserved-cpus": word, "seccomp-default": truth,
	"server-certificate": word, "server-key": word, "server-tls-bootstrap": truth, "shutdown-grace-period": word,
	"shutdown-grace-period-for-critical-pods": word, "single-process-oom-kill": truth, "standalone-mode": truth,
	"static-pods": anything, "static-pods-enabled": truth, "system-reserved": tableOfWords, "topology-manager-policy": word,
	"topology-manager-policy-options": anything, "topology-manager-scope": word,
}

// judge refuses settings of another kind than Bottlerocket's: it would take none
// of them, and the node would never join. Those that it may not know are doubts:
// the image may be newer than we.
func judge(settings map[string]any) (doubts []string, err error) {
	for _, key := range slices.Sorted(maps.Keys(settings)) {
		want, known := kinds[key]
		if !known {
			doubts = append(doubts, fmt.Sprintf("spec.userData: settings.kubernetes.%s may be unknown to Bottlerocket, which then takes none of the settings and does not join", key))
			continue
		}
		if problem := misfit("settings.kubernetes."+key, settings[key], want); problem != "" {
			return nil, fmt.Errorf("spec.userData: %s: Bottlerocket would take none of the settings", problem)
		}
	}
	return doubts, nil
}

// misfit says that a value, or one within it, is not what it has to be; empty if it is.
func misfit(name string, value any, want kind) string {
	is := "a date"
	switch v := value.(type) {
	case int64, float64:
		is = string(number)
	case bool:
		is = string(truth)
	case string:
		is = string(word)
	case []any:
		is = "a list"
		if want == listOfWords {
			return misfits(name, v)
		}
	case map[string]any:
		is = "a table"
		if want == tableOfWords {
			var values []any
			for _, key := range slices.Sorted(maps.Keys(v)) {
				values = append(values, v[key])
			}
			return misfits(name, values)
		}
	}
	if want == anything || is == string(want) {
		return ""
	}
	return fmt.Sprintf("%s has to be %s, and is %s", name, want, is)
}

func misfits(name string, values []any) string {
	for _, v := range values {
		if problem := misfit("what is in "+name, v, word); problem != "" {
			return problem
		}
	}
	return ""
}

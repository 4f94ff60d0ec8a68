package conversion

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	awsv1 "github.com/joiner-sh/joiner/api/aws/v1"
	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/suggest"
)

var evictionSignals = []string{
	"memory.available", "nodefs.available", "nodefs.inodesFree", "imagefs.available", "imagefs.inodesFree", "pid.available",
}

// KubeletProblem returns the problems of spec.kubelet: values that the schema accepts, but the kubelet or the AMI
// family does not. reason is the reason of the condition that reports the problems. Both results are empty if there is
// no problem. KubeletProblem does not check the content of maps and lists, except in eviction settings.
func KubeletProblem(class *awsv1.EC2NodeClass) (reason, message string) {
	k := class.Spec.Kubelet
	if k == nil {
		return "", ""
	}
	problems := slices.Concat(moreProblems(k), evictionProblems(k))
	if len(problems) > 0 {
		return awsv1.ReasonInvalidKubeletConfiguration, strings.Join(problems, "; ")
	}
	family := class.Spec.ResolvedAMIFamily()
	if family == catalog.AL2023 || family == catalog.Custom {
		return "", "" // nodeadm takes every kubelet setting; the user data of Custom is the user's
	}
	var unsupported []string
	if names := slices.Sorted(maps.Keys(k.More)); len(names) > 0 {
		unsupported = append(unsupported,
			fmt.Sprintf("spec.kubelet: %s has no way to set %s: leave it out, or use AL2023", family, strings.Join(names, ", ")))
	}
	if n := len(k.ClusterDNS); n > 1 {
		unsupported = append(unsupported, fmt.Sprintf("spec.kubelet.clusterDNS: %s takes one address, there are %d", family, n))
	}
	if family == catalog.Bottlerocket && k.PodsPerCore != nil {
		unsupported = append(unsupported, "spec.kubelet.podsPerCore: Bottlerocket does not support it: set maxPods instead")
	}
	if len(unsupported) > 0 {
		return awsv1.ReasonUnsupportedKubeletConfiguration, strings.Join(unsupported, "; ")
	}
	return "", ""
}

// moreProblems checks k.More: the settings that have no field in awsv1.KubeletConfiguration.
func moreProblems(k *awsv1.KubeletConfiguration) []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(k.More)) {
		want, ok := shapeOf(name)
		switch {
		case name == "registerWithTaints":
			out = append(out, "spec.kubelet.registerWithTaints: taints are the NodePool's: set spec.template.spec.taints there")
		case !ok:
			text := fmt.Sprintf("spec.kubelet.%s: the kubelet has no such setting", name)
			if near := suggest.Nearest(name, kubeletFieldNames()); near != "" {
				text += " (did you mean " + near + "?)"
			}
			out = append(out, text)
		case !want.accepts(k.More[name].Raw):
			out = append(out, fmt.Sprintf("spec.kubelet.%s: want %s, not %s", name, want, OneLine(string(k.More[name].Raw))))
		}
	}
	return out
}

func evictionProblems(k *awsv1.KubeletConfiguration) []string {
	var out []string
	if p := k.EvictionMaxPodGracePeriod; p != nil && *p < 0 {
		out = append(out, fmt.Sprintf("spec.kubelet.evictionMaxPodGracePeriod: want seconds, not %d", *p))
	}
	out = append(out, thresholdProblems("evictionHard", k.EvictionHard)...)
	out = append(out, thresholdProblems("evictionSoft", k.EvictionSoft)...)
	for _, signal := range slices.Sorted(maps.Keys(k.EvictionSoftGracePeriod)) {
		text := k.EvictionSoftGracePeriod[signal]
		if d, err := time.ParseDuration(text); err != nil || d < 0 {
			out = append(out, fmt.Sprintf("spec.kubelet.evictionSoftGracePeriod[%s]: want a duration, for instance 1m30s, not %q", signal, text))
		}
	}
	reclaim := map[string]string{}
	if raw, ok := k.More["evictionMinimumReclaim"]; ok && json.Unmarshal(raw.Raw, &reclaim) != nil {
		return append(out, "spec.kubelet.evictionMinimumReclaim: want quoted strings, for instance memory.available: 500Mi")
	}
	return append(out, thresholdProblems("evictionMinimumReclaim", reclaim)...)
}

// thresholdProblems checks the values of spec.kubelet.FIELD: thresholds by eviction signal.
func thresholdProblems(field string, values map[string]string) []string {
	var out []string
	for _, signal := range slices.Sorted(maps.Keys(values)) {
		if !slices.Contains(evictionSignals, signal) {
			out = append(out, fmt.Sprintf("spec.kubelet.%s[%s]: the kubelet has no such eviction signal; the signals are %s", field, signal,
				strings.Join(evictionSignals, ", ")))
			continue
		}
		if _, err := catalog.ParseThreshold(values[signal]); err != nil {
			out = append(out, fmt.Sprintf("spec.kubelet.%s[%s]: %v", field, signal, err))
		}
	}
	return out
}

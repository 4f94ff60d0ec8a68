package manifest

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
)

// likelyMistakes returns notes about values that an API server accepts but that are probably mistakes.
func likelyMistakes(object client.Object) []problem {
	if pool, ok := object.(*karpv1.NodePool); ok {
		return poolMistakes(pool)
	}
	spec := specOf(object)
	if spec == nil {
		return nil
	}
	var out []problem
	for _, list := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range list {
			given := list[i].Resources
			requests := byteDoubts(list[i].Name, "requests", given.Requests)
			out = append(out, requests...)
			if len(requests) == 0 { // otherwise the limits probably have the same problem
				out = append(out, byteDoubts(list[i].Name, "limits", given.Limits)...)
			}
			out = append(out, limitDoubts(list[i].Name, given)...)
		}
	}
	return out
}

const leastBytes = 1 << 20 // the smallest plausible amount of memory or disk

// byteDoubts returns notes about amounts of memory and disk under one byte, which often have the suffix m for
// thousandths, and about memory under leastBytes without a suffix.
func byteDoubts(container, field string, list corev1.ResourceList) []problem {
	var out []problem
	for _, name := range slices.Sorted(maps.Keys(list)) {
		q := list[name]
		if name != corev1.ResourceMemory && name != corev1.ResourceEphemeralStorage || q.Sign() <= 0 || q.CmpInt64(leastBytes) >= 0 {
			continue
		}
		if text := q.String(); q.CmpInt64(1) >= 0 {
			if strings.Trim(text, "0123456789") == "" && name == corev1.ResourceMemory {
				out = append(out, problem{
					fmt.Sprintf("container %s: resources.%s.%s: %s without a unit is bytes; did you mean %sMi?", container, field, name,
						text, text), string(name), text,
				})
			}
			continue
		}
		text := fmt.Sprintf("container %s: resources.%s.%s: %s is under one byte", container, field, name, q.String())
		if digits, ok := strings.CutSuffix(q.String(), "m"); ok {
			text += fmt.Sprintf("; did you mean %sMi?", digits)
		}
		out = append(out, problem{text, string(name), q.String()})
	}
	return out
}

// specOf returns the spec of a pod, or of the pods of a workload; nil for other objects.
func specOf(object client.Object) *corev1.PodSpec {
	switch v := object.(type) {
	case *corev1.Pod:
		return &v.Spec
	case *appsv1.DaemonSet:
		return &v.Spec.Template.Spec
	case *appsv1.Deployment, *appsv1.ReplicaSet, *appsv1.StatefulSet, *batchv1.Job, *batchv1.CronJob:
		return &workloadOf(object).template.Spec
	}
	return nil
}

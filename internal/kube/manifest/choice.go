package manifest

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// choiceProblem returns a problem if the value is not one of the choices, because a plan would be based on a guess. If
// "" is a choice, the value may be missing.
func choiceProblem[T ~string](path string, value T, choices ...T) []problem {
	if slices.Contains(choices, value) {
		return nil
	}
	var names []string
	for _, c := range choices {
		if c != "" {
			names = append(names, string(c))
		}
	}
	last := len(names) - 1
	alternatives := strings.Join(names[:last], ", ") + " or " + names[last]
	if value == "" {
		return []problem{{fmt.Sprintf("%s is missing; use %s", path, alternatives), lastKey(path), ""}}
	}
	return []problem{{fmt.Sprintf("%s: %q is unknown; use %s", path, value, alternatives), lastKey(path), string(value)}}
}

func spreadProblems(path string, all []corev1.TopologySpreadConstraint) []problem {
	var out []problem
	for i := range all {
		c, at := &all[i], fmt.Sprintf("%s.topologySpreadConstraints[%d]", path, i)
		out = append(out, choiceProblem(at+".whenUnsatisfiable", c.WhenUnsatisfiable, corev1.DoNotSchedule, corev1.ScheduleAnyway)...)
		for _, policy := range []struct {
			name  string
			value *corev1.NodeInclusionPolicy
		}{{"nodeAffinityPolicy", c.NodeAffinityPolicy}, {"nodeTaintsPolicy", c.NodeTaintsPolicy}} {
			if policy.value != nil {
				out = append(out, choiceProblem(at+"."+policy.name, *policy.value,
					corev1.NodeInclusionPolicyHonor, corev1.NodeInclusionPolicyIgnore)...)
			}
		}
		if c.MaxSkew < 1 {
			out = append(out, problem{fmt.Sprintf("%s.maxSkew: %d is less than 1", at, c.MaxSkew), "maxSkew", fmt.Sprint(c.MaxSkew)})
		}
		out = append(out, minDomainsProblems(at, c)...)
		out = append(out, topologyProblem(at, c.TopologyKey)...)
		out = append(out, selectorProblems(at+".labelSelector", c.LabelSelector)...)
	}
	return out
}

func topologyProblem(path, key string) []problem {
	if key != "" {
		return nil
	}
	text := path + ".topologyKey is missing; name a label of nodes, for instance " + corev1.LabelTopologyZone
	return []problem{{text, "topologyKey", ""}}
}

func podAffinityProblems(path string, affinity *corev1.Affinity) []problem {
	if affinity == nil {
		return nil
	}
	var out []problem
	addTerms := func(name string, required []corev1.PodAffinityTerm, preferred []corev1.WeightedPodAffinityTerm) {
		for i := range required {
			at := fmt.Sprintf("%s.affinity.%s.requiredDuringSchedulingIgnoredDuringExecution[%d]", path, name, i)
			out = append(out, podTermProblems(at, &required[i])...)
		}
		for i := range preferred {
			at := fmt.Sprintf("%s.affinity.%s.preferredDuringSchedulingIgnoredDuringExecution[%d]", path, name, i)
			out = append(out, weightProblem(at, preferred[i].Weight)...)
			out = append(out, podTermProblems(at+".podAffinityTerm", &preferred[i].PodAffinityTerm)...)
		}
	}
	if a := affinity.PodAffinity; a != nil {
		addTerms("podAffinity", a.RequiredDuringSchedulingIgnoredDuringExecution, a.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	if a := affinity.PodAntiAffinity; a != nil {
		addTerms("podAntiAffinity", a.RequiredDuringSchedulingIgnoredDuringExecution, a.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	return out
}

func podTermProblems(path string, term *corev1.PodAffinityTerm) []problem {
	return slices.Concat(topologyProblem(path, term.TopologyKey),
		selectorProblems(path+".labelSelector", term.LabelSelector),
		selectorProblems(path+".namespaceSelector", term.NamespaceSelector))
}

func selectorProblems(path string, selector *metav1.LabelSelector) []problem {
	if selector == nil {
		return nil
	}
	var out []problem
	for i, e := range selector.MatchExpressions {
		at := fmt.Sprintf("%s.matchExpressions[%d] (%s)", path, i, e.Key)
		found := choiceProblem(at+".operator", e.Operator, metav1.LabelSelectorOpIn, metav1.LabelSelectorOpNotIn,
			metav1.LabelSelectorOpExists, metav1.LabelSelectorOpDoesNotExist)
		single := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{e}}
		if _, err := metav1.LabelSelectorAsSelector(single); err != nil && found == nil {
			text := fmt.Sprintf("%s: operator %q with values %q is invalid;"+
				" use In or NotIn with values, Exists or DoesNotExist without", at, e.Operator, e.Values)
			found = []problem{{text, e.Key, ""}}
		}
		out = append(out, found...)
	}
	return out
}

func containerProblems(path string, spec *corev1.PodSpec) []problem {
	out := podResourceProblems(path, spec)
	for field, list := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range list {
			at := fmt.Sprintf("%s.%s[%d]", path, []string{"initContainers", "containers"}[field], i)
			if p := list[i].RestartPolicy; p != nil {
				out = append(out, choiceProblem(at+".restartPolicy", *p, corev1.ContainerRestartPolicyAlways,
					corev1.ContainerRestartPolicyOnFailure, corev1.ContainerRestartPolicyNever)...)
			}
			out = append(out, resourceProblems(at, list[i].Resources)...)
			for j, port := range list[i].Ports {
				out = append(out, portProblems(fmt.Sprintf("%s.ports[%d]", at, j), port, spec.HostNetwork)...)
				out = append(out, choiceProblem(fmt.Sprintf("%s.ports[%d].protocol", at, j), port.Protocol, "",
					corev1.ProtocolTCP, corev1.ProtocolUDP, corev1.ProtocolSCTP)...)
			}
		}
	}
	return out
}

func volumeProblems(v *corev1.PersistentVolume) []problem {
	if v.Spec.NodeAffinity == nil || v.Spec.NodeAffinity.Required == nil {
		return nil
	}
	var out []problem
	for i := range v.Spec.NodeAffinity.Required.NodeSelectorTerms {
		at := fmt.Sprintf("spec.nodeAffinity.required.nodeSelectorTerms[%d]", i)
		out = append(out, termProblems(at, &v.Spec.NodeAffinity.Required.NodeSelectorTerms[i])...)
	}
	return out
}

func storageProblems(class *storagev1.StorageClass) []problem {
	if class.VolumeBindingMode == nil {
		return nil
	}
	return choiceProblem("volumeBindingMode", *class.VolumeBindingMode, storagev1.VolumeBindingWaitForFirstConsumer,
		storagev1.VolumeBindingImmediate)
}

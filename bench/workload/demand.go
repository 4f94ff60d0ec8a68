package workload

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// changeAll applies a change to every deployment, and returns the deployments. n is the deployment's index.
func changeAll(deployments []deployment, change func(n int, d *deployment)) []deployment {
	for n := range deployments {
		change(n, &deployments[n])
	}
	return deployments
}

func (d *deployment) podSelector() *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{labelApp: d.name}}
}

func (d *deployment) spread(key string, skew int32) {
	d.template.TopologySpreadConstraints = append(d.template.TopologySpreadConstraints, corev1.TopologySpreadConstraint{
		MaxSkew: skew, TopologyKey: key, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: d.podSelector(),
	})
}

// requireAntiAffinity adds required anti-affinity: no two pods of the deployment share a value of key.
func (d *deployment) requireAntiAffinity(key string) {
	a := d.affinity()
	a.PodAntiAffinity = &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{
		{TopologyKey: key, LabelSelector: d.podSelector()},
	}}
}

// requireAffinity adds required affinity: all pods of the deployment share one value of key.
func (d *deployment) requireAffinity(key string) {
	a := d.affinity()
	a.PodAffinity = &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{
		{TopologyKey: key, LabelSelector: d.podSelector()},
	}}
}

func (d *deployment) requireNodeLabel(key, value string) {
	if d.template.NodeSelector == nil {
		d.template.NodeSelector = map[string]string{}
	}
	d.template.NodeSelector[key] = value
}

func (d *deployment) prefer(weight int32, key, value string) {
	a := d.affinity()
	if a.NodeAffinity == nil {
		a.NodeAffinity = &corev1.NodeAffinity{}
	}
	a.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution = append(
		a.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution, corev1.PreferredSchedulingTerm{
			Weight: weight,
			Preference: corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{
				{Key: key, Operator: corev1.NodeSelectorOpIn, Values: []string{value}},
			}},
		})
}

func (d *deployment) tolerate(key, value string) {
	d.template.Tolerations = append(d.template.Tolerations, corev1.Toleration{
		Key: key, Operator: corev1.TolerationOpEqual, Value: value, Effect: corev1.TaintEffectNoSchedule,
	})
}

// affinity returns the affinity of the pod template, for changes. It creates one if the template has none.
func (d *deployment) affinity() *corev1.Affinity {
	if d.template.Affinity == nil {
		d.template.Affinity = &corev1.Affinity{}
	}
	return d.template.Affinity
}

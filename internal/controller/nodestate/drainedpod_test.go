package nodestate

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// TestConstrained: a pod is constrained if it has requirements on its node besides room, labels and taints.
func TestConstrained(t *testing.T) {
	t.Parallel()
	terms := []corev1.PodAffinityTerm{{TopologyKey: corev1.LabelHostname}}
	preferred := []corev1.WeightedPodAffinityTerm{{Weight: 1, PodAffinityTerm: terms[0]}}
	spread := func(unsatisfiable corev1.UnsatisfiableConstraintAction) corev1.PodSpec {
		return corev1.PodSpec{TopologySpreadConstraints: []corev1.TopologySpreadConstraint{{WhenUnsatisfiable: unsatisfiable}}}
	}
	for name, c := range map[string]struct {
		spec corev1.PodSpec
		want bool
	}{
		"no rule":       {},
		"node selector": {spec: corev1.PodSpec{NodeSelector: map[string]string{"a": "b"}}},
		"anti-affinity": {want: true, spec: corev1.PodSpec{Affinity: &corev1.Affinity{
			PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: terms}}}},
		"affinity": {want: true, spec: corev1.PodSpec{Affinity: &corev1.Affinity{
			PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: terms}}}},
		"preferred anti-affinity": {spec: corev1.PodSpec{Affinity: &corev1.Affinity{
			PodAntiAffinity: &corev1.PodAntiAffinity{PreferredDuringSchedulingIgnoredDuringExecution: preferred}}}},
		"required spread":  {want: true, spec: spread(corev1.DoNotSchedule)},
		"preferred spread": {spec: spread(corev1.ScheduleAnyway)},
		"host port": {want: true, spec: corev1.PodSpec{Containers: []corev1.Container{{
			Ports: []corev1.ContainerPort{{ContainerPort: 80, HostPort: 80}}}}}},
		"container port": {spec: corev1.PodSpec{Containers: []corev1.Container{{Ports: []corev1.ContainerPort{{ContainerPort: 80}}}}}},
		"persistent volume claim": {want: true, spec: corev1.PodSpec{Volumes: []corev1.Volume{{VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}}}}},
		"empty directory": {spec: corev1.PodSpec{Volumes: []corev1.Volume{{VolumeSource: corev1.VolumeSource{
			EmptyDir: &corev1.EmptyDirVolumeSource{}}}}}},
	} {
		if got := DrainPodOf(&corev1.Pod{Spec: c.spec}).Constrained; got != c.want {
			t.Errorf("%s: Constrained is %t, want %t", name, got, c.want)
		}
	}
}

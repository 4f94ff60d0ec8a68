package nodestate

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/disruption/drain"
	"github.com/joiner-sh/joiner/internal/kube/conversion"
	"github.com/joiner-sh/joiner/internal/model/requirements"
)

// DrainPodOf converts the pod to the type of package drain.
func DrainPodOf(pod *corev1.Pod) drain.Pod {
	out := drain.Pod{
		Namespace: pod.Namespace, Name: pod.Name, UID: string(pod.UID),
		Finished:     pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed,
		Critical:     slices.Contains([]string{"system-cluster-critical", "system-node-critical"}, pod.Spec.PriorityClassName),
		DoNotDisrupt: pod.Annotations[karpv1.AnnotationDoNotDisrupt],
		Grace:        30 * time.Second, // the default of Kubernetes
		Constrained:  isConstrained(pod),
		Bulk:         conversion.Requests(pod).Bulk(),
	}
	if owner := metav1.GetControllerOf(pod); owner != nil {
		out.Daemon, out.Mirror = owner.Kind == "DaemonSet", owner.Kind == "Node"
	}
	if pod.Status.StartTime != nil {
		out.Started = pod.Status.StartTime.Time
	}
	if pod.DeletionTimestamp != nil {
		out.Deleted = pod.DeletionTimestamp.Time
	}
	if pod.Spec.TerminationGracePeriodSeconds != nil {
		out.Grace = time.Duration(*pod.Spec.TerminationGracePeriodSeconds) * time.Second
	}
	for _, t := range pod.Spec.Tolerations {
		out.Tolerations = append(out.Tolerations, requirements.Toleration{
			Key: t.Key, Operator: string(t.Operator), Value: t.Value, Effect: requirements.Effect(t.Effect),
		})
	}
	return out
}

// isConstrained reports whether the pod has requirements on its node besides room, labels and taints.
func isConstrained(pod *corev1.Pod) bool {
	spec := &pod.Spec
	if a := spec.Affinity; a != nil {
		if a.PodAffinity != nil && len(a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution) > 0 ||
			a.PodAntiAffinity != nil && len(a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution) > 0 {
			return true
		}
	}
	return len(conversion.HostPorts(spec)) > 0 ||
		slices.ContainsFunc(spec.TopologySpreadConstraints, func(c corev1.TopologySpreadConstraint) bool {
			return c.WhenUnsatisfiable != corev1.ScheduleAnyway
		}) ||
		slices.ContainsFunc(spec.Volumes, func(v corev1.Volume) bool { return conversion.ClaimName(pod, &v) != "" })
}

// PodID returns "namespace/name".
func PodID(p *corev1.Pod) string { return p.Namespace + "/" + p.Name }

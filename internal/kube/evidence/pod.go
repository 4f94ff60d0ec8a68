package evidence

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/joiner-sh/joiner/internal/diagnosis"
)

// maxShownPods is the maximum number of pods that Pods returns: more pods rarely show a new cause.
const maxShownPods = 300

// Pods returns pods that do not run, with the messages of their conditions and containers, sorted by namespace and
// name. If there are more than maxShownPods, the pods of kube-system take precedence, then each namespace gets an equal
// share. cut says how many pods were read or are returned; it is empty if all were read and are returned.
func (r *Reader) Pods(ctx context.Context) (pods []diagnosis.Pod, cut string, err error) {
	read, out := 0, []diagnosis.Pod{}
	take := func(skippedNamespace string) func(client.ObjectList) int {
		return func(l client.ObjectList) int {
			list := l.(*corev1.PodList)
			for i := range list.Items {
				p := &list.Items[i]
				if messages := failureMessages(p); p.Namespace != skippedNamespace && p.DeletionTimestamp == nil &&
					(p.Status.Phase == corev1.PodPending || len(messages) > 0) {
					out = append(out, diagnosisPod(p, messages))
				}
			}
			read += len(list.Items)
			return len(list.Items)
		}
	}
	list := func() client.ObjectList { return &corev1.PodList{} }
	// kube-system is read first, so that pods of tenants cannot use up maxPods before it.
	if _, err := r.pages(ctx, maxPods, list, take(""), client.InNamespace(metav1.NamespaceSystem)); err != nil {
		return nil, "", err
	}
	isCut, err := r.pages(ctx, maxPods, list, take(metav1.NamespaceSystem))
	if err != nil {
		return nil, "", err
	}
	cut = cutNote(isCut, read, "pods")
	if len(out) > maxShownPods {
		cut = strings.TrimPrefix(cut+fmt.Sprintf("; %d of %d pods that do not run are shown", maxShownPods, len(out)), "; ")
		out = fairShare(out, maxShownPods)
	}
	slices.SortFunc(out, func(a, b diagnosis.Pod) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return out, cut, nil
}

func diagnosisPod(p *corev1.Pod, messages []string) diagnosis.Pod {
	return diagnosis.Pod{
		Namespace: p.Namespace,
		Name:      p.Name,
		UID:       string(p.UID),
		Scheduler: p.Spec.SchedulerName,
		Node:      p.Spec.NodeName,
		Owner:     ownerName(p),
		Selector:  p.Spec.NodeSelector,
		Created:   p.CreationTimestamp.UTC(),
		Host:      p.Spec.HostNetwork,
		Messages:  messages[max(0, len(messages)-maxMessages):],
	}
}

// fairShare returns n of the pods: first the pods of kube-system, then an equal number from each other namespace. It
// takes the oldest pods of each namespace.
func fairShare(all []diagnosis.Pod, n int) []diagnosis.Pod {
	rank := make([]int, len(all)) // of each pod in its namespace, by age; 0 in kube-system
	order := make([]int, len(all))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int {
		return cmp.Or(all[i].Created.Compare(all[j].Created), cmp.Compare(all[i].Namespace, all[j].Namespace),
			cmp.Compare(all[i].Name, all[j].Name))
	})
	seen := map[string]int{}
	for _, i := range order {
		if all[i].Namespace != metav1.NamespaceSystem {
			seen[all[i].Namespace]++
			rank[i] = seen[all[i].Namespace]
		}
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(rank[i], rank[j]) })
	out := make([]diagnosis.Pod, 0, n)
	for _, i := range order[:n] {
		out = append(out, all[i])
	}
	return out
}

// failureMessages returns the messages of failing conditions and containers of a pod.
func failureMessages(p *corev1.Pod) []string {
	var out []string
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			out = append(out, diagnosis.Mask(c.Message))
		}
	}
	for _, s := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
		if s.State.Waiting != nil && s.State.Waiting.Reason != "ContainerCreating" && s.State.Waiting.Reason != "PodInitializing" {
			out = append(out, diagnosis.Mask(s.State.Waiting.Reason+": "+s.State.Waiting.Message))
		}
		if t := s.LastTerminationState.Terminated; t != nil && s.State.Running == nil && t.Message != "" {
			out = append(out, diagnosis.Mask(t.Reason+": "+t.Message))
		}
	}
	return out
}

// ownerKinds returns the kinds of Kubernetes that own pods, with their API groups. Users who may create pods can write
// any owner kind, so a kind is recognized only together with its group.
func ownerKinds() map[string]string {
	return map[string]string{
		"Deployment":            "apps",
		"StatefulSet":           "apps",
		"DaemonSet":             "apps",
		"ReplicaSet":            "apps",
		"Job":                   "batch",
		"CronJob":               "batch",
		"ReplicationController": "", "Node": ""}
}

// ownerName returns the object that a user would change, as Kind/name: for a pod of a ReplicaSet, the Deployment. An
// owner of an unknown kind is named with its API group: "Rollout.argoproj.io/web". Empty if the pod has no owner.
func ownerName(p *corev1.Pod) string {
	owner := metav1.GetControllerOf(p)
	if owner == nil {
		return ""
	}
	version, err := schema.ParseGroupVersion(owner.APIVersion)
	group, isKnown := ownerKinds()[owner.Kind]
	if err != nil || !isKnown || version.Group != group {
		return owner.Kind + "." + version.Group + "/" + owner.Name
	}
	if hash := p.Labels[appsv1.DefaultDeploymentUniqueLabelKey]; owner.Kind == "ReplicaSet" && hash != "" {
		return "Deployment/" + strings.TrimSuffix(owner.Name, "-"+hash)
	}
	return owner.Kind + "/" + owner.Name
}

// settingVariables returns the names of the controller's environment variables that checks use. None of them holds a
// secret.
func settingVariables() []string {
	return []string{"CLUSTER_NAME", "CLUSTER_ENDPOINT", "AWS_REGION", "RESERVED_ENIS", "INTERRUPTION_QUEUE",
		"VM_MEMORY_OVERHEAD_PERCENT", "ISOLATED_VPC",
		leaseVariable, leaseNamespaceVariable, noElectionVariable}
}

// leaseVariable and leaseNamespaceVariable set the name and namespace of the controller's Lease. noElectionVariable
// disables leader election.
const (
	leaseVariable          = "LEADER_ELECTION_NAME"
	leaseNamespaceVariable = "LEADER_ELECTION_NAMESPACE"
	noElectionVariable     = "DISABLE_LEADER_ELECTION"
)

// electionArgs returns the values that command-line arguments give to leaseVariable, leaseNamespaceVariable and
// noElectionVariable, by the name of the variable.
func electionArgs(spec *corev1.PodSpec) map[string]string {
	out := map[string]string{}
	for i := range spec.Containers {
		args := slices.Concat(spec.Containers[i].Command, spec.Containers[i].Args)
		for k, arg := range args {
			name, value, hasValue := strings.Cut(strings.TrimLeft(arg, "-"), "=")
			variable := strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
			switch {
			case !strings.HasPrefix(arg, "-") || !slices.Contains([]string{leaseVariable, leaseNamespaceVariable, noElectionVariable}, variable):
			case hasValue:
				out[variable] = value
			case variable == noElectionVariable: // a flag without value means true
				out[variable] = "true"
			case k+1 < len(args):
				out[variable] = args[k+1]
			}
		}
	}
	return out
}

const appLabel = "app.kubernetes.io/name"

// hasControllerName reports whether the object has the name or the app label of Joiner or Karpenter.
func hasControllerName(meta *metav1.ObjectMeta) bool {
	names := []string{"joiner", "karpenter"}
	return slices.Contains(names, meta.Labels[appLabel]) || slices.Contains(names, meta.Name)
}

// toleratedTaints returns the pod's tolerations as taints, without their operators.
func toleratedTaints(spec *corev1.PodSpec) []diagnosis.Taint {
	var out []diagnosis.Taint
	for _, t := range spec.Tolerations {
		out = append(out, diagnosis.Taint{Key: t.Key, Value: t.Value, Effect: string(t.Effect)})
	}
	return out
}

// controllerPods returns the pods of the Deployment, sorted by name, with the messages of their events.
func (r *Reader) controllerPods(ctx context.Context, d *appsv1.Deployment, events []PodEvent) ([]diagnosis.ControllerPod, error) {
	selector, err := metav1.LabelSelectorAsSelector(d.Spec.Selector)
	if err != nil {
		selector = labels.Nothing()
	}
	var pods corev1.PodList
	if err := r.objects.List(ctx, &pods, client.InNamespace(d.Namespace), client.MatchingLabelsSelector{Selector: selector},
		client.Limit(pageSize)); err != nil {
		return nil, err
	}
	var out []diagnosis.ControllerPod
	for i := range pods.Items {
		p := &pods.Items[i]
		pod := diagnosis.ControllerPod{
			Name:      p.Name,
			Labels:    p.Labels,
			Scheduler: p.Spec.SchedulerName,
			Node:      p.Spec.NodeName,
			Phase:     string(p.Status.Phase),
			Created:   p.CreationTimestamp.UTC(), DNSPolicy: string(p.Spec.DNSPolicy), Messages: failureMessages(p)}
		for _, c := range p.Status.Conditions {
			pod.Ready = pod.Ready || c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
		}
		pod.Tolerates = toleratedTaints(&p.Spec)
		for _, e := range events {
			if e.isOf(string(p.UID), p.Spec.SchedulerName) && !slices.Contains(pod.Messages, e.Message) {
				pod.Messages = append(pod.Messages, e.Message)
			}
		}
		out = append(out, pod)
	}
	slices.SortFunc(out, func(a, b diagnosis.ControllerPod) int { return cmp.Compare(a.Name, b.Name) })
	return out, nil
}

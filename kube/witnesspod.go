package kube

import (
	"cmp"
	"context"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/joiner-sh/joiner/diagnosis"
)

// mostEvents is how many warnings are read at most, and mostPods how many pods that do not run are told of: they are alike by then.
const (
	mostEvents = 2000
	mostPods   = 300
)

// Events returns the warnings that the cluster still has, sorted by object, newest last.
func (w *Witness) Events(ctx context.Context) ([]diagnosis.Event, error) {
	list, err := w.plain.CoreV1().Events("").List(ctx, metav1.ListOptions{FieldSelector: "type=Warning", Limit: mostEvents})
	if err != nil {
		return nil, err
	}
	out := []diagnosis.Event{}
	for i := range list.Items {
		e := &list.Items[i]
		if e.Reason == string(ReasonNotJoining) || e.Reason == string(ReasonPreflightFailed) {
			continue // a diagnosis said so
		}
		last := e.LastTimestamp.Time
		if last.IsZero() {
			last = cmp.Or(e.EventTime.Time, e.CreationTimestamp.Time)
		}
		name := e.InvolvedObject.Name
		if e.InvolvedObject.Namespace != "" {
			name = e.InvolvedObject.Namespace + "/" + name
		}
		out = append(out, diagnosis.Event{Kind: e.InvolvedObject.Kind, Name: name, Reason: e.Reason, Message: diagnosis.Mask(e.Message), Last: last.UTC()})
	}
	slices.SortStableFunc(out, func(a, b diagnosis.Event) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name), a.Last.Compare(b.Last), cmp.Compare(a.Reason, b.Reason), cmp.Compare(a.Message, b.Message))
	})
	return out, nil
}

// Pods returns pods that do not run, with what their conditions, containers and events say. Sorted by namespace and name.
func (w *Witness) Pods(ctx context.Context, events []diagnosis.Event) ([]diagnosis.Pod, error) {
	var list corev1.PodList
	if err := w.live.List(ctx, &list); err != nil {
		return nil, err
	}
	said := map[string][]string{}
	for _, e := range events {
		if e.Kind == "Pod" {
			said[e.Name] = append(said[e.Name], e.Message)
		}
	}
	out := []diagnosis.Pod{}
	for i := range list.Items {
		p := &list.Items[i]
		messages := troubles(p)
		if p.Status.Phase != corev1.PodPending && len(messages) == 0 || p.DeletionTimestamp != nil {
			continue
		}
		for _, m := range said[p.Namespace+"/"+p.Name] {
			if !slices.Contains(messages, m) {
				messages = append(messages, m)
			}
		}
		out = append(out, diagnosis.Pod{Namespace: p.Namespace, Name: p.Name, Node: p.Spec.NodeName, Owner: ownerWitness(p), Selector: p.Spec.NodeSelector,
			Created: p.CreationTimestamp.UTC(), Host: p.Spec.HostNetwork, Messages: messages[max(0, len(messages)-6):]})
	}
	slices.SortFunc(out, func(a, b diagnosis.Pod) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return out[:min(len(out), mostPods)], nil
}

// troubles are what a pod's conditions and containers say that is not well.
func troubles(p *corev1.Pod) []string {
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

// ownerWitness names what a pod is of, as a user would change it: a ReplicaSet's pods are a Deployment's.
func ownerWitness(p *corev1.Pod) string {
	owner := metav1.GetControllerOf(p)
	if owner == nil {
		return ""
	}
	if hash := p.Labels[appsv1.DefaultDeploymentUniqueLabelKey]; owner.Kind == "ReplicaSet" && hash != "" {
		return "Deployment/" + strings.TrimSuffix(owner.Name, "-"+hash)
	}
	return owner.Kind + "/" + owner.Name
}

// witnessedSettings are the variables of the controller that checks look at; none of them holds a secret.
func witnessedSettings() []string {
	return []string{"CLUSTER_NAME", "CLUSTER_ENDPOINT", "AWS_REGION", "RESERVED_ENIS", "INTERRUPTION_QUEUE", "VM_MEMORY_OVERHEAD_PERCENT", "ISOLATED_VPC",
		leaseVariable, aloneVariable}
}

// leaseVariable and aloneVariable say by which Lease the controller acts, and that it acts without one.
const (
	leaseVariable = "LEADER_ELECTION_NAME"
	aloneVariable = "DISABLE_LEADER_ELECTION"
)

// electionArgs are the same settings where they are arguments, by the names of their variables.
func electionArgs(spec *corev1.PodSpec) map[string]string {
	out := map[string]string{}
	for i := range spec.Containers {
		args := slices.Concat(spec.Containers[i].Command, spec.Containers[i].Args)
		for k, arg := range args {
			name, value, isWhole := strings.Cut(strings.TrimLeft(arg, "-"), "=")
			variable := strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
			switch {
			case !strings.HasPrefix(arg, "-") || variable != leaseVariable && variable != aloneVariable:
			case isWhole:
				out[variable] = value
			case variable == aloneVariable: // it may stand alone
				out[variable] = "true"
			case k+1 < len(args):
				out[variable] = args[k+1]
			}
		}
	}
	return out
}

// appLabel and controllerNames are by which an installation of this controller, or of Karpenter, is known.
const appLabel = "app.kubernetes.io/name"

func isController(meta *metav1.ObjectMeta) bool {
	names := []string{"joiner", "karpenter"}
	return slices.Contains(names, meta.Labels[appLabel]) || slices.Contains(names, meta.Name)
}

// installations are the Deployments of autoscalers, that which is meant to act first: one with replicas before one without, as when a cluster
// was handed over to another, and Joiner before Karpenter.
func installations(all []appsv1.Deployment) []*appsv1.Deployment {
	var out []*appsv1.Deployment
	for i := range all {
		if isController(&all[i].ObjectMeta) {
			out = append(out, &all[i])
		}
	}
	rank := func(d *appsv1.Deployment) int {
		n := 0
		if ptr.Deref(d.Spec.Replicas, 1) == 0 {
			n = 2
		}
		if d.Labels[appLabel] != "joiner" && d.Name != "joiner" {
			n++
		}
		return n
	}
	slices.SortStableFunc(out, func(a, b *appsv1.Deployment) int { return rank(a) - rank(b) })
	return out
}

// Controller returns the installation of the autoscaler itself; found is false if there is none in the cluster.
func (w *Witness) Controller(ctx context.Context, events []diagnosis.Event) (c diagnosis.Controller, source string, found bool, err error) {
	var deployments appsv1.DeploymentList
	if err := w.live.List(ctx, &deployments); err != nil {
		return c, "", false, err
	}
	for i, d := range installations(deployments.Items) {
		if i > 0 {
			c.Others = append(c.Others, d.Namespace+"/"+d.Name)
			continue
		}
		c.Namespace, c.Deployment, c.Tolerates = d.Namespace, d.Name, toleratedWitness(&d.Spec.Template.Spec)
		c.Account, c.Settings = cmp.Or(d.Spec.Template.Spec.ServiceAccountName, "default"), envWitness(&d.Spec.Template.Spec, witnessedSettings()...)
		for name, value := range electionArgs(&d.Spec.Template.Spec) { // a flag wins
			if c.Settings == nil {
				c.Settings = map[string]string{}
			}
			c.Settings[name] = value
		}
		c.Pods, err = w.controllerPods(ctx, d, events)
		if err != nil {
			return c, "", false, err
		}
		source, found = "deployment "+d.Namespace+"/"+d.Name, true
	}
	var accounts corev1.ServiceAccountList
	if err := w.live.List(ctx, &accounts); err != nil {
		return c, source, found, err
	}
	for i := range accounts.Items {
		a := &accounts.Items[i]
		own := found && a.Namespace == c.Namespace && a.Name == c.Account
		if !own && (found || !isController(&a.ObjectMeta)) {
			continue
		}
		if role := a.Annotations["eks.amazonaws.com/role-arn"]; role != "" {
			c.Role, c.How = role, "annotation"
		}
		if !found {
			c.Namespace, c.Account, source, found = a.Namespace, a.Name, "serviceaccount "+a.Namespace+"/"+a.Name, true
		}
	}
	return c, source, found, nil
}

func toleratedWitness(spec *corev1.PodSpec) []diagnosis.Taint {
	var out []diagnosis.Taint
	for _, t := range spec.Tolerations {
		out = append(out, diagnosis.Taint{Key: t.Key, Value: t.Value, Effect: string(t.Effect)})
	}
	return out
}

func (w *Witness) controllerPods(ctx context.Context, d *appsv1.Deployment, events []diagnosis.Event) ([]diagnosis.ControllerPod, error) {
	selector, err := metav1.LabelSelectorAsSelector(d.Spec.Selector)
	if err != nil {
		selector = labels.Nothing()
	}
	var pods corev1.PodList
	if err := w.live.List(ctx, &pods, client.InNamespace(d.Namespace), client.MatchingLabelsSelector{Selector: selector}); err != nil {
		return nil, err
	}
	var out []diagnosis.ControllerPod
	for i := range pods.Items {
		p := &pods.Items[i]
		one := diagnosis.ControllerPod{Name: p.Name, Labels: p.Labels, Scheduler: p.Spec.SchedulerName, Node: p.Spec.NodeName, Phase: string(p.Status.Phase),
			Created: p.CreationTimestamp.UTC(), DNSPolicy: string(p.Spec.DNSPolicy), Messages: troubles(p)}
		for _, c := range p.Status.Conditions {
			one.Ready = one.Ready || c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
		}
		one.Tolerates = toleratedWitness(&p.Spec)
		for _, e := range events {
			if e.Kind == "Pod" && e.Name == p.Namespace+"/"+p.Name && !slices.Contains(one.Messages, e.Message) {
				one.Messages = append(one.Messages, e.Message)
			}
		}
		out = append(out, one)
	}
	slices.SortFunc(out, func(a, b diagnosis.ControllerPod) int { return cmp.Compare(a.Name, b.Name) })
	return out, nil
}

// LeaseName is the name of the controller's Lease unless somebody says otherwise; Karpenter's has the same.
const LeaseName = "karpenter-leader-election"

// Lease returns the Lease of a controller by its name, in whatever namespace; empty: by the name that it has unless somebody says otherwise. Of
// several, as of controllers that were moved, it is the one that was renewed last. Found is false if there is none.
func (w *Witness) Lease(ctx context.Context, name string) (l diagnosis.Lease, found bool, err error) {
	only := fields.OneTermEqualSelector("metadata.name", cmp.Or(name, LeaseName))
	list, err := w.plain.CoordinationV1().Leases("").List(ctx, metav1.ListOptions{FieldSelector: only.String()})
	if err != nil {
		return l, false, err
	}
	for i := range list.Items {
		one := &list.Items[i]
		next := diagnosis.Lease{Namespace: one.Namespace, Name: one.Name, Holder: ptr.Deref(one.Spec.HolderIdentity, ""), Seconds: int(ptr.Deref(one.Spec.LeaseDurationSeconds, 0))}
		if one.Spec.RenewTime != nil {
			next.Renewed = one.Spec.RenewTime.UTC()
		}
		if !found || next.Renewed.After(l.Renewed) {
			l, found = next, true
		}
	}
	return l, found, nil
}

package evidence

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/utils/ptr"

	"github.com/joiner-sh/joiner/internal/diagnosis"
	"github.com/joiner-sh/joiner/internal/kube/kubeclient"
)

// Limits on the events read per list. A tenant may create thousands of events in its own namespace, and must not be
// able to hide the events of other namespaces.
const (
	maxEvents     = 5000 // for one kind of cluster-scoped objects
	maxPodEvents  = 1000 // for the pods of one namespace
	maxNamespaces = 40   // number of namespaces whose pod events are read
)

// Events returns the warnings about NodeClaims, NodePools and EC2NodeClasses, sorted by object, newest last. Each has
// its writer, its namespace and the UID of the object. The events of cluster-scoped objects are in the namespace
// default. cut says which warnings were not read; it is empty if all were read.
func (r *Reader) Events(ctx context.Context) (events []diagnosis.Event, cut string, err error) {
	out, cuts := []diagnosis.Event{}, []string{}
	for _, kind := range []string{"NodeClaim", "NodePool", "EC2NodeClass"} {
		isCut, err := r.eachEvent(ctx, metav1.NamespaceDefault, kind, maxEvents, func(e *corev1.Event) {
			if e.Reason == string(kubeclient.ReasonNotJoining) || e.Reason == string(kubeclient.ReasonPreflightFailed) {
				return // Joiner's diagnosis wrote the event: no evidence
			}
			out = append(out, diagnosis.Event{
				Kind:      kind,
				Name:      e.InvolvedObject.Name,
				Namespace: e.Namespace,
				UID:       string(e.InvolvedObject.UID),
				By:        writerOf(e),
				Reason:    e.Reason, Message: diagnosis.Mask(e.Message), Last: lastSeen(e).UTC()})
		})
		if err != nil {
			return nil, "", err
		}
		if isCut {
			cuts = append(cuts, fmt.Sprintf("only the first %d warnings about objects of kind %s were read", maxEvents, kind))
		}
	}
	slices.SortStableFunc(out, func(a, b diagnosis.Event) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name), a.Last.Compare(b.Last),
			cmp.Compare(a.Reason, b.Reason), cmp.Compare(a.Message, b.Message))
	})
	return out, strings.Join(cuts, "; "), nil
}

// eachEvent calls use for each warning of a namespace about objects of a kind. isCut reports whether eachEvent stopped
// early: after limit warnings, or because a page after the first could not be read.
func (r *Reader) eachEvent(ctx context.Context, namespace, kind string, limit int, use func(*corev1.Event)) (isCut bool, err error) {
	selector := fields.SelectorFromSet(fields.Set{"type": corev1.EventTypeWarning, "involvedObject.kind": kind}).String()
	token, read := "", 0
	for {
		options := metav1.ListOptions{FieldSelector: selector, Limit: pageSize, Continue: token}
		list, err := r.clientset.CoreV1().Events(namespace).List(ctx, options)
		switch {
		case err != nil && read > 0:
			return true, nil // the caller uses the events that were read
		case err != nil:
			return false, err
		}
		for i := range list.Items {
			if e := &list.Items[i]; e.InvolvedObject.Kind == kind && e.Type == corev1.EventTypeWarning {
				use(e)
			}
		}
		read += len(list.Items)
		if token = list.Continue; token == "" {
			return false, nil
		}
		if read >= limit {
			return true, nil
		}
	}
}

// writerOf returns the component that an event claims to be from. A user who may create events in a namespace may write
// any value.
func writerOf(e *corev1.Event) string { return cmp.Or(e.ReportingController, e.Source.Component) }

func lastSeen(e *corev1.Event) metav1.Time {
	switch {
	case e.Series != nil && !e.Series.LastObservedTime.IsZero():
		return metav1.Time{Time: e.Series.LastObservedTime.Time}
	case !e.LastTimestamp.IsZero():
		return e.LastTimestamp
	case !e.EventTime.IsZero():
		return metav1.Time{Time: e.EventTime.Time}
	}
	return e.CreationTimestamp
}

// PodEvent is a warning about a pod.
type PodEvent struct {
	UID     string // of the pod
	By      string // the component that claims to have written the event
	Message string // without secrets
}

// isOf reports whether the event is about the pod with this UID, and By is the kubelet or a scheduler. scheduler is the
// pod's; it may be empty.
func (e PodEvent) isOf(uid, scheduler string) bool {
	return uid != "" && e.UID == uid &&
		slices.Contains([]string{"kubelet", corev1.DefaultSchedulerName, "fargate-scheduler", cmp.Or(scheduler, "kubelet")}, e.By)
}

// PodEvents returns the warnings about pods in the namespaces of the given pods, kube-system first. cut says what was
// not read; it is empty if all was read.
func (r *Reader) PodEvents(ctx context.Context, pods []diagnosis.Pod) (events []PodEvent, cut string, err error) {
	namespaces := []string{metav1.NamespaceSystem}
	for i := range pods {
		if !slices.Contains(namespaces, pods[i].Namespace) {
			namespaces = append(namespaces, pods[i].Namespace)
		}
	}
	var cuts []string
	if len(namespaces) > maxNamespaces {
		cuts = append(cuts, fmt.Sprintf("warnings about pods were read in %d of %d namespaces", maxNamespaces, len(namespaces)))
		namespaces = namespaces[:maxNamespaces]
	}
	for _, namespace := range namespaces {
		isCut, err := r.eachEvent(ctx, namespace, "Pod", maxPodEvents, func(e *corev1.Event) {
			events = append(events, PodEvent{UID: string(e.InvolvedObject.UID), By: writerOf(e), Message: diagnosis.Mask(e.Message)})
		})
		switch {
		case err != nil && ctx.Err() != nil && len(events) > 0:
			return events, "not all warnings about pods were read in time", nil
		case err != nil:
			return nil, "", err
		case isCut:
			cuts = append(cuts, fmt.Sprintf("only the first %d warnings about pods of namespace %s were read", maxPodEvents, namespace))
		}
	}
	return events, strings.Join(cuts, "; "), nil
}

// maxMessages is the maximum number of event messages of a pod. It is also the maximum number of messages of a pod's
// conditions and containers.
const maxMessages = 6

// WithEvents returns the pods, each with the latest messages of its events.
func WithEvents(pods []diagnosis.Pod, events []PodEvent) []diagnosis.Pod {
	out := slices.Clone(pods)
	for i := range out {
		p := &out[i]
		for _, e := range events {
			if e.isOf(p.UID, p.Scheduler) && !slices.Contains(p.Events, e.Message) && !slices.Contains(p.Messages, e.Message) {
				p.Events = append(p.Events, e.Message)
			}
		}
		p.Events = p.Events[max(0, len(p.Events)-maxMessages):]
	}
	return out
}

// LeaseName is the default name of the controller's Lease, the same as Karpenter's.
const LeaseName = "karpenter-leader-election"

// Lease returns the Lease of a controller by the name of the Lease; an empty name means LeaseName. It considers only
// Leases in kube-system, in the namespaces of the controllers' service accounts and in the trusted namespaces. A tenant
// may create a Lease in any other namespace. If there are several Leases, as after a controller was moved to another
// namespace, it returns the Lease that was renewed last. found is false if there is no Lease.
func (r *Reader) Lease(ctx context.Context, name string, trusted ...string) (l diagnosis.Lease, found bool, err error) {
	byName := fields.OneTermEqualSelector("metadata.name", cmp.Or(name, LeaseName))
	list, err := r.clientset.CoordinationV1().Leases("").List(ctx, metav1.ListOptions{FieldSelector: byName.String(), Limit: maxObjects})
	if err != nil {
		return l, false, err
	}
	auth, err := r.authority(ctx)
	if err != nil {
		return l, false, err
	}
	trusted = slices.Concat(auth.namespaces(), trusted)
	untrusted := "" // a namespace outside of trusted that has a Lease with the name
	for i := range list.Items {
		lease := &list.Items[i]
		if !slices.Contains(trusted, lease.Namespace) {
			untrusted = lease.Namespace
			continue
		}
		candidate := diagnosis.Lease{
			Namespace: lease.Namespace,
			Name:      lease.Name,
			Holder:    ptr.Deref(lease.Spec.HolderIdentity, ""),
			Seconds:   int(ptr.Deref(lease.Spec.LeaseDurationSeconds, 0)),
		}
		if lease.Spec.RenewTime != nil {
			candidate.Renewed = lease.Spec.RenewTime.UTC()
		}
		if !found || candidate.Renewed.After(l.Renewed) {
			l, found = candidate, true
		}
	}
	if !found && untrusted != "" && auth.denied {
		return l, false,
			fmt.Errorf("there is a lease in namespace %s, but whether it is the controller's cannot be checked: %s", untrusted, authorityFix)
	}
	return l, found, nil
}

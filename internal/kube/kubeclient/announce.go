package kubeclient

import (
	"context"
	"fmt"
	"hash/fnv"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// WriteEvent writes one event immediately, for a process that exits before an EventWriter could write it. An existing
// event with the same object, reason and message is kept. So a process that restarts repeatedly emits the event once an
// hour, because by default the API server keeps events for an hour.
func WriteEvent(ctx context.Context, live client.Client, about client.Object, reason Reason, message string) error {
	gvk, err := apiutil.GVKForObject(about, live.Scheme())
	if err != nil {
		return fmt.Errorf("find the kind of %s: %w", about.GetName(), err)
	}
	sum := fnv.New64a()
	_, _ = sum.Write([]byte(string(reason) + "\n" + message)) // never fails
	namespace := about.GetNamespace()
	if namespace == "" {
		namespace = metav1.NamespaceDefault
	}
	eventType := corev1.EventTypeNormal
	if reason.isWarning() {
		eventType = corev1.EventTypeWarning
	}
	event := &eventsv1.Event{
		ObjectMeta:          metav1.ObjectMeta{Name: fmt.Sprintf("%s.%016x", about.GetName(), sum.Sum64()), Namespace: namespace},
		EventTime:           metav1.NewMicroTime(time.Now()),
		ReportingController: "joiner",
		ReportingInstance:   "joiner",
		Action:              reason.action(),
		Reason:              string(reason),
		Type:                eventType,
		Note:                cut(message, maxNote),
		Regarding: corev1.ObjectReference{
			APIVersion: gvk.GroupVersion().String(),
			Kind:       gvk.Kind,
			Name:       about.GetName(),
			Namespace:  about.GetNamespace(),
			UID:        about.GetUID(),
		},
	}
	if err := live.Create(ctx, event); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("write an event about %s %s: %w", gvk.Kind, about.GetName(), err)
	}
	return nil
}

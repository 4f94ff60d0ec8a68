package controller

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joiner-sh/joiner/internal/controller/loop"
	"github.com/joiner-sh/joiner/internal/kube/kubeclient"
)

// TestRecorderIsFairToNamespaces: events of one namespace do not delay or displace those of other namespaces.
func TestRecorderIsFairToNamespaces(t *testing.T) {
	t.Parallel()
	recorder := loop.NewRateLimitedRecorder(&events{})
	pod := func(namespace string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace}}
	}
	for i := range 2 * loop.MaxQueuedEvents {
		recorder.EmitLater(pod("many"), kubeclient.ReasonFailedScheduling, fmt.Sprint(i))
	}
	recorder.EmitLater(pod("one"), kubeclient.ReasonNominated, "hello")
	if recorder.Size != loop.MaxQueuedEvents {
		t.Errorf("%d events are queued, want %d", recorder.Size, loop.MaxQueuedEvents)
	}
	hasOther := false
	for range 2 {
		e, _ := recorder.Next()
		hasOther = hasOther || e.Message == "hello"
	}
	if !hasOther {
		t.Error("the event of another namespace is not among the first two")
	}
	n := 2 // emitted events
	for last := -1; ; n++ {
		e, ok := recorder.Next()
		if !ok {
			break
		}
		var number int
		if _, err := fmt.Sscan(e.Message, &number); err != nil || number <= last {
			t.Fatalf("after event %d comes %q, want a later one of the namespace", last, e.Message)
		}
		last = number
	}
	if n != loop.MaxQueuedEvents {
		t.Errorf("%d events were emitted, want %d", n, loop.MaxQueuedEvents)
	}
}

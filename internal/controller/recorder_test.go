package controller

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joiner-sh/joiner/internal/controller/loop"
	"github.com/joiner-sh/joiner/internal/kube/kubeclient"
)

// TestDripTakesTurns: the events of one namespace do not delay or displace those of others, and memory stays bounded.
func TestDripTakesTurns(t *testing.T) {
	t.Parallel()
	d := loop.NewRateLimitedRecorder(&events{})
	pod := func(namespace string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace}}
	}
	for i := range 2 * loop.MaxQueuedEvents {
		d.Later(pod("many"), kubeclient.ReasonFailedScheduling, fmt.Sprint(i))
	}
	d.Later(pod("one"), kubeclient.ReasonNominated, "hello")
	if d.Size != loop.MaxQueuedEvents {
		t.Errorf("%d events are kept, want %d", d.Size, loop.MaxQueuedEvents)
	}
	isTold := false
	for range 2 {
		e, _ := d.Next()
		isTold = isTold || e.Message == "hello"
	}
	if !isTold {
		t.Error("the event of another namespace is not among the first two")
	}
	n := 2
	for last := -1; ; n++ {
		e, ok := d.Next()
		if !ok {
			break
		}
		var at int
		if _, err := fmt.Sscan(e.Message, &at); err != nil || at <= last {
			t.Fatalf("after event %d comes %q", last, e.Message)
		}
		last = at
	}
	if n != loop.MaxQueuedEvents {
		t.Errorf("%d events were told, want %d", n, loop.MaxQueuedEvents)
	}
}

package kubeclient

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// recordedEvents has the events that were emitted, as "TYPE REASON ACTION MESSAGE".
type recordedEvents []string

func (e *recordedEvents) Eventf(about, _ runtime.Object, eventType, reason, action, note string, args ...any) {
	*e = append(*e, fmt.Sprintf("%s %s %s %s", eventType, reason, action, fmt.Sprintf(note, args...)))
}

func TestEventWriter(t *testing.T) {
	t.Parallel()
	var events recordedEvents
	now := testTime
	writer := &EventWriter{Recorder: &events, Now: func() time.Time { return now }}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", UID: "u"}}
	writer.Emit(pod, ReasonNominated, "100% sure")
	writer.Emit(pod, ReasonNominated, "100% sure") // written a moment ago, so suppressed
	writer.Emitf(pod, ReasonFailedScheduling, "%d too small", 3)
	writer.Emitf(pod, ReasonFailedScheduling, "%d too small", 4) // a changed message: its action gets a suffix
	now = now.Add(repeatAfter)
	writer.Emit(pod, ReasonNominated, "100% sure")
	writer.Emitf(pod, ReasonFailedScheduling, "%d too small", 4) // suppressed for five minutes
	want := recordedEvents{
		"Normal Nominated Provisioning 100% sure",
		"Warning FailedScheduling Provisioning 3 too small",
		"Warning FailedScheduling Provisioning-20c9d4ee 4 too small",
		"Normal Nominated Provisioning 100% sure",
	}
	if diff := cmp.Diff(want, events); diff != "" {
		t.Errorf("the events differ (-want +got):\n%s", diff)
	}
}

func TestCut(t *testing.T) {
	t.Parallel()
	for _, n := range []int{8, 9, 10, 11} { // ä has two bytes, … three
		got := cut(strings.Repeat("ä", 20), n)
		if len(got) > n || !strings.HasSuffix(got, "…") || strings.ContainsRune(got, '\uFFFD') {
			t.Errorf("cut to %d bytes: %q, want whole characters and …", n, got)
		}
	}
	if got := cut("short", 10); got != "short" {
		t.Errorf("the text %q is cut to %q, want no change", "short", got)
	}
}

// TestEventsAreHarmless: control characters in text of a tenant do not reach a terminal.
func TestEventsAreHarmless(t *testing.T) {
	t.Parallel()
	var events recordedEvents
	writer := &EventWriter{Recorder: &events, Now: func() time.Time { return testTime }}
	writer.Emit(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", UID: "u"}}, ReasonNominated, "a\x1b[2Jb\u009bc\u202ed")
	if want := "Normal Nominated Provisioning a\uFFFD[2Jb\uFFFDc\uFFFDd"; len(events) != 1 || events[0] != want {
		t.Errorf("the events are %q, want %q", events, want)
	}
}

// TestRememberedMessagesAreShort: a long message is remembered only up to the length of an event's note.
func TestRememberedMessagesAreShort(t *testing.T) {
	t.Parallel()
	writer := &EventWriter{Recorder: &recordedEvents{}}
	writer.Emit(webPod("web-1", "web"), ReasonFailedScheduling, strings.Repeat("x", 1<<20))
	for key := range writer.suppressed {
		if len(key.message) > maxNote {
			t.Errorf("%d bytes are remembered, want at most maxNote", len(key.message))
		}
	}
	if len(writer.suppressed) != 1 {
		t.Errorf("%d messages are remembered, want 1", len(writer.suppressed))
	}
}

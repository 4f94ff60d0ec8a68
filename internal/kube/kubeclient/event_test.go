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

type notebook []string

func (n *notebook) Eventf(about, _ runtime.Object, kind, reason, action, note string, args ...any) {
	*n = append(*n, fmt.Sprintf("%s %s %s %s", kind, reason, action, fmt.Sprintf(note, args...)))
}

func TestTeller(t *testing.T) {
	t.Parallel()
	var said notebook
	now := testTime
	teller := &Teller{Recorder: &said, Now: func() time.Time { return now }}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", UID: "u"}}
	teller.Emit(pod, ReasonNominated, "100% sure")
	teller.Emit(pod, ReasonNominated, "100% sure") // written a moment ago, so suppressed
	teller.Emitf(pod, ReasonFailedScheduling, "%d too small", 3)
	teller.Emitf(pod, ReasonFailedScheduling, "%d too small", 4) // a changed message
	now = now.Add(repeatAfter)
	teller.Emit(pod, ReasonNominated, "100% sure")
	teller.Emitf(pod, ReasonFailedScheduling, "%d too small", 4) // suppressed for five minutes
	want := notebook{
		"Normal Nominated Provisioning 100% sure",
		"Warning FailedScheduling Provisioning 3 too small",
		"Warning FailedScheduling Provisioning-20c9d4ee 4 too small",
		"Normal Nominated Provisioning 100% sure",
	}
	if diff := cmp.Diff(want, said); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestCut(t *testing.T) {
	t.Parallel()
	for _, n := range []int{8, 9, 10, 11} {
		got := cut(strings.Repeat("ä", 20), n)
		if len(got) > n || !strings.HasSuffix(got, "…") || strings.ContainsRune(got, '\uFFFD') {
			t.Errorf("cut to %d: %q", n, got)
		}
	}
	if got := cut("short", 10); got != "short" {
		t.Errorf("%q", got)
	}
}

// TestEventsAreHarmless: control characters in text of a tenant do not reach a terminal.
func TestEventsAreHarmless(t *testing.T) {
	t.Parallel()
	var said notebook
	teller := &Teller{Recorder: &said, Now: func() time.Time { return testTime }}
	teller.Emit(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", UID: "u"}}, ReasonNominated, "a\x1b[2Jb\u009bc\u202ed")
	if want := "Normal Nominated Provisioning a\uFFFD[2Jb\uFFFDc\uFFFDd"; len(said) != 1 || said[0] != want {
		t.Errorf("%q, want %q", said, want)
	}
}

// TestMessagesThatAreRemembered: a long message is remembered only up to the length of an event.
func TestMessagesThatAreRemembered(t *testing.T) {
	t.Parallel()
	teller := &Teller{Recorder: &notebook{}}
	teller.Emit(webPod("web-1", "web"), ReasonFailedScheduling, strings.Repeat("x", 1<<20))
	for what := range teller.told {
		if len(what.message) > maxNote {
			t.Errorf("%d bytes are remembered", len(what.message))
		}
	}
	if len(teller.told) != 1 {
		t.Errorf("%d messages are remembered", len(teller.told))
	}
}

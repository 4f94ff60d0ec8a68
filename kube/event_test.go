package kube

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
	now := noon
	teller := &Teller{Recorder: &said, Now: func() time.Time { return now }}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", UID: "u"}}
	teller.Tell(pod, ReasonNominated, "100% sure")
	teller.Tell(pod, ReasonNominated, "100% sure") // said a moment ago
	teller.Tellf(pod, ReasonFailedScheduling, "%d too small", 3)
	teller.Tellf(pod, ReasonFailedScheduling, "%d too small", 4) // news
	now = now.Add(repeatAfter)
	teller.Tell(pod, ReasonNominated, "100% sure")
	teller.Tellf(pod, ReasonFailedScheduling, "%d too small", 4) // not before five minutes
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

package drain

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/joiner-sh/joiner/internal/model/requirements"
)

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// pod returns a pod with the properties in words, for example "daemon critical". A "leaving" pod terminates within 10
// seconds, a "late" one within an hour, and a "stuck" one should have ended two minutes ago. "kept" words set the
// annotation do-not-disrupt.
func pod(name, words string) Pod {
	p := Pod{Namespace: "ns", Name: name, Started: now.Add(-time.Minute), Grace: 30 * time.Second}
	for _, w := range strings.Fields(words) {
		switch w {
		case "daemon":
			p.Daemon = true
		case "critical":
			p.Critical = true
		case "mirror":
			p.Mirror = true
		case "finished":
			p.Finished = true
		case "tolerates":
			p.Tolerations = []requirements.Toleration{{Operator: "Exists"}}
		case "kept":
			p.DoNotDisrupt = "true"
		case "kept-1h":
			p.DoNotDisrupt = "1h"
		case "kept-1s":
			p.DoNotDisrupt = "1s"
		case "kept-oddly":
			p.DoNotDisrupt = "yes please"
		case "unstarted":
			p.Started = time.Time{}
		case "leaving":
			p.Deleted = now.Add(10 * time.Second)
		case "late":
			p.Deleted = now.Add(time.Hour)
		case "large":
			p.Bulk = 4
		case "constrained":
			p.Constrained = true
		case "middling":
			p.Bulk = 2
		case "stuck":
			p.Deleted = now.Add(-2 * time.Minute)
		default:
			panic("no such word: " + w)
		}
	}
	return p
}

func TestNext(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		pods     map[string]string
		deadline time.Duration // from now; 0 for none

		wantEvict, wantForce, wantProtected, wantInvalid string
		wantWaiting                                      int
	}{
		"nothing": {},
		"pods that may stay": {
			pods: map[string]string{"a": "mirror", "b": "finished", "c": "tolerates daemon", "d": "stuck"},
		},
		"applications first": {
			pods:      map[string]string{"a": "", "b": "daemon", "c": "critical", "d": "critical daemon", "e": ""},
			wantEvict: "a e", wantWaiting: 5,
		},
		"constrained before large": {
			pods:      map[string]string{"a": "large", "b": "constrained", "c": "constrained middling", "d": "constrained critical"},
			wantEvict: "c b a", wantWaiting: 4,
		},
		"large before small": {
			pods:      map[string]string{"a": "", "b": "middling", "c": "large", "d": "large critical", "e": "large", "f": ""},
			wantEvict: "c e b a f", wantWaiting: 6,
		},
		"daemons after applications": {
			pods:      map[string]string{"b": "daemon", "c": "critical", "d": "critical daemon"},
			wantEvict: "b", wantWaiting: 3,
		},
		"critical pods after daemons": {
			pods:      map[string]string{"c": "critical", "d": "critical daemon"},
			wantEvict: "c", wantWaiting: 2,
		},
		"critical daemons last": {
			pods:      map[string]string{"d": "critical daemon"},
			wantEvict: "d", wantWaiting: 1,
		},
		"terminating pod holds back the next tier": {
			pods:        map[string]string{"a": "leaving", "b": "daemon"},
			wantWaiting: 2,
		},
		"stuck pod does not hold back the next tier": {
			pods:      map[string]string{"a": "stuck", "b": "daemon"},
			wantEvict: "b", wantWaiting: 1,
		},
		"protected pod": {
			pods:      map[string]string{"a": "kept", "b": "", "c": "kept-1h", "d": "kept-1s", "e": "kept-oddly", "f": "kept-1s unstarted"},
			wantEvict: "b d e", wantProtected: "a c f", wantInvalid: "e", wantWaiting: 6,
		},
		"long before the deadline": {
			pods:      map[string]string{"a": "", "b": "daemon"},
			deadline:  time.Minute,
			wantEvict: "a", wantWaiting: 2,
		},
		"grace period reaches the deadline": {
			pods:      map[string]string{"a": "", "b": "daemon kept", "c": "critical"},
			deadline:  20 * time.Second,
			wantForce: "a b c", wantWaiting: 3,
		},
		"past the deadline": {
			pods:      map[string]string{"a": ""},
			deadline:  -time.Hour,
			wantForce: "a", wantWaiting: 1,
		},
		"terminating pods before the deadline": {
			pods:      map[string]string{"a": "leaving", "b": "late"},
			deadline:  20 * time.Second,
			wantForce: "b", wantWaiting: 2,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var pods []Pod
			for n, words := range c.pods {
				pods = append(pods, pod(n, words)) // in random order
			}
			var deadline time.Time
			if c.deadline != 0 {
				deadline = now.Add(c.deadline)
			}
			step := Next(pods, deadline, now)
			var forced []Pod
			for _, f := range step.Force {
				forced = append(forced, f.Pod)
				if want := max(c.deadline, time.Second); f.Grace != want {
					t.Errorf("%s is forced with %s, want %s", f.Pod.Name, f.Grace, want)
				}
			}
			for what, got := range map[string][2]string{
				"evicts":                 {names(step.Evict), c.wantEvict},
				"forces":                 {names(forced), c.wantForce},
				"protects":               {names(step.Protected), c.wantProtected},
				"has invalid protection": {names(step.InvalidProtection), c.wantInvalid},
			} {
				if got[0] != got[1] {
					t.Errorf("%s %q, want %q", what, got[0], got[1])
				}
			}
			if step.Waiting != c.wantWaiting {
				t.Errorf("%d pods must leave, want %d", step.Waiting, c.wantWaiting)
			}
		})
	}
}

// TestDrainEnds evicts until no pod is left, and checks the order of the tiers.
func TestDrainEnds(t *testing.T) {
	t.Parallel()
	pods := []Pod{pod("a", "critical daemon"), pod("b", ""), pod("c", "daemon"), pod("d", "critical"), pod("e", "mirror")}
	var order []string
	for {
		step := Next(pods, time.Time{}, now)
		if step.Waiting == 0 {
			break
		}
		if len(step.Evict) == 0 {
			t.Fatalf("%d pods must leave and none is evicted", step.Waiting)
		}
		for _, gone := range step.Evict {
			order = append(order, gone.Name)
			pods = slices.DeleteFunc(pods, func(p Pod) bool { return p.Name == gone.Name })
		}
	}
	if got := strings.Join(order, " "); got != "b c d a" {
		t.Errorf("evicted in the order %q, want b c d a", got)
	}
}

func names(pods []Pod) string {
	var out []string
	for _, p := range pods {
		out = append(out, p.Name)
	}
	return strings.Join(out, " ")
}

package drain

import (
	"strings"
	"testing"
	"time"
)

// TestInTurn: of pods that move one at a time, only one is evicted, after the replacements of the previous pods are
// scheduled. The wait is bounded, and pods past their deadline do not wait.
func TestInTurn(t *testing.T) {
	t.Parallel()
	order := []string{"ns/a", "ns/b", "ns/c"}
	for name, c := range map[string]struct {
		pods      string // pods of this node, each with words for the function pod after a colon
		remaining string // pods that are not evicted yet, on all nodes
		placed    bool
		since     time.Duration
		deadline  time.Time
		evict     string
		force     string
		held      bool
	}{
		"first pod":                 {pods: "c a", remaining: "a b c", placed: true, evict: "a", held: true},
		"first pod on another node": {pods: "c b", remaining: "a b c", placed: true, held: true},
		"second pod on this node":   {pods: "c b", remaining: "b c", placed: true, evict: "b", held: true},
		"replacement not scheduled": {pods: "c b", remaining: "b c", held: true},
		"terminating pod":           {pods: "a:leaving c b", remaining: "b c", placed: true, evict: "b", held: true},
		"only a new pod left":       {pods: "new", remaining: "", placed: true, evict: "new"},
		"new pod waits":             {pods: "new", remaining: "c", placed: true, held: true},
		"after the maximum wait":    {pods: "c b", remaining: "b c", since: MaxTurnTime, evict: "b c"},
		"before the maximum wait":   {pods: "c b", remaining: "b c", since: MaxTurnTime - 1, held: true},
		"deadline":                  {pods: "c b", remaining: "a b c", deadline: now.Add(10 * time.Second), force: "b c"},
		"protected pod":             {pods: "a:kept b", remaining: "a b", placed: true, held: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var pods []Pod
			for _, word := range strings.Fields(c.pods) {
				name, words, _ := strings.Cut(word, ":")
				pods = append(pods, pod(name, words))
			}
			turn := Turn{Order: order, Remaining: map[string]bool{}, Placed: c.placed, Since: now.Add(-c.since)}
			for _, name := range strings.Fields(c.remaining) {
				turn.Remaining["ns/"+name] = true
			}
			step := Next(pods, c.deadline, now).InTurn(turn, now)
			var evict, force []string
			for _, p := range step.Evict {
				evict = append(evict, p.Name)
			}
			for _, f := range step.Force {
				force = append(force, f.Pod.Name)
			}
			if got := strings.Join(evict, " "); got != c.evict {
				t.Errorf("evicts %q, want %q", got, c.evict)
			}
			if got := strings.Join(force, " "); got != c.force {
				t.Errorf("forces %q, want %q", got, c.force)
			}
			if step.Held != c.held {
				t.Errorf("held: %v, want %v", step.Held, c.held)
			}
		})
	}
	if step := Next([]Pod{pod("a", ""), pod("b", "")}, time.Time{}, now).InTurn(Turn{}, now); len(step.Evict) != 2 || step.Held {
		t.Errorf("without an order %d of 2 pods are evicted, held: %v; want 2, and false", len(step.Evict), step.Held)
	}
}

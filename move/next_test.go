package move

import (
	"strings"
	"testing"
	"time"
)

var begun = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// seen reads "marked closed | ready coming", the nodes that go and those that come, which are all that were wanted.
func seen(t *testing.T, text string) Seen {
	t.Helper()
	going, coming, _ := strings.Cut(text, "|")
	out := Seen{Begun: begun}
	for _, w := range strings.Fields(going) {
		is, ok := map[string]Leaving{"marked": Marked, "closed": Closed, "sworn": Committed, "deleted": Deleted, "taken": Taken}[w]
		if !ok {
			t.Fatalf("no such state: %s", w)
		}
		out.Leaving = append(out.Leaving, Leaver{Claim: w, Is: is})
	}
	for _, w := range strings.Fields(coming) {
		out.Wanted++
		if w == "missing" {
			continue
		}
		is, ok := map[string]Coming{"coming": OnItsWay, "ready": Ready, "lost": Lost}[w]
		if !ok {
			t.Fatalf("no such state: %s", w)
		}
		out.Coming = append(out.Coming, Comer{Claim: w, Is: is})
	}
	return out
}

func TestNext(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		seen    string
		after   time.Duration // since it was begun
		blocked time.Duration // for so long; 0 for not at all
		off     bool
		want    Action
	}{
		{seen: "marked marked|", want: Close},
		{seen: "marked closed|coming", want: Close},
		{seen: "closed closed|coming ready", want: Wait},
		{seen: "closed closed|coming ready", after: ReadyWithin, want: Undo},
		{seen: "closed|coming lost", want: Undo},
		{seen: "closed|ready missing", want: Undo},
		{seen: "marked|missing", want: Undo},
		{seen: "closed closed|ready", want: Commit},
		{seen: "closed|ready", after: time.Hour, want: Commit},
		{seen: "closed|", want: Commit},
		{seen: "closed|ready", blocked: time.Second, want: Wait},
		{seen: "closed|ready", blocked: BlockedFor, want: Undo},
		{seen: "closed|coming", blocked: BlockedFor, want: Wait}, // nobody has looked properly yet
		{seen: "closed|ready", off: true, want: Undo},
		{seen: "marked|", off: true, want: Undo},
		{seen: "taken taken|coming", want: Over},
		{seen: "taken closed|ready", want: Commit},

		// There is no way back, whatever happens.
		{seen: "sworn closed|ready", want: Commit},
		{seen: "sworn marked|", want: Commit},
		{seen: "sworn sworn|lost", want: Delete},
		{seen: "deleted sworn|lost", off: true, blocked: BlockedFor, after: time.Hour, want: Delete},
		{seen: "deleted closed|missing", want: Commit},
		{seen: "deleted taken|ready", want: Over},
		{seen: "deleted deleted|lost", want: Over},
	} {
		in := seen(t, c.seen)
		if c.off {
			in.Off = "paused"
		}
		now := begun.Add(c.after)
		if c.blocked > 0 {
			in.Blocked, in.BlockedSince = "pod a/b", now.Add(-c.blocked)
		}
		got := Next(in, now)
		if got.Action != c.want {
			t.Errorf("%+v: %+v, want %s", c, got, c.want)
		}
		if got.Action == Undo && got.Reason == "" || got.Action == Wait && (got.Reason == "" || !got.Until.After(now)) {
			t.Errorf("%+v: no reason, or no time to look again: %+v", c, got)
		}
	}
}

// TestEnds plays every move of two nodes out: whatever becomes of the nodes that come, and whenever, it ends; all nodes that go
// have the same fate; and none goes before all that come are ready.
func TestEnds(t *testing.T) {
	t.Parallel()
	for fate := range 9 {
		for crash := range 6 {
			play(t, []Coming{Coming(fate % 3), Coming(fate / 3)}, crash)
		}
	}
}

// play leads a move to its end, doing only half of the crash-th step first, as one who dies in the middle of it.
func play(t *testing.T, fate []Coming, crash int) {
	t.Helper()
	s := Seen{Begun: begun, Wanted: 2, Leaving: []Leaver{{Claim: "a"}, {Claim: "b"}}, Coming: []Comer{{Claim: "c"}, {Claim: "d"}}}
	now := begun
	for n := range 12 {
		step := Next(s, now)
		half := len(s.Leaving)
		if n == crash {
			half = 1
		}
		switch step.Action {
		case Wait:
			now = now.Add(ReadyWithin)
			for i := range s.Coming {
				s.Coming[i].Is = fate[i]
			}
		case Close:
			reach(s.Leaving[:half], Closed)
		case Commit:
			if fate[0] != Ready || fate[1] != Ready {
				t.Fatalf("fate %v: nodes go and nothing comes: %+v", fate, s)
			}
			reach(s.Leaving[:half], Committed)
		case Delete:
			reach(s.Leaving[:half], Deleted)
		case Undo:
			if s.Leaving[0].Is > Closed || s.Leaving[1].Is > Closed || fate[0] == Ready && fate[1] == Ready {
				t.Fatalf("fate %v: undone: %+v", fate, s)
			}
			return
		case Over:
			if s.Leaving[0].Is != Deleted || s.Leaving[1].Is != Deleted {
				t.Fatalf("fate %v, died at step %d: ended half way: %+v", fate, crash, s)
			}
			return
		}
	}
	t.Fatalf("fate %v, died at step %d: it never ends: %+v", fate, crash, s)
}

// reach brings nodes so far, if they are not further.
func reach(nodes []Leaver, is Leaving) {
	for i := range nodes {
		nodes[i].Is = max(nodes[i].Is, is)
	}
}

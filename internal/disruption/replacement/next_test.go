package replacement

import (
	"slices"
	"strings"
	"testing"
	"time"
)

var started = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// parseState parses "marked closed | ready launching": the states of the candidates, and of all replacements of the
// move. A replacement can also be "missing", "joined" (launching, with a registered Node) or "hopeless" (WillNotJoin).
func parseState(t *testing.T, text string) MoveState {
	t.Helper()
	candidates, replacements, _ := strings.Cut(text, "|")
	out := MoveState{Started: started}
	for _, w := range strings.Fields(candidates) {
		state, ok := map[string]CandidateState{"marked": Marked, "closed": Closed, "committed": Committed, "deleted": Deleted, "gone": Gone}[w]
		if !ok {
			t.Fatalf("unknown state of a candidate: %s", w)
		}
		out.Candidates = append(out.Candidates, Candidate{Claim: w, State: state})
	}
	for _, w := range strings.Fields(replacements) {
		out.ReplacementCount++
		if w == "missing" {
			continue
		}
		state, ok := map[string]Progress{"launching": Launching, "ready": Ready, "lost": Lost, "hopeless": WillNotJoin, "joined": Launching}[w]
		if !ok {
			t.Fatalf("unknown state of a replacement: %s", w)
		}
		c := Replacement{Claim: w, State: state}
		if w == "joined" {
			c.Joined = started.Add(time.Minute)
		}
		out.Replacements = append(out.Replacements, c)
	}
	return out
}

func TestNext(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		state   string
		after   time.Duration // since the start of the move
		blocked time.Duration // how long a pod has been blocked; 0: none is
		paused  bool          // the pool is paused
		want    Action
	}{
		{state: "marked marked|", want: Close},
		{state: "marked closed|launching", want: Close},
		{state: "closed|hopeless", want: Undo},
		{state: "closed|ready hopeless", want: Undo},
		{state: "closed|launching", after: time.Minute + DefaultInitializationTimeout, want: Wait}, // not joined yet
		{state: "closed|joined", after: time.Minute, want: Wait},
		{state: "closed|joined", after: time.Minute + DefaultInitializationTimeout, want: Undo},
		{state: "committed closed|hopeless", want: Commit},
		{state: "closed closed|launching ready", want: Wait},
		{state: "closed closed|launching ready", after: ReadyWithin, want: Undo},
		{state: "closed|launching lost", want: Undo},
		{state: "closed|ready missing", want: Undo},
		{state: "marked|missing", want: Undo},
		{state: "closed closed|ready", want: Commit},
		{state: "closed|ready", after: time.Hour, want: Commit},
		{state: "closed|", want: Commit},
		{state: "closed|ready", blocked: time.Second, want: Wait},
		{state: "closed|ready", blocked: BlockedFor, want: Undo},
		{state: "closed|launching", blocked: BlockedFor, want: Wait}, // blocked pods count only after all replacements are ready
		{state: "closed|ready", paused: true, want: Undo},
		{state: "marked|", paused: true, want: Undo},
		{state: "gone gone|launching", want: Done},
		{state: "gone closed|ready", want: Commit},

		// A committed move is never undone.
		{state: "committed closed|ready", want: Commit},
		{state: "committed marked|", want: Commit},
		{state: "committed committed|lost", want: Delete},
		{state: "deleted committed|lost", paused: true, blocked: BlockedFor, after: time.Hour, want: Delete},
		{state: "deleted closed|missing", want: Commit},
		{state: "deleted gone|ready", want: Done},
		{state: "deleted deleted|lost", want: Done},
	} {
		in := parseState(t, c.state)
		if c.paused {
			in.Obsolete = "paused"
		}
		now := started.Add(c.after)
		if c.blocked > 0 {
			in.Blocked, in.BlockedSince = "pod a/b", now.Add(-c.blocked)
		}
		got := Next(in, now)
		if got.Action != c.want {
			t.Errorf("%+v: the step is %+v, want %s", c, got, c.want)
		}
		if got.Action == Undo && got.Reason == "" || got.Action == Wait && (got.Reason == "" || !got.Until.After(now)) {
			t.Errorf("%+v: want a reason, and for Wait a later time of the next check: %+v", c, got)
		}
	}
}

// TestMovesEnd simulates every move of two nodes. Whatever happens to the replacements, the move ends, both candidates
// end in the same state, and none is removed before all replacements are ready.
func TestMovesEnd(t *testing.T) {
	t.Parallel()
	for pair := range 16 { // each pair of the 4 values of Progress
		for crash := range 6 { // a move has 5 steps, so with crash = 5 there is no crash
			simulate(t, []Progress{Progress(pair % 4), Progress(pair / 4)}, crash)
		}
	}
}

// simulate simulates a move to its end. fate has the states that the replacements reach. In step number crash it makes
// only half of the changes, like a controller that crashes.
func simulate(t *testing.T, fate []Progress, crash int) {
	t.Helper()
	s := MoveState{Started: started, ReplacementCount: 2, Candidates: []Candidate{{Claim: "a"}, {Claim: "b"}},
		Replacements: []Replacement{{Claim: "c"}, {Claim: "d"}}}
	now := started
	for n := range 12 {
		step := Next(s, now)
		changed := len(s.Candidates)
		if n == crash {
			changed = 1
		}
		switch step.Action {
		case Wait:
			now = now.Add(ReadyWithin)
			for i := range s.Replacements {
				s.Replacements[i].State = fate[i]
			}
		case Close:
			advance(s.Candidates[:changed], Closed)
		case Commit:
			if fate[0] != Ready || fate[1] != Ready {
				t.Fatalf("replacements %v: nodes are removed before all replacements are ready: %+v", fate, s)
			}
			advance(s.Candidates[:changed], Committed)
		case Delete:
			advance(s.Candidates[:changed], Deleted)
		case Undo:
			if s.Candidates[0].State > Closed || s.Candidates[1].State > Closed || fate[0] == Ready && fate[1] == Ready {
				t.Fatalf("replacements %v: undone after a commit, or although all replacements are ready: %+v", fate, s)
			}
			return
		case Done:
			if s.Candidates[0].State != Deleted || s.Candidates[1].State != Deleted {
				t.Fatalf("replacements %v, crash at step %d: only some candidates are deleted: %+v", fate, crash, s)
			}
			return
		}
	}
	t.Fatalf("replacements %v, crash at step %d: the move does not end: %+v", fate, crash, s)
}

func advance(candidates []Candidate, state CandidateState) {
	for i := range candidates {
		candidates[i].State = max(candidates[i].State, state)
	}
}

// TestUndoneInTime: replacements that will not join are kept, and those that were not initialized in time are named,
// each with the known reason. Nodes that are known to take longer get more time.
func TestUndoneInTime(t *testing.T) {
	t.Parallel()
	s := MoveState{Started: started, ReplacementCount: 2, Candidates: []Candidate{{Claim: "old", State: Closed}}, Replacements: []Replacement{
		{Claim: "a", State: WillNotJoin, Why: "its role is not mapped"}, {Claim: "b", Joined: started, Why: "a startup taint is there"}}}
	step := Next(s, started.Add(time.Minute))
	if step.Action != Undo || !slices.Equal(step.Keep, []string{"a"}) || step.NotInitialized != nil ||
		!strings.Contains(step.Reason, "replacement NodeClaim a does not join the cluster: its role is not mapped") {
		t.Errorf("the first replacement will not join: step %+v, want Undo that keeps a", step)
	}
	s.Replacements[0].State = Ready
	if step = Next(s, started.Add(time.Minute)); step.Action != Wait || !step.Until.Equal(started.Add(DefaultInitializationTimeout)) {
		t.Errorf("the second replacement has joined: step %+v, want Wait until DefaultInitializationTimeout", step)
	}
	step = Next(s, step.Until)
	if step.Action != Undo || !slices.Equal(step.NotInitialized, []string{"b"}) || step.Keep != nil ||
		!strings.Contains(step.Reason, "within 10m0s: a startup taint is there") {
		t.Errorf("the second replacement was not initialized: step %+v, want Undo with b in NotInitialized", step)
	}
	s.InitializationTimeout = 20 * time.Minute
	if step = Next(s, started.Add(DefaultInitializationTimeout)); step.Action != Wait || !step.Until.Equal(started.Add(20*time.Minute)) {
		t.Errorf("similar nodes take twenty minutes: step %+v, want Wait for twenty minutes", step)
	}
}

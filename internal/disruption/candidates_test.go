package disruption

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/joiner-sh/joiner/internal/model/cluster"
)

func TestCandidates(t *testing.T) {
	t.Parallel()
	zero := time.Duration(0)
	usual := Policy{After: &zero, Method: WhenEmptyOrUnderutilized}
	change := func(f func(*Policy)) Policy {
		out := usual
		f(&out)
		return out
	}
	for name, c := range map[string]struct {
		policy  Policy
		change  func(*Input)
		saves   Cause // why n stays if it would be disrupted to save money; empty: it may be disrupted
		freshen Cause // the same for drift
	}{
		"not protected":               {policy: usual},
		"paused":                      {policy: change(func(p *Policy) { p.Paused = "annotation" }), saves: Paused, freshen: Paused},
		"only empty nodes":            {policy: change(func(p *Policy) { p.Method = WhenEmpty }), saves: OnlyIdle},
		"never":                       {policy: change(func(p *Policy) { p.After = nil }), saves: Never},
		"young":                       {policy: change(func(p *Policy) { p.LeastLife = 3 * time.Hour }), saves: TooYoung, freshen: TooYoung},
		"consolidateAfter not passed": {policy: change(func(p *Policy) { hours := 2 * time.Hour; p.After = &hours }), saves: TooSoon},
		"annotation":                  {policy: usual, change: on(func(r *Record) { r.Keep = "a pod" }), saves: Kept, freshen: Kept},
		"not ready":                   {policy: usual, change: on(func(r *Record) { r.Ready = false }), saves: Unready, freshen: Unready},
		"failed recently":             {policy: usual, change: on(func(r *Record) { r.Held = now.Add(time.Minute) }), saves: Held, freshen: Held},
		"failed long ago":             {policy: usual, change: on(func(r *Record) { r.Held = now })},
		"blocked pod":                 {policy: usual, change: on(func(r *Record) { r.Blocked = "pod" }), saves: Blocked, freshen: Blocked},
		"blocked pod with a deadline": {policy: usual, change: on(func(r *Record) { r.Blocked, r.Bounded = "pod", true }), saves: Blocked},
		"expected pods":               {policy: usual, change: expect, saves: Expected},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := world(c.policy, "n busy", "empty", "leaving busy leaving", "young busy young", "foreign busy foreign", "unknown busy unknown")
			in.Drifted = map[string]string{"n": "image"}
			for i := range in.Snapshot.Nodes {
				in.Snapshot.Nodes[i].Created = now.Add(-2 * time.Hour)
			}
			if c.change != nil {
				c.change(&in)
			}
			for reason, want := range map[Reason]Cause{Underutilized: c.saves, Drifted: c.freshen} {
				nodes, stays := Candidates(in, reason)
				if goes := slices.Equal(nodes, []string{"n"}); goes != (want == "") || !goes && len(nodes) > 0 {
					t.Errorf("%s: %v are candidates, want n to stay for %q", reason, nodes, want)
				}
				if want != "" && (len(stays) != 1 || stays[0].Cause != want || stays[0].Node != "n") {
					t.Errorf("%s: stays %+v, want n for %s", reason, stays, want)
				}
			}
		})
	}
}

func on(f func(*Record)) func(*Input) {
	return func(in *Input) {
		r := in.Records["n"]
		f(&r)
		in.Records["n"] = r
	}
}

func expect(in *Input) { in.Plan.Placements = world(Policy{}, "n expected").Plan.Placements }

func TestGrant(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		budget       string
		groups       string // "a b, c"
		granted      string
		stays        string
		going        string
		otherReasons bool
	}{
		{budget: "2", groups: "a b, c", granted: "a b", stays: "c"},
		{budget: "1", groups: "a b, c", granted: "c", stays: "a b"},
		{budget: "2", groups: "a b c d, e", granted: "a e", stays: "b c d"},
		{budget: "3", groups: "a b, c", granted: "b c", stays: "", going: "a"}, // a is being removed already
		{budget: "2", groups: "b c, d", granted: "d", stays: "b c", going: "a"},
		{budget: "0", groups: "a", stays: "a"},
		{budget: "0", groups: "a", granted: "a", otherReasons: true},
	} {
		budget := Budget{Nodes: c.budget}
		if c.otherReasons {
			budget.Reasons = []Reason{Empty, Drifted}
		}
		in := world(Policy{Budgets: []Budget{budget}}, "a busy", "b busy", "c busy", "d busy", "e busy", "f busy")
		for _, n := range strings.Fields(c.going) {
			r := in.Records[n]
			r.Going = true
			in.Records[n] = r
		}
		var groups [][]string
		for w := range strings.SplitSeq(c.groups, ",") {
			groups = append(groups, slices.DeleteFunc(strings.Fields(w), func(n string) bool { return n == c.going }))
		}
		granted, stays, rooms := Grant(in, Underutilized, groups)
		var stay []string
		for _, s := range stays {
			if s.Cause != Budgeted || s.Detail != c.budget {
				t.Errorf("%+v: unexpected stay %+v", c, s)
			}
			stay = append(stay, s.Node)
		}
		if got := strings.Join(granted, " "); got != c.granted || strings.Join(stay, " ") != c.stays {
			t.Errorf("budget %s, groups %s: granted %q, stays %q; want %q, %q", c.budget, c.groups, got, stay, c.granted, c.stays)
		}
		if len(rooms) != 1 || rooms[0].Nodes < len(granted) {
			t.Errorf("room for %+v, and %d go", rooms, len(granted))
		}
	}
}

// TestGrantOfTwoPools: nodes that are removed together need room in the budgets of both pools.
func TestGrantOfTwoPools(t *testing.T) {
	t.Parallel()
	in := world(Policy{Budgets: []Budget{{Nodes: "5"}}}, "a busy", "b busy")
	in.Snapshot.Pools = append(in.Snapshot.Pools, cluster.Pool{Name: "q"})
	in.Snapshot.Nodes[1].Pool = "q"
	in.Policies["q"] = Policy{Budgets: []Budget{{Nodes: "0"}}}
	granted, stays, _ := Grant(in, Underutilized, [][]string{{"a", "b"}})
	want := []Stay{{Node: "b", Cause: Budgeted, Detail: "0"}}
	if diff := cmp.Diff(want, stays); diff != "" || !slices.Equal(granted, []string{"a"}) {
		t.Errorf("granted %v, stays:\n%s", granted, diff)
	}
}

package disruption

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/joiner-sh/joiner/internal/model/cluster"
)

// TestCandidates: only node n is a candidate. Its policy and its record decide whether it stays.
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
		policy Policy
		change func(*Input)
		saving Cause // why n stays if it would be disrupted to save money; empty: it may be disrupted
		drift  Cause // the same for drift
	}{
		"not protected":               {policy: usual},
		"paused":                      {policy: change(func(p *Policy) { p.Paused = "annotation" }), saving: Paused, drift: Paused},
		"only empty nodes":            {policy: change(func(p *Policy) { p.Method = WhenEmpty }), saving: OnlyEmpty},
		"never":                       {policy: change(func(p *Policy) { p.After = nil }), saving: Never},
		"young":                       {policy: change(func(p *Policy) { p.MinLifetime = 3 * time.Hour }), saving: TooYoung, drift: TooYoung},
		"consolidateAfter not passed": {policy: change(func(p *Policy) { hours := 2 * time.Hour; p.After = &hours }), saving: TooSoon},
		"annotation":                  {policy: usual, change: onRecord(func(r *Record) { r.Keep = "a pod" }), saving: DoNotDisrupt, drift: DoNotDisrupt},
		"not ready":                   {policy: usual, change: onRecord(func(r *Record) { r.Ready = false }), saving: Unready, drift: Unready},
		"move aborted recently": {
			policy: usual, change: onRecord(func(r *Record) { r.HeldUntil = now.Add(time.Minute) }), saving: Held, drift: Held,
		},
		"hold has ended":              {policy: usual, change: onRecord(func(r *Record) { r.HeldUntil = now })},
		"blocked pod":                 {policy: usual, change: onRecord(func(r *Record) { r.Blocked = "pod" }), saving: Blocked, drift: Blocked},
		"blocked pod with a deadline": {policy: usual, change: onRecord(func(r *Record) { r.Blocked, r.HasDrainDeadline = "pod", true }), saving: Blocked},
		"expected pods":               {policy: usual, change: expectPods, saving: Expected},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := inputOf(c.policy, "n busy", "empty", "leaving busy leaving", "young busy young", "foreign busy foreign", "unknown busy unknown")
			in.Drifted = map[string]string{"n": "image"}
			for i := range in.Snapshot.Nodes {
				in.Snapshot.Nodes[i].Created = now.Add(-2 * time.Hour)
			}
			if c.change != nil {
				c.change(&in)
			}
			for reason, want := range map[Reason]Cause{Underutilized: c.saving, Drifted: c.drift} {
				nodes, stays := Candidates(in, reason)
				var wantNodes []string
				if want == "" {
					wantNodes = []string{"n"}
				}
				if !slices.Equal(nodes, wantNodes) {
					t.Errorf("%s: candidates %v, want %v", reason, nodes, wantNodes)
				}
				if want != "" && (len(stays) != 1 || stays[0].Cause != want || stays[0].Node != "n") {
					t.Errorf("%s: stays %+v, want n because of %s", reason, stays, want)
				}
			}
		})
	}
}

func onRecord(f func(*Record)) func(*Input) {
	return func(in *Input) {
		r := in.Records["n"]
		f(&r)
		in.Records["n"] = r
	}
}

// expectPods plans pending pods onto node n.
func expectPods(in *Input) { in.Plan.Placements = inputOf(Policy{}, "n expected").Plan.Placements }

// TestGrant: whole groups are granted before single nodes, each in the order of the groups.
func TestGrant(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		budget       string
		groups       string // the nodes of each group: "a b, c"
		granted      string
		stays        string
		going        string // a node that is already being removed; empty: none
		otherReasons bool   // the budget applies to other reasons only
	}{
		{budget: "2", groups: "a b, c", granted: "a b", stays: "c"},
		{budget: "1", groups: "a b, c", granted: "c", stays: "a b"},
		{budget: "2", groups: "a b c d, e", granted: "a e", stays: "b c d"},
		{budget: "3", groups: "a b, c", granted: "b c", stays: "", going: "a"},
		{budget: "2", groups: "b c, d", granted: "d", stays: "b c", going: "a"},
		{budget: "0", groups: "a", stays: "a"},
		{budget: "0", groups: "a", granted: "a", otherReasons: true},
	} {
		budget := Budget{Nodes: c.budget}
		if c.otherReasons {
			budget.Reasons = []Reason{Empty, Drifted}
		}
		in := inputOf(Policy{Budgets: []Budget{budget}}, "a busy", "b busy", "c busy", "d busy", "e busy", "f busy")
		for _, n := range strings.Fields(c.going) {
			r := in.Records[n]
			r.IsBeingRemoved = true
			in.Records[n] = r
		}
		var groups [][]string
		for w := range strings.SplitSeq(c.groups, ",") {
			groups = append(groups, slices.DeleteFunc(strings.Fields(w), func(n string) bool { return n == c.going }))
		}
		granted, stays, rooms := Grant(in, Underutilized, groups)
		var stay []string
		for _, s := range stays {
			if s.Cause != BudgetExhausted || s.Detail != c.budget {
				t.Errorf("%+v: stay %+v, want cause Budget and the budget as detail", c, s)
			}
			stay = append(stay, s.Node)
		}
		if got := strings.Join(granted, " "); got != c.granted || strings.Join(stay, " ") != c.stays {
			t.Errorf("budget %s, groups %s: granted %q, stays %q; want %q, %q", c.budget, c.groups, got, stay, c.granted, c.stays)
		}
		if len(rooms) != 1 || rooms[0].Nodes < len(granted) {
			t.Errorf("%d nodes are granted, want one room for at least as many: %+v", len(granted), rooms)
		}
	}
}

// TestGrantOfTwoPools: a group needs room in the budgets of both pools. Otherwise its nodes are granted one by one.
func TestGrantOfTwoPools(t *testing.T) {
	t.Parallel()
	in := inputOf(Policy{Budgets: []Budget{{Nodes: "5"}}}, "a busy", "b busy")
	in.Snapshot.Pools = append(in.Snapshot.Pools, cluster.Pool{Name: "q"})
	in.Snapshot.Nodes[1].Pool = "q"
	in.Policies["q"] = Policy{Budgets: []Budget{{Nodes: "0"}}}
	granted, stays, _ := Grant(in, Underutilized, [][]string{{"a", "b"}})
	want := []Stay{{Node: "b", Cause: BudgetExhausted, Detail: "0"}}
	if diff := cmp.Diff(want, stays); diff != "" || !slices.Equal(granted, []string{"a"}) {
		t.Errorf("granted %v, want a; stays (-want +got):\n%s", granted, diff)
	}
}

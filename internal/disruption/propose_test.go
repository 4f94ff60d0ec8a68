package disruption

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/joiner-sh/joiner/internal/disruption/cron"
	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/scheduling/packing"
)

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// inputOf returns an input with one pool and one node per line. A line has the node's name, then words: "busy",
// "leaving", "young" (not initialized), "broken" (not ready), "kept", "blocked", "expected", "foreign" (without
// NodeClaim), "unknown" (without record), or the duration since its last pod event (default 1h).
func inputOf(policy Policy, lines ...string) Input {
	in := Input{
		Snapshot: cluster.Snapshot{Pools: []cluster.Pool{{Name: "p"}}},
		Policies: map[string]Policy{"p": policy},
		Records:  map[string]Record{},
		Now:      now,
	}
	for _, line := range lines {
		words := strings.Fields(line)
		n := cluster.Node{Name: words[0], Claim: "claim-" + words[0], Pool: "p", Joined: true, Initialized: true}
		r := Record{LastPodEvent: now.Add(-time.Hour), Ready: true}
		known := true
		for _, w := range words[1:] {
			switch w {
			case "busy":
				n.Pods = []cluster.Pod{{Name: "x"}}
			case "leaving":
				n.Leaving = true
			case "young":
				n.Initialized = false
			case "broken":
				r.Ready = false
			case "kept":
				r.Keep = "a user"
			case "blocked":
				r.Blocked = "a pod"
			case "expected":
				in.Plan.Placements = append(in.Plan.Placements, packing.Placement{Pod: "a/b", Node: n.Name})
			case "foreign":
				n.Claim = ""
			case "unknown":
				known = false
			default:
				d, err := time.ParseDuration(w)
				if err != nil {
					panic(err)
				}
				r.LastPodEvent = now.Add(-d)
			}
		}
		in.Snapshot.Nodes = append(in.Snapshot.Nodes, n)
		if known {
			in.Records[n.Name] = r
		}
	}
	return in
}

func TestEmptyNodesAreRemoved(t *testing.T) {
	t.Parallel()
	zero, half := time.Duration(0), 30*time.Minute
	budget := func(nodes string, reasons ...Reason) Budget { return Budget{Nodes: nodes, Reasons: reasons} }
	ten := make([]string, 10)
	for i := range ten {
		ten[i] = fmt.Sprintf("n%d", i)
	}
	for name, c := range map[string]struct {
		policy    Policy
		nodes     []string
		wantGo    string
		wantStays map[string]Cause
	}{
		"no nodes": {policy: Policy{After: &zero}},
		"only empty, managed, initialized and known nodes": {
			policy: Policy{After: &zero},
			nodes:  []string{"a", "b busy", "c leaving", "d young", "e foreign", "f unknown", "g"},
			wantGo: "a g",
		},
		"pending pods are planned onto it": {
			policy: Policy{After: &zero}, nodes: []string{"a expected", "b"},
			wantGo: "b", wantStays: map[string]Cause{"a": Expected},
		},
		"annotation": {
			policy: Policy{After: &zero}, nodes: []string{"a kept"},
			wantStays: map[string]Cause{"a": DoNotDisrupt},
		},
		"never": {
			nodes: []string{"a"}, wantStays: map[string]Cause{"a": Never},
		},
		"consolidateAfter not passed": {
			policy: Policy{After: &half}, nodes: []string{"a 29m", "b 30m"},
			wantGo: "b", wantStays: map[string]Cause{"a": TooSoon},
		},
		"ten percent of three is one": {
			policy: Policy{After: &zero, Budgets: []Budget{budget("10%")}}, nodes: []string{"a 1h", "b 2h", "c 1h"},
			wantGo: "b", wantStays: map[string]Cause{"a": BudgetExhausted, "c": BudgetExhausted},
		},
		"ten percent of ten is one": {
			policy: Policy{After: &zero, Budgets: []Budget{budget("10%")}}, nodes: ten, wantGo: "n0",
			wantStays: map[string]Cause{"n1": BudgetExhausted, "n2": BudgetExhausted, "n3": BudgetExhausted, "n4": BudgetExhausted, "n5": BudgetExhausted,
				"n6": BudgetExhausted, "n7": BudgetExhausted, "n8": BudgetExhausted, "n9": BudgetExhausted},
		},
		"terminating and broken nodes count": {
			policy: Policy{After: &zero, Budgets: []Budget{budget("3")}}, nodes: []string{"a", "b", "c leaving", "d busy broken"},
			wantGo: "a", wantStays: map[string]Cause{"b": BudgetExhausted},
		},
		"the tightest budget counts": {
			policy: Policy{After: &zero, Budgets: []Budget{budget("2"), budget("0", "Drifted"), budget("1", Empty)}},
			nodes:  []string{"a", "b"}, wantGo: "a", wantStays: map[string]Cause{"b": BudgetExhausted},
		},
		"budget of zero": {
			policy: Policy{After: &zero, Budgets: []Budget{budget("0")}}, nodes: []string{"a"},
			wantStays: map[string]Cause{"a": BudgetExhausted},
		},
		"unreadable budget": {
			policy: Policy{After: &zero, Budgets: []Budget{budget("many")}}, nodes: []string{"a"},
			wantStays: map[string]Cause{"a": BudgetExhausted},
		},
		"budget of 100 %": {
			policy: Policy{After: &zero, Budgets: []Budget{budget("100%")}}, nodes: []string{"a", "b"}, wantGo: "a b",
		},
		"active schedule": {
			policy: Policy{After: &zero, Budgets: []Budget{scheduledBudget(t, "0", "0 9 * * *", 8*time.Hour)}}, nodes: []string{"a"},
			wantStays: map[string]Cause{"a": BudgetExhausted},
		},
		"inactive schedule": {
			policy: Policy{After: &zero, Budgets: []Budget{scheduledBudget(t, "0", "0 9 * * *", time.Hour)}}, nodes: []string{"a"},
			wantGo: "a",
		},
		"unreadable schedule": {
			policy: Policy{After: &zero, Budgets: []Budget{{Nodes: "100%", Unreadable: "what?"}}}, nodes: []string{"a"},
			wantStays: map[string]Cause{"a": BudgetExhausted},
		},
		"paused": {
			policy: Policy{After: &zero, Paused: "a user"}, nodes: []string{"a", "b busy"},
			wantStays: map[string]Cause{"a": Paused},
		},
		"invalid setting for empty nodes": {
			policy:    Policy{After: &zero, Problems: []Problem{{Field: "x", Reasons: []Reason{Drifted, Empty}}}},
			nodes:     []string{"a"},
			wantStays: map[string]Cause{"a": Invalid},
		},
		"invalid setting for other nodes": {
			policy: Policy{After: &zero, Problems: []Problem{{Field: "x", Reasons: []Reason{Drifted}}}}, nodes: []string{"a"},
			wantGo: "a",
		},
		"blocked pod": {
			policy: Policy{After: &zero}, nodes: []string{"a blocked"},
			wantStays: map[string]Cause{"a": Blocked},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := inputOf(c.policy, c.nodes...)
			got := Propose(in)
			var gone []string
			for _, m := range got.Moves {
				if m.Reason != Empty || m.Pool != "p" {
					t.Errorf("move %+v, want pool p and reason Empty", m)
				}
				gone = append(gone, m.Nodes...)
			}
			if strings.Join(gone, " ") != c.wantGo {
				t.Errorf("removes %q, want %q", gone, c.wantGo)
			}
			stays := map[string]Cause{}
			for _, s := range got.Stays {
				stays[s.Node] = s.Cause
			}
			if len(stays) != len(c.wantStays) || len(stays) > 0 && !cmp.Equal(stays, c.wantStays) {
				t.Errorf("stays %v, want %v", stays, c.wantStays)
			}
			if len(got.Rooms) != 1 || got.Rooms[0].Nodes < len(gone) {
				t.Errorf("%d nodes are removed, want one room for at least as many: %+v", len(gone), got.Rooms)
			}
			slices.Reverse(in.Snapshot.Nodes)
			if diff := cmp.Diff(got, Propose(in)); diff != "" {
				t.Errorf("the proposal depends on the order of the nodes:\n%s", diff)
			}
		})
	}
}

func TestTooSoonHasEnd(t *testing.T) {
	t.Parallel()
	after := time.Hour
	got := Propose(inputOf(Policy{After: &after}, "a 15m"))
	if want := now.Add(45 * time.Minute); len(got.Stays) != 1 || !got.Stays[0].Until.Equal(want) {
		t.Errorf("stays %+v, want one until %s", got.Stays, want)
	}
}

func scheduledBudget(t *testing.T, nodes, line string, open time.Duration) Budget {
	t.Helper()
	s, err := cron.Parse(line)
	if err != nil {
		t.Fatal(err)
	}
	return Budget{Nodes: nodes, Schedule: &s, Open: open, Line: line}
}

// TestRoomNamesBudgetAndEnd: 3 of the 20 nodes are unavailable. It is noon.
func TestRoomNamesBudgetAndEnd(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		budgets []Budget
		reason  Reason
		want    Room
	}{
		"no budget": {reason: Empty, want: Room{Reason: Empty, Nodes: 17}},
		"rounded up": {
			budgets: []Budget{{Nodes: "21%"}}, reason: Empty,
			want: Room{Reason: Empty, Nodes: 2, Budget: "21%"}, // 21 % of 20 is 4.2, rounded up to 5
		},
		"budget for another reason": {
			budgets: []Budget{{Nodes: "0", Reasons: []Reason{Drifted}}}, reason: Empty, want: Room{Reason: Empty, Nodes: 17},
		},
		"until the schedule's window closes": {
			budgets: []Budget{{Nodes: "50%"}, scheduledBudget(t, "0", "0 9 * * *", 8*time.Hour)}, reason: Underutilized,
			want: Room{Reason: Underutilized, Budget: `0 after "0 9 * * *" for 8h0m0s`, Until: now.Add(5 * time.Hour)},
		},
		"until another window opens": {
			budgets: []Budget{{Nodes: "50%"}, scheduledBudget(t, "0", "30 12 * * *", time.Hour)}, reason: Drifted,
			want: Room{Reason: Drifted, Nodes: 7, Budget: "50%", Until: now.Add(30 * time.Minute)},
		},
		"always active": {
			budgets: []Budget{scheduledBudget(t, "0", "0 0 * * *", 24*time.Hour)}, reason: Drifted,
			want: Room{Reason: Drifted, Budget: `0 after "0 0 * * *" for 24h0m0s, which never ends`},
		},
		"always active, and another window opens": {
			budgets: []Budget{scheduledBudget(t, "0", "@hourly", time.Hour), scheduledBudget(t, "50%", "30 12 * * *", time.Hour)}, reason: Drifted,
			want: Room{Reason: Drifted, Budget: `0 after "@hourly" for 1h0m0s, which never ends`},
		},
		"until the last of two windows closes": {
			budgets: []Budget{scheduledBudget(t, "0", "0 9 * * *", 4*time.Hour), scheduledBudget(t, "0", "0 10 * * *", 8*time.Hour)},
			reason:  Drifted,
			want:    Room{Reason: Drifted, Budget: `0 after "0 9 * * *" for 4h0m0s`, Until: now.Add(6 * time.Hour)},
		},
	} {
		got := Policy{Budgets: c.budgets}.Room(c.reason, 20, 3, now)
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: the room differs (-want +got):\n%s", name, diff)
		}
	}
}

// TestWithoutRemovableEmpty: empty nodes that are removed now, or as soon as budgets allow, take no pods of other
// nodes. Empty nodes that stay may take pods.
func TestWithoutRemovableEmpty(t *testing.T) {
	t.Parallel()
	after := time.Minute
	in := inputOf(Policy{After: &after, Budgets: []Budget{{Nodes: "1"}}}, "a", "b", "busy busy", "fresh 10s", "kept kept",
		"awaited expected", "going leaving")
	var leaving []string
	for _, n := range WithoutRemovableEmpty(in).Nodes {
		if n.Leaving {
			leaving = append(leaving, n.Name)
		}
	}
	if want := []string{"a", "b", "going"}; !slices.Equal(leaving, want) {
		t.Errorf("%v are terminating, want %v", leaving, want)
	}
	if in.Snapshot.Nodes[0].Leaving {
		t.Error("the input was altered")
	}
}

package disruption

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const web, shape = "Deployment a/web", "p/m5.large/us-east-1a/spot"

// trips returns one trip of web for each word: minutes ago, "x" and the number of pods, "/" and the replicas, if known.
func trips(t *testing.T, reason Reason, words string) PodMoves {
	t.Helper()
	var out PodMoves
	for word := range strings.FieldsSeq(words) {
		var ago, pods, all int
		if n, err := fmt.Sscanf(word, "%dx%d/%d", &ago, &pods, &all); n < 2 {
			t.Fatal(err)
		}
		out = append(out, PodMove{At: now.Add(-time.Duration(ago) * time.Minute), Workload: web, Pods: pods, All: all, Shape: shape, Reason: reason})
	}
	return PodMoves(nil).Add(now, out...)
}

func TestStaysBecauseOfTrips(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		trips     string // trips for consolidation
		drifted   string // trips for drift
		reason    Reason // Underutilized if empty
		pods, all int    // on the node, in the cluster
		limit     int
		want      Cause
		wantUntil time.Duration // from now
	}{
		"no trips":                   {pods: 1, all: 1},
		"once":                       {trips: "5x1", pods: 1, all: 1},
		"twice within the hour":      {trips: "50x1 5x1", pods: 1, all: 1, want: Looping, wantUntil: 55 * time.Minute},
		"twice, once for drift":      {trips: "50x1", drifted: "5x1", pods: 1, all: 1, want: MovedOften, wantUntil: 10 * time.Minute},
		"one trip an hour ago":       {trips: "5x1", drifted: "60x1", pods: 1, all: 1},
		"other pods of the workload": {trips: "5x10", pods: 2, all: 10},
		"too many moved pods":        {trips: "30x10 5x9", pods: 2, all: 10, want: MovedOften, wantUntil: 30 * time.Minute},
		"as many as allowed":         {trips: "30x10 5x8", pods: 2, all: 10},
		"lower limit of the pool":    {trips: "5x1", pods: 1, all: 1, limit: 1, want: MovedOften, wantUntil: 55 * time.Minute},
		"higher limit of the pool":   {drifted: "50x1 5x1", pods: 1, all: 1, limit: 3},
		"three times over hours":     {trips: "300x1 150x1 30x1", pods: 1, all: 1, want: Looping, wantUntil: 90 * time.Minute},
		"after the pause":            {trips: "400x1 300x1 125x1", pods: 1, all: 1},
		"a fourth time":              {trips: "600x1 400x1 300x1 125x1", pods: 1, all: 1, want: Looping, wantUntil: 115 * time.Minute},
		"yesterday":                  {trips: "1440x1 5x1", pods: 1, all: 1},
		"more pods than rounds":      {trips: "300x3 150x3", pods: 1, all: 4},
		"drift twice a day":          {drifted: "600x1 90x1", reason: Drifted, pods: 1, all: 1},
		"drift three times a day": {drifted: "600x1 300x1 30x1", reason: Drifted, pods: 1, all: 1, want: Looping,
			wantUntil: 30 * time.Minute},
		"drift does not count for consolidation": {drifted: "600x1 300x1 90x1", pods: 1, all: 1},
		"unknown number of replicas":             {trips: "5x2", pods: 3, all: 0},
		"more pods on the node than replicas":    {trips: "50x2 5x2", pods: 2, all: 1, limit: 9, want: Looping, wantUntil: 55 * time.Minute},
		"more replicas then":                     {trips: "300x8/10 90x8/10", pods: 2, all: 2},
		"more replicas then, all moved":          {trips: "300x10/10 200x3/10 30x7/10", pods: 1, all: 2, want: Looping, wantUntil: 30 * time.Minute},
		"fewer replicas now": {drifted: "50x8/10 5x8/10", pods: 1, all: 4, limit: 1, want: MovedOften,
			wantUntil: 55 * time.Minute},
		"grown by a third": {trips: "300x3/3 30x3/3", pods: 3, all: 4, limit: 9},
		"grown by half":    {trips: "300x2/2 150x2/2 30x2/2", pods: 2, all: 3, limit: 9},
		"grew in between":  {trips: "500x2/2 400x2/2 300x2/4 30x2/2", pods: 2, all: 2, limit: 9},
		"grew in between, then looped": {trips: "500x2/2 400x2/2 300x4/4 90x4/4 30x2/2", pods: 2, all: 2, limit: 9,
			want: Looping, wantUntil: 90 * time.Minute},
		"grew a little in between": {trips: "300x3/3 150x4/4 30x3/3", pods: 3, all: 3, want: Looping, wantUntil: 90 * time.Minute},
		"more replicas now":        {trips: "300x2/2 30x2/2", pods: 2, all: 4},
		"loop lasts longer than the limit": {trips: "130x1 125x1 120x1 50x1 5x1", pods: 1, all: 1, want: Looping,
			wantUntil: 7*time.Hour + 55*time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := StayInput{ // 7 pods have no workload
				Reason: Underutilized, Loads: []NodeWorkloads{{Node: "n", Pool: "p", Shape: shape, Pods: map[string]int{web: c.pods, "": 7}}},
				Pods: map[string]int{web: c.all}, Limits: map[string]int{"p": c.limit}, Now: now,
			}
			if c.reason != "" {
				in.Reason = c.reason
			}
			all := trips(t, Underutilized, c.trips).Add(now, trips(t, Drifted, c.drifted)...)
			got := all.Stays(in)
			switch {
			case c.want == "" && len(got) == 0:
			case len(got) != 1 || got[0].Cause != c.want || !got[0].Until.Equal(now.Add(c.wantUntil)) || !strings.Contains(got[0].Detail, web):
				t.Errorf("stays: %+v, want %q until %s", got, c.want, now.Add(c.wantUntil))
			}
			// At that time, no cause may apply.
			if c.want != "" && len(got) == 1 {
				in.Now = got[0].Until
				if again := all.Stays(in); len(again) > 0 {
					t.Errorf("the node stays beyond %s: %+v", got[0].Until, again)
				}
			}
		})
	}
}

// TestMovedOftenDetail: the detail has the number of moved pods, which may exceed the current number.
func TestMovedOftenDetail(t *testing.T) {
	t.Parallel()
	in := StayInput{
		Reason: Underutilized, Loads: []NodeWorkloads{{Node: "n", Pool: "p", Shape: shape, Pods: map[string]int{web: 1}}},
		Pods: map[string]int{web: 4}, Limits: map[string]int{"p": 1}, Now: now,
	}
	got := trips(t, Drifted, "50x8/10 5x8/10").Stays(in)
	if want := web + ": its pods were moved 16 times within the last hour; it has 4 pods now, and moving 1 more would exceed the limit of 1 per pod"; len(got) != 1 || got[0].Detail != want {
		t.Errorf("stays %+v, want %q", got, want)
	}
}

// TestTripsCountTogether: of nodes that are removed together, each counts for the next. A node that must stay does not
// count.
func TestTripsCountTogether(t *testing.T) {
	t.Parallel()
	in := StayInput{Reason: Underutilized, Pods: map[string]int{web: 4}, Limits: map[string]int{"p": 1}, Now: now}
	for _, n := range []struct {
		name string
		pods int
	}{{"a", 2}, {"b", 3}, {"c", 1}, {"d", 1}, {"e", 1}} {
		in.Loads = append(in.Loads, NodeWorkloads{Node: n.name, Pool: "p", Shape: shape, Pods: map[string]int{web: n.pods}})
	}
	stay := func() string {
		var names []string
		for _, s := range (PodMoves(nil)).Stays(in) {
			names = append(names, s.Node)
		}
		return strings.Join(names, " ")
	}
	if got := stay(); got != "" {
		t.Errorf("one by one %q stay, want none", got)
	}
	in.Together = true
	if got := stay(); got != "b e" { // 4 pods may be moved: those of a, c and d
		t.Errorf("together %q stay, want b e", got)
	}
}

// TestNothingOscillates simulates a workload whose node is always worth replacing, for a thousand minutes.
func TestNothingOscillates(t *testing.T) {
	t.Parallel()
	var history PodMoves
	var moved []time.Time
	for minute := range 1000 {
		at := now.Add(time.Duration(minute) * time.Minute)
		in := StayInput{Reason: Underutilized, Pods: map[string]int{web: 1}, Now: at,
			Loads: []NodeWorkloads{{Node: "n", Pool: "p", Shape: []string{shape, "p/c5.large/us-east-1b/spot"}[len(moved)%2], Pods: map[string]int{web: 1}}}}
		if len(history.Stays(in)) > 0 {
			continue
		}
		history = history.Add(at, PodMove{At: at, Workload: web, Pods: 1, Shape: in.Loads[0].Shape, Reason: Underutilized})
		moved = append(moved, at)
	}
	for i := 2; i < len(moved); i++ {
		if moved[i].Sub(moved[i-2]) < time.Hour {
			t.Errorf("three moves within an hour, from %s to %s; want at most two", moved[i-2], moved[i])
		}
	}
	if len(moved) > 12 { // MovesPerHour alone would allow 34
		t.Errorf("%d moves in a thousand minutes, want at most 12: %v", len(moved), moved)
	}
}

func TestTripsAreRetained(t *testing.T) {
	t.Parallel()
	want := PodMoves(nil).Add(now, PodMove{now.Add(-time.Hour), web, 3, 8, shape, Drifted},
		PodMove{now.Add(-2 * time.Hour), "StatefulSet b/db", 1, 0, shape, Underutilized})
	got, unread := DecodeTrips(want.Encode())
	if diff := cmp.Diff(want, got); diff != "" || unread != 0 {
		t.Errorf("%d lines were skipped, want none; trips (-want +got):\n%s", unread, diff)
	}
	if got, unread := DecodeTrips(want.Encode() +
		"nonsense\n1\t0\tEmpty\tx\ty\nx\t1\tEmpty\tx\ty\n1\t1/z\tEmpty\tx\ty\n1\t1/-1\tEmpty\tx\ty\n"); len(got) != 2 || unread != 5 {
		t.Errorf("%d trips are read and %d lines skipped, want 2 and 5", len(got), unread)
	}
	many := slices.Repeat([]PodMove{{now.Add(-2 * time.Hour), web, 1, 1, shape, Drifted}}, maxTrips+5)
	many[0].At = now.Add(-tripRetention)
	if got := PodMoves(nil).Add(now, many...); len(got) != maxTrips {
		t.Errorf("%d trips are kept, want %d", len(got), maxTrips)
	}
}

// TestTripsOfTheHourAreKept: trips of the last hour are kept, even if they are more than maxTrips.
func TestTripsOfTheHourAreKept(t *testing.T) {
	t.Parallel()
	api := PodMove{now.Add(-30 * time.Minute), "Deployment a/api", 2, 1, shape, Underutilized}
	others := slices.Repeat([]PodMove{{now.Add(-time.Minute), web, 1, 1, shape, Underutilized}}, maxTrips+5)
	all := PodMoves(nil).Add(now, PodMove{now.Add(-2 * time.Hour), web, 1, 1, shape, Underutilized}, api).Add(now, others...)
	if len(all) != len(others)+1 {
		t.Errorf("%d trips are kept, want the %d of the last hour", len(all), len(others)+1)
	}
	stays := all.Stays(StayInput{Reason: Underutilized,
		Loads: []NodeWorkloads{{Node: "n", Pool: "p", Shape: shape, Pods: map[string]int{api.Workload: 1}}},
		Pods:  map[string]int{api.Workload: 1}, Now: now})
	if len(stays) != 1 || stays[0].Cause != MovedOften {
		t.Errorf("stays %v, want one with the cause %s", stays, MovedOften)
	}
}

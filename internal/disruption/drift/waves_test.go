package drift

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

var day = time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)

// driftedNodes returns n1, n2, …, which drifted in this order, all for one target.
func driftedNodes(n int, target string) []Drifted {
	var out []Drifted
	for i := range n {
		out = append(out, Drifted{Node: fmt.Sprintf("n%d", i+1), Since: day.Add(time.Duration(i) * time.Minute), Target: target})
	}
	return out
}

func TestWaves(t *testing.T) {
	t.Parallel()
	proven := map[string]bool{"t": true}
	failed := map[string]Failure{"t": {Target: "t", Why: "it never joined"}}
	for name, c := range map[string]struct {
		in       WavesInput
		want     string // the allowed nodes
		wantStay string // words of the reason of all nodes that stay
	}{
		"nothing drifts": {in: WavesInput{Total: 3}},
		"canary first":   {in: WavesInput{Drifted: driftedNodes(4, "t"), Total: 4}, want: "n1", wantStay: "one node first"},
		"two canaries": {in: WavesInput{Drifted: driftedNodes(4, "t"), Total: 4, Canary: 2}, want: "n1 n2",
			wantStay: "2 nodes first"},
		"canary in progress": {in: WavesInput{Drifted: driftedNodes(4, "t"), Moving: []string{"t"}, Total: 5},
			wantStay: "one node first"},
		"replacement not initialized": {in: WavesInput{Drifted: driftedNodes(4, "t"), Trying: []string{"t"}, Total: 5},
			wantStay: "one node first"},
		"one moving, replacement not initialized": {in: WavesInput{Drifted: driftedNodes(4, "t"), Moving: []string{"t"},
			Trying: []string{"t"}, Total: 5, Canary: 2}, want: "n1", wantStay: "2 nodes first"},
		"one moving, one completed, not initialized": {in: WavesInput{Drifted: driftedNodes(4, "t"), Moving: []string{"t"},
			Trying: []string{"t", "t"}, Total: 5, Canary: 2}, wantStay: "2 nodes first"},
		"another target not initialized": {in: WavesInput{Drifted: driftedNodes(2, "t"), Trying: []string{"u"}, Total: 5},
			want: "n1", wantStay: "one node first"},
		"proven target, one node not initialized": {in: WavesInput{Drifted: driftedNodes(2, "t"), Trying: []string{"t"}, Proven: proven,
			Total: 5}, want: "n1 n2"},
		"another target in progress": {in: WavesInput{Drifted: driftedNodes(2, "t"), Moving: []string{"u"}, Total: 5},
			want: "n1", wantStay: "one node first"},
		"canary initialized": {in: WavesInput{Drifted: driftedNodes(4, "t"), Proven: proven, Total: 5}, want: "n1 n2 n3 n4"},
		"failed target":      {in: WavesInput{Drifted: driftedNodes(4, "t"), Failed: failed, Total: 5}, wantStay: "it never joined"},
		"failed but proven target": {in: WavesInput{Drifted: driftedNodes(2, "t"), Failed: failed, Proven: proven,
			Total: 5}, want: "n1 n2"},
		"waves of three": {in: WavesInput{Drifted: driftedNodes(5, "t"), Proven: proven, Total: 9, Wave: "3"},
			want: "n1 n2 n3", wantStay: "3 nodes may be replaced"},
		"one of the wave is moving": {in: WavesInput{Drifted: driftedNodes(5, "t"), Proven: proven, Moving: []string{"t"},
			Total: 9, Wave: "3"}, want: "n1 n2", wantStay: "3 nodes may be replaced"},
		"10% of 11, rounded up": {in: WavesInput{Drifted: driftedNodes(5, "t"), Proven: proven, Total: 11,
			Wave: "10%"}, want: "n1 n2", wantStay: "2 nodes may be replaced"},
		"wave of 0%": {in: WavesInput{Drifted: driftedNodes(3, "t"), Proven: proven, Total: 11,
			Wave: "0%"}, want: "n1", wantStay: "one node may be replaced"},
		"invalid wave": {in: WavesInput{Drifted: driftedNodes(3, "t"), Proven: proven, Total: 11,
			Wave: "many"}, want: "n1", wantStay: "one node may be replaced"},
		"held": {in: WavesInput{Drifted: driftedNodes(3, "t"), Proven: proven, Total: 3,
			Held: "the user must approve"}, wantStay: "the user must approve"},
	} {
		allowed, stays := Waves(c.in)
		if got := strings.Join(allowed, " "); got != c.want {
			t.Errorf("%s: %q are allowed, want %q", name, got, c.want)
		}
		for node, why := range stays {
			if !strings.Contains(why, c.wantStay) || c.wantStay == "" || slices.Contains(allowed, node) {
				t.Errorf("%s: %s stays because %q, want %q", name, node, why, c.wantStay)
			}
		}
		if len(allowed)+len(stays) != len(c.in.Drifted) {
			t.Errorf("%s: of %d nodes, %d are allowed and %d stay; want each node in one list", name, len(c.in.Drifted), len(allowed), len(stays))
		}
		slices.Reverse(c.in.Drifted)
		if again, _ := Waves(c.in); !slices.Equal(again, allowed) {
			t.Errorf("%s: %v are allowed, and %v after the nodes are reversed", name, allowed, again)
		}
	}
}

func TestTarget(t *testing.T) {
	t.Parallel()
	a, b := Stamp{"1", "v3"}, Stamp{"2", "v5"}
	base := Target(a, b, "ami-1", []string{"sg-1", "sg-2"})
	if Target(a, b, "ami-1", []string{"sg-2", "sg-1"}) != base {
		t.Error("the order of groups changes the target")
	}
	for _, other := range []string{
		Target(b, b, "ami-1", []string{"sg-1", "sg-2"}), Target(a, a, "ami-1", []string{"sg-1", "sg-2"}),
		Target(a, b, "ami-2", []string{"sg-1", "sg-2"}), Target(a, b, "ami-1", []string{"sg-1"}),
	} {
		if other == base {
			t.Error("different inputs have the same target")
		}
	}
}

// mass returns nodes of three kinds: outside nodes drift only because of a change in AWS, byUser nodes also because of
// a change by the user, and ignored nodes only because of a change that the user ignores.
func mass(outside, byUser, ignored int) []NodeVerdicts {
	var out []NodeVerdicts
	add := func(n int, verdicts ...Verdict) {
		for range n {
			out = append(out, NodeVerdicts{Name: fmt.Sprintf("c%02d", len(out)), Verdicts: verdicts})
		}
	}
	add(outside, Verdict{Reason: GroupDrift, Message: "it lacks sg-9", Outside: true})
	add(byUser, Verdict{Reason: ClassDrift, Message: "userData"}, Verdict{Reason: GroupDrift, Outside: true})
	add(ignored, Verdict{Reason: ClassDrift, Ignored: true, Message: "tags"})
	return out
}

// TestTrip: FindMassDrift reports a mass drift if the breaker opens, or stays open. By default it opens at 5 nodes that
// are more than half of the pool.
func TestTrip(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		nodes   []NodeVerdicts
		breaker Breaker
		open    bool
		want    bool
	}{
		"all of ten":                    {nodes: mass(10, 0, 0), want: true},
		"six of ten":                    {nodes: mass(6, 0, 4), want: true},
		"half of them":                  {nodes: mass(5, 0, 5)},
		"all of four":                   {nodes: mass(4, 0, 0)},
		"all of five":                   {nodes: mass(5, 0, 0), want: true},
		"changed by the user":           {nodes: mass(0, 10, 0)},
		"mostly changed by the user":    {nodes: mass(4, 6, 0)},
		"none of them":                  {nodes: mass(0, 0, 10)},
		"no nodes":                      {},
		"lower limits":                  {nodes: mass(2, 0, 1), breaker: Breaker{Count: 2, Share: 0.5}, want: true},
		"share that cannot be exceeded": {nodes: mass(10, 0, 0), breaker: Breaker{Share: 1}},
		"open, fewer nodes":             {nodes: mass(1, 0, 0), open: true, want: true},
		"open, more nodes":              {nodes: mass(1, 0, 20), open: true, want: true},
		"open, change reverted":         {nodes: mass(0, 0, 6), open: true},
		"open, user changed the class":  {nodes: mass(0, 6, 0), open: true},
	} {
		hold, got := FindMassDrift(c.nodes, "state", c.breaker, c.open)
		if got != c.want {
			t.Errorf("%s: FindMassDrift returns %t, want %t: %+v", name, got, c.want, hold)
		}
		slices.Reverse(c.nodes)
		if again, _ := FindMassDrift(c.nodes, "state", c.breaker, c.open); again != hold {
			t.Errorf("%s: the order of the nodes matters: %+v, then %+v", name, hold, again)
		}
		if got && (!strings.Contains(hold.Message, "it lacks sg-9") || hold.Token == "") {
			t.Errorf("%s: %+v has no example or no token", name, hold)
		}
	}
	a, _ := FindMassDrift(mass(10, 0, 0), "one", Breaker{}, false)
	b, _ := FindMassDrift(mass(10, 0, 0), "two", Breaker{}, false)
	c, _ := FindMassDrift(mass(8, 0, 0), "one", Breaker{}, false)
	if a.Token == b.Token || a.Token != c.Token {
		t.Errorf("tokens %s, %s and %s: want another token for another state, and the same for fewer nodes", a.Token, b.Token, c.Token)
	}
}

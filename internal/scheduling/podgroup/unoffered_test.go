package podgroup_test

import (
	"fmt"
	"testing"

	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/model/resources"
	"github.com/joiner-sh/joiner/internal/scheduling/podgroup"
)

// TestUnoffered checks the dimensions of resources that no node and no instance type has: many such resources share one
// dimension, and a few have one each.
func TestUnoffered(t *testing.T) {
	t.Parallel()
	offered := func() map[string]bool { return map[string]bool{"gpu": true} }
	snapshot := func(n int) cluster.Snapshot {
		var s cluster.Snapshot
		addPod := func(names ...string) {
			p := cluster.Pod{Namespace: "a", Name: fmt.Sprint("p", len(s.Pods)), Requests: resources.Amounts{CPU: 1, Pods: 1}}
			for _, name := range names {
				p.Requests = p.Requests.With(name, 2)
			}
			s.Pods = append(s.Pods, p)
		}
		for i := range n {
			addPod(fmt.Sprint("own", i))
		}
		addPod("gpu")
		addPod("node", "own0")
		s.Nodes = []cluster.Node{{Name: "n", Allocatable: resources.Amounts{}.With("node", 1)}}
		return s
	}
	few := podgroup.NewFor(snapshot(3), offered)
	if got, want := fmt.Sprint(few.Dims), "[cpu pods gpu node own0 own1 own2]"; got != want {
		t.Errorf("the dimensions are %s, want %s", got, want)
	}
	many := podgroup.NewFor(snapshot(500), offered)
	if got, want := fmt.Sprint(many.Dims), "[cpu pods gpu node unoffered]"; got != want {
		t.Errorf("the dimensions are %s, want %s", got, want)
	}
	for _, c := range many.Classes {
		name := many.FirstUnoffered(c.Amounts)
		// Dimension 4 is unoffered.
		if got := c.Ask[4] == 1; got != (c.Amounts.Of("gpu") == 0) || got != (name != "") {
			t.Errorf("amounts %v have the vector %v and the first unoffered resource %q, want one unoffered resource unless they include gpu", c.Amounts, c.Ask, name)
		}
	}
}

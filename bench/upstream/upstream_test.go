package upstream

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/joiner-sh/joiner/bench/workload"
	"github.com/joiner-sh/joiner/internal/kube/conversion"
	"github.com/joiner-sh/joiner/internal/kube/snapshot"
	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/model/requirements"
	"github.com/joiner-sh/joiner/internal/scheduling/packing"
	"github.com/joiner-sh/joiner/internal/scheduling/packing/verify"
)

// build returns the workload with at most the given number of its pending pods.
func build(t *testing.T, name string, pods int) workload.Case {
	t.Helper()
	for _, w := range workload.All("") {
		if w.Name != name {
			continue
		}
		c, err := w.Build()
		if err != nil {
			t.Fatal(err)
		}
		var kept []*corev1.Pod
		c.Pending = 0
		for _, p := range c.Objects.Pods {
			if p.Spec.NodeName != "" || c.Pending < pods {
				kept = append(kept, p)
			}
			if p.Spec.NodeName == "" && c.Pending < pods {
				c.Pending++
			}
		}
		c.Objects.Pods = kept
		return c
	}
	t.Fatalf("workload %s does not exist", name)
	return workload.Case{}
}

// TestSameTypes: upstream gets exactly the input of Joiner's solver: labels, resources, offerings, prices.
func TestSameTypes(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"plain-10000", "thousand", "own-1000"} {
		for _, offered := range build(t, name, 1).Market {
			theirs := instanceTypes(offered)
			if len(theirs) != len(offered.Types) {
				t.Fatalf("%s: %d types, want %d", name, len(theirs), len(offered.Types))
			}
			for i, ours := range offered.Types {
				if got := conversion.Amounts(theirs[i].Allocatable()); !got.Equal(ours.Allocatable) {
					t.Fatalf("allocatable resources of %s: %+v, want %+v", ours.Name, got, ours.Allocatable)
				}
				labels := requirements.Labels{}
				for key, r := range theirs[i].Requirements {
					if _, ok := ours.Labels[key]; ok && r.Len() == 1 { // the other labels are those of offerings
						labels[key] = r.Any()
					}
				}
				if diff := cmp.Diff(ours.Labels, labels); diff != "" {
					t.Fatalf("labels of %s (-want +got):\n%s", ours.Name, diff)
				}
				var offerings []catalog.Offering
				for _, o := range theirs[i].Offerings {
					offerings = append(offerings, catalog.Offering{
						Zone: o.Zone(), ZoneID: o.Requirements.Get(catalog.LabelZoneID).Any(), CapacityType: o.CapacityType(),
						Price: priceOf(o.Price), Available: o.Available,
					})
				}
				want := ours.WithOfferings(ours.Offerings).Offerings // a copy
				for k := range want {
					if want[k].ZoneID == "" {
						want[k].ZoneID = offerings[k].ZoneID // without a requirement, upstream returns an arbitrary value
					}
				}
				if diff := cmp.Diff(want, offerings); diff != "" {
					t.Fatalf("offerings of %s (-want +got):\n%s", ours.Name, diff)
				}
			}
		}
	}
}

// TestPlanIsValid plans three workloads with upstream: a plain one, one with DaemonSets, and one with existing nodes,
// DaemonSets, two NodePools, taints and constraints. The checker must accept the plans: a wrong conversion would break
// a rule.
func TestPlanIsValid(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"thousand", "daemonsets", "everything"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := build(t, name, 150)
			before := toJSON(t, c.Objects)
			plan := solve(t, c, 1)
			placed := len(plan.Placements)
			for _, m := range plan.PlannedNodes {
				placed += len(m.Pods)
			}
			if placed != c.Pending || len(plan.Refusals) > 0 || plan.Pods != c.Pending {
				t.Errorf("%d of %d pods placed, %d refused; want all placed", placed, c.Pending, len(plan.Refusals))
			}
			for _, violation := range verify.Check(c.Objects.Snapshot(c.View()), c.Market, plan) {
				t.Error(violation)
			}
			if toJSON(t, c.Objects) != before {
				t.Error("upstream changed the objects, want no change")
			}
		})
	}
}

// TestExistingNodes: upstream places pods on existing nodes, and launches nodes if the existing ones are full.
func TestExistingNodes(t *testing.T) {
	t.Parallel()
	c := build(t, "onto-1000-plain", 50)
	plan := solve(t, c, 5)
	if len(plan.Placements) != 50 || len(plan.PlannedNodes) > 0 {
		t.Errorf("%d pods on existing nodes and %d new nodes, want all 50 pods on existing nodes", len(plan.Placements), len(plan.PlannedNodes))
	}
	c = build(t, "existing-250", 150)
	if plan := solve(t, c, 1); len(plan.PlannedNodes) == 0 {
		t.Errorf("the plan for %d pods has no new node, want some: the existing nodes are full", c.Pending)
	}
}

func TestStopped(t *testing.T) {
	t.Parallel()
	c := build(t, "plain", 5000)
	run := prepare(t, c, 1)
	if _, err := run.Solve(time.Millisecond); !errors.Is(err, ErrStopped) {
		t.Errorf("Solve with a limit of 1 ms returns %v, want %v", err, ErrStopped)
	}
}

func solve(t *testing.T, c workload.Case, workers int) packing.Plan {
	t.Helper()
	results, err := prepare(t, c, workers).Solve(time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	plan, err := results.Plan()
	if err != nil {
		t.Fatal(err)
	}
	return plan
}

func prepare(t *testing.T, c workload.Case, workers int) *Run {
	t.Helper()
	loaded, err := Load(c.Objects, c.Market)
	if err != nil {
		t.Fatal(err)
	}
	run, err := loaded.Prepare(workers)
	if err != nil {
		t.Fatal(err)
	}
	return run
}

func toJSON(t *testing.T, o snapshot.Objects) string {
	t.Helper()
	data, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

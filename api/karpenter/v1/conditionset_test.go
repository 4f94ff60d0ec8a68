package v1

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var (
	creation    = time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)
	minuteLater = creation.Add(time.Minute)
	hourLater   = creation.Add(time.Hour)
)

// claim returns a NodeClaim of generation 1 whose conditions are not reconciled yet.
func claim() *NodeClaim {
	c := &NodeClaim{ObjectMeta: metav1.ObjectMeta{Generation: 1, CreationTimestamp: metav1.NewTime(creation)}}
	c.StatusConditions().Start(minuteLater)
	return c
}

// rows returns a line for each condition: type, status, reason, message, generation, time since creation.
func rows(c *NodeClaim) []string {
	var out []string
	for _, cond := range c.Status.Conditions {
		fields := []string{
			cond.Type, string(cond.Status), cond.Reason, cond.Message,
			string(rune('0' + cond.ObservedGeneration)), cond.LastTransitionTime.Sub(creation).String(),
		}
		out = append(out, strings.Join(fields, " | "))
	}
	return out
}

func TestConditionSet(t *testing.T) {
	t.Parallel()
	const unknown = " | Unknown | AwaitingReconciliation | not reconciled yet | 1 | 0s"
	tests := map[string]struct {
		edit func(*NodeClaim)
		want []string
	}{
		"conditions of a new object are Unknown since its creation": {
			edit: func(*NodeClaim) {},
			want: []string{
				"Launched" + unknown, "Registered" + unknown, "Initialized" + unknown,
				"Ready | Unknown | ReconcilingDependents | Launched=Unknown, Registered=Unknown, Initialized=Unknown | 1 | 0s",
			},
		},
		"one True dependent keeps Ready Unknown": {
			edit: func(c *NodeClaim) { c.StatusConditions().SetTrue(minuteLater, ConditionLaunched) },
			want: []string{
				"Launched | True | Launched |  | 1 | 1m0s", "Registered" + unknown, "Initialized" + unknown,
				"Ready | Unknown | ReconcilingDependents | Registered=Unknown, Initialized=Unknown | 1 | 0s",
			},
		},
		"one False dependent makes Ready False": {
			edit: func(c *NodeClaim) {
				c.StatusConditions().SetFalse(minuteLater, ConditionRegistered, ReasonMultipleNodesFound, "two")
			},
			want: []string{
				"Launched" + unknown, "Registered | False | MultipleNodesFound | two | 1 | 1m0s", "Initialized" + unknown,
				"Ready | False | UnhealthyDependents | Launched=Unknown, Registered=False, Initialized=Unknown | 1 | 1m0s",
			},
		},
		"all dependents True make Ready True": {
			edit: func(c *NodeClaim) {
				for _, t := range []string{ConditionInitialized, ConditionRegistered, ConditionLaunched} {
					c.StatusConditions().SetTrue(minuteLater, t)
				}
			},
			want: []string{
				"Launched | True | Launched |  | 1 | 1m0s", "Registered | True | Registered |  | 1 | 1m0s",
				"Initialized | True | Initialized |  | 1 | 1m0s", "Ready | True | Ready |  | 1 | 1m0s",
			},
		},
		"conditions of an older generation make Ready Unknown": {
			edit: func(c *NodeClaim) {
				c.StatusConditions().SetTrue(minuteLater, ConditionLaunched)
				c.StatusConditions().SetFalse(minuteLater, ConditionRegistered, "Broken", "")
				c.Generation = 2
				c.StatusConditions().SetTrue(hourLater, ConditionInitialized)
			},
			want: []string{
				"Launched | True | Launched |  | 1 | 1m0s", "Registered | False | Broken |  | 1 | 1m0s",
				"Initialized | True | Initialized |  | 2 | 1h0m0s",
				"Ready | Unknown | ReconcilingDependents | Launched=True, Registered=False | 2 | 1h0m0s",
			},
		},
		"a new reason keeps the transition time": {
			edit: func(c *NodeClaim) {
				c.StatusConditions().SetUnknown(hourLater, ConditionLaunched, ReasonLaunchFailed, "no capacity")
			},
			want: []string{
				"Launched | Unknown | LaunchFailed | no capacity | 1 | 0s", "Registered" + unknown, "Initialized" + unknown,
				"Ready | Unknown | ReconcilingDependents | Launched=Unknown, Registered=Unknown, Initialized=Unknown | 1 | 0s",
			},
		},
		"other conditions are sorted by type before Ready; their transition time is that of the write": {
			edit: func(c *NodeClaim) {
				c.StatusConditions().SetTrue(minuteLater, ConditionDrifted)
				c.StatusConditions().SetUnknown(hourLater, ConditionDrained, ReasonDraining, "")
			},
			want: []string{
				"Launched" + unknown, "Registered" + unknown, "Initialized" + unknown,
				"Drained | Unknown | Draining |  | 1 | 1h0m0s", "Drifted | True | Drifted |  | 1 | 1m0s",
				"Ready | Unknown | ReconcilingDependents | Launched=Unknown, Registered=Unknown, Initialized=Unknown | 1 | 0s",
			},
		},
		"deletion updates the generation of all conditions": {
			edit: func(c *NodeClaim) {
				c.StatusConditions().SetTrue(minuteLater, ConditionLaunched)
				c.StatusConditions().SetTrue(minuteLater, ConditionRegistered)
				c.StatusConditions().SetTrue(minuteLater, ConditionInitialized)
				c.Generation = 2
				c.DeletionTimestamp = new(metav1.NewTime(hourLater))
				c.StatusConditions().SetTrue(hourLater, ConditionInstanceTerminating)
			},
			want: []string{
				"Launched | True | Launched |  | 2 | 1m0s", "Registered | True | Registered |  | 2 | 1m0s",
				"Initialized | True | Initialized |  | 2 | 1m0s",
				"InstanceTerminating | True | InstanceTerminating |  | 2 | 1h0m0s", "Ready | True | Ready |  | 2 | 1m0s",
			},
		},
		"dependents and Ready cannot be removed": {
			edit: func(c *NodeClaim) {
				c.StatusConditions().SetTrue(minuteLater, ConditionDrifted)
				for _, t := range []string{ConditionDrifted, ConditionLaunched, ConditionReady} {
					c.StatusConditions().Remove(t)
				}
			},
			want: []string{
				"Launched" + unknown, "Registered" + unknown, "Initialized" + unknown,
				"Ready | Unknown | ReconcilingDependents | Launched=Unknown, Registered=Unknown, Initialized=Unknown | 1 | 0s",
			},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := claim()
			test.edit(c)
			if diff := cmp.Diff(test.want, rows(c)); diff != "" {
				t.Errorf("conditions (-want +got):\n%s", diff)
			}
		})
	}
}

// TestConditionSetWithoutChange checks that a write with the same values returns false and leaves the object unchanged.
func TestConditionSetWithoutChange(t *testing.T) {
	t.Parallel()
	c := claim()
	if !c.StatusConditions().SetTrue(minuteLater, ConditionLaunched) {
		t.Error("the first SetTrue returned false, want true")
	}
	before := c.DeepCopy()
	if c.StatusConditions().SetTrue(hourLater, ConditionLaunched) || c.StatusConditions().Start(hourLater) {
		t.Error("repeating SetTrue or Start returned true, want false")
	}
	if diff := cmp.Diff(before, c); diff != "" {
		t.Errorf("the object changed:\n%s", diff)
	}
}

// TestConditionSetKeepsShallowCopies checks that writes do not change a shallow copy of the object, which callers use
// to compute patches.
func TestConditionSetKeepsShallowCopies(t *testing.T) {
	t.Parallel()
	c := claim()
	shallow := *c
	want := c.DeepCopy()
	c.StatusConditions().SetTrue(minuteLater, ConditionRegistered)
	c.StatusConditions().SetTrue(minuteLater, ConditionDrifted)
	c.StatusConditions().Remove(ConditionDrifted)
	if diff := cmp.Diff(want, &shallow); diff != "" {
		t.Errorf("the copy changed:\n%s", diff)
	}
}

func TestConditionSetIsTrueAndIsReady(t *testing.T) {
	t.Parallel()
	c := claim()
	s := c.StatusConditions()
	s.SetTrue(minuteLater, ConditionLaunched)
	s.SetTrue(minuteLater, ConditionRegistered)
	if !s.IsTrue(ConditionLaunched, ConditionRegistered) || s.IsTrue(ConditionLaunched, ConditionInitialized) {
		t.Error("IsTrue: want true for two True conditions, and false if one is Unknown")
	}
	if s.IsTrue(ConditionDrifted) {
		t.Error("IsTrue: want false for an absent condition")
	}
	s.SetTrue(minuteLater, ConditionInitialized)
	if !s.IsReady() {
		t.Error("IsReady: want true when all dependents are True")
	}
	c.Generation = 2
	if s.IsReady() {
		t.Error("IsReady: want false for a generation without observed conditions")
	}
}

func TestConditionSetCutsMessages(t *testing.T) {
	t.Parallel()
	c := claim()
	c.StatusConditions().SetFalse(minuteLater, ConditionLaunched, ReasonLaunchFailed, strings.Repeat("ü", 40000)) // 2 bytes each
	got, _ := c.StatusConditions().Find(ConditionLaunched)
	if n := utf8.RuneCountInString(got.Message); n != 32768 {
		t.Errorf("message of %d characters, want the 32768 that the CRDs allow", n)
	}
}

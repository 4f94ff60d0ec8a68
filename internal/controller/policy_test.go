package controller

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/controller/nodepool"
	"github.com/joiner-sh/joiner/internal/controller/nodestate"
	"github.com/joiner-sh/joiner/internal/disruption"
)

var policyTime = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// policyPool returns testPool with consolidateAfter of a minute, the annotations and the budgets.
func policyPool(annotations map[string]string, budgets ...karpv1.Budget) *karpv1.NodePool {
	pool := testPool()
	pool.Annotations = annotations
	pool.Spec.Template.Spec.ExpireAfter = karpv1.After(720 * time.Hour)
	pool.Spec.Disruption = karpv1.Disruption{ConsolidateAfter: karpv1.After(time.Minute), Budgets: budgets}
	return pool
}

func TestPolicyIsRead(t *testing.T) {
	t.Parallel()
	got := nodestate.PolicyOf(policyPool(map[string]string{
		"example.com/other": "anything", karpv1.AnnotationMinimumSaving: "$0.05", karpv1.AnnotationMinimumLifetime: "90m",
		karpv1.AnnotationMaximumMoves: "4", karpv1.AnnotationDrift: "observe",
		karpv1.AnnotationDriftIgnore: "tags, amiSelectorTerms,tags", karpv1.AnnotationDriftCanary: "2", karpv1.AnnotationDriftWave: "5%",
		karpv1.AnnotationPaused: "2026-03-01T13:00:00Z",
	}, karpv1.Budget{Nodes: "10%", Reasons: []karpv1.DisruptionReason{karpv1.DisruptionDrifted}}), policyTime)
	want := disruption.Policy{
		After: ptr.To(time.Minute), Method: disruption.WhenEmptyOrUnderutilized, MinSaving: 50_000_000, // $0.05
		MinLifetime:  90 * time.Minute,
		MovesPerHour: 4, ObserveDrift: true, IgnoreDrift: []string{"amiSelectorTerms", "tags"}, Canary: 2, Wave: "5%",
		Budgets: []disruption.Budget{{Nodes: "10%", Reasons: []disruption.Reason{disruption.Drifted}}},
		Paused:  "annotation joiner.sh/paused of the NodePool", PausedUntil: policyTime.Add(time.Hour),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("policy (-want +got):\n%s", diff)
	}
	if p := nodestate.PolicyOf(policyPool(map[string]string{karpv1.AnnotationMinimumSaving: "12.5%"}),
		policyTime); p.MinSavingShare != 0.125 || len(p.Problems) > 0 {
		t.Errorf("12.5%% is read as %v, %v, want 0.125 and no problem", p.MinSavingShare, p.Problems)
	}
	for value, want := range map[string]bool{
		"true": true, "": true, "tomorrow": true, "2026-03-01T12:00:01Z": true,
		"false": false, "2026-03-01T11:59:59Z": false,
	} {
		if p := nodestate.PolicyOf(policyPool(map[string]string{karpv1.AnnotationPaused: value}), policyTime); (p.Paused != "") != want {
			t.Errorf("paused %q: paused by %q, want paused: %t", value, p.Paused, want)
		}
	}
}

// TestInvalidPolicies: an invalid setting is reported, and no node is disrupted for a reason that the setting concerns.
func TestInvalidPolicies(t *testing.T) {
	t.Parallel()
	scheduled := func(nodes, schedule string, lasts time.Duration) []karpv1.Budget {
		return []karpv1.Budget{{Nodes: "100%"}, {Nodes: nodes, Schedule: ptr.To(schedule), Duration: &karpv1.Duration{Duration: lasts}}}
	}
	annotation := func(key, value string) map[string]string { return map[string]string{key: value} }
	const drifted, empty, under = "Drifted", "Empty", "Underutilized"
	for name, c := range map[string]struct {
		annotations map[string]string
		budgets     []karpv1.Budget
		want        string   // in the condition
		wantHeld    []string // reasons for which no node may be disrupted
	}{
		"a budget of 200%": {budgets: []karpv1.Budget{{Nodes: "200%"}},
			want: `spec.disruption.budgets[0].nodes: "200%" is more than 100%`, wantHeld: []string{drifted, empty, under}},
		"a budget below 0": {budgets: []karpv1.Budget{{Nodes: "-1"}}, want: `"-1" is below 0`, wantHeld: []string{drifted, empty, under}},
		"a budget of words": {budgets: []karpv1.Budget{{Nodes: "some", Reasons: []karpv1.DisruptionReason{"Empty"}}},
			want: "neither a number", wantHeld: []string{empty}},
		"an invalid schedule": {budgets: scheduled("0", "every day", time.Hour),
			want: `budgets[1].schedule: schedule "every day": it has 2 columns`, wantHeld: []string{drifted, empty, under}},
		"a schedule on 31 February": {budgets: scheduled("0", "0 0 31 2 *", time.Hour), want: "no such date",
			wantHeld: []string{drifted, empty, under}},
		"a schedule without duration": {budgets: []karpv1.Budget{{Nodes: "1", Schedule: ptr.To("@daily")}}, want: "needs a duration",
			wantHeld: []string{drifted, empty, under}},
		"a duration without schedule": {budgets: []karpv1.Budget{{Nodes: "1", Duration: &karpv1.Duration{Duration: time.Hour}}},
			want: "needs a schedule", wantHeld: []string{drifted, empty, under}},
		"a duration below 0": {budgets: scheduled("0", "@daily", -time.Hour), want: "not above 0", wantHeld: []string{drifted, empty, under}},
		"a saving of abc": {annotations: annotation(karpv1.AnnotationMinimumSaving, "abc"),
			want: karpv1.AnnotationMinimumSaving + `: "abc" is not an amount`, wantHeld: []string{under}},
		"a saving of 101%": {annotations: annotation(karpv1.AnnotationMinimumSaving, "101%"), want: "is not a percentage",
			wantHeld: []string{under}},
		"a saving of NaN%": {annotations: annotation(karpv1.AnnotationMinimumSaving, "NaN%"), want: "is not a percentage",
			wantHeld: []string{under}},
		"a saving below 0": {annotations: annotation(karpv1.AnnotationMinimumSaving, "$-1"), want: "is not an amount", wantHeld: []string{under}},
		"a lifetime in days": {annotations: annotation(karpv1.AnnotationMinimumLifetime, "1d"), want: "is not a duration",
			wantHeld: []string{drifted, under}},
		"a lifetime longer than expireAfter": {annotations: annotation(karpv1.AnnotationMinimumLifetime, "721h"),
			want:     "all nodes expire before that age",
			wantHeld: []string{drifted, under}},
		"no moves allowed": {annotations: annotation(karpv1.AnnotationMaximumMoves, "0"), want: "above 0", wantHeld: []string{drifted, under}},
		"an unknown drift mode": {annotations: annotation(karpv1.AnnotationDrift, "off"), want: "is not observe or replace",
			wantHeld: []string{drifted}},
		"an unknown field to ignore": {annotations: annotation(karpv1.AnnotationDriftIgnore, "tags,amiSelector"),
			want: `"amiSelector" (did you mean amiSelectorTerms?) is not a field`, wantHeld: []string{drifted}},
		"a canary of -1": {annotations: annotation(karpv1.AnnotationDriftCanary, "-1"), want: "above 0", wantHeld: []string{drifted}},
		"waves of 0%":    {annotations: annotation(karpv1.AnnotationDriftWave, "0%"), want: "would replace no node", wantHeld: []string{drifted}},
		"waves above budgets": {annotations: annotation(karpv1.AnnotationDriftWave, "20%"),
			budgets: []karpv1.Budget{{Nodes: "10%"}}, want: "20% is more than spec.disruption.budgets[0] allows, 10%", wantHeld: []string{drifted}},
		"canaries above budgets": {annotations: annotation(karpv1.AnnotationDriftCanary, "3"), budgets: []karpv1.Budget{{Nodes: "2"}},
			want: "3 is more than spec.disruption.budgets[0] allows, 2", wantHeld: []string{drifted}},
		"a misspelled annotation": {annotations: annotation("joiner.sh/minimum-savings", "10%"),
			want: "joiner.sh/minimum-savings: there is no such annotation (did you mean joiner.sh/minimum-saving?)", wantHeld: []string{under}},
		"a misspelled pause": {annotations: annotation("joiner.sh/pausd", "true"), want: "did you mean joiner.sh/paused?",
			wantHeld: []string{drifted, empty, under}},
		"an unknown annotation":         {annotations: annotation("joiner.sh/favourite-colour", "blue"), want: "there is no such annotation"},
		"a pause until an invalid time": {annotations: annotation(karpv1.AnnotationPaused, "tomorrow"), want: "the pause has no end"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := nodestate.PolicyOf(policyPool(c.annotations, c.budgets...), policyTime)
			if got := nodestate.PolicyProblem(p); !strings.Contains(got, c.want) {
				t.Errorf("the setting is reported as %q, want %q in it", got, c.want)
			}
			var held []string
			for _, r := range []disruption.Reason{disruption.Drifted, disruption.Empty, disruption.Underutilized} {
				if _, ok := p.Forbidden(r); ok {
					held = append(held, string(r))
				}
			}
			if !slices.Equal(held, c.wantHeld) {
				t.Errorf("the setting forbids the reasons %v, want %v", held, c.wantHeld)
			}
			for _, r := range c.wantHeld {
				if room := p.Room(disruption.Reason(r), 10, 0, policyTime); len(c.budgets) > 0 && c.annotations == nil && room.Nodes != 0 {
					t.Errorf("with an invalid budget, the room for nodes that are %s is %+v, want none", r, room)
				}
			}
		})
	}
}

// TestExpireAfterTooShort: an expireAfter so short that instances expire before they can join is reported, and blocks
// nothing.
func TestExpireAfterTooShort(t *testing.T) {
	t.Parallel()
	for expireAfter, want := range map[time.Duration]string{
		0:                        "spec.template.spec.expireAfter: 0s is shorter than",
		2 * time.Second:          "again and again",
		nodestate.MinExpireAfter: "",
	} {
		pool := policyPool(nil)
		pool.Spec.Template.Spec.ExpireAfter = karpv1.After(expireAfter)
		p := nodestate.PolicyOf(pool, policyTime)
		if got := nodestate.PolicyProblem(p); !strings.Contains(got, want) || want == "" && got != "" {
			t.Errorf("an expireAfter of %s is reported as %q, want %q in it", expireAfter, got, want)
		}
		if _, held := p.Forbidden(disruption.Empty); held {
			t.Errorf("an expireAfter of %s blocks the removal of empty nodes", expireAfter)
		}
	}
}

func TestConditionsOfPolicies(t *testing.T) {
	t.Parallel()
	pool := policyPool(map[string]string{karpv1.AnnotationMaximumMoves: "x", karpv1.AnnotationPaused: "2026-03-01T13:00:00+01:00"})
	input := nodepool.PoolInput{Policy: nodestate.PolicyOf(pool, policyTime.Add(-time.Hour))}
	input.Write(pool, policyTime)
	c, _ := pool.StatusConditions().Find(karpv1.ConditionDisruptionPolicyValid)
	if c.Status != metav1.ConditionFalse || c.Reason != karpv1.ReasonDisruptionPolicyInvalid ||
		!strings.Contains(c.Message, "no drifted or underutilized node is disrupted") {
		t.Errorf("invalid settings are reported as %+v", c)
	}
	c, _ = pool.StatusConditions().Find(karpv1.ConditionDisruptionPaused)
	if want := "annotation joiner.sh/paused of the NodePool, until 2026-03-01T12:00:00Z"; !strings.Contains(c.Message, want) {
		t.Errorf("the pause is reported as %+v, want %q in it", c, want)
	}
	if c, _ := pool.StatusConditions().Find(karpv1.ConditionValidationSucceeded); c.Status != metav1.ConditionTrue {
		t.Errorf("an invalid policy invalidates the pool: %+v", c)
	}
	pool.Annotations = nil
	input.Policy = nodestate.PolicyOf(pool, policyTime)
	input.Write(pool, policyTime)
	for _, name := range []string{karpv1.ConditionDisruptionPolicyValid, karpv1.ConditionDisruptionPaused} {
		if c, ok := pool.StatusConditions().Find(name); ok {
			t.Errorf("without the setting, the condition is still there: %+v", c)
		}
	}
}

func TestStaticPoolsAreNotConsolidated(t *testing.T) {
	t.Parallel()
	pool := policyPool(nil)
	pool.Spec.Replicas = ptr.To[int64](3)
	if p := nodestate.PolicyOf(pool, policyTime); !p.Static || p.After != nil {
		t.Errorf("a static pool has Static false, or may be consolidated: %+v", p)
	}
}

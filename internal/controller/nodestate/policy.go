package nodestate

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/disruption"
	"github.com/joiner-sh/joiner/internal/disruption/cron"
)

// PolicyOf returns the disruption policy of a pool at now, from spec.disruption and the pool's annotations. Invalid
// settings become problems of the policy, and block the disruption that they concern.
func PolicyOf(pool *karpv1.NodePool, now time.Time) disruption.Policy {
	d := pool.Spec.Disruption
	out := disruption.Policy{
		After: d.ConsolidateAfter.Duration, Method: disruption.Method(d.ConsolidationPolicy), Static: pool.Spec.Replicas != nil,
	}
	if out.Static {
		out.After = nil // consolidation does not apply to static pools
	}
	for i, b := range d.Budgets {
		budget, problems := budgetOf(fmt.Sprintf("spec.disruption.budgets[%d]", i), b)
		out.Budgets = append(out.Budgets, budget)
		out.Problems = append(out.Problems, problems...)
	}
	switch out.Method {
	case "":
		out.Method = disruption.WhenEmptyOrUnderutilized
	case disruption.WhenEmpty, disruption.WhenEmptyOrUnderutilized, disruption.Balanced:
	default:
		out.Problems = append(out.Problems, disruption.Problem{
			Field:   "spec.disruption.consolidationPolicy",
			Reasons: []disruption.Reason{disruption.Empty, disruption.Underutilized},
			Text: fmt.Sprintf("%q is none of %s, %s, %s", out.Method, disruption.WhenEmpty,
				disruption.WhenEmptyOrUnderutilized, disruption.Balanced),
		})
	}
	if out.After != nil && *out.After < 0 {
		out.Problems = append(out.Problems, disruption.Problem{
			Field: "spec.disruption.consolidateAfter", Reasons: []disruption.Reason{disruption.Empty, disruption.Underutilized},
			Text: out.After.String() + " is below 0",
		})
	}
	readAnnotations(pool.Annotations, now, &out)
	out.Problems = append(out.Problems, contradictions(pool, out)...)
	slices.SortStableFunc(out.Problems, func(a, b disruption.Problem) int { return strings.Compare(a.Field, b.Field) })
	return out
}

// budgetOf parses a budget. An invalid budget allows no disruption.
func budgetOf(field string, b karpv1.Budget) (disruption.Budget, []disruption.Problem) {
	out := disruption.Budget{Nodes: b.Nodes}
	var problems []disruption.Problem
	for _, r := range b.Reasons {
		out.Reasons = append(out.Reasons, disruption.Reason(r))
		if !slices.Contains(voluntaryReasons(), disruption.Reason(r)) {
			problems = append(problems, disruption.Problem{
				Field: field + ".reasons", Reasons: voluntaryReasons(), Text: fmt.Sprintf("%q is none of Underutilized, Empty, Drifted", r),
			})
		}
	}
	invalid := func(part, text string) {
		out.Unreadable = text
		reasons := out.Reasons
		if len(reasons) == 0 {
			reasons = voluntaryReasons()
		}
		problems = append(problems, disruption.Problem{Field: field + part, Text: text + "; the budget allows no disruption", Reasons: reasons})
	}
	if _, _, err := disruption.ParseNodes(b.Nodes); err != nil {
		invalid(".nodes", err.Error())
	}
	switch {
	case b.Schedule == nil && b.Duration == nil: // the budget always applies
	case b.Schedule == nil:
		invalid(".duration", "a duration needs a schedule")
	case b.Duration == nil:
		invalid(".schedule", "a schedule needs a duration")
	case b.Duration.Duration <= 0:
		invalid(".duration", b.Duration.Duration.String()+" is not above 0")
	default:
		parsed, err := cron.Parse(*b.Schedule)
		if err != nil {
			invalid(".schedule", err.Error())
			break
		}
		out.Schedule, out.Open, out.Line = &parsed, b.Duration.Duration, *b.Schedule
	}
	return out, problems
}

func voluntaryReasons() []disruption.Reason {
	return []disruption.Reason{disruption.Drifted, disruption.Empty, disruption.Underutilized}
}

// MinExpireAfter is the shortest useful expireAfter. With a shorter value, instances that need minutes to join would
// expire before they join, and be replaced without end.
const MinExpireAfter = 5 * time.Minute

// lifetimeProblems returns the problems of an expireAfter that is shorter than p.MinLifetime, or than the time that
// instances need to join.
func lifetimeProblems(expireAfter karpv1.NillableDuration, p disruption.Policy) (out []disruption.Problem) {
	lifetime := expireAfter.Duration
	if lifetime != nil && p.MinLifetime > *lifetime {
		out = append(out, disruption.Problem{
			Field: karpv1.AnnotationMinimumLifetime, Reasons: []disruption.Reason{disruption.Drifted, disruption.Underutilized},
			Text: fmt.Sprintf("%s is longer than expireAfter, %s: all nodes expire before that age", p.MinLifetime, *lifetime),
		})
	}
	if lifetime != nil && *lifetime < MinExpireAfter {
		out = append(out, disruption.Problem{
			Field: "spec.template.spec.expireAfter",
			Text:  fmt.Sprintf("%s is shorter than the time that some instances need to join: they would expire before they join, and be replaced again and again", *lifetime),
		})
	}
	return out
}

// contradictions returns the problems of settings that cannot be met together, and of an expireAfter that is too short.
func contradictions(pool *karpv1.NodePool, p disruption.Policy) []disruption.Problem {
	out := lifetimeProblems(pool.Spec.Template.Spec.ExpireAfter, p)
	wave, isWaveShare, waveErr := disruption.ParseNodes(p.Wave)
	for i, b := range p.Budgets {
		limitsDrift := len(b.Reasons) == 0 || slices.Contains(b.Reasons, disruption.Drifted)
		if b.Unreadable != "" || b.Schedule != nil || !limitsDrift { // outside its schedule, a budget limits nothing
			continue
		}
		allowed, isShare, nodesErr := disruption.ParseNodes(b.Nodes)
		if nodesErr != nil || allowed == 0 { // 0 blocks drift on purpose: nothing contradicts it
			continue
		}
		problem := disruption.Problem{Reasons: []disruption.Reason{disruption.Drifted}}
		if p.Wave != "" && waveErr == nil && isWaveShare == isShare && wave > allowed {
			problem.Field = karpv1.AnnotationDriftWave
			problem.Text = fmt.Sprintf("%s is more than spec.disruption.budgets[%d] allows, %s", p.Wave, i, b.Nodes)
			out = append(out, problem)
		}
		if !isShare && p.Canary > allowed {
			problem.Field = karpv1.AnnotationDriftCanary
			problem.Text = fmt.Sprintf("%d is more than spec.disruption.budgets[%d] allows, %s", p.Canary, i, b.Nodes)
			out = append(out, problem)
		}
	}
	return out
}

// WritePolicy sets or removes the pool's conditions about an invalid disruption policy and about a pause.
func WritePolicy(c karpv1.ConditionSet, p disruption.Policy, now time.Time) {
	if text := PolicyProblem(p); text != "" {
		c.SetFalse(now, karpv1.ConditionDisruptionPolicyValid, karpv1.ReasonDisruptionPolicyInvalid, text)
	} else {
		c.Remove(karpv1.ConditionDisruptionPolicyValid)
	}
	if p.Paused == "" {
		c.Remove(karpv1.ConditionDisruptionPaused)
		return
	}
	text := "voluntary disruption is paused: " + p.Paused
	if !p.PausedUntil.IsZero() {
		text += ", until " + p.PausedUntil.UTC().Format(time.RFC3339)
	}
	c.Set(now, metav1.Condition{
		Type: karpv1.ConditionDisruptionPaused, Status: metav1.ConditionTrue, Reason: karpv1.ConditionDisruptionPaused, Message: text,
	})
}

// PolicyProblem returns the problems of a pool's policy as a condition message; empty if there are none.
func PolicyProblem(p disruption.Policy) string {
	var texts []string
	for _, problem := range p.Problems {
		text := problem.String()
		if blocked := blockedText(problem.Reasons); blocked != "" {
			text += " (until it is fixed, " + blocked + ")"
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, "; ")
}

// blockedText returns which disruption is blocked, as part of a message; empty if none is blocked.
func blockedText(reasons []disruption.Reason) string {
	var kinds []string
	for _, r := range reasons {
		switch r {
		case disruption.Drifted:
			kinds = append(kinds, "drifted")
		case disruption.Empty:
			kinds = append(kinds, "empty")
		case disruption.Underutilized:
			kinds = append(kinds, "underutilized")
		case disruption.Expired:
		}
	}
	if len(kinds) == 0 {
		return ""
	}
	return "no " + strings.Join(kinds, " or ") + " node is disrupted"
}

package deploy

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/joiner-sh/joiner/internal/aws/interruption"
)

// pattern is the event pattern of an EventBridge rule.
type pattern struct {
	Source     []string            `json:"source"`
	DetailType []string            `json:"detail-type"`
	Detail     map[string][]string `json:"detail"`
}

func asPattern(t *testing.T, v any) pattern {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var out pattern
	if err := json.Unmarshal(text, &out); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return out
}

// rulesOfStack returns the event patterns of a stack by rule, and checks that each rule sends to the queue.
func rulesOfStack(t *testing.T, s *Stack) map[string]pattern {
	t.Helper()
	out := map[string]pattern{}
	for name, r := range s.Resources {
		if r.Type == "AWS::Events::Rule" {
			out[name] = asPattern(t, r.Properties["EventPattern"])
			if targets, _ := json.Marshal(r.Properties["Targets"]); !strings.Contains(string(targets), "arn:aws:sqs:us-east-1:"+account+":Queue") {
				t.Errorf("rule %s sends to %s, want the queue", name, targets)
			}
		}
	}
	return out
}

// rulesOfPlan returns the event patterns of a plan by rule, and checks that each rule sends to the queue.
func rulesOfPlan(t *testing.T, p *Plan) map[string]pattern {
	t.Helper()
	out := map[string]pattern{}
	for address := range p.Resources {
		if key, ok := strings.CutPrefix(address, "aws_cloudwatch_event_rule.this["); ok {
			out[key] = asPattern(t, p.properties(t, address)["event_pattern"])
			target := p.properties(t, "aws_cloudwatch_event_target.this["+key)
			if target["arn"] != p.properties(t, "aws_sqs_queue.this[0]")["arn"] || target["rule"] != p.properties(t, address)["name"] {
				t.Errorf("rule %s sends to %v, want the queue", key, target)
			}
		}
	}
	return out
}

func (p pattern) matches(e interruption.Event, detail map[string]string) bool {
	if !slices.Contains(p.Source, e.Source) || !slices.Contains(p.DetailType, e.DetailType) {
		return false
	}
	for key, values := range p.Detail {
		if !slices.Contains(values, detail[key]) {
			return false
		}
	}
	return true
}

// TestRules checks that each event that package interruption processes matches exactly one rule, and that the rules
// match no other event.
func TestRules(t *testing.T) {
	t.Parallel()
	for name, rules := range map[string]map[string]pattern{
		"Terraform": rulesOfPlan(t, planJoiner(t, nil)), "CloudFormation": rulesOfStack(t, joinerStack(t, nil)),
	} {
		var unprocessed []interruption.Event // all events of the rules; the second loop removes the processed ones
		for _, p := range rules {
			for _, source := range p.Source {
				for _, detailType := range p.DetailType {
					unprocessed = append(unprocessed, interruption.Event{Source: source, DetailType: detailType})
				}
			}
		}
		for _, e := range interruption.Events() {
			for _, detail := range details() {
				matches := 0
				for _, p := range rules {
					if p.matches(e, detail) {
						matches++
					}
				}
				want := 0
				if isProcessed(t, e, detail) {
					want = 1
				}
				if matches != want {
					t.Errorf("%s: %d rules match %+v with %v, want %d", name, matches, e, detail, want)
					break
				}
			}
			unprocessed = slices.DeleteFunc(unprocessed, func(other interruption.Event) bool { return other == e })
		}
		if len(unprocessed) > 0 {
			t.Errorf("%s: the rules send events that package interruption does not process: %v", name, unprocessed)
		}
		// Spot interruption, rebalance recommendation, state change, AWS Health, reservation, capacity block.
		if len(rules) != 6 {
			t.Errorf("%s has %d rules, want 6: %v", name, len(rules), rules)
		}
	}
}

// details returns the combinations of the fields of events that a pattern can test: the state of an instance, and the
// service and the category of an AWS Health event.
func details() []map[string]string {
	var out []map[string]string
	for _, state := range []string{"pending", "running", "stopping", "stopped", "shutting-down", "terminated"} {
		for _, service := range []string{"EC2", "RDS"} {
			for _, category := range []string{"scheduledChange", "issue", "accountNotification", "investigation"} {
				out = append(out, map[string]string{"state": state, "service": service, "eventTypeCategory": category})
			}
		}
	}
	return out
}

// isProcessed reports whether package interruption acts on an event.
func isProcessed(t *testing.T, e interruption.Event, detail map[string]string) bool {
	t.Helper()
	const id = "i-0123456789abcdef0"
	fields := map[string]any{"instance-id": id, "capacity-reservation-id": "cr-0123456789abcdef0",
		"affectedEntities": []map[string]string{{"entityValue": id}}}
	for k, v := range detail {
		fields[k] = v
	}
	text, err := json.Marshal(fields)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := interruption.Parse(
		fmt.Sprintf(`{"version": "0", "source": %q, "detail-type": %q, "detail": %s}`, e.Source, e.DetailType, text))
	if err != nil {
		t.Fatal(err)
	}
	return parsed.Kind != interruption.NoOp
}

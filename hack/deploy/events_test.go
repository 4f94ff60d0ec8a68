package deploy

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/joiner-sh/joiner/internal/aws/interruption"
)

// pattern is the event pattern of a rule.
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

func rulesOfStack(t *testing.T, s *Stack) map[string]pattern {
	t.Helper()
	out := map[string]pattern{}
	for name, r := range s.Resources {
		if r.Type == "AWS::Events::Rule" {
			out[name] = asPattern(t, r.Properties["EventPattern"])
			if targets, _ := json.Marshal(r.Properties["Targets"]); !strings.Contains(string(targets), "arn:aws:sqs:us-east-1:"+account+":Queue") {
				t.Errorf("rule %s sends to %s", name, targets)
			}
		}
	}
	return out
}

func rulesOfPlan(t *testing.T, p *Plan) map[string]pattern {
	t.Helper()
	out := map[string]pattern{}
	for address := range p.Resources {
		if key, ok := strings.CutPrefix(address, "aws_cloudwatch_event_rule.this["); ok {
			out[key] = asPattern(t, p.properties(t, address)["event_pattern"])
			target := p.properties(t, "aws_cloudwatch_event_target.this["+key)
			if target["arn"] != p.properties(t, "aws_sqs_queue.this[0]")["arn"] || target["rule"] != p.properties(t, address)["name"] {
				t.Errorf("rule %s sends to %v", key, target)
			}
		}
	}
	return out
}

// sent reports whether a rule sends an event to the queue.
func (p pattern) sent(e interruption.Event, detail map[string]string) bool {
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

// TestRules checks that exactly one rule sends each event that package interruption processes to the queue, and no rule
// sends other events.
func TestRules(t *testing.T) {
	t.Parallel()
	for name, rules := range map[string]map[string]pattern{
		"Terraform": rulesOfPlan(t, planned(t, nil)), "CloudFormation": rulesOfStack(t, stacked(t, nil)),
	} {
		var known []interruption.Event
		for _, p := range rules {
			for _, source := range p.Source {
				for _, kind := range p.DetailType {
					known = append(known, interruption.Event{Source: source, DetailType: kind})
				}
			}
		}
		for _, e := range interruption.Events() {
			for _, detail := range details() {
				times := 0
				for _, p := range rules {
					if p.sent(e, detail) {
						times++
					}
				}
				want := 0
				if isProcessed(t, e, detail) {
					want = 1
				}
				if times != want {
					t.Errorf("%s: %+v with %v is sent %d times, want %d", name, e, detail, times, want)
					break
				}
			}
			known = slices.DeleteFunc(known, func(k interruption.Event) bool { return k == e })
		}
		if len(known) > 0 {
			t.Errorf("%s: the rules send events that package interruption does not process: %v", name, known)
		}
		if len(rules) != 6 {
			t.Errorf("%s has %d rules: %v", name, len(rules), rules)
		}
	}
}

// details returns the varying fields of events: states of instances, services and categories of Health.
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

// isProcessed reports whether package interruption processes an event.
func isProcessed(t *testing.T, e interruption.Event, detail map[string]string) bool {
	t.Helper()
	const id = "i-0123456789abcdef0"
	whole := map[string]any{"instance-id": id, "capacity-reservation-id": "cr-0123456789abcdef0",
		"affectedEntities": []map[string]string{{"entityValue": id}}}
	for k, v := range detail {
		whole[k] = v
	}
	text, err := json.Marshal(whole)
	if err != nil {
		t.Fatal(err)
	}
	n, err := interruption.Parse(fmt.Sprintf(`{"version": "0", "source": %q, "detail-type": %q, "detail": %s}`, e.Source, e.DetailType, text))
	if err != nil {
		t.Fatal(err)
	}
	return n.Kind != interruption.NoOp
}

package interruption_test

import (
	"slices"
	"testing"

	"github.com/joiner-sh/joiner/internal/aws/interruption"
)

// TestEvents: what Events lists is understood, each kind of notice has an event, and nothing besides is understood.
func TestEvents(t *testing.T) {
	t.Parallel()
	const detail = `{"instance-id":"` + one + `","state":"stopped","capacity-reservation-id":"cr-0123456789abcdef0","service":"EC2",
"eventTypeCategory":"scheduledChange","affectedEntities":[{"entityValue":"` + one + `"}]}`
	events := interruption.Events()
	seen := map[interruption.Kind]bool{
		interruption.NoOp: true, interruption.InstanceTerminated: true, // which is a state-change too
		interruption.InstanceImpaired: true, interruption.SystemImpaired: true, interruption.EventScheduled: true, // which EC2 is asked for
	}
	for _, e := range events {
		n, err := interruption.Parse(envelope(e.Source, e.DetailType, detail))
		if err != nil || n.Kind == interruption.NoOp {
			t.Errorf("%+v: %+v, %v", e, n, err)
		}
		seen[n.Kind] = true
	}
	for _, k := range interruption.Kinds() {
		if !seen[k] {
			t.Errorf("no event makes a notice of kind %s", k)
		}
	}
	if !slices.Equal(events, interruption.Events()) || len(events) != 7 {
		t.Errorf("events are not the same each time, or not seven: %v", events)
	}
	if n, err := interruption.Parse(envelope("aws.ec2", "AWS Health Event", detail)); err != nil || !n.Unknown() {
		t.Errorf("an event of another source is understood: %+v, %v", n, err)
	}
}

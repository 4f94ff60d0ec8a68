package interruption_test

import (
	"slices"
	"testing"

	"github.com/joiner-sh/joiner/internal/aws/interruption"
)

// TestEvents: Parse understands exactly the events that Events returns, and every kind of message has an event.
func TestEvents(t *testing.T) {
	t.Parallel()
	const detail = `{"instance-id":"` + firstID + `","state":"stopped","capacity-reservation-id":"cr-0123456789abcdef0","service":"EC2",
"eventTypeCategory":"scheduledChange","affectedEntities":[{"entityValue":"` + firstID + `"}]}`
	events := interruption.Events()
	seen := map[interruption.Kind]bool{
		// NoOp needs no event. InstanceTerminated has the event of InstanceStopped, with another state than detail.
		interruption.NoOp: true, interruption.InstanceTerminated: true,
		// No message has these kinds.
		interruption.InstanceImpaired: true, interruption.SystemImpaired: true, interruption.EventScheduled: true,
	}
	for _, e := range events {
		n, err := interruption.Parse(envelope(e.Source, e.DetailType, detail))
		if err != nil || n.Kind == interruption.NoOp {
			t.Errorf("%+v: %+v, %v; want a kind other than NoOp", e, n, err)
		}
		seen[n.Kind] = true
	}
	for _, k := range interruption.Kinds() {
		if !seen[k] {
			t.Errorf("no event results in kind %s", k)
		}
	}
	if !slices.Equal(events, interruption.Events()) || len(events) != 7 {
		t.Errorf("Events is not deterministic, or does not return seven events: %v", events)
	}
	// The source of this event is wrong: it should be aws.health.
	if n, err := interruption.Parse(envelope("aws.ec2", "AWS Health Event", detail)); err != nil || !n.IsUnknown() {
		t.Errorf("an event from another source is accepted: %+v, %v", n, err)
	}
}

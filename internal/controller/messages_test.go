package controller

import (
	"strings"
	"testing"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/controller/nodestate"
	"github.com/joiner-sh/joiner/internal/emulator"
)

// TestMessagesFromElsewhere: a message with another account, region or capacity type than that of the NodeClaim has no
// effect. It is dropped, counted and logged.
func TestMessagesFromElsewhere(t *testing.T) {
	t.Parallel()
	kinds := map[string]func(id string) string{
		"spot":             func(id string) string { return instanceMessage(id, "EC2 Spot Instance Interruption Warning") },
		"rebalance":        func(id string) string { return instanceMessage(id, "EC2 Instance Rebalance Recommendation") },
		"scheduled change": func(id string) string { return healthMessage(id, "") },
		"reservation": func(id string) string {
			return instanceMessage(id, "EC2 Capacity Reservation Instance Interruption Warning")
		},
		"state": func(id string) string { return instanceMessage(id, stateChange, `,"state":"terminated"`) },
	}
	change := func(old, with string) func(string) string {
		return func(body string) string { return strings.ReplaceAll(body, old, with) }
	}
	for name, c := range map[string]struct {
		change func(body string) string
		cause  string // for which the message is dropped
	}{
		"another account":       {change(emulator.DefaultAccount, "999988887777"), "other_account"},
		"no account":            {change(`"account":"`+emulator.DefaultAccount+`",`, ""), "other_account"},
		"another region":        {change(testRegion, "eu-west-1"), "other_region"},
		"no region":             {change(`"region":"`+testRegion+`",`, ""), "other_region"},
		"another capacity type": {change("", ""), "capacity_type"}, // unchanged: the claim has another type
		"an affected account":   {change(`"service":"EC2"`, `"service":"EC2","affectedAccount":"999988887777"`), "other_account"},
		"an affected region":    {change(`"service":"EC2"`, `"service":"EC2","eventRegion":"eu-west-1"`), "other_region"},
	} {
		for kind, body := range kinds {
			needsHealth := strings.HasPrefix(name, "an ")               // only AWS Health sends these fields
			hasAnyType := kind == "state" || kind == "scheduled change" // concerns instances of any capacity type
			if needsHealth && kind != "scheduled change" || hasAnyType && c.cause == "capacity_type" {
				continue
			}
			t.Run(name+", "+kind, func(t *testing.T) {
				t.Parallel()
				r := newSpotRig(t, "t3.medium")
				id, claim := r.instances()[0].ID, r.claims(t)[0]
				claim.Labels[karpv1.LabelCapacityType] = karpv1.CapacityTypeSpot
				if c.cause == "capacity_type" {
					claim.Labels[karpv1.LabelCapacityType] = karpv1.CapacityTypeOnDemand
				}
				r.check(t, r.api.Update(t.Context(), &claim))
				r.send(t, c.change(body(id)))
				r.processQueue(t)
				for range 3 {
					r.drainPass(t)
					r.plan(t)
				}
				got := r.claim(t, claim.Name)
				if got.DeletionTimestamp != nil || got.Annotations[nodestate.AnnotationInterrupted] != "" || len(r.claims(t)) != 1 {
					t.Errorf("the claim is marked %q and there are %d claims, want no mark and 1", got.Annotations[nodestate.AnnotationInterrupted], len(r.claims(t)))
				}
				if n := metricCount(t, r.Interruption.Metrics.Dropped, c.cause); n != 1 || !strings.Contains(r.log.String(), `"cause":"`+c.cause+`"`) {
					t.Errorf("%d messages are counted as dropped for %s, want 1, and a log line\n%s", n, c.cause, r.log)
				}
				if event := r.events.find("SpotInterrupted"); event != "" || len(r.Market.Shortages.List(r.now())) != 0 || r.queueLength(t) != 0 {
					t.Errorf("event %q, %d messages are left; want neither, and no recorded shortage", event, r.queueLength(t))
				}
			})
		}
	}
}

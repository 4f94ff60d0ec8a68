package interruption_test

import (
	"errors"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/joiner-sh/joiner/internal/aws/interruption"
)

const (
	firstID  = "i-0123456789abcdef0"
	secondID = "i-0123456789abcdef1"
)

// envelope returns an EventBridge event with the detail.
func envelope(source, detailType, detail string) string {
	return `{"version":"0","id":"12345678-1234-1234-1234-123456789012","detail-type":"` + detailType + `","source":"` + source + `",
"account":"111122223333","time":"2026-03-01T12:00:00Z","region":"us-east-1","resources":["arn:aws:ec2:us-east-1:111122223333:instance/` + firstID + `"],
"detail":` + detail + `}`
}

// state returns an event about the instance firstID, whose new state is s.
func state(s string) string {
	return envelope("aws.ec2", "EC2 Instance State-change Notification", `{"instance-id":"`+firstID+`","state":"`+s+`"}`)
}

// health returns an event of AWS Health. more is appended to its details, as further JSON fields.
func health(service, category, more string) string {
	return envelope("aws.health", "AWS Health Event", `{"eventArn":"arn:aws:health:us-east-1::event/EC2/AWS_EC2_INSTANCE_RETIREMENT_SCHEDULED/x",
"service":"`+service+`","eventTypeCode":"AWS_EC2_INSTANCE_RETIREMENT_SCHEDULED","eventTypeCategory":"`+category+`"`+more+`}`)
}

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func TestParse(t *testing.T) {
	t.Parallel()
	about := func(kind interruption.Kind, ids ...string) interruption.ParsedMessage {
		return interruption.ParsedMessage{Kind: kind, Instances: ids, At: noon}
	}
	ended := func(kind interruption.Kind, s string) interruption.ParsedMessage {
		n := about(kind, firstID)
		n.State = s
		return n
	}
	entities := `,"affectedEntities":[{"entityValue":"` + firstID + `"},{"entityValue":"vol-0123456789abcdef0"},
{"entityValue":"arn:aws:ec2:us-east-1:111122223333:instance/` + secondID + `"},{"entityValue":"` + firstID + `"}]`
	change := about(interruption.ScheduledChange, firstID, secondID)
	change.Ends = time.Date(2026, 3, 20, 6, 2, 51, 0, time.UTC)
	block := about(interruption.BlockExpiring)
	block.Reservation = "cr-0123456789abcdef0"
	for name, c := range map[string]struct {
		body string
		want interruption.ParsedMessage
	}{
		"spot": {envelope("aws.ec2", "EC2 Spot Instance Interruption Warning",
			`{"instance-id":"`+firstID+`","instance-action":"terminate"}`), about(interruption.SpotInterrupted, firstID)},
		"spot, old id": {envelope("aws.ec2", "EC2 Spot Instance Interruption Warning", `{"instance-id":"i-0123abcd"}`),
			about(interruption.SpotInterrupted, "i-0123abcd")},
		"rebalance": {envelope("aws.ec2", "EC2 Instance Rebalance Recommendation", `{"instance-id":"`+firstID+`"}`),
			about(interruption.RebalanceRecommended, firstID)},
		"reservation": {envelope("aws.ec2", "EC2 Capacity Reservation Instance Interruption Warning",
			`{"instance-id":"`+firstID+`"}`), about(interruption.ReservationInterrupted, firstID)},
		"reservation, name in user guide": {envelope("aws.ec2", "EC2 Interruptible Capacity Reservation Instance Interruption Warning",
			`{"instance-id":"`+firstID+`"}`), about(interruption.ReservationInterrupted, firstID)},
		"resources are text": {`{"version":"0","source":"aws.ec2","detail-type":"EC2 Spot Instance Interruption Warning","resources":"arn","time":"2026-03-01T12:00:00Z","detail":{"instance-id":"` + firstID + `"}}`, about(interruption.SpotInterrupted, firstID)},
		"block": {envelope("aws.ec2", "Capacity Block Reservation Expiration Warning",
			`{"capacity-reservation-id":"cr-0123456789abcdef0","end-date":"2026-03-01T12:40:00Z"}`), block},
		"stopping":      {state("stopping"), ended(interruption.InstanceStopped, "stopping")},
		"stopped":       {state("stopped"), ended(interruption.InstanceStopped, "stopped")},
		"shutting down": {state("shutting-down"), ended(interruption.InstanceTerminated, "shutting-down")},
		"terminated":    {state("terminated"), ended(interruption.InstanceTerminated, "terminated")},
		"pending":       {state("pending"), about(interruption.NoOp)},
		"running":       {state("running"), about(interruption.NoOp)},
		"unknown state": {state("dreaming"), about(interruption.NoOp)},
		"health": {health("EC2", "scheduledChange",
			`,"statusCode":"upcoming","endTime":"Fri, 20 Mar 2026 06:02:51 GMT"`+entities), change},
		"health, closed":    {health("EC2", "scheduledChange", `,"statusCode":"closed"`+entities), about(interruption.NoOp)},
		"health of RDS":     {health("RDS", "scheduledChange", entities), about(interruption.NoOp)},
		"health, no change": {health("EC2", "accountNotification", entities), about(interruption.NoOp)},
		"health, volume": {health("EC2", "scheduledChange", `,"affectedEntities":[{"entityValue":"vol-0123456789abcdef0"}]`),
			about(interruption.NoOp)},
		"health, no entities": {health("EC2", "scheduledChange", ``), about(interruption.NoOp)},
		"unknown": {envelope("aws.s3", "Object  Created\n", `{}`), interruption.ParsedMessage{
			Kind: interruption.NoOp, At: noon, Source: "aws.s3", DetailType: "Object Created"}},
		"another version": {strings.Replace(state("stopped"), `"version":"0"`, `"version":"1"`, 1), interruption.ParsedMessage{
			Kind: interruption.NoOp, At: noon, Source: "aws.ec2", DetailType: "EC2 Instance State-change Notification"}},
		"unreadable time": {`{"source":"aws.ec2","detail-type":"EC2 Instance State-change Notification","time":"soon","detail":{"instance-id":"` + firstID + `","state":"running"}}`,
			interruption.ParsedMessage{Kind: interruption.NoOp}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			body := strings.ReplaceAll(c.body, "Created\n", `Created\n`) // JSON escapes the line break
			got, err := interruption.Parse(body)
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(body, `"account"`) {
				c.want.Account, c.want.Region = "111122223333", "us-east-1"
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Errorf("message (-want +got):\n%s", d)
			}
			if got.IsUnknown() != (got.DetailType != "") {
				t.Errorf("IsUnknown is %t, but the detail type is %q", got.IsUnknown(), got.DetailType)
			}
		})
	}
}

// TestParseErrors: each message that cannot be read has a cause, and a detail of one short line.
func TestParseErrors(t *testing.T) {
	t.Parallel()
	spot := func(detail string) string {
		return envelope("aws.ec2", "EC2 Spot Instance Interruption Warning", detail)
	}
	for name, c := range map[string]struct {
		body string
		want interruption.Cause
	}{
		"empty":             {"", interruption.Unreadable},
		"text":              {"hello", interruption.Unreadable},
		"cut off":           {spot(`{"instance-id":"` + firstID + `"}`)[:150], interruption.Unreadable},
		"two documents":     {`{} {}`, interruption.Unreadable},
		"null":              {`null`, interruption.Unreadable},
		"list":              {`[]`, interruption.Unreadable},
		"empty object":      {`{}`, interruption.Unreadable},
		"deeply nested":     {strings.Repeat("[", 100_000), interruption.Unreadable},
		"number for source": {`{"source":1}`, interruption.Unreadable},
		"no detail": {`{"version":"0","source":"aws.ec2","detail-type":"EC2 Spot Instance Interruption Warning"}`,
			interruption.Unreadable},
		"detail is text": {spot(`"x"`), interruption.Unreadable},
		"detail is null": {spot(`null`), interruption.NoSubject},
		"no id":          {spot(`{}`), interruption.NoSubject},
		"id is a number": {spot(`{"instance-id":5}`), interruption.Unreadable},
		"id is a path":   {spot(`{"instance-id":"../../i-0123456789abcdef0"}`), interruption.NoSubject},
		"id is too long": {spot(`{"instance-id":"i-0123456789abcdef01"}`), interruption.NoSubject},
		"id of a volume": {spot(`{"instance-id":"vol-0123456789abcdef0"}`), interruption.NoSubject},
		"stopped, no id": {strings.Replace(state("stopped"), `"instance-id":"`+firstID+`"`, `"instance-id":"x"`, 1), interruption.NoSubject},
		"block without id": {envelope("aws.ec2", "Capacity Block Reservation Expiration Warning",
			`{"capacity-reservation-id":"`+firstID+`"}`), interruption.NoSubject},
		"entities are text": {health("EC2", "scheduledChange", `,"affectedEntities":"all"`), interruption.Unreadable},
		"too large": {spot(`{"instance-id":"` + firstID + `","x":"` + strings.Repeat("x", interruption.MaxSize) + `"}`),
			interruption.TooLarge},
	} {
		_, err := interruption.Parse(c.body)
		var e *interruption.ParseError
		if !errors.As(err, &e) || e.Cause != c.want || e.Detail == "" || strings.ContainsAny(e.Detail, "\n\r") || len(e.Detail) > 300 {
			t.Errorf("%s: %v, want cause %s and a detail of one line, at most 300 bytes", name, err, c.want)
		}
	}
}

// TestLargeMessage: a body of 190 kB is read. Instances that it repeats count once.
func TestLargeMessage(t *testing.T) {
	t.Parallel()
	entity := `{"entityValue":"` + firstID + `"},`
	body := health("EC2", "scheduledChange", `,"affectedEntities":[`+strings.Repeat(entity, 5000)+`{"entityValue":"`+secondID+`"}]`)
	got, err := interruption.Parse(body)
	if err != nil || len(got.Instances) != 2 {
		t.Errorf("%d bytes: %d instances, %v; want 2", len(body), len(got.Instances), err)
	}
}

// FuzzParse checks the properties of the result of Parse that the controller relies on.
func FuzzParse(f *testing.F) {
	f.Add(state("stopped"))
	f.Add(health("EC2", "scheduledChange", `,"affectedEntities":[{"entityValue":"`+firstID+`"}]`))
	f.Add(envelope("aws.ec2", "Capacity Block Reservation Expiration Warning", `{"capacity-reservation-id":"cr-0123456789abcdef0"}`))
	f.Add(envelope("aws.ec2", "EC2 Spot Instance Interruption Warning", `{"instance-id":"`+firstID+`"}`))
	f.Add(`{"source":"\ud800","detail-type":"x"}`)
	f.Fuzz(func(t *testing.T, body string) {
		n, err := interruption.Parse(body)
		again, errAgain := interruption.Parse(body)
		if (err == nil) != (errAgain == nil) || !cmp.Equal(n, again) {
			t.Fatal("Parse is not deterministic")
		}
		if err != nil {
			var e *interruption.ParseError
			if !errors.As(err, &e) || e.Cause == "" || strings.Contains(e.Detail, "\n") || !utf8.ValidString(e.Detail) {
				t.Fatalf("the error is %q, want a *ParseError with a cause and one line of detail", err)
			}
			return
		}
		isKnown := false
		for _, k := range interruption.Kinds() {
			isKnown = isKnown || k == n.Kind
		}
		wantsInstance := n.Kind != interruption.NoOp && n.Kind != interruption.BlockExpiring
		if !isKnown || wantsInstance != (len(n.Instances) > 0) || (n.Kind == interruption.BlockExpiring) != (n.Reservation != "") {
			t.Fatalf("%q: %+v has an unknown kind, or instances or a reservation that do not suit the kind", body, n)
		}
		for _, id := range n.Instances {
			if !strings.HasPrefix(id, "i-") || len(id) > len(firstID) || strings.ContainsAny(id, "/ \"\n") {
				t.Fatalf("%q is accepted as an instance ID", id)
			}
		}
		if n.IsUnknown() && (!utf8.ValidString(n.Source+n.DetailType) || strings.Contains(n.Source+n.DetailType, "\n")) {
			t.Fatalf("%q and %q are not fit for a log", n.Source, n.DetailType)
		}
	})
}

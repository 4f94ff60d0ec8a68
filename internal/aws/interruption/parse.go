package interruption

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// MaxSize is the maximum size of a message, in bytes. EventBridge delivers events of at most 256 KiB.
const MaxSize = 256 << 10

// event is the JSON form of EventBridge's events:
// https://docs.aws.amazon.com/eventbridge/latest/ref/overiew-event-structure.html.
type event struct {
	Version    string          `json:"version"`
	Source     string          `json:"source"`
	DetailType string          `json:"detail-type"`
	Account    string          `json:"account"` // 12 digits
	Region     string          `json:"region"`
	Time       string          `json:"time"` // RFC 3339
	Detail     json.RawMessage `json:"detail"`
}

// Parse parses the body of a message. The error is a *Broken. Parse validates everything, because anyone who can send
// to the queue may have written the body.
func Parse(body string) (Notice, error) {
	if len(body) > MaxSize {
		return Notice{}, broken(TooLarge, "%d bytes, more than %d", len(body), MaxSize)
	}
	var e event
	if err := json.Unmarshal([]byte(body), &e); err != nil {
		return Notice{}, broken(Unreadable, "%s", err)
	}
	n := Notice{Kind: NoOp, Account: short(e.Account), Region: short(e.Region)}
	if at, err := time.Parse(time.RFC3339, e.Time); err == nil {
		n.At = at.UTC()
	}
	parseDetail := parserOf(e)
	if parseDetail == nil {
		n.Source, n.DetailType = short(e.Source), short(e.DetailType)
		if n.Source == "" && n.DetailType == "" {
			return Notice{}, broken(Unreadable, "it has neither source nor detail-type")
		}
		return n, nil
	}
	if err := parseDetail(e.Detail, &n); err != nil {
		return Notice{}, err
	}
	return n, nil
}

// parserOf returns the parser of an event's details; nil for an unknown event or version. EventBridge has used only
// version 0, and the documentation of the events of capacity blocks omits the version.
func parserOf(e event) func(json.RawMessage, *Notice) error {
	if e.Version != "0" && e.Version != "" {
		return nil
	}
	return parsers()[Event{Source: e.Source, DetailType: e.DetailType}]
}

// Event identifies a kind of event, in EventBridge's terms.
type Event struct {
	Source     string // "aws.ec2"
	DetailType string // "EC2 Instance State-change Notification"
}

// Events returns the events that Parse understands, sorted. The rules of EventBridge must send these events to the
// queue, and need not send others.
func Events() []Event {
	return slices.SortedFunc(maps.Keys(parsers()), func(a, b Event) int {
		return cmp.Or(cmp.Compare(a.Source, b.Source), cmp.Compare(a.DetailType, b.DetailType))
	})
}

// parsers returns the parser of each event's details. A parser sets the fields of its second argument, whose Kind was
// NoOp.
func parsers() map[Event]func(json.RawMessage, *Notice) error {
	const ec2 = "aws.ec2"
	return map[Event]func(json.RawMessage, *Notice) error{
		{ec2, "EC2 Spot Instance Interruption Warning"}:                 instance(SpotInterrupted),
		{ec2, "EC2 Instance Rebalance Recommendation"}:                  instance(RebalanceRecommended),
		{ec2, "EC2 Capacity Reservation Instance Interruption Warning"}: instance(ReservationInterrupted),
		// The user guide documents this name for the event of the line above.
		{ec2, "EC2 Interruptible Capacity Reservation Instance Interruption Warning"}: instance(ReservationInterrupted),
		{ec2, "EC2 Instance State-change Notification"}:                               readState,
		{ec2, "Capacity Block Reservation Expiration Warning"}:                        readBlock,
		{"aws.health", "AWS Health Event"}:                                            readHealth,
	}
}

// ofInstance holds the details of an event about one instance.
type ofInstance struct {
	InstanceID string `json:"instance-id"`
	State      string `json:"state"`
}

// instance returns the parser of an event of the kind about one instance.
func instance(kind Kind) func(json.RawMessage, *Notice) error {
	return func(detail json.RawMessage, n *Notice) error {
		var d ofInstance
		if err := decode(detail, &d); err != nil {
			return err
		}
		if !isID("i-", d.InstanceID) {
			return broken(NoSubject, "%q is not an instance id", short(d.InstanceID))
		}
		n.Kind, n.Instances = kind, []string{d.InstanceID}
		return nil
	}
}

// readState parses a change of an instance's state. It leaves NoOp for an instance that starts.
func readState(detail json.RawMessage, n *Notice) error {
	var d ofInstance
	if err := decode(detail, &d); err != nil {
		return err
	}
	kind := map[string]Kind{
		"stopping": InstanceStopped, "stopped": InstanceStopped,
		"shutting-down": InstanceTerminated, "terminated": InstanceTerminated,
	}[d.State]
	if kind == "" {
		return nil // the instance is starting
	}
	n.State = d.State
	return instance(kind)(detail, n)
}

// readBlock parses the details of https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/capacity-blocks-monitor.html.
func readBlock(detail json.RawMessage, n *Notice) error {
	var d struct {
		ReservationID string `json:"capacity-reservation-id"`
	}
	if err := decode(detail, &d); err != nil {
		return err
	}
	if !isID("cr-", d.ReservationID) {
		return broken(NoSubject, "%q is not an id of a capacity reservation", short(d.ReservationID))
	}
	n.Kind, n.Reservation = BlockExpiring, d.ReservationID
	return nil
}

// readHealth parses the details of
// https://docs.aws.amazon.com/health/latest/ug/aws-health-events-eventbridge-schema.html. It leaves NoOp for all events
// but scheduled changes of instances that are not yet completed.
func readHealth(detail json.RawMessage, n *Notice) error {
	var d struct {
		Service  string `json:"service"`
		Category string `json:"eventTypeCategory"`
		Status   string `json:"statusCode"` // open, closed or upcoming
		// The event itself may have another account, if an organization collects its events in one account, and another
		// region, if it is a backup copy.
		Account  string `json:"affectedAccount"`
		Region   string `json:"eventRegion"`
		End      string `json:"endTime"` // RFC 1123
		Affected []struct {
			Value string `json:"entityValue"` // an instance's id or ARN, or the id of another resource
		} `json:"affectedEntities"`
	}
	if err := decode(detail, &d); err != nil {
		return err
	}
	if d.Service != "EC2" || d.Category != "scheduledChange" || d.Status == "closed" {
		return nil
	}
	seen := map[string]bool{}
	for _, a := range d.Affected {
		id := a.Value[strings.LastIndexByte(a.Value, '/')+1:]
		if isID("i-", id) && !seen[id] {
			seen[id] = true
			n.Instances = append(n.Instances, id)
		}
	}
	if len(n.Instances) == 0 {
		return nil // the event is about volumes or hosts
	}
	n.Kind = ScheduledChange
	n.Account, n.Region = cmp.Or(short(d.Account), n.Account), cmp.Or(short(d.Region), n.Region)
	if end, err := time.Parse(time.RFC1123, d.End); err == nil {
		n.Ends = end.UTC()
	}
	return nil
}

// decode unmarshals the details of an event.
func decode(detail json.RawMessage, into any) error {
	if len(detail) == 0 {
		return broken(Unreadable, "it has no detail")
	}
	if err := json.Unmarshal(detail, into); err != nil {
		return broken(Unreadable, "detail: %s", err)
	}
	return nil
}

// isID reports whether text has the form of an EC2 id: the prefix, and 8 or 17 hexadecimal digits.
func isID(prefix, text string) bool {
	digits, ok := strings.CutPrefix(text, prefix)
	return ok && slices.Contains([]int{8, 17}, len(digits)) && strings.Trim(digits, "0123456789abcdef") == ""
}

// broken returns a *Broken with the cause. Its detail is format with args.
func broken(cause Cause, format string, args ...any) error {
	return &Broken{Cause: cause, Detail: short(fmt.Sprintf(format, args...))}
}

// longest is the maximum length, in bytes, of a text from a message that is logged.
const longest = 200

// short returns the text on one line, cut off after longest bytes, for a log.
func short(text string) string {
	text = strings.ToValidUTF8(strings.Join(strings.Fields(text), " "), "�")
	if len(text) > longest {
		text = strings.ToValidUTF8(text[:longest], "") + "…"
	}
	return text
}

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

// MaxSize is the maximum size of a message, in bytes. It is also EventBridge's limit for events.
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

// Parse parses the body of a message. The error is a *ParseError. Parse validates everything, because any principal
// that can send to the queue may have written the body.
func Parse(body string) (ParsedMessage, error) {
	if len(body) > MaxSize {
		return ParsedMessage{}, parseError(TooLarge, "%d bytes, more than %d", len(body), MaxSize)
	}
	var e event
	if err := json.Unmarshal([]byte(body), &e); err != nil {
		return ParsedMessage{}, parseError(Unreadable, "%s", err)
	}
	m := ParsedMessage{Kind: NoOp, Account: oneLine(e.Account), Region: oneLine(e.Region)}
	if at, err := time.Parse(time.RFC3339, e.Time); err == nil {
		m.At = at.UTC()
	}
	parseDetail := parserOf(e)
	if parseDetail == nil {
		m.Source, m.DetailType = oneLine(e.Source), oneLine(e.DetailType)
		if m.Source == "" && m.DetailType == "" {
			return ParsedMessage{}, parseError(Unreadable, "it has neither source nor detail-type")
		}
		return m, nil
	}
	if err := parseDetail(e.Detail, &m); err != nil {
		return ParsedMessage{}, err
	}
	return m, nil
}

// parserOf returns the parser of an event's details; nil for an unknown event or version. It accepts version 0, the
// only version that EventBridge has used. It also accepts a missing version, because the documented events of capacity
// blocks have none.
func parserOf(e event) func(json.RawMessage, *ParsedMessage) error {
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
// queue, and need not send other events.
func Events() []Event {
	return slices.SortedFunc(maps.Keys(parsers()), func(a, b Event) int {
		return cmp.Or(cmp.Compare(a.Source, b.Source), cmp.Compare(a.DetailType, b.DetailType))
	})
}

// parsers returns the parser of each event's details. A parser sets fields of its second argument, whose Kind is NoOp
// before the call.
func parsers() map[Event]func(json.RawMessage, *ParsedMessage) error {
	const ec2 = "aws.ec2"
	return map[Event]func(json.RawMessage, *ParsedMessage) error{
		{ec2, "EC2 Spot Instance Interruption Warning"}:                 instanceParser(SpotInterrupted),
		{ec2, "EC2 Instance Rebalance Recommendation"}:                  instanceParser(RebalanceRecommended),
		{ec2, "EC2 Capacity Reservation Instance Interruption Warning"}: instanceParser(ReservationInterrupted),
		// The EC2 user guide has this name for the event of the line above.
		{ec2, "EC2 Interruptible Capacity Reservation Instance Interruption Warning"}: instanceParser(ReservationInterrupted),
		{ec2, "EC2 Instance State-change Notification"}:                               parseState,
		{ec2, "Capacity Block Reservation Expiration Warning"}:                        parseBlock,
		{"aws.health", "AWS Health Event"}:                                            parseHealth,
	}
}

type instanceDetail struct {
	InstanceID string `json:"instance-id"`
	State      string `json:"state"`
}

// instanceParser returns the parser of the events of this kind. Each of these events is about one instance.
func instanceParser(kind Kind) func(json.RawMessage, *ParsedMessage) error {
	return func(detail json.RawMessage, m *ParsedMessage) error {
		var d instanceDetail
		if err := decode(detail, &d); err != nil {
			return err
		}
		if !isID("i-", d.InstanceID) {
			return parseError(NoSubject, "%q is not an instance id", oneLine(d.InstanceID))
		}
		m.Kind, m.Instances = kind, []string{d.InstanceID}
		return nil
	}
}

// parseState parses a change of an instance's state. It does not change Kind for an instance that starts.
func parseState(detail json.RawMessage, m *ParsedMessage) error {
	var d instanceDetail
	if err := decode(detail, &d); err != nil {
		return err
	}
	kind := map[string]Kind{
		"stopping": InstanceStopped, "stopped": InstanceStopped,
		"shutting-down": InstanceTerminated, "terminated": InstanceTerminated,
	}[d.State]
	if kind == "" {
		return nil // the instance starts, or the state is unknown
	}
	m.State = d.State
	return instanceParser(kind)(detail, m)
}

// parseBlock parses the expiration warning of a capacity block, as documented at
// https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/capacity-blocks-monitor.html.
func parseBlock(detail json.RawMessage, m *ParsedMessage) error {
	var d struct {
		ReservationID string `json:"capacity-reservation-id"`
	}
	if err := decode(detail, &d); err != nil {
		return err
	}
	if !isID("cr-", d.ReservationID) {
		return parseError(NoSubject, "%q is not an id of a capacity reservation", oneLine(d.ReservationID))
	}
	m.Kind, m.Reservation = BlockExpiring, d.ReservationID
	return nil
}

// parseHealth parses an event of AWS Health, as documented at
// https://docs.aws.amazon.com/health/latest/ug/aws-health-events-eventbridge-schema.html. It changes Kind only for
// events about open or upcoming scheduled changes of instances.
func parseHealth(detail json.RawMessage, m *ParsedMessage) error {
	var d struct {
		Service  string `json:"service"`
		Category string `json:"eventTypeCategory"`
		Status   string `json:"statusCode"` // open, closed or upcoming
		// Account and Region may differ from those of the event: the account if an organization collects its events in
		// one account, the region if the event is a backup copy.
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
			m.Instances = append(m.Instances, id)
		}
	}
	if len(m.Instances) == 0 {
		return nil // the event is about volumes or hosts
	}
	m.Kind = ScheduledChange
	m.Account, m.Region = cmp.Or(oneLine(d.Account), m.Account), cmp.Or(oneLine(d.Region), m.Region)
	if end, err := time.Parse(time.RFC1123, d.End); err == nil {
		m.Ends = end.UTC()
	}
	return nil
}

func decode(detail json.RawMessage, into any) error {
	if len(detail) == 0 {
		return parseError(Unreadable, "it has no detail")
	}
	if err := json.Unmarshal(detail, into); err != nil {
		return parseError(Unreadable, "detail: %s", err)
	}
	return nil
}

// isID reports whether text has the form of an EC2 ID: the prefix, and 8 or 17 hexadecimal digits.
func isID(prefix, text string) bool {
	digits, ok := strings.CutPrefix(text, prefix)
	return ok && slices.Contains([]int{8, 17}, len(digits)) && strings.Trim(digits, "0123456789abcdef") == ""
}

func parseError(cause Cause, format string, args ...any) error {
	return &ParseError{Cause: cause, Detail: oneLine(fmt.Sprintf(format, args...))}
}

// maxTextBytes is the maximum length, in bytes, of a logged text from a message.
const maxTextBytes = 200

// oneLine returns the text on one line, cut off after maxTextBytes, for a log.
func oneLine(text string) string {
	text = strings.ToValidUTF8(strings.Join(strings.Fields(text), " "), "�")
	if len(text) > maxTextBytes {
		text = strings.ToValidUTF8(text[:maxTextBytes], "") + "…"
	}
	return text
}

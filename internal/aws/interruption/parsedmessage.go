package interruption

import "time"

// Kind is the kind of an interruption message. Its values are those in Karpenter's metrics.
type Kind string

// The kinds. A message is about one instance, with two exceptions: a ScheduledChange may be about several instances,
// and BlockExpiring is about a capacity reservation. No message has the kinds InstanceImpaired, SystemImpaired and
// EventScheduled: these kinds come from the instance status in EC2.
const (
	SpotInterrupted        Kind = "spot_interrupted"                 // the spot instance ends in two minutes
	RebalanceRecommended   Kind = "rebalance_recommendation"         // the spot instance has an elevated risk of interruption
	ScheduledChange        Kind = "scheduled_change"                 // AWS Health: the instances will be stopped, moved or retired
	InstanceStopped        Kind = "instance_stopped"                 // the instance has stopped or is about to
	InstanceTerminated     Kind = "instance_terminated"              // the instance has terminated or is about to
	ReservationInterrupted Kind = "capacity_reservation_interrupted" // the reservation's owner reclaims the instance in two minutes
	BlockExpiring          Kind = "capacity_block_expiring"          // EC2 begins to terminate the capacity block's instances in ten minutes
	InstanceImpaired       Kind = "instance_status"                  // EC2's status check of the instance fails
	SystemImpaired         Kind = "system_status"                    // EC2's status check of the instance's host fails
	EventScheduled         Kind = "event_status"                     // EC2 will reboot, stop or retire the instance
	NoOp                   Kind = "no_op"                            // no action required
)

// Kinds returns all kinds.
func Kinds() []Kind {
	return []Kind{
		SpotInterrupted, RebalanceRecommended, ScheduledChange, InstanceStopped, InstanceTerminated,
		ReservationInterrupted, BlockExpiring, InstanceImpaired, SystemImpaired, EventScheduled, NoOp,
	}
}

// IsEnd reports whether the instance is already stopping, stopped, terminating or terminated. It is then too late to
// plan replacements or to wait for evictions.
func (k Kind) IsEnd() bool { return k == InstanceStopped || k == InstanceTerminated }

// IsFailed reports whether the instance has failed, so its pods are deleted forcibly.
func (k Kind) IsFailed() bool { return k == InstanceImpaired || k == SystemImpaired }

// Suits reports whether a message of this kind can be about an instance of the capacity type. EC2 interrupts only spot
// instances, and the owner of a reservation interrupts only instances in the reservation. For an empty capacity type it
// returns true.
func (k Kind) Suits(capacityType string) bool {
	switch k {
	case SpotInterrupted, RebalanceRecommended:
		return capacityType == "spot" || capacityType == ""
	case ReservationInterrupted, BlockExpiring:
		return capacityType == "reserved" || capacityType == ""
	default:
	}
	return true
}

// Outranks reports whether a message of this kind is more severe than a message of the other kind. An empty kind is the
// least severe.
func (k Kind) Outranks(other Kind) bool {
	rank := func(k Kind) int {
		switch {
		case k == "":
			return 0
		case k.IsEnd():
			return 3
		case k.IsFailed():
			return 2
		}
		return 1
	}
	return rank(k) > rank(other)
}

// ParsedMessage is a parsed interruption message.
type ParsedMessage struct {
	Kind Kind // NoOp if no action is required
	// Instances are the IDs of the instances that the message is about, "i-0123…", in the order of the message, without
	// duplicates. It is empty only if Kind is BlockExpiring or NoOp.
	Instances []string
	// Reservation is the ID of the expiring capacity block, "cr-0123…"; empty unless Kind is BlockExpiring.
	Reservation string
	// State is the new state of the instance, in EC2's terms; empty unless Kind is InstanceStopped or
	// InstanceTerminated.
	State string
	// Account and Region are the origin of the event according to the message; empty if the message has none.
	Account, Region string
	// At is the time of the event; zero if the message has none.
	At time.Time
	// Ends is the end of a ScheduledChange; zero if the message has none.
	Ends time.Time
	// Source and DetailType identify an event that Parse does not understand. Both are empty for other events.
	Source, DetailType string
}

// IsUnknown reports whether Parse does not understand the message's event.
func (m ParsedMessage) IsUnknown() bool { return m.DetailType != "" || m.Source != "" }

// Cause is the reason why a message cannot be read.
type Cause string

// The causes.
const (
	TooLarge   Cause = "too_large"  // the message is longer than MaxSize
	Unreadable Cause = "unreadable" // the message is not JSON, or not of EventBridge's form
	NoSubject  Cause = "no_subject" // the message has a known kind, but no valid ID of an instance or reservation
)

// ParseError is the error of a message that cannot be read. The caller deletes the message, because a retry cannot
// succeed.
type ParseError struct {
	Cause  Cause  // label value of the metric
	Detail string // one line
}

// Error returns the cause and the detail.
func (e *ParseError) Error() string { return "read message: " + string(e.Cause) + ": " + e.Detail }

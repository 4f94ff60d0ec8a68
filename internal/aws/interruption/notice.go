package interruption

import "time"

// Kind is the kind of an interruption message, with the name that Karpenter's metrics use.
type Kind string

// The kinds. All but BlockExpiring and Health's are about one instance. InstanceImpaired, SystemImpaired and
// EventScheduled come in no message: they are read from EC2's status checks.
const (
	SpotInterrupted        Kind = "spot_interrupted"                 // the spot instance ends in two minutes
	RebalanceRecommended   Kind = "rebalance_recommendation"         // the spot instance is more likely than others to be interrupted
	ScheduledChange        Kind = "scheduled_change"                 // AWS Health: the instances will be stopped, moved or retired
	InstanceStopped        Kind = "instance_stopped"                 // or about to be
	InstanceTerminated     Kind = "instance_terminated"              // or about to be
	ReservationInterrupted Kind = "capacity_reservation_interrupted" // the reservation's owner takes the instance back in two minutes
	BlockExpiring          Kind = "capacity_block_expiring"          // the capacity block's instances end from ten minutes on
	InstanceImpaired       Kind = "instance_status"                  // EC2's status check of the instance fails
	SystemImpaired         Kind = "system_status"                    // that of its host does
	EventScheduled         Kind = "event_status"                     // EC2 will reboot, stop or retire the instance
	NoOp                   Kind = "no_op"                            // nothing that anybody has to act on
)

// Kinds are all of them.
func Kinds() []Kind {
	return []Kind{
		SpotInterrupted, RebalanceRecommended, ScheduledChange, InstanceStopped, InstanceTerminated,
		ReservationInterrupted, BlockExpiring, InstanceImpaired, SystemImpaired, EventScheduled, NoOp,
	}
}

// IsEnd reports whether the instance is already stopping or terminating, so waiting cannot help.
func (k Kind) IsEnd() bool { return k == InstanceStopped || k == InstanceTerminated }

// IsBroken reports whether the instance has failed, so its pods are deleted forcibly.
func (k Kind) IsBroken() bool { return k == InstanceImpaired || k == SystemImpaired }

// Suits reports whether a message of this kind can be about an instance of the capacity type: EC2 interrupts only spot instances, and
// the owner of a reservation only instances in it. An empty capacity type suits every kind.
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

// Outranks reports whether a message of this kind is more severe than one of the known kind. An empty kind means none.
func (k Kind) Outranks(known Kind) bool {
	rank := func(k Kind) int {
		switch {
		case k == "":
			return 0
		case k.IsEnd():
			return 3
		case k.IsBroken():
			return 2
		}
		return 1
	}
	return rank(k) > rank(known)
}

// Notice is a message that could be read.
type Notice struct {
	Kind Kind // kind of the event
	// Instances are the ids that it is about, "i-0123…", in the order of the message and none twice. There is at
	// least one, unless Kind is BlockExpiring or NoOp.
	Instances []string
	// Reservation is the id of the capacity block, "cr-0123…", of a BlockExpiring; else empty.
	Reservation string
	// State is the state that an instance went into, in EC2's words; empty for other kinds.
	State string
	// Account and Region are where the event is from, as the message says; empty if it does not.
	Account, Region string
	// At is when AWS noticed; zero if the message does not say.
	At time.Time
	// Ends is when a scheduled change is over; zero if the message does not say.
	Ends time.Time
	// Source and DetailType are EventBridge's, of a NoOp that is of no kind we know; else empty.
	Source, DetailType string
}

// Unknown reports whether the message is of a kind that we do not know at all.
func (n Notice) Unknown() bool { return n.DetailType != "" || n.Source != "" }

// Cause is why a message cannot be read.
type Cause string

// The causes.
const (
	TooLarge   Cause = "too_large"  // longer than EventBridge sends
	Unreadable Cause = "unreadable" // not JSON, or not of EventBridge's form
	NoSubject  Cause = "no_subject" // of a kind that we know, without an instance or reservation that could be one
)

// Broken is the error of a message that cannot be read. The message is deleted, because a retry cannot help.
type Broken struct {
	Cause  Cause  // label value of the metric
	Detail string // one line
}

// Error says what is wrong.
func (b *Broken) Error() string { return "read message: " + string(b.Cause) + ": " + b.Detail }

package world

import (
	"slices"
	"time"

	"github.com/joiner-sh/joiner/internal/emulator/world/identity"
	"github.com/joiner-sh/joiner/internal/emulator/world/network"
)

// The states of an instance, by EC2's names. Stopped instances are not emulated.
const (
	Pending      = "pending"
	Running      = "running"
	ShuttingDown = "shutting-down"
	Terminated   = "terminated"
)

// Instance is the state of an EC2 instance at one time. It is immutable: callers must not change its maps and slices.
type Instance struct {
	ID            string // "i-0…"
	ReservationID string // identifies the launch call; not a capacity reservation
	Account       string // 12 digits
	Region        string // "us-east-1"
	Zone          string // "us-east-1a"
	ZoneID        string // "use1-az1"
	SubnetID      string // subnet of the first network interface: "subnet-0…"
	VPCID         string // "vpc-0…"

	Type         string // "m5.large"
	Architecture string // architecture of the image: "x86_64" or "arm64"
	ImageID      string // "ami-0…"
	UserData     string // user data as the instance reads it: the text of the API, base64-decoded once

	PrivateIP      string // IPv4 address of the first network interface; empty if the instance is terminated
	PrivateDNSName string // "ip-10-0-0-12.ec2.internal"
	IPv6           string // first IPv6 address of the first network interface; empty: none
	PublicIP       string // public IPv4 address; empty: none

	ProfileARN string // ARN of the instance profile; empty: none
	RoleARN    string // ARN of the profile's role at launch; empty: none

	SecurityGroupIDs []string           // security groups of the first network interface; nil if the instance is terminated
	Interfaces       []NetworkInterface // the first one has card and device 0; nil if the instance is terminated
	Volumes          []Volume           // sorted by device; nil if the instance is terminated
	Tags             map[string]string  // never nil

	State       string    // Pending, Running, ShuttingDown or Terminated
	StateReason Reason    // why the instance ended; zero while it is pending or running
	LaunchedAt  time.Time // when the instance was launched
	ChangedAt   time.Time // when the state last changed

	Spot          bool   // the instance is a spot instance
	SpotRequestID string // "sir-…"; empty unless Spot
	FleetID       string // empty unless a fleet launched the instance
	ClientToken   string // idempotency token of the launch call; empty: none
	TemplateID    string // ID of the launch template; empty: none
	TemplateName  string // name of the launch template; empty: none

	// InstanceFailsSince and SystemFailsSince are the times since which the status checks of the instance and of its
	// host fail. Zero: the check passes.
	InstanceFailsSince, SystemFailsSince time.Time
	Scheduled                            []ScheduledEvent // scheduled events, including completed ones, oldest first

	// CapacityReservationID is the capacity reservation of the instance; empty: none. RequestedReservation has the
	// launch's parameters for capacity reservations. Market is MarketBlock or MarketInterruptible; empty: on demand or
	// spot.
	CapacityReservationID string
	RequestedReservation  ReservationOptions
	Market                string

	// PlacementGroupID and PlacementGroupName identify the placement group of the instance; empty: none. Partition
	// counts from 1; 0: the group has no partitions. Tenancy is TenancyDefault or TenancyDedicated.
	PlacementGroupID   string
	PlacementGroupName string
	Partition          int
	Tenancy            string

	Metadata MetadataOptions // metadata options, with EC2's defaults for options that the launch did not set
}

// Instances has the instances of a region, from their launch until Timing.Forget after their end.
type Instances struct {
	region *Region
	byID   map[string]*history
	order  []string // ids in the order of launch
}

// Reason is EC2's reason for the state of an instance.
type Reason struct {
	Code    string // "Client.UserInitiatedShutdown"; empty: no reason
	Message string // begins with the code
}

// NetworkInterface is a network interface of an instance.
type NetworkInterface struct {
	ID               string            // "eni-0…"
	SubnetID         string            // "subnet-0…"
	PrivateIP        string            // first IPv4 address; empty: none
	PrivateDNSName   string            // DNS name of PrivateIP; empty: none
	IPv6             []string          // addresses
	PrimaryIPv6      bool              // the first IPv6 address is the primary one, which cannot change
	Prefixes         []string          // "10.0.32.16/28", "2600:…/80"
	SecurityGroupIDs []string          // the security groups at launch
	Card, Device     int64             // index of the network card, and of the device on it; both count from 0
	Kind             string            // "interface", "efa" or "efa-only"
	Tags             map[string]string // nil: none
}

// Volume is an EBS volume of an instance.
type Volume struct {
	ID                  string            // "vol-0…"
	Device              string            // "/dev/xvda"
	SizeGiB             int64             // in GiB
	Kind                string            // "gp3"
	Encrypted           bool              // encrypted with a KMS key
	DeleteOnTermination bool              // deleted when its instance is terminated
	Tags                map[string]string // nil: none
}

// history is an instance with its earlier versions, for reads that are eventually consistent.
type history struct {
	region  *Region
	current Instance
	past    []version // older versions that a read may still return, oldest first
	console []byte
	subnet  *network.Subnet   // of the first network interface
	stock   *OfferedType      // the instance type
	session *identity.Session // credentials that its metadata service returns; nil until the first request

	skipsUserData bool // see World.SkipsUserData
}

type version struct {
	until    time.Time // when the state was replaced
	instance Instance
}

// change replaces the instance by a changed copy. A change of state is recorded for World.Changes, and announced as an
// event.
func (h *history) change(now time.Time, alter func(*Instance)) {
	before := h.current
	next := before
	alter(&next)
	if next.State != before.State {
		next.ChangedAt = now
	}
	h.remember(now, before)
	h.current = next
	if next.State != before.State {
		h.region.world().changes = append(h.region.world().changes, next)
		h.region.announceState(now, next)
	}
}

// remember adds the replaced state, before, to the past versions, and drops the versions that no read can still return.
func (h *history) remember(now time.Time, before Instance) {
	lag := h.region.world().Faults.ReadLag
	if lag <= 0 {
		h.past = nil
		return
	}
	h.past = slices.DeleteFunc(h.past, func(v version) bool { return !v.until.After(now.Add(-lag)) })
	h.past = append(h.past, version{until: now, instance: before})
}

// visibleAt returns the state that a read at the time now shows: the state at now-lag; false if the instance did not
// exist then.
func (h *history) visibleAt(now time.Time, lag time.Duration) (Instance, bool) {
	if lag <= 0 {
		return h.current, true
	}
	at := now.Add(-lag)
	if h.current.LaunchedAt.After(at) {
		return Instance{}, false
	}
	for _, v := range h.past {
		if v.until.After(at) {
			return v.instance, true
		}
	}
	return h.current, true
}

// Alive reports whether the instance is pending or running. An instance is paid for only while it is alive.
func (i Instance) Alive() bool { return i.State == Pending || i.State == Running }

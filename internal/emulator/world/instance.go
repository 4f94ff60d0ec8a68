package world

import (
	"slices"
	"time"

	"github.com/joiner-sh/joiner/internal/emulator/world/identity"
	"github.com/joiner-sh/joiner/internal/emulator/world/network"
)

// The states of an instance, in EC2's words. Stopping is not made: nothing in a
// cluster of ours stops an instance to start it again.
const (
	Pending      = "pending"
	Running      = "running"
	ShuttingDown = "shutting-down"
	Terminated   = "terminated"
)

// Instance is an EC2 instance as it was at one moment. It is a value: what is
// handed out never changes, and its maps and slices are not to be written to.
type Instance struct {
	ID            string // "i-0…"
	ReservationID string // of the call that launched it; nothing to do with capacity
	Account       string // 12 digits
	Region        string // "us-east-1"
	Zone          string // "us-east-1a"
	ZoneID        string // "use1-az1"
	SubnetID      string // of its first network interface: "subnet-0…"
	VPCID         string // "vpc-0…"

	Type         string // "m5.large"
	Architecture string // of the image, in EC2's words: "x86_64" or "arm64"
	ImageID      string // "ami-0…"
	UserData     string // as the instance reads it from its metadata: decoded once from the base64 of the API

	PrivateIP      string // IPv4, of its first network interface; empty once it is terminated
	PrivateDNSName string // "ip-10-0-0-12.ec2.internal"
	IPv6           string // the first one of its first interface; empty without one
	PublicIP       string // empty without a public address

	ProfileARN string // of the instance profile; empty without one
	RoleARN    string // the role in the profile when the instance was launched; empty if it had none

	SecurityGroupIDs []string           // of its first network interface; nil once it is terminated
	Interfaces       []NetworkInterface // the first one has card and device 0; nil once it is terminated
	Volumes          []Volume           // by device; nil once it is terminated
	Tags             map[string]string  // never nil

	State       string    // Pending, Running, ShuttingDown or Terminated
	StateReason Reason    // why it stopped being alive; zero while it lives
	LaunchedAt  time.Time // when it became pending
	ChangedAt   time.Time // of the state

	Spot          bool   // it is a spot instance
	SpotRequestID string // "sir-…"; empty unless Spot
	FleetID       string // empty unless a fleet launched it
	ClientToken   string // of the call that launched it; empty without one
	TemplateID    string // of the launch template; empty without one
	TemplateName  string // of the launch template; empty without one

	// InstanceFails and SystemFails are since when its status checks fail: whether it answers, and whether its host does.
	// Zero: they pass.
	InstanceFails, SystemFails time.Time
	Scheduled                  []Event // what EC2 will do to it, or has done, oldest first

	// CapacityReservationID is the capacity reservation that it runs in, empty if in none; RequestedReservation is what its
	// launch said about that. Market is MarketBlock or MarketInterruptible; empty: on demand or spot.
	CapacityReservationID string
	RequestedReservation  ReservationOptions
	Market                string

	// PlacementGroupID and PlacementGroupName are those of the placement group that it is in, empty if in none; Partition
	// counts from 1, and is 0 where the group has none. Tenancy is TenancyDefault or TenancyDedicated.
	PlacementGroupID   string
	PlacementGroupName string
	Partition          int
	Tenancy            string

	Metadata MetadataOptions // its metadata options, with EC2's defaults for what the launch did not set
}

// Instances has the instances of a region, from their launch until an hour after their end.
type Instances struct {
	region *Region
	byID   map[string]*history
	order  []string // ids as launched
}

// Reason is why an instance is in its state: a code such as
// "Client.UserInitiatedShutdown" and a sentence.
type Reason struct {
	Code    string // empty: there is no reason
	Message string // begins with the code
}

// NetworkInterface is a network interface of an instance.
type NetworkInterface struct {
	ID               string            // "eni-0…"
	SubnetID         string            // "subnet-0…"
	PrivateIP        string            // the first IPv4 address; empty: it has none
	PrivateDNSName   string            // of PrivateIP; empty without one
	IPv6             []string          // addresses
	PrimaryIPv6      bool              // the first of them stays for as long as the instance lives
	Prefixes         []string          // "10.0.32.16/28", "2600:…/80"
	SecurityGroupIDs []string          // the same as the instance's at launch
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
	Encrypted           bool              // with a KMS key
	DeleteOnTermination bool              // it goes with its instance
	Tags                map[string]string // nil: none
}

// history is an instance with its earlier versions, for reads that are eventually consistent.
type history struct {
	region  *Region
	now     Instance
	past    []version // older versions that someone may still see, oldest first
	console []byte
	subnet  *network.Subnet
	stock   *Stock
	silent  bool
	session *identity.Session // what its metadata service hands out
}

// version is how an instance was until a moment.
type version struct {
	until    time.Time
	instance Instance
}

// change replaces the instance by a changed copy. The world records a change of state.
func (m *history) change(now time.Time, alter func(*Instance)) {
	before := m.now
	next := before
	alter(&next)
	if next.State != before.State {
		next.ChangedAt = now
	}
	m.remember(now, before)
	m.now = next
	if next.State != before.State {
		m.region.world().changes = append(m.region.world().changes, next)
		m.region.announceState(now, next)
	}
}

// remember keeps the version that ends now, and drops versions that no read returns any more.
func (m *history) remember(now time.Time, before Instance) {
	lag := m.region.world().Faults.ReadLag
	if lag <= 0 {
		m.past = nil
		return
	}
	m.past = slices.DeleteFunc(m.past, func(v version) bool { return !v.until.After(now.Add(-lag)) })
	m.past = append(m.past, version{until: now, instance: before})
}

// seen returns the instance as a reader sees it who is a lag behind; not ok
// while the instance is too young to be seen.
func (m *history) seen(now time.Time, lag time.Duration) (Instance, bool) {
	if lag <= 0 {
		return m.now, true
	}
	at := now.Add(-lag)
	if m.now.LaunchedAt.After(at) {
		return Instance{}, false
	}
	for _, v := range m.past {
		if v.until.After(at) {
			return v.instance, true
		}
	}
	return m.now, true
}

// Alive reports whether the instance costs money: it is pending or running.
func (i Instance) Alive() bool { return i.State == Pending || i.State == Running }

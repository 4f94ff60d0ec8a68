package ec2

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awstypes "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/joiner-sh/joiner/internal/aws/awserr"
	"github.com/joiner-sh/joiner/internal/model/catalog"
)

// Shortage is a shortage that EC2 reported. An empty field matches every value: a Shortage that sets only CapacityType,
// to catalog.Spot, means that EC2 cannot launch any spot instance.
type Shortage struct {
	CapacityType string // catalog.OnDemand, Spot or Reserved
	InstanceType string // "m5.large"
	Zone         string // "us-east-1a"
	SubnetID     string // ID of a subnet without a free address; the offering itself is not short
	Reservation  string // ID of a full capacity reservation; other offerings of the type are not short
	// PlacementGroup is the ID of the placement group in which the type is short. Outside of the group the type may be
	// available. If InstanceType is empty, the group is full in this zone.
	PlacementGroup string
	// Reason is "InsufficientCapacity", "SpotQuotaExceeded", … For an exhausted quota, the type is short in every zone
	// of the region. All types of the same quota that have at least the same size are also short.
	Reason string
}

// The values of awserr.Error.Reason that package ec2 handles in a special way.
const (
	reasonSpotRole  = "SpotSLRCreationFailed" // the account lacks EC2's role for spot instances
	reasonSpotQuota = "SpotQuotaExceeded"
	reasonQuota     = "VCPULimitExceeded"
	reasonAddresses = "InsufficientFreeAddressesInSubnet"

	reasonSpreadFull  = "SpreadPlacementGroupFull"
	reasonNoPlacement = "PlacementGroupNotFound"
)

func isQuota(reason string) bool { return reason == reasonQuota || reason == reasonSpotQuota }

// shortagesIn returns the shortages in an error e of CreateFleet for this request. A launch into a capacity reservation
// proves no shortage outside of the reservation.
func (r LaunchRequest) shortagesIn(e awstypes.CreateFleetError, classified *awserr.Error) []Shortage {
	out := shortagesOf(r.CapacityType, e, classified)
	if r.CapacityType != catalog.Reserved {
		return out
	}
	for i, s := range out {
		if s.SubnetID == "" {
			out[i].Reservation = r.blueprintOf(s.InstanceType, s.Zone).Reservation.ID
		}
	}
	return slices.DeleteFunc(out, func(s Shortage) bool { return s.SubnetID == "" && s.Reservation == "" })
}

// shortagesOf returns the shortages in an error e of CreateFleet for one capacity type.
func shortagesOf(capacityType string, e awstypes.CreateFleetError, classified *awserr.Error) []Shortage {
	if classified.Reason == reasonSpotRole {
		return []Shortage{{CapacityType: catalog.Spot, Reason: classified.Reason}}
	}
	if classified.Kind != awserr.Shortage {
		return nil
	}
	if e.LaunchTemplateAndOverrides == nil || e.LaunchTemplateAndOverrides.Overrides == nil {
		return shortagesWithoutOffering(capacityType, aws.ToString(e.ErrorCode), classified)
	}
	o := e.LaunchTemplateAndOverrides.Overrides
	s := Shortage{CapacityType: capacityType, InstanceType: string(o.InstanceType), Zone: aws.ToString(o.AvailabilityZone),
		Reason: classified.Reason}
	if classified.Reason == reasonAddresses {
		s.SubnetID = aws.ToString(o.SubnetId)
	}
	if s.InstanceType == "" && s.SubnetID == "" {
		return nil
	}
	return []Shortage{s}
}

// shortagesWithoutOffering does the same as shortagesOf, for an error that names no offering. For spot, such an error
// means a shortage of all spot capacity if its cause is unfulfillable capacity or a quota. Otherwise it proves none.
func shortagesWithoutOffering(capacityType, code string, classified *awserr.Error) []Shortage {
	if capacityType == catalog.Spot && (code == "UnfulfillableCapacity" || classified.Reason == reasonSpotQuota) {
		return []Shortage{{CapacityType: catalog.Spot, Reason: classified.Reason}}
	}
	return nil
}

// The back-off of a short offering. Launches skip the offering for FirstBackoff, and after each further shortage for
// twice as long as before, up to maxFactor times FirstBackoff. A successful launch resets the back-off. The
// back-off is also reset if, after its end, EC2 reports no shortage for the same length of time. During the back-off,
// one launch per FirstBackoff may probe the offering, so that returning capacity is noticed soon without one call per
// NodeClaim. See Admit.
const (
	FirstBackoff = 3 * time.Minute
	maxFactor    = 16
)

// Shortages remembers the shortages that EC2 reported. All NodePools share it: only one launch at a time probes a short
// offering (see FirstBackoff). The zero value remembers nothing. Shortages is safe for concurrent use.
type Shortages struct {
	First time.Duration // the first back-off; 0: FirstBackoff

	mu      sync.Mutex
	entries map[shortKey]backoff
}

// shortKey identifies what is short; see keyOf.
type shortKey struct{ capacityType, instanceType, zone, subnet, reservation, group string }

type backoff struct {
	reason string        // Shortage.Reason
	since  time.Time     // when EC2 first reported the shortage
	wait   time.Duration // length of the back-off
	until  time.Time     // end of the back-off
	tried  time.Time     // when a launch last requested the offering

	prober string                           // name of the launch that probes the offering; empty: no probe waits for EC2's answer
	before struct{ until, tried time.Time } // values of until and tried before the probe, for EndLaunch
}

func (s *Shortages) first() time.Duration { return cmp.Or(s.First, FirstBackoff) }

func (s *Shortages) mayProbe(now time.Time, e backoff) bool {
	return !now.Before(e.tried.Add(s.first()))
}

// Note remembers the shortages that EC2 reported at now.
func (s *Shortages) Note(now time.Time, reported ...Shortage) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.entries == nil {
		s.entries = map[shortKey]backoff{}
	}
	for _, r := range reported {
		k := keyOf(r)
		old, ok := s.entries[k]
		e := backoff{reason: r.Reason, since: now, wait: s.first(), tried: now}
		switch {
		case ok && now.Before(old.until) && old.prober == "" && !s.mayProbe(now, old):
			continue // reported to a launch that started before the back-off: not a new shortage
		case ok && now.Before(old.until.Add(old.wait)):
			e.wait = min(2*old.wait, maxFactor*s.first())
			e.since = old.since
		}
		if k.subnet != "" {
			e.wait = s.first() // the back-off does not grow: each node that is removed frees addresses
		}
		e.until = now.Add(e.wait)
		s.entries[k] = e
	}
}

// NoteLaunched forgets the shortages that a launched instance disproves: of its offering, of its type's quota, of its
// capacity type, of its subnet and of its capacity reservation. It reports whether it forgot any.
func (s *Shortages) NoteLaunched(i Instance) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := len(s.entries)
	for _, k := range blockingKeys(i.Type, i.Zone, i.CapacityType, i.Placement.Group) {
		delete(s.entries, k)
	}
	if i.SubnetID != "" {
		delete(s.entries, shortKey{subnet: i.SubnetID})
	}
	if i.Reservation.ID != "" {
		delete(s.entries, shortKey{reservation: i.Reservation.ID})
	}
	return len(s.entries) < before
}

// NoteReservationFree forgets that a capacity reservation was full, because EC2 reports free instances in it.
func (s *Shortages) NoteReservationFree(reservation string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.entries, shortKey{reservation: reservation})
}

// isFull reports whether the offering is in a capacity reservation that is in back-off and may not be probed.
func (s *Shortages) isFull(now time.Time, o catalog.Offering) bool {
	return o.Reservation.ID != "" && !s.until(now, []shortKey{{reservation: o.Reservation.ID}}).IsZero()
}

// Admit reports for each choice whether a launch at now may request it. launch is the name of the launch. group is the
// ID of its placement group, or empty. Only one launch at a time, the probe, may request an offering that is short, or
// whose back-off ended recently. Other launches must wait until EC2 has answered the probe (see Note, NoteLaunched and
// EndLaunch), or until FirstBackoff has passed.
func (s *Shortages) Admit(now time.Time, launch, capacityType, group string, choices []Choice) []bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]bool, len(choices))
	requested := map[shortKey]bool{}
	for i, c := range choices {
		keys := blockingKeys(c.InstanceType, c.Zone, capacityType, group)
		if s.until(now, keys).IsZero() {
			out[i] = true
			for _, k := range keys {
				requested[k] = true // if several choices share a quota, the launch may request all of them as one probe
			}
		}
	}
	for k := range requested {
		e, ok := s.entries[k]
		if !ok || !now.Before(e.until.Add(e.wait)) {
			continue // neither short now nor recently
		}
		if e.prober == "" {
			e.before.until, e.before.tried = e.until, e.tried
		}
		e.prober, e.tried = launch, now
		if next := now.Add(s.first()); e.until.Before(next) {
			e.until = next
		}
		s.entries[k] = e
	}
	return out
}

// EndLaunch ends the launch. If EC2 has not answered its probe of an offering, another launch may then probe the
// offering.
func (s *Shortages) EndLaunch(launch string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for k, e := range s.entries {
		if e.prober == launch {
			e.prober, e.until, e.tried = "", e.before.until, e.before.tried
			s.entries[k] = e
		}
	}
}

// Until returns the end of the offering's back-off outside of placement groups. It is zero if a launch at now may
// request the offering, at least as a probe. Unlike Apply, Until considers an exceeded quota only for the type whose
// launch exceeded it.
func (s *Shortages) Until(now time.Time, instanceType, zone, capacityType string) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.until(now, blockingKeys(instanceType, zone, capacityType, ""))
}

// until returns the latest end of the keys' back-offs. It skips each back-off during which a launch at now may probe,
// and returns zero if none remains. The caller holds s.mu.
func (s *Shortages) until(now time.Time, keys []shortKey) time.Time {
	var last time.Time
	for _, k := range keys {
		if e, ok := s.entries[k]; ok && now.Before(e.until) && !s.mayProbe(now, e) && e.until.After(last) {
			last = e.until
		}
	}
	return last
}

// IsExhausted reports whether the subnet is in back-off because it had no free address.
func (s *Shortages) IsExhausted(now time.Time, subnetID string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, ok := s.entries[shortKey{subnet: subnetID}]
	return ok && now.Before(e.until)
}

// Apply returns a copy of the catalog in which short offerings and all offerings in closedZones are not Available.
// closedZones are zones in which no launch is possible, for example because no subnet has a free address.
func (s *Shortages) Apply(now time.Time, c catalog.Catalog, closedZones ...string) catalog.Catalog {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.entries) == 0 && len(closedZones) == 0 {
		return c
	}
	c.Types = s.mark(now, c.Types, c.PlacementGroup, closedZones)
	pools := c.Pools
	c.Pools = nil
	for pool, types := range pools {
		if c.Pools == nil {
			c.Pools = make(map[string][]catalog.Type, len(pools))
		}
		c.Pools[pool] = s.mark(now, types, c.PlacementGroup, closedZones)
	}
	return c
}

// mark returns a copy of the types in which two kinds of offerings are not Available: offerings in closedZones, and
// offerings that are short for launches into the placement group.
func (s *Shortages) mark(now time.Time, types []catalog.Type, group string, closedZones []string) []catalog.Type {
	limits := s.quotaCeilings(now, types)
	types = slices.Clone(types)
	for i := range types {
		t := &types[i]
		isCopied := false
		for j, o := range t.Offerings {
			isBlocked := slices.Contains(closedZones, o.Zone) || limits.excludes(t, o.CapacityType) ||
				s.isFull(now, o) || !s.until(now, blockingKeys(t.Name, o.Zone, o.CapacityType, group)).IsZero()
			if !o.Available || !isBlocked {
				continue
			}
			if !isCopied {
				t.Offerings, isCopied = slices.Clone(t.Offerings), true
			}
			t.Offerings[j].Available = false
		}
	}
	return types
}

// KnownShortage is one shortage that is in back-off.
type KnownShortage struct {
	Shortage
	Since, Until time.Time // when the shortage was first noted, and when its back-off ends
}

// List returns the shortages that are in back-off at now, sorted. It forgets a shortage if the time since the end of
// its back-off is at least as long as the back-off was.
func (s *Shortages) List(now time.Time) []KnownShortage {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []KnownShortage
	for k, e := range s.entries {
		if now.Before(e.until) {
			short := Shortage{CapacityType: k.capacityType, InstanceType: k.instanceType, Zone: k.zone, SubnetID: k.subnet,
				Reservation: k.reservation, PlacementGroup: k.group, Reason: e.reason}
			out = append(out, KnownShortage{short, e.since, e.until})
		} else if !now.Before(e.until.Add(e.wait)) {
			delete(s.entries, k)
		}
	}
	slices.SortFunc(out, func(a, b KnownShortage) int {
		return cmp.Or(cmp.Compare(a.InstanceType, b.InstanceType), cmp.Compare(a.Zone, b.Zone),
			cmp.Compare(a.CapacityType, b.CapacityType), cmp.Compare(a.SubnetID, b.SubnetID),
			cmp.Compare(a.Reservation, b.Reservation), cmp.Compare(a.PlacementGroup, b.PlacementGroup))
	})
	return out
}

func keyOf(s Shortage) shortKey {
	switch {
	case s.SubnetID != "":
		return shortKey{subnet: s.SubnetID}
	case s.Reservation != "":
		return shortKey{reservation: s.Reservation}
	case s.PlacementGroup != "":
		return shortKey{capacityType: s.CapacityType, instanceType: s.InstanceType, zone: s.Zone, group: s.PlacementGroup}
	case isQuota(s.Reason):
		return shortKey{capacityType: s.CapacityType, instanceType: s.InstanceType} // in every zone
	}
	return shortKey{capacityType: s.CapacityType, instanceType: s.InstanceType, zone: s.Zone}
}

// blockingKeys returns the keys of the shortages that would prevent a launch of the offering: shortages of the
// offering, of its type's quota and of its capacity type. For a launch into a placement group, it adds the shortages of
// the type and of all types in this group.
func blockingKeys(instanceType, zone, capacityType, group string) []shortKey {
	out := []shortKey{
		{capacityType: capacityType, instanceType: instanceType, zone: zone},
		{capacityType: capacityType, instanceType: instanceType},
		{capacityType: capacityType},
	}
	if group != "" {
		out = append(out, shortKey{capacityType: capacityType, instanceType: instanceType, zone: zone, group: group},
			shortKey{zone: zone, group: group})
	}
	return out
}

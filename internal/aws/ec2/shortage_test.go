package ec2

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awstypes "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/google/go-cmp/cmp"

	"github.com/joiner-sh/joiner/internal/aws/awserr"
	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/model/resources"
)

func TestShortages(t *testing.T) {
	t.Parallel()
	at := func(minutes int) time.Time { return time.Date(2026, 1, 1, 0, minutes, 0, 0, time.UTC) }
	shortage := Shortage{CapacityType: catalog.Spot, InstanceType: "m5.large", Zone: "a", Reason: "InsufficientCapacity"}
	until := func(s *Shortages, minute int) int { // the minute in which the back-off ends; 0: none
		end := s.Until(at(minute), "m5.large", "a", catalog.Spot)
		if end.IsZero() {
			return 0
		}
		return int(end.Sub(at(0)).Minutes())
	}

	var s Shortages
	if until(&s, 0) != 0 {
		t.Error("the zero value has a shortage")
	}
	// If the offering is short again soon after its back-off, the back-off doubles, up to 48 minutes. A report during
	// the back-off (minute 1) changes nothing. Long after its end (minute 300), the back-off is 3 minutes again.
	for _, step := range []struct{ note, wantUntil int }{
		{0, 3}, {1, 3}, {3, 9}, {10, 22}, {23, 47}, {48, 96}, {100, 148}, {300, 303},
	} {
		s.Note(at(step.note), shortage)
		if got := until(&s, step.note); got != step.wantUntil {
			t.Errorf("short at minute %d: the back-off ends at minute %d, want %d", step.note, got, step.wantUntil)
		}
	}
	if until(&s, 303) != 0 {
		t.Error("the back-off does not end")
	}
	s.Note(at(304), shortage)
	s.NoteLaunched(Instance{Type: "m5.large", Zone: "a", CapacityType: catalog.Spot})
	s.Note(at(305), shortage)
	if got := until(&s, 305); got != 308 {
		t.Errorf("a shortage after a launch: the back-off ends at minute %d, want 308", got)
	}
	for _, other := range [][3]string{{"m5.xlarge", "a", catalog.Spot}, {"m5.large", "b", catalog.Spot}, {"m5.large", "a", catalog.OnDemand}} {
		if end := s.Until(at(306), other[0], other[1], other[2]); !end.IsZero() {
			t.Errorf("%v is marked as short until %s", other, end)
		}
	}
}

// TestProbes: during any back-off, one launch at a time probes whether capacity is available again.
func TestProbes(t *testing.T) {
	t.Parallel()
	at := func(minutes int) time.Time { return time.Date(2026, 1, 1, 0, minutes, 0, 0, time.UTC) }
	shortage := Shortage{CapacityType: catalog.Spot, InstanceType: "m5.large", Zone: "a", Reason: "InsufficientCapacity"}
	var s Shortages
	admit := func(minute int) bool {
		return s.Admit(at(minute), "launch", catalog.Spot, "", []Choice{{InstanceType: "m5.large", Zone: "a"}})[0]
	}
	c := catalog.Catalog{Types: []catalog.Type{{Name: "m5.large",
		Offerings: []catalog.Offering{{Zone: "a", CapacityType: catalog.Spot, Price: 1, Available: true}}}}}
	for _, step := range []struct {
		minute   int
		want     bool // a launch may request the offering
		isNoted  bool // EC2 reports a shortage to this launch
		wantWait int  // back-off after the step, in minutes; an upper limit if !isNoted
	}{
		{0, true, true, 3}, {1, false, false, 3}, {3, true, true, 6}, {4, false, false, 6},
		{6, true, true, 12}, {8, false, false, 12}, {9, true, true, 24}, {12, true, true, 48}, {15, true, true, 48},
		{18, true, false, 48}, {19, false, false, 48}, // the probe of minute 18 is not answered yet
		{21, true, true, 48},
	} {
		if got := s.Apply(at(step.minute), c).Types[0].Offerings[0].Available; got != step.want {
			t.Errorf("minute %d: available %t, want %t", step.minute, got, step.want)
		}
		if got := admit(step.minute); got != step.want {
			t.Errorf("minute %d: the first launch may request the offering: %t, want %t", step.minute, got, step.want)
		}
		if step.minute > 0 && admit(step.minute) { // at minute 0 no shortage is known yet
			t.Errorf("minute %d: a second launch may request the offering, too", step.minute)
		}
		if step.isNoted {
			s.Note(at(step.minute), shortage)
		}
		if known := s.List(at(step.minute)); len(known) != 1 || int(known[0].Until.Sub(at(step.minute)).Minutes()) > step.wantWait {
			t.Errorf("minute %d: known %+v, want one back-off, at most %d minutes", step.minute, known, step.wantWait)
		} else if wait := int(known[0].Until.Sub(at(step.minute)).Minutes()); step.isNoted && wait != step.wantWait {
			t.Errorf("minute %d: a back-off of %d minutes, want %d", step.minute, wait, step.wantWait)
		}
	}
	if !admit(24) {
		t.Fatal("no probe at minute 24")
	}
	s.NoteLaunched(Instance{Type: "m5.large", Zone: "a", CapacityType: catalog.Spot})
	first, second := admit(24), admit(24)
	if !first || !second {
		t.Error("after a successful probe, a launch may not request the offering")
	}
}

// TestUnansweredProbe: if a launch ends without an answer about the offering that it probed, the next launch may probe
// it. Examples are a launch that got another offering, and a launch that EC2 rejected.
func TestUnansweredProbe(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	choice := []Choice{{InstanceType: "m5.large", Zone: "a"}}
	var s Shortages
	s.Note(now, Shortage{CapacityType: catalog.Spot, InstanceType: "m5.large", Zone: "a", Reason: "InsufficientCapacity"})
	for i, after := range []time.Duration{FirstBackoff, FirstBackoff + time.Second, 2*FirstBackoff - time.Second} {
		for try, want := range []bool{true, false} {
			if got := s.Admit(now.Add(after), fmt.Sprint(i, try), catalog.Spot, "", choice)[0]; got != want {
				t.Errorf("%s later: launch %d may probe: %t, want %t", after, try, got, want)
			}
			if !want {
				s.EndLaunch(fmt.Sprint(i, try)) // this launch was not admitted
			}
		}
		s.EndLaunch(fmt.Sprint(i, 0))
	}
	late := now.Add(2 * FirstBackoff)
	if !s.Admit(late, "a", catalog.Spot, "", choice)[0] || !s.Admit(late, "b", catalog.Spot, "", choice)[0] {
		t.Error("a shortage whose back-off ended long ago still prevents a second launch")
	}
	if known := s.List(late); len(known) > 0 {
		t.Errorf("shortages listed: %+v, want none", known)
	}
}

// TestOneProbeHasAllChoices: one launch may request all of its choices that are short for the same cause.
func TestOneProbeHasAllChoices(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	choices := []Choice{{InstanceType: "m5.large", Zone: "a"}, {InstanceType: "m5.large", Zone: "b"}, {InstanceType: "c5.large", Zone: "a"}}
	for name, short := range map[string][]Shortage{
		"all of spot": {{CapacityType: catalog.Spot, Reason: "InsufficientCapacity"}},
		"a quota": {
			{CapacityType: catalog.Spot, InstanceType: "m5.large", Reason: reasonSpotQuota},
			{CapacityType: catalog.Spot, InstanceType: "c5.large", Reason: reasonSpotQuota},
		},
	} {
		s := Shortages{First: time.Minute}
		s.Note(now, short...)
		s.Note(now.Add(time.Minute), short...) // a back-off of two minutes
		for _, step := range []struct {
			after time.Duration
			want  bool
		}{{90 * time.Second, false}, {2 * time.Minute, true}, {2*time.Minute + time.Second, false}} {
			if got := s.Admit(now.Add(step.after), "launch", catalog.Spot, "", choices); slices.Contains(got, !step.want) {
				t.Errorf("%s: after %s a launch may request %v of its choices, want each %t", name, step.after, got, step.want)
			}
		}
		if got := s.Admit(now.Add(3*time.Minute), "launch", catalog.OnDemand, "", choices); slices.Contains(got, false) {
			t.Errorf("%s: an on-demand launch may request %v of its choices, want all", name, got)
		}
	}
}

// TestQuotaOfRegion: an exceeded quota affects one capacity type in every zone, for every instance type of the quota
// that is at least as large. c7g, m5 and z1d share the Standard quota; g5 and p5 have others.
func TestQuotaOfRegion(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	typ := func(name string, cpus int64) catalog.Type {
		out := catalog.Type{Name: name, Capacity: resources.Amounts{CPU: 1000 * cpus}}
		for _, zone := range []string{"a", "b"} {
			for _, capacityType := range []string{catalog.OnDemand, catalog.Spot} {
				out.Offerings = append(out.Offerings, catalog.Offering{Zone: zone, CapacityType: capacityType, Price: 1, Available: true})
			}
		}
		return out
	}
	offered := catalog.Catalog{Types: []catalog.Type{
		typ("c7g.8xlarge", 32), typ("g5.8xlarge", 32), typ("m5.4xlarge", 16), typ("m5.large", 2), typ("p5.48xlarge", 192),
		typ("z1d.12xlarge", 48),
	}}
	unavailable := func(c catalog.Catalog) string {
		var out []string
		for _, t := range c.Types {
			for _, o := range t.Offerings {
				if !o.Available {
					out = append(out, t.Name+"/"+o.Zone+"/"+o.CapacityType)
				}
			}
		}
		return strings.Join(out, " ")
	}
	for name, c := range map[string]struct {
		short Shortage
		want  string
	}{
		"on demand": {Shortage{CapacityType: catalog.OnDemand, InstanceType: "c7g.8xlarge", Zone: "a", Reason: "VCPULimitExceeded"},
			"c7g.8xlarge/a/on-demand c7g.8xlarge/b/on-demand z1d.12xlarge/a/on-demand z1d.12xlarge/b/on-demand"},
		"spot": {Shortage{CapacityType: catalog.Spot, InstanceType: "m5.4xlarge", Zone: "b", Reason: "SpotQuotaExceeded"},
			"c7g.8xlarge/a/spot c7g.8xlarge/b/spot m5.4xlarge/a/spot m5.4xlarge/b/spot z1d.12xlarge/a/spot z1d.12xlarge/b/spot"},
		"another quota": {Shortage{CapacityType: catalog.Spot, InstanceType: "p5.48xlarge", Zone: "b", Reason: "SpotQuotaExceeded"},
			"p5.48xlarge/a/spot p5.48xlarge/b/spot"},
		"no quota": {Shortage{CapacityType: catalog.Spot, InstanceType: "m5.large", Zone: "b", Reason: "InsufficientCapacity"}, "m5.large/b/spot"},
	} {
		var s Shortages
		s.Note(now, c.short)
		if got := unavailable(s.Apply(now, offered)); got != c.want {
			t.Errorf("%s: unavailable offerings %s\nwant %s", name, got, c.want)
		}
		if got := unavailable(s.Apply(now.Add(FirstBackoff), offered)); got != "" {
			t.Errorf("%s: after FirstBackoff %s are unavailable, want none", name, got)
		}
		s.NoteLaunched(Instance{Type: c.short.InstanceType, Zone: c.short.Zone, CapacityType: c.short.CapacityType})
		if got := unavailable(s.Apply(now, offered)); got != "" {
			t.Errorf("%s: after a launch %s are unavailable, want none", name, got)
		}
	}
	for instanceType, want := range map[string]string{
		"m7i-flex.large": "Standard", "im4gn.large": "Standard", "i7ie.large": "Standard", "d3en.xlarge": "Standard", "hs1.8xlarge": "Standard",
		"gr6.4xlarge": "G and VT", "g6f.large": "G and VT", "vt1.3xlarge": "G and VT", "inf2.xlarge": "inf", "trn1n.32xlarge": "trn",
		"u-6tb1.metal": "u", "u7i-12tb.224xlarge": "u", "x2iedn.xlarge": "x", "hpc7a.96xlarge": "hpc",
		"dl2q.24xlarge": "dl", "p6-b200.48xlarge": "p",
	} {
		if got := quotaName(instanceType); got != want {
			t.Errorf("%s counts against the quota %q, want %q", instanceType, got, want)
		}
	}
}

func TestShortagesOf(t *testing.T) {
	t.Parallel()
	override := &awstypes.LaunchTemplateAndOverridesResponse{Overrides: &awstypes.FleetLaunchTemplateOverrides{
		InstanceType: "m5.large", AvailabilityZone: aws.String("a"), SubnetId: aws.String("subnet-1")}}
	offering := Shortage{CapacityType: catalog.Spot, InstanceType: "m5.large", Zone: "a"}
	with := func(s Shortage, reason, subnet string) []Shortage {
		s.Reason, s.SubnetID = reason, subnet
		return []Shortage{s}
	}
	allSpot := Shortage{CapacityType: catalog.Spot}
	for name, c := range map[string]struct {
		capacityType, code string
		override           *awstypes.LaunchTemplateAndOverridesResponse
		want               []Shortage
	}{
		"no capacity":                      {catalog.Spot, "InsufficientInstanceCapacity", override, with(offering, "InsufficientCapacity", "")},
		"unfulfillable":                    {catalog.Spot, "UnfulfillableCapacity", override, with(offering, "InsufficientCapacity", "")},
		"unfulfillable, no offering named": {catalog.Spot, "UnfulfillableCapacity", nil, with(allSpot, "InsufficientCapacity", "")},
		"spot quota":                       {catalog.Spot, "MaxSpotInstanceCountExceeded", override, with(offering, "SpotQuotaExceeded", "")},
		"spot quota, no offering named":    {catalog.Spot, "MaxSpotInstanceCountExceeded", nil, with(allSpot, "SpotQuotaExceeded", "")},
		"no role for spot": {catalog.Spot, "AuthFailure.ServiceLinkedRoleCreationNotPermitted", nil,
			with(allSpot, "SpotSLRCreationFailed", "")},
		"no free addresses": {catalog.Spot, "InsufficientFreeAddressesInSubnet", override,
			with(offering, "InsufficientFreeAddressesInSubnet", "subnet-1")},
		"on demand, no offering named":   {catalog.OnDemand, "UnfulfillableCapacity", nil, nil},
		"no capacity, no offering named": {catalog.Spot, "InsufficientInstanceCapacity", nil, nil},
		"denied, so not a shortage":      {catalog.Spot, "UnauthorizedOperation", override, nil},
	} {
		e := awstypes.CreateFleetError{ErrorCode: aws.String(c.code), LaunchTemplateAndOverrides: c.override}
		if diff := cmp.Diff(c.want, shortagesOf(c.capacityType, e, awserr.FromCode("CreateFleet", c.code, ""))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestShortagesApply: Apply marks short offerings and offerings in closed zones, but not those of an exhausted subnet.
func TestShortagesApply(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	offering := func(zone, capacityType string, available bool) catalog.Offering {
		return catalog.Offering{Zone: zone, CapacityType: capacityType, Price: 1, Available: available}
	}
	c := catalog.Catalog{Types: []catalog.Type{
		{Name: "m5.large", Offerings: []catalog.Offering{offering("a", catalog.Spot, true),
			offering("a", catalog.OnDemand, true), offering("b", catalog.OnDemand, true)}},
		{Name: "m6.large", Offerings: []catalog.Offering{offering("a", catalog.OnDemand, true)}},
	}}
	var s Shortages
	s.Note(now, Shortage{CapacityType: catalog.OnDemand, InstanceType: "m5.large", Zone: "b"},
		Shortage{CapacityType: catalog.Spot, Reason: "SpotSLRCreationFailed"},
		Shortage{SubnetID: "subnet-1", CapacityType: catalog.OnDemand, InstanceType: "m6.large", Zone: "a"})
	want := catalog.Catalog{Types: []catalog.Type{
		{Name: "m5.large", Offerings: []catalog.Offering{offering("a", catalog.Spot, false),
			offering("a", catalog.OnDemand, true), offering("b", catalog.OnDemand, false)}},
		{Name: "m6.large", Offerings: []catalog.Offering{offering("a", catalog.OnDemand, true)}},
	}}
	if diff := cmp.Diff(want, s.Apply(now, c)); diff != "" {
		t.Errorf("applied (-want +got):\n%s", diff)
	}
	if !c.Types[0].Offerings[0].Available {
		t.Error("Apply altered its argument")
	}
	want.Types[0].Offerings[1].Available, want.Types[1].Offerings[0].Available = false, false
	if diff := cmp.Diff(want, s.Apply(now, c, "a")); diff != "" {
		t.Errorf("applied with a closed zone (-want +got):\n%s", diff)
	}
	withPools := c
	withPools.Pools = map[string][]catalog.Type{"apps": c.Types[1:]}
	if got := s.Apply(now, withPools, "a"); got.Of("apps")[0].Offerings[0].Available || !withPools.Of("apps")[0].Offerings[0].Available {
		t.Errorf("the types of a pool are not marked, or the input is altered: %+v", got.Pools)
	}
	if !s.IsExhausted(now, "subnet-1") || s.IsExhausted(now, "subnet-2") || s.IsExhausted(now.Add(time.Hour), "subnet-1") {
		t.Error("want only subnet-1 exhausted, and no longer than an hour")
	}
	if got := len(s.List(now)); got != 3 {
		t.Errorf("%d shortages listed, want 3", got)
	}
	if got := s.List(now.Add(time.Hour)); got != nil || len(s.entries) != 0 {
		t.Errorf("an hour later List still returns %v, or has not removed expired entries", got)
	}
	if diff := cmp.Diff(c, s.Apply(now, c)); diff != "" {
		t.Errorf("expired shortages still apply (-want +got):\n%s", diff)
	}
}

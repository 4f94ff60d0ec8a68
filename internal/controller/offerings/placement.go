package offerings

import (
	"context"
	"hash/crc32"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	awsv1 "github.com/joiner-sh/joiner/api/aws/v1"
	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/aws/awserr"
	"github.com/joiner-sh/joiner/internal/aws/ec2"
	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/model/requirements"
)

// Placements finds placement groups.
type Placements interface {
	PlacementGroup(ctx context.Context, t ec2.PlacementTerm) (ec2.PlacementGroup, error)
}

// PlacementBook holds the placement groups that classes select, because the status of a class does not contain them. It
// counts the members of each group: the instances that EC2 returned last, and later launches that EC2 may not show yet.
// The zero value is empty. Its methods are safe for concurrent use.
type PlacementBook struct {
	mu      sync.Mutex
	byClass map[string]selectedGroup // groups by name of the class
	byID    map[string]*placedGroup  // members by ID of the group
}

type selectedGroup struct {
	term  ec2.PlacementTerm
	group ec2.PlacementGroup
}

type placedGroup struct {
	strategy string                  // cluster, spread or partition
	shown    map[string]string       // zones of the members that EC2 returned, by instance ID
	launched map[string]placedLaunch // launched members that EC2 may not return yet, by instance ID
	first    firstPlaced             // the launch in progress into the empty group; zero if there is none
}

type placedLaunch struct {
	zone string    // name of its zone
	at   time.Time // when it was launched
}

// firstPlaced is a launch in progress into an empty cluster group. It determines the zone of the group.
type firstPlaced struct {
	launch, zone string    // UID of the claim, and name of the zone
	at           time.Time // when the launch started
}

// EC2 may take up to MaxMemberDelay to show a launched instance in its group. For firstZoneTimeout, later launches into
// an empty cluster group are limited to the zone of the first launch.
const (
	MaxMemberDelay   = time.Minute
	firstZoneTimeout = time.Minute
)

// PlacementTerm returns the placement group selector of the class; false if it has none.
func PlacementTerm(class *awsv1.EC2NodeClass) (ec2.PlacementTerm, bool) {
	s := class.Spec.PlacementGroupSelector
	if s == nil {
		return ec2.PlacementTerm{}, false
	}
	var t ec2.PlacementTerm
	set(&t.Name, s.Name)
	set(&t.ID, s.ID)
	return t, true
}

// Of returns the group of the class, or the zero value if the class selects none. The second result is false until EC2
// has returned the selected group.
func (b *PlacementBook) Of(class *awsv1.EC2NodeClass) (ec2.PlacementGroup, bool) {
	term, selects := PlacementTerm(class)
	if !selects {
		return ec2.PlacementGroup{}, true
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	known, ok := b.byClass[class.Name]
	return known.group, ok && known.term == term
}

// Update records what EC2 returned for the group of a class at now, and reports whether the group has more room than
// before.
func (b *PlacementBook) Update(now time.Time, class *awsv1.EC2NodeClass, group ec2.PlacementGroup) bool {
	term, selects := PlacementTerm(class)
	if !selects {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.byClass == nil {
		b.byClass, b.byID = map[string]selectedGroup{}, map[string]*placedGroup{}
	}
	b.byClass[class.Name] = selectedGroup{term, group}
	g, ok := b.byID[group.ID]
	if !ok {
		g = &placedGroup{launched: map[string]placedLaunch{}}
		b.byID[group.ID] = g
	}
	oldCount := len(g.members(time.Time{})) // the zero time includes all launched instances, however old
	g.strategy, g.shown = group.Strategy, group.Members
	maps.DeleteFunc(g.launched, func(id string, l placedLaunch) bool { return g.shown[id] != "" || now.Sub(l.at) >= MaxMemberDelay })
	return !ok || len(g.members(now)) < oldCount
}

// members returns the zones of the members by instance ID: those that EC2 returned, and those launched less than
// MaxMemberDelay before now.
func (g *placedGroup) members(now time.Time) map[string]string {
	out := maps.Clone(g.shown)
	if out == nil {
		out = map[string]string{}
	}
	for id, l := range g.launched {
		if now.Sub(l.at) < MaxMemberDelay {
			out[id] = l.zone
		}
	}
	return out
}

// zone returns the zone in which the instances of a cluster group must be; empty while all zones are possible.
func (g *placedGroup) zone(now time.Time) string {
	members := g.members(now)
	for _, id := range slices.Sorted(maps.Keys(members)) {
		return members[id] // of any member: all are in the same zone
	}
	if g.first.launch != "" && now.Sub(g.first.at) < firstZoneTimeout {
		return g.first.zone
	}
	return ""
}

// Closed returns the zones in which no instance can be launched into the group at now.
func (b *PlacementBook) Closed(now time.Time, group string, zones []catalog.Zone) []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	g := b.byID[group]
	if g == nil {
		return nil
	}
	var out []string
	switch g.strategy {
	case catalog.PlaceCluster:
		groupZone := g.zone(now)
		for _, z := range zones {
			if groupZone != "" && z.Name != groupZone {
				out = append(out, z.Name)
			}
		}
	case catalog.PlaceSpread:
		count := map[string]int{}
		for _, zone := range g.members(now) {
			count[zone]++
		}
		for _, z := range zones {
			if count[z.Name] >= ec2.MaxSpreadInstances {
				out = append(out, z.Name)
			}
		}
	}
	return out
}

// Restrict returns the picks that a launch into the group may request. The first launch into an empty cluster group is
// limited to the zone of its best pick. If launches ran concurrently in several zones, only one could succeed.
func (b *PlacementBook) Restrict(now time.Time, group, launch string, picks []Pick) []Pick {
	b.mu.Lock()
	defer b.mu.Unlock()
	g := b.byID[group]
	if g == nil || g.strategy != catalog.PlaceCluster || len(picks) == 0 {
		return picks
	}
	zone := g.zone(now)
	if zone == "" {
		zone = picks[0].Offering.Zone
		g.first = firstPlaced{launch, zone, now}
	}
	return slices.DeleteFunc(slices.Clone(picks), func(p Pick) bool { return p.Offering.Zone != zone })
}

// EndLaunch records that the launch is no longer in progress.
func (b *PlacementBook) EndLaunch(launch string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, g := range b.byID {
		if g.first.launch == launch {
			g.first = firstPlaced{}
		}
	}
}

// AddMember adds an instance that was launched at now to its group.
func (b *PlacementBook) AddMember(now time.Time, i ec2.Instance) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if g := b.byID[i.Placement.Group]; g != nil {
		g.launched[i.ID] = placedLaunch{i.Zone, now}
	}
}

// setPlacement sets the placement of the launch in each group of its offerings.
func (o *RequestBuilder) setPlacement(claim *karpv1.NodeClaim, class *awsv1.EC2NodeClass, accepted requirements.Requirements,
	groups []ec2.Group) error {
	group, _ := o.Market.Placements.Of(class)
	ref, err := PlacementOf(claim, group, accepted)
	for i := range groups {
		groups[i].Blueprint.Placement = ref
	}
	return err
}

// PlacementLabels returns the labels of a node with this placement.
func PlacementLabels(ref ec2.PlacementRef) requirements.Labels {
	out := requirements.Labels{}
	if ref.Group != "" {
		out[catalog.LabelPlacementGroup] = ref.Group
	}
	if ref.Partition > 0 {
		out[catalog.LabelPartition] = strconv.Itoa(int(ref.Partition))
	}
	return out
}

// PlacementOf returns the placement of a launch for the claim. If the claim accepts all partitions, EC2 chooses the
// partition and spreads instances evenly. If the claim accepts only some partitions, PlacementOf chooses one by the
// claim's UID, so that each attempt uses the same partition.
func PlacementOf(claim *karpv1.NodeClaim, group ec2.PlacementGroup, accepted requirements.Requirements) (ec2.PlacementRef, error) {
	ref := ec2.PlacementRef{Group: group.ID}
	values, isRequired := accepted[catalog.LabelPartition]
	if label := claim.Labels[catalog.LabelPartition]; label != "" {
		values, isRequired = requirements.Exactly(requirements.Labels{catalog.LabelPartition: label})[catalog.LabelPartition], true
	}
	if !isRequired || group.Partitions == 0 && values.Absent { // Absent: a node without partition is accepted
		return ref, nil
	}
	var partitions []int32
	for n := 1; n <= group.Partitions; n++ {
		if values.Accepts(strconv.Itoa(n)) {
			partitions = append(partitions, int32(n))
		}
	}
	switch {
	case len(partitions) == 0:
		return ref, awserr.Misconfiguredf("choose partition", "NoSuchPartition",
			"NodeClaim %s requires %s %s, but its EC2NodeClass selects no placement group "+
				"with such a partition: correct the requirement, or spec.placementGroupSelector", claim.Name, catalog.LabelPartition, values)
	case len(partitions) < group.Partitions:
		ref.Partition = partitions[crc32.ChecksumIEEE([]byte(claim.UID))%uint32(len(partitions))]
	}
	return ref, nil
}

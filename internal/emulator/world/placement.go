package world

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/joiner-sh/joiner/internal/emulator/world/failure"
)

// PlacementGroup determines how its instances are placed relative to each other.
type PlacementGroup struct {
	ID         string            // "pg-0…"
	Name       string            // unique in the region
	Strategy   string            // ClusterGroup, SpreadGroup or PartitionGroup
	Partitions int               // number of partitions of a PartitionGroup, 1 to 7; 0 stands for 2
	State      string            // "available", "pending", "deleting" or "deleted"; a test may set it
	Tags       map[string]string // nil: none
}

// PlacementGroups has the placement groups of a region.
type PlacementGroups struct {
	region *Region
	all    []*PlacementGroup // oldest first
}

// The strategies of placement groups, and the state of a usable group.
const (
	ClusterGroup   = "cluster"   // close together, in one zone
	SpreadGroup    = "spread"    // each instance on separate hardware
	PartitionGroup = "partition" // in partitions that share no hardware

	groupAvailable = "available"
)

// EC2's limits and defaults of placement groups.
const (
	maxSpread              = 7 // pending and running instances of a spread group in a zone
	maxPartitions          = 7 // partitions of a group
	maxDedicatedPartitions = 2 // partitions of a group with dedicated instances
	defaultPartitions      = 2 // partitions of a group if the request has no number
)

// Create creates a placement group.
func (pg *PlacementGroups) Create(_ time.Time, q PlacementGroup) (*PlacementGroup, error) {
	switch {
	case q.Name == "":
		return nil, failure.New("MissingParameter", "The request must contain the parameter GroupName")
	case pg.ByNameOrID(q.Name) != nil:
		return nil, failure.New("InvalidPlacementGroup.Duplicate", "The Placement Group '%s' already exists.", q.Name)
	case !slices.Contains([]string{ClusterGroup, SpreadGroup, PartitionGroup}, q.Strategy):
		return nil, failure.New("InvalidParameterValue", "Value (%s) for parameter strategy is invalid.", q.Strategy)
	case q.Strategy != PartitionGroup && q.Partitions != 0:
		return nil, failure.New("InvalidParameterCombination", "The parameter partitionCount cannot be used with the strategy '%s'.", q.Strategy)
	case q.Partitions < 0 || q.Partitions > maxPartitions:
		return nil, failure.New("InvalidParameterValue", "Value (%d) for parameter partitionCount is invalid.", q.Partitions)
	}
	if q.Strategy == PartitionGroup && q.Partitions == 0 {
		q.Partitions = defaultPartitions
	}
	q.ID, q.State, q.Tags = pg.region.site.IDs.New("pg"), cmp.Or(q.State, groupAvailable), maps.Clone(q.Tags)
	pg.all = append(pg.all, &q)
	return &q, nil
}

// Delete deletes a placement group. It returns an error if the group has pending or running instances.
func (pg *PlacementGroups) Delete(name string) error {
	g := pg.ByNameOrID(name)
	if g == nil {
		return unknownGroupError(name)
	}
	if len(pg.instancesOf(g)) > 0 {
		return failure.New("InvalidPlacementGroup.InUse", "The Placement Group '%s' is in use and may not be deleted.", name)
	}
	pg.all = slices.DeleteFunc(pg.all, func(known *PlacementGroup) bool { return known == g })
	return nil
}

// All returns the placement groups of the region, oldest first. Callers may change their states.
func (pg *PlacementGroups) All() []*PlacementGroup { return slices.Clone(pg.all) }

// ByNameOrID returns a placement group by name or id; nil if it does not exist.
func (pg *PlacementGroups) ByNameOrID(nameOrID string) *PlacementGroup {
	i := slices.IndexFunc(pg.all, func(g *PlacementGroup) bool { return g.Name == nameOrID || g.ID == nameOrID })
	if i < 0 || nameOrID == "" {
		return nil
	}
	return pg.all[i]
}

// instancesOf returns the pending and running instances of a group, oldest first.
func (pg *PlacementGroups) instancesOf(g *PlacementGroup) []*history {
	var out []*history
	for _, id := range pg.region.Instances.order {
		if h := pg.region.Instances.byID[id]; h.current.PlacementGroupID == g.ID && h.current.Alive() {
			out = append(out, h)
		}
	}
	return out
}

// resolve returns the placement group of a launch; nil if the launch names none. It returns an error if the placement
// parameters are invalid, or if the group does not exist or does not allow the instance type. It does not check the
// group's limits: see admit.
func (pg *PlacementGroups) resolve(d TemplateData, s *OfferedType) (*PlacementGroup, error) {
	p := d.Placement
	if p == nil {
		return nil, nil
	}
	if err := checkTenancy(p.Tenancy, s); err != nil {
		return nil, err
	}
	if p.GroupName == "" && p.GroupID == "" {
		if p.Partition != nil {
			return nil, failure.New("InvalidParameterCombination", "The parameter PartitionNumber needs the parameter GroupName or GroupId.")
		}
		return nil, nil
	}
	if p.GroupName != "" && p.GroupID != "" {
		return nil, failure.New("InvalidParameterCombination", "The parameters GroupName and GroupId cannot be used together.")
	}
	g := pg.ByNameOrID(cmp.Or(p.GroupID, p.GroupName))
	if g == nil || g.State != groupAvailable {
		return nil, unknownGroupError(p.GroupName + p.GroupID) // one of them is empty
	}
	if !slices.Contains(s.Facts.PlacementStrategies, g.Strategy) {
		return nil, failure.New("InvalidParameterCombination", "The '%s' placement group strategy is not supported by the '%s' instance type. Specify a supported instance type or change the placement group strategy, and try again.", g.Strategy, s.Facts.Name)
	}
	return g, g.checkPartition(p)
}

// checkTenancy returns an error for tenancy host, which is not emulated, and for dedicated T2 instances: EC2 has none.
func checkTenancy(tenancy string, s *OfferedType) error {
	switch tenancy {
	case "", TenancyDefault:
		return nil
	case TenancyDedicated:
		if strings.HasPrefix(s.Facts.Name, "t2.") {
			return failure.New("Unsupported", "The requested configuration is currently not supported. Please check the documentation for supported configurations.")
		}
		return nil
	}
	return failure.New("InvalidParameterValue", "Value (%s) for parameter tenancy is invalid.", tenancy)
}

// checkPartition returns an error for a partition number that the group does not have, and for a group with too many
// partitions for dedicated instances.
func (g *PlacementGroup) checkPartition(p *Placement) error {
	isDedicated := p.Tenancy == TenancyDedicated
	switch {
	case g.Strategy != PartitionGroup && p.Partition != nil:
		return failure.New("InvalidParameterCombination",
			"The parameter PartitionNumber cannot be used with a placement group of the strategy '%s'.", g.Strategy)
	case g.Strategy == PartitionGroup && isDedicated && g.Partitions > maxDedicatedPartitions:
		return failure.New("InvalidParameterCombination",
			"A partition placement group with Dedicated Instances can have a maximum of %d partitions.", maxDedicatedPartitions)
	case p.Partition != nil && (*p.Partition < 1 || *p.Partition > int64(g.Partitions)):
		return failure.New("InvalidParameterValue",
			"Value (%d) for parameter PartitionNumber is invalid. The placement group '%s' has %d partitions.", *p.Partition, g.Name, g.Partitions)
	}
	return nil
}

// admit returns an error if the group of a launch cannot take another instance in the zone.
func (pg *PlacementGroups) admit(launch resolvedLaunch) error {
	if launch.placement == nil {
		return nil
	}
	members, inZone := pg.instancesOf(launch.placement), 0
	for _, h := range members {
		if h.current.Zone == launch.zone.Name {
			inZone++
		}
	}
	switch launch.placement.Strategy {
	case SpreadGroup:
		if inZone >= maxSpread {
			return failure.New("PlacementGroupLimitExceeded", "You have reached the limit of instances in this spread placement group in the Availability Zone %s. The limit is %d.", launch.zone.Name, maxSpread)
		}
	case ClusterGroup:
		if len(members) > inZone { // the group is in another zone
			return failure.WithStatus(500, "InsufficientInstanceCapacity", "We currently do not have sufficient %s capacity in the Availability Zone you requested (%s) for the placement group '%s', whose instances are in %s.",
				launch.offering.Type, launch.zone.Name, launch.placement.Name, members[0].current.Zone)
		}
	}
	return nil
}

// assign sets tenancy, placement group and partition of a new instance. Without a requested partition, EC2 uses the
// partition with the fewest instances.
func (pg *PlacementGroups) assign(i *Instance, launch resolvedLaunch) {
	i.Tenancy = TenancyDefault
	if p := launch.data.Placement; p != nil {
		i.Tenancy = cmp.Or(p.Tenancy, TenancyDefault)
	}
	g := launch.placement
	if g == nil {
		return
	}
	i.PlacementGroupID, i.PlacementGroupName = g.ID, g.Name
	if g.Strategy != PartitionGroup {
		return
	}
	if n := launch.data.Placement.Partition; n != nil {
		i.Partition = int(*n)
		return
	}
	counts := make([]int, g.Partitions)
	for _, h := range pg.instancesOf(g) {
		counts[h.current.Partition-1]++
	}
	i.Partition = 1 + slices.Index(counts, slices.Min(counts))
}

func unknownGroupError(name string) error {
	return failure.New("InvalidPlacementGroup.Unknown", "The Placement Group '%s' is unknown.", name)
}

// The supported tenancies.
const (
	TenancyDefault   = "default"
	TenancyDedicated = "dedicated"
)

package emulator

import "github.com/joiner-sh/joiner/internal/emulator/world"

type placementGroupsIn struct {
	GroupNames []string `aws:"GroupName"`
	GroupIds   []string `aws:"GroupId"`
	Filters    []filter `aws:"Filter"`
}

type placementGroupsOut struct {
	PlacementGroups []placementGroup `aws:"PlacementGroupSet"`
}

// placementGroup is a placement group as EC2 writes it.
type placementGroup struct {
	GroupId        string
	GroupName      string
	GroupArn       string
	Strategy       string
	State          string
	PartitionCount int64
	SpreadLevel    string
	Tags           []world.Tag `aws:"TagSet"`
}

// describePlacementGroups lists placement groups. It has no pages.
func describePlacementGroups(c *call, in *placementGroupsIn) (placementGroupsOut, error) {
	const unknown = "InvalidPlacementGroup.Unknown"
	found, err := named(c.region.PlacementGroups.All(), in.GroupNames, func(g *world.PlacementGroup) string { return g.Name }, unknown)
	if err != nil {
		return placementGroupsOut{}, err
	}
	if found, err = named(found, in.GroupIds, func(g *world.PlacementGroup) string { return g.ID }, unknown); err != nil {
		return placementGroupsOut{}, err
	}
	if found, err = sieve(found, in.Filters, c.placementFilters); err != nil {
		return placementGroupsOut{}, err
	}
	out := placementGroupsOut{PlacementGroups: []placementGroup{}}
	for _, g := range found {
		one := placementGroup{
			GroupId: g.ID, GroupName: g.Name, GroupArn: c.region.ResourceARN("placement-group", g.Name), Strategy: g.Strategy,
			State: g.State, PartitionCount: int64(g.Partitions), Tags: tagList(g.Tags),
		}
		if g.Strategy == world.SpreadGroup {
			one.SpreadLevel = "rack"
		}
		out.PlacementGroups = append(out.PlacementGroups, one)
	}
	return out, nil
}

// placementFilters returns what filters may look at.
func (c *call) placementFilters(g *world.PlacementGroup) filterable {
	if g == nil {
		g = &world.PlacementGroup{} // only the names of the filters matter
	}
	return filterable{tags: g.Tags, values: map[string][]string{
		"group-name": {g.Name}, "group-arn": {c.region.ResourceARN("placement-group", g.Name)}, "state": {g.State}, "strategy": {g.Strategy},
	}}
}

type createPlacementGroupIn struct {
	GroupName      string
	Strategy       string
	PartitionCount int64
	Tags           []world.TagSpecification `aws:"TagSpecification"`
}

type createPlacementGroupOut struct {
	PlacementGroup placementGroup
}

// createPlacementGroup makes a placement group, as people do: the controller uses what is there.
func createPlacementGroup(c *call, in *createPlacementGroupIn) (createPlacementGroupOut, error) {
	tags, err := tagging(in.Tags)
	if err != nil {
		return createPlacementGroupOut{}, err
	}
	g, err := c.region.PlacementGroups.Create(c.now, world.PlacementGroup{
		Name: in.GroupName, Strategy: in.Strategy, Partitions: int(in.PartitionCount), Tags: tags["placement-group"],
	})
	if err != nil {
		return createPlacementGroupOut{}, err
	}
	found, err := describePlacementGroups(c, &placementGroupsIn{GroupIds: []string{g.ID}})
	if err != nil {
		return createPlacementGroupOut{}, err
	}
	return createPlacementGroupOut{found.PlacementGroups[0]}, nil
}

type deletePlacementGroupIn struct {
	GroupName string
}

// deletePlacementGroup removes a placement group that nothing runs in.
func deletePlacementGroup(c *call, in *deletePlacementGroupIn) (done, error) {
	return done{Return: true}, c.region.PlacementGroups.Delete(in.GroupName)
}

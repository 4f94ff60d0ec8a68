package ec2

import (
	"github.com/joiner-sh/joiner/internal/emulator/api"
	"github.com/joiner-sh/joiner/internal/emulator/world"
)

type placementGroupsIn struct {
	GroupNames []string     `aws:"GroupName"`
	GroupIds   []string     `aws:"GroupId"`
	Filters    []api.Filter `aws:"Filter"`
}

type placementGroupsOut struct {
	PlacementGroups []placementGroup `aws:"PlacementGroupSet"`
}

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

// describePlacementGroups lists placement groups. As in EC2, it does not page the list.
func describePlacementGroups(c *api.Call, in *placementGroupsIn) (placementGroupsOut, error) {
	const unknownCode = "InvalidPlacementGroup.Unknown"
	found, err := selectByID(c.Region.PlacementGroups.All(), in.GroupNames,
		func(g *world.PlacementGroup) string { return g.Name }, unknownCode)
	if err != nil {
		return placementGroupsOut{}, err
	}
	if found, err = selectByID(found, in.GroupIds, func(g *world.PlacementGroup) string { return g.ID }, unknownCode); err != nil {
		return placementGroupsOut{}, err
	}
	if found, err = api.FilterItems(found, in.Filters,
		func(g *world.PlacementGroup) api.Filterable { return placementFilters(c, g) }); err != nil {
		return placementGroupsOut{}, err
	}
	out := placementGroupsOut{PlacementGroups: []placementGroup{}}
	for _, g := range found {
		group := placementGroup{
			GroupId: g.ID, GroupName: g.Name, GroupArn: c.Region.ResourceARN("placement-group", g.Name), Strategy: g.Strategy,
			State: g.State, PartitionCount: int64(g.Partitions), Tags: api.TagList(g.Tags),
		}
		if g.Strategy == world.SpreadGroup {
			group.SpreadLevel = "rack"
		}
		out.PlacementGroups = append(out.PlacementGroups, group)
	}
	return out, nil
}

func placementFilters(c *api.Call, g *world.PlacementGroup) api.Filterable {
	if g == nil {
		g = &world.PlacementGroup{} // only the names of the filters matter
	}
	return api.Filterable{Tags: g.Tags, Values: map[string][]string{
		"group-name": {g.Name}, "group-arn": {c.Region.ResourceARN("placement-group", g.Name)}, "state": {g.State}, "strategy": {g.Strategy},
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

func createPlacementGroup(c *api.Call, in *createPlacementGroupIn) (createPlacementGroupOut, error) {
	tags, err := api.Tagging(in.Tags)
	if err != nil {
		return createPlacementGroupOut{}, err
	}
	g, err := c.Region.PlacementGroups.Create(c.Now, world.PlacementGroup{
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

func deletePlacementGroup(c *api.Call, in *deletePlacementGroupIn) (api.Done, error) {
	return api.Done{Return: true}, c.Region.PlacementGroups.Delete(in.GroupName)
}

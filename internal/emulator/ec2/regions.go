package ec2

import (
	"slices"
	"strings"

	"github.com/joiner-sh/joiner/internal/emulator/api"
	"github.com/joiner-sh/joiner/internal/emulator/world"
	"github.com/joiner-sh/joiner/internal/emulator/world/failure"
	"github.com/joiner-sh/joiner/internal/emulator/world/site"
)

type zonesIn struct {
	ZoneNames []string     `aws:"ZoneName"`
	ZoneIds   []string     `aws:"ZoneId"`
	All       bool         `aws:"AllAvailabilityZones"` // ignored: the account has opted in to all zones
	Filters   []api.Filter `aws:"Filter"`
}

type zonesOut struct {
	Zones []zone `aws:"AvailabilityZoneInfo"`
}

type zone struct {
	OptInStatus        string
	MessageSet         []string
	RegionName         string
	ZoneName           string
	ZoneId             string
	GroupName          string
	NetworkBorderGroup string
	ZoneType           string
	ZoneState          string
}

func describeAvailabilityZones(c *api.Call, in *zonesIn) (zonesOut, error) {
	found, err := selectByID(c.Region.Zones(), in.ZoneNames, func(z site.Zone) string { return z.Name }, "InvalidParameterValue")
	if err != nil {
		return zonesOut{}, err
	}
	if found, err = selectByID(found, in.ZoneIds, func(z site.Zone) string { return z.ID }, "InvalidParameterValue"); err != nil {
		return zonesOut{}, err
	}
	found, err = api.FilterItems(slices.Clone(found), in.Filters, func(z site.Zone) api.Filterable {
		wire := zoneOf(c, z)
		return api.Filterable{Values: map[string][]string{
			"zone-name": {z.Name}, "zone-id": {z.ID}, "region-name": {c.RegionID}, "state": {"available"},
			"zone-type": {wire.ZoneType}, "opt-in-status": {wire.OptInStatus}, "group-name": {wire.GroupName},
		}}
	})
	if err != nil {
		return zonesOut{}, err
	}
	out := zonesOut{Zones: make([]zone, len(found))}
	for i, z := range found {
		out.Zones[i] = zoneOf(c, z)
	}
	return out, nil
}

// zoneOf converts a zone to EC2's wire format. The account is opted in to all local zones. The zone group of a local
// zone is the zone's name without the last letter.
func zoneOf(c *api.Call, z site.Zone) zone {
	out := zone{
		OptInStatus: "opt-in-not-required", MessageSet: []string{}, RegionName: c.RegionID, ZoneName: z.Name, ZoneId: z.ID,
		GroupName: c.RegionID + "-zg-1", NetworkBorderGroup: c.RegionID, ZoneType: "availability-zone", ZoneState: "available",
	}
	if z.IsLocal() {
		group := strings.TrimRight(z.Name, "abcdef")
		out.OptInStatus, out.ZoneType, out.GroupName, out.NetworkBorderGroup = "opted-in", "local-zone", group, group
	}
	return out
}

type regionsIn struct {
	RegionNames []string     `aws:"RegionName"`
	All         bool         `aws:"AllRegions"` // ignored
	Filters     []api.Filter `aws:"Filter"`
}

type regionsOut struct {
	Regions []region `aws:"RegionInfo"`
}

type region struct {
	RegionName     string
	RegionEndpoint string
	OptInStatus    string
}

// describeRegions lists the regions that the account uses.
func describeRegions(c *api.Call, in *regionsIn) (regionsOut, error) {
	names, err := selectByID(c.Account().Regions(), in.RegionNames, func(n string) string { return n }, "InvalidParameterValue")
	if err != nil {
		return regionsOut{}, err
	}
	names, err = api.FilterItems(names, in.Filters, func(n string) api.Filterable {
		return api.Filterable{Values: map[string][]string{
			"region-name":   {n},
			"opt-in-status": {"opt-in-not-required"},
			"endpoint":      {endpointOf(n)},
		}}
	})
	out := regionsOut{Regions: []region{}}
	for _, n := range names {
		out.Regions = append(out.Regions, region{RegionName: n, RegionEndpoint: endpointOf(n), OptInStatus: "opt-in-not-required"})
	}
	return out, err
}

func endpointOf(region string) string {
	if site.Partition(region) == "aws-cn" {
		return "ec2." + region + ".amazonaws.com.cn"
	}
	return "ec2." + region + ".amazonaws.com"
}

type createTagsIn struct {
	Resources []string    `aws:"ResourceId"`
	Tags      []world.Tag `aws:"Tag"`
}

func createTags(c *api.Call, in *createTagsIn) (api.Done, error) {
	if len(in.Resources) == 0 || len(in.Tags) == 0 {
		return api.Done{}, &failure.Error{Code: "MissingParameter", Message: "The request must contain the parameters ResourceId and Tag"}
	}
	add := map[string]string{}
	for _, t := range in.Tags {
		add[t.Key] = t.Value
	}
	return api.Done{Return: true}, c.Region.Tag(c.Now, in.Resources, add, nil)
}

type deleteTagsIn struct {
	Resources []string      `aws:"ResourceId"`
	Tags      []tagToDelete `aws:"Tag"`
}

// tagToDelete selects the tag with the key. If Value is not nil, the tag's value must be equal.
type tagToDelete struct {
	Key   string
	Value *string
}

// deleteTags removes the given tags from resources, or all tags if none are given. It does not remove tags whose keys
// begin with "aws:".
func deleteTags(c *api.Call, in *deleteTagsIn) (api.Done, error) {
	if len(in.Resources) == 0 {
		return api.Done{}, &failure.Error{Code: "MissingParameter", Message: "The request must contain the parameter ResourceId"}
	}
	for _, id := range in.Resources {
		var keys []string
		for key, value := range tagsOfResource(c, id) {
			if !strings.HasPrefix(key, "aws:") && (len(in.Tags) == 0 || matchesAnyTag(in.Tags, key, value)) {
				keys = append(keys, key)
			}
		}
		if err := c.Region.Tag(c.Now, []string{id}, nil, keys); err != nil {
			return api.Done{}, err
		}
	}
	return api.Done{Return: true}, nil
}

func matchesAnyTag(tags []tagToDelete, key, value string) bool {
	return slices.ContainsFunc(tags, func(t tagToDelete) bool { return t.Key == key && (t.Value == nil || *t.Value == value) })
}

func tagsOfResource(c *api.Call, id string) map[string]string {
	if i, ok := c.World.Instance(id); ok {
		return i.Tags
	}
	for _, s := range c.Region.TagSets(c.Now) {
		if s.ResourceID == id {
			return s.Tags
		}
	}
	return nil
}

type describeTagsOut struct {
	Tags      []resourceTag `aws:"TagSet"`
	NextToken string
}

type resourceTag struct {
	ResourceId   string
	ResourceType string
	Key          string
	Value        string `aws:",,always"`
}

func describeTags(c *api.Call, in *listIn) (describeTagsOut, error) {
	var all []resourceTag
	for _, s := range c.Region.TagSets(c.Now) {
		for _, t := range api.TagList(s.Tags) {
			all = append(all, resourceTag{ResourceId: s.ResourceID, ResourceType: s.Kind, Key: t.Key, Value: t.Value})
		}
	}
	found, next, err := list(*in, listing[resourceTag, resourceTag]{
		items: all, id: func(t resourceTag) string { return t.ResourceId + "/" + t.Key },
		filterable: func(t resourceTag) api.Filterable {
			return api.Filterable{Tags: map[string]string{t.Key: t.Value}, Values: map[string][]string{
				"key": {t.Key}, "value": {t.Value}, "resource-id": {t.ResourceId}, "resource-type": {t.ResourceType},
			}}
		},
		write: func(t resourceTag) resourceTag { return t },
	})
	return describeTagsOut{Tags: found, NextToken: next}, err
}

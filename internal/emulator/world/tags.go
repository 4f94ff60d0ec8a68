package world

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/joiner-sh/joiner/internal/emulator/world/failure"
	"github.com/joiner-sh/joiner/internal/emulator/world/network"
	"github.com/joiner-sh/joiner/internal/emulator/world/site"
)

// TagSet has the tags of one EC2 resource.
type TagSet struct {
	ResourceID string            // "i-0…", "subnet-0…"
	Kind       string            // "instance", "subnet", "launch-template"…
	Tags       map[string]string // at least one
}

// maxTags is the maximum number of user tags of a resource.
const maxTags = 50

// Tag adds tags to EC2 resources, and removes the tags with the keys in remove. If one of the resources does not exist,
// Tag changes no resource.
func (r *Region) Tag(now time.Time, ids []string, add map[string]string, remove []string) error {
	for _, key := range slices.Sorted(maps.Keys(add)) {
		if strings.HasPrefix(strings.ToLower(key), "aws:") {
			return failure.New("InvalidParameterValue", "Value ( %s ) for parameter key is invalid. Tag keys starting with 'aws:' are reserved for internal use", key)
		}
		if key == "" || len(key) > 128 || len(add[key]) > 256 {
			return failure.New("InvalidParameterValue", "Tag key or value of %q is empty or too long.", key)
		}
	}
	tags := make([]*map[string]string, len(ids)) // nil for an instance
	for i, id := range ids {
		if r.Instances.byID[id] != nil {
			continue
		}
		if tags[i] = r.tagsPointer(id); tags[i] == nil {
			return notFound(id)
		}
	}
	for i, id := range ids {
		if h := r.Instances.byID[id]; h != nil {
			next := site.WithTags(h.current.Tags, add, remove)
			if len(next) > maxTags+5 { // AWS adds up to five tags, with the prefix aws:
				return failure.New("TagLimitExceeded", "The number of tags on %s exceeds the limit of %d.", id, maxTags)
			}
			h.change(now, func(i *Instance) { i.Tags = next })
			continue
		}
		*tags[i] = site.WithTags(*tags[i], add, remove)
	}
	return nil
}

// TagSets returns the tags of all EC2 resources of the region that have tags, grouped by kind. Instances have
// the state that the API shows: see Instances.Visible.
func (r *Region) TagSets(now time.Time) []TagSet {
	var out []TagSet
	add := func(kind, id string, tags map[string]string) {
		if len(tags) > 0 {
			out = append(out, TagSet{ResourceID: id, Kind: kind, Tags: tags})
		}
	}
	for _, i := range r.Images.All() {
		add("image", i.ID, i.Tags)
	}
	for _, i := range r.Instances.Visible(now) {
		add("instance", i.ID, i.Tags)
		for _, n := range i.Interfaces {
			add("network-interface", n.ID, n.Tags)
		}
		for _, v := range i.Volumes {
			add("volume", v.ID, v.Tags)
		}
	}
	for _, t := range r.LaunchTemplates.All() {
		add("launch-template", t.ID, t.Tags)
	}
	for _, t := range r.Network.RouteTables() {
		add("route-table", t.ID, t.Tags)
	}
	for _, g := range r.Network.SecurityGroups() {
		add("security-group", g.ID, g.Tags)
	}
	for _, s := range r.Network.Subnets() {
		add("subnet", s.ID, s.Tags)
	}
	for _, c := range r.CapacityReservations.all {
		add("capacity-reservation", c.ID, c.Tags)
	}
	for _, g := range r.PlacementGroups.all {
		add("placement-group", g.ID, g.Tags)
	}
	for _, v := range r.Network.VPCs() {
		add("vpc", v.ID, v.Tags)
	}
	return out
}

// TagsOf returns the current tags of an EC2 resource; false if the resource does not exist, or if it is a network
// interface or a volume.
func (r *Region) TagsOf(id string) (map[string]string, bool) {
	if h := r.Instances.byID[id]; h != nil {
		return h.current.Tags, true
	}
	tags := r.tagsPointer(id)
	if tags == nil {
		return nil, false
	}
	return *tags, true
}

// tagsPointer returns a pointer to the tags of a resource that is not an instance; nil if the resource does not exist.
func (r *Region) tagsPointer(id string) *map[string]string {
	if i := r.Images.byID[id]; i != nil {
		return &i.Tags
	}
	if t := r.LaunchTemplates.byID[id]; t != nil {
		return &t.Tags
	}
	if c := r.CapacityReservations.ByID(id); c != nil {
		return &c.Tags
	}
	if g := r.PlacementGroups.ByNameOrID(id); g != nil {
		return &g.Tags
	}
	if g := r.Network.SecurityGroup(id); g != nil {
		return &g.Tags
	}
	if s := r.Network.Subnet(id); s != nil {
		return &s.Tags
	}
	if v := r.Network.VPC(id); v != nil {
		return &v.Tags
	}
	if i := slices.IndexFunc(r.Network.RouteTables(), func(t *network.RouteTable) bool { return t.ID == id }); i >= 0 {
		return &r.Network.RouteTables()[i].Tags
	}
	return nil
}

// kindOf returns the resource type of an id, as in ARNs: by default the prefix of the id.
func kindOf(id string) string {
	prefix, _, _ := strings.Cut(id, "-")
	kind := map[string]string{
		"i": "instance", "ami": "image", "lt": "launch-template", "sg": "security-group", "rtb": "route-table", "pg": "placement-group",
	}[prefix]
	return cmp.Or(kind, prefix)
}

func notFound(id string) error {
	prefix, _, _ := strings.Cut(id, "-")
	code := map[string]string{
		"i": "InvalidInstanceID.NotFound", "ami": "InvalidAMIID.NotFound", "lt": "InvalidLaunchTemplateId.NotFound",
		"sg": "InvalidGroup.NotFound", "subnet": "InvalidSubnetID.NotFound", "vpc": "InvalidVpcID.NotFound",
		"cr": "InvalidCapacityReservationId.NotFound", "rtb": "InvalidRouteTableID.NotFound",
	}[prefix]
	if code == "" {
		return failure.New("InvalidID", "The ID '%s' is not valid", id)
	}
	return failure.New(code, "The ID '%s' does not exist", id)
}

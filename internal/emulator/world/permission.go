package world

import (
	"cmp"
	"slices"

	"github.com/joiner-sh/joiner/internal/emulator/iampolicy"
	"github.com/joiner-sh/joiner/internal/emulator/world/identity"
)

// Permissions lists the requests that IAM evaluates for the EC2 calls of a region. Each request is an action on a
// resource.
//
// Before a launch, EC2 authorizes two kinds of requests:
//
//   - the use of each existing resource, with the resource's tags as condition keys;
//   - the creation of each type of resource, with the requested tags as condition keys.
//
// See https://docs.aws.amazon.com/service-authorization/latest/reference/list_amazonec2.html.
type Permissions struct{ region *Region }

// ForFleet returns the requests for CreateFleet itself: for the fleet, its launch templates, and the subnets and images
// of the overrides.
func (p *Permissions) ForFleet(q FleetRequest) []iampolicy.Request {
	const action = "ec2:CreateFleet"
	out := p.forCreating(action, q.Tags, "fleet")
	seen := map[string]bool{}
	use := func(kind, id string) {
		if id != "" && !seen[id] {
			seen[id] = true
			out = append(out, p.forUsing(action, kind, id)...)
		}
	}
	for _, c := range q.Configs {
		if t := p.region.LaunchTemplates.ByIDOrName(c.TemplateID, c.TemplateName); t != nil {
			use("launch-template", t.ID)
		}
		for _, o := range c.Overrides {
			use("subnet", o.SubnetID)
			use("image", o.ImageID)
		}
	}
	return out
}

// ForFleetConfig returns the requests for RunInstances that all overrides of a launch template share: CreateFleet calls
// RunInstances on behalf of the caller. ForFleetOverride returns the further requests of one override.
func (p *Permissions) ForFleetConfig(q FleetRequest, c FleetConfig) []iampolicy.Request {
	t := p.region.LaunchTemplates.ByIDOrName(c.TemplateID, c.TemplateName)
	if t == nil {
		return nil // CheckFleet reports the error
	}
	v, err := t.Version(c.Version)
	if err != nil {
		return nil // as above
	}
	return p.forLaunch(t, v.Data, mergeTags(v.Data.Tags, q.Tags), q.Spot > 0)
}

// ForFleetOverride returns the requests for the image and the subnet of an override.
func (p *Permissions) ForFleetOverride(o FleetOverride) []iampolicy.Request {
	return slices.Concat(p.forUsing(runInstances, "image", o.ImageID), p.forUsing(runInstances, "subnet", o.SubnetID))
}

// ForRunInstances returns the requests for RunInstances.
func (p *Permissions) ForRunInstances(q RunRequest) []iampolicy.Request {
	data, tags := q.Data, q.Tags
	var t *Template
	if q.TemplateID != "" || q.TemplateName != "" {
		if t = p.region.LaunchTemplates.ByIDOrName(q.TemplateID, q.TemplateName); t == nil {
			return nil // the action reports the error
		}
		v, err := t.Version(q.Version)
		if err != nil {
			return nil
		}
		data, tags = v.Data.withOverrides(q.Data), mergeTags(v.Data.Tags, q.Tags)
	}
	spot := data.Market != nil && data.Market.Kind == "spot"
	return append(p.forLaunch(t, data, tags, spot), p.forUsing(runInstances, "subnet", q.SubnetID)...)
}

// runInstances is the action for each resource that a launch uses or creates.
const runInstances = "ec2:RunInstances"

func (p *Permissions) forLaunch(t *Template, d TemplateData, tags Tagging, spot bool) []iampolicy.Request {
	created := []string{"instance", "network-interface", "volume"}
	if spot {
		created = append(created, "spot-instances-request")
	}
	out := p.forCreating(runInstances, tags, created...)
	if t != nil {
		out = append(out, p.forUsing(runInstances, "launch-template", t.ID)...)
	}
	out = append(out, p.forUsing(runInstances, "image", d.ImageID)...)
	groups := slices.Clone(d.GroupIDs)
	for _, i := range d.Interfaces {
		groups = append(groups, i.GroupIDs...)
		out = append(out, p.forUsing(runInstances, "subnet", i.SubnetID)...)
	}
	slices.Sort(groups)
	for _, id := range slices.Compact(groups) {
		out = append(out, p.forUsing(runInstances, "security-group", id)...)
	}
	for _, device := range d.Devices {
		if device.EBS != nil {
			out = append(out, p.forUsing(runInstances, "snapshot", device.EBS.SnapshotID)...)
		}
	}
	if d.Placement != nil {
		out = append(out, p.forPlacement(d.Placement)...)
	}
	if s := d.Reservation; s != nil && s.Target != nil {
		out = append(out, p.forUsing(runInstances, "capacity-reservation", s.Target.ID)...)
	}
	return append(out, p.forPassRole(d.Profile)...)
}

// forPlacement returns the request for the placement group; nil if the launch names none. The ARN of a placement group
// contains its name, not its id.
func (p *Permissions) forPlacement(placement *Placement) []iampolicy.Request {
	name := cmp.Or(placement.GroupID, placement.GroupName) // the id is replaced by the name below
	if name == "" {
		return nil
	}
	keys := iampolicy.Keys{}
	if g := p.region.PlacementGroups.ByNameOrID(name); g != nil {
		name, keys = g.Name, p.resourceKeys(g.ID)
	}
	return []iampolicy.Request{{Action: runInstances, Resource: p.region.ResourceARN("placement-group", name), Keys: keys}}
}

// forCreating returns the requests for creating resources of the given types, and for tagging the created resources.
func (p *Permissions) forCreating(action string, tags Tagging, kinds ...string) []iampolicy.Request {
	var out []iampolicy.Request
	for _, kind := range kinds {
		keys, arn := iampolicy.Keys{}, p.region.arn("ec2", kind+"/*")
		keys.AddTags("aws:RequestTag/", tags[kind])
		out = append(out, iampolicy.Request{Action: action, Resource: arn, Keys: keys})
		if len(tags[kind]) == 0 {
			continue
		}
		tagging := iampolicy.Keys{"ec2:CreateAction": {action[len("ec2:"):]}}
		tagging.AddTags("aws:RequestTag/", tags[kind])
		out = append(out, iampolicy.Request{Action: "ec2:CreateTags", Resource: arn, Keys: tagging})
	}
	return out
}

// forUsing returns the request for using an existing resource; nil for an empty id.
func (p *Permissions) forUsing(action, kind, id string) []iampolicy.Request {
	if id == "" {
		return nil
	}
	return []iampolicy.Request{{Action: action, Resource: p.region.ResourceARN(kind, id), Keys: p.resourceKeys(id)}}
}

func (p *Permissions) resourceKeys(id string) iampolicy.Keys {
	keys := iampolicy.Keys{}
	if tags, ok := p.region.TagsOf(id); ok {
		keys.AddTags("aws:ResourceTag/", tags)
		keys.AddTags("ec2:ResourceTag/", tags)
	}
	return keys
}

// ResourceARN returns the ARN of an EC2 resource. The ARNs of images and snapshots have no account.
func (r *Region) ResourceARN(kind, id string) string {
	if kind == "image" || kind == "snapshot" {
		return r.ARN("ec2", "", kind+"/"+id)
	}
	return r.arn("ec2", kind+"/"+id)
}

func (p *Permissions) forPassRole(ref *ProfileRef) []iampolicy.Request {
	if ref == nil {
		return nil
	}
	profile, err := p.region.Account.Profile(cmp.Or(ref.Name, identity.RoleName(ref.ARN)))
	if err != nil {
		return nil // the launch reports the error
	}
	return p.region.Account.PassRolePermissions(profile.Role)
}

// PassRolePermissions returns the request for passing a role to EC2, as a list; nil if the role does not exist.
func (a *Account) PassRolePermissions(role string) []iampolicy.Request {
	known, err := a.Role(role)
	if err != nil {
		return nil
	}
	return []iampolicy.Request{{
		Action:   "iam:PassRole",
		Resource: known.ARN,
		Keys:     iampolicy.Keys{"iam:PassedToService": {"ec2.amazonaws.com"}},
	}}
}

// ForResources returns the requests for an action on EC2 resources, by their ids. added are tags that the action adds.
// Unknown ids are skipped: the action reports them.
func (p *Permissions) ForResources(action string, added map[string]string, ids ...string) []iampolicy.Request {
	var out []iampolicy.Request
	for _, id := range ids {
		if _, ok := p.region.TagsOf(id); !ok {
			continue
		}
		keys := p.resourceKeys(id)
		keys.AddTags("aws:RequestTag/", added)
		out = append(out, iampolicy.Request{Action: action, Resource: p.region.ResourceARN(kindOf(id), id), Keys: keys})
	}
	return out
}

// ForLaunchTemplate returns the requests for CreateLaunchTemplate. The content of a template is authorized when the
// template is used.
func (p *Permissions) ForLaunchTemplate(tags map[string]string) []iampolicy.Request {
	return p.forCreating("ec2:CreateLaunchTemplate", Tagging{"launch-template": tags}, "launch-template")
}

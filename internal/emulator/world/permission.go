package world

import (
	"slices"

	"github.com/joiner-sh/joiner/internal/emulator/iampolicy"
)

// What EC2 asks IAM about before it launches: each thing that is used, by itself, with the tags that it has, and each kind of
// thing that is made, with the tags that it is to have. See
// https://docs.aws.amazon.com/service-authorization/latest/reference/list_amazonec2.html.

// FleetPermits are those of CreateFleet itself: the fleet, its templates, and what it names besides.
func (r *Region) FleetPermits(q FleetRequest) []iampolicy.Request {
	const action = "ec2:CreateFleet"
	out := r.making(action, q.Tags, "fleet")
	seen := map[string]bool{}
	use := func(kind, id string) {
		if id != "" && !seen[id] {
			seen[id] = true
			out = append(out, r.using(action, kind, id)...)
		}
	}
	for _, c := range q.Configs {
		if t := r.Template(c.TemplateID, c.TemplateName); t != nil {
			use("launch-template", t.ID)
		}
		for _, o := range c.Overrides {
			use("subnet", o.SubnetID)
			use("image", o.ImageID)
		}
	}
	return out
}

// ConfigPermits are those that RunInstances, which CreateFleet calls in the caller's name, needs for every launch from one of
// the request's templates; OverridePermits those of one launch beside them.
func (r *Region) ConfigPermits(q FleetRequest, c FleetConfig) []iampolicy.Request {
	t := r.Template(c.TemplateID, c.TemplateName)
	if t == nil {
		return nil // CheckFleet refuses it
	}
	v, err := t.Version(c.Version)
	if err != nil {
		return nil
	}
	return r.launchPermits(t, v.Data, merged(v.Data.Tags, q.Tags), q.Spot > 0)
}

// OverridePermits are those for what an override names.
func (r *Region) OverridePermits(o FleetOverride) []iampolicy.Request {
	return slices.Concat(r.using(runInstances, "image", o.ImageID), r.using(runInstances, "subnet", o.SubnetID))
}

// RunPermits are those of RunInstances.
func (r *Region) RunPermits(q RunRequest) []iampolicy.Request {
	data, tags := q.Data, q.Tags
	var t *Template
	if q.TemplateID != "" || q.TemplateName != "" {
		if t = r.Template(q.TemplateID, q.TemplateName); t == nil {
			return nil // it is refused
		}
		v, err := t.Version(q.Version)
		if err != nil {
			return nil
		}
		data, tags = v.Data.completed(q.Data), merged(v.Data.Tags, q.Tags)
	}
	spot := data.Market != nil && data.Market.Kind == "spot"
	return append(r.launchPermits(t, data, tags, spot), r.using(runInstances, "subnet", q.SubnetID)...)
}

const runInstances = "ec2:RunInstances"

// launchPermits are those of RunInstances for what a template, or the request, says.
func (r *Region) launchPermits(t *Template, d TemplateData, tags Tagging, spot bool) []iampolicy.Request {
	made := []string{"instance", "network-interface", "volume"}
	if spot {
		made = append(made, "spot-instances-request")
	}
	out := r.making(runInstances, tags, made...)
	if t != nil {
		out = append(out, r.using(runInstances, "launch-template", t.ID)...)
	}
	out = append(out, r.using(runInstances, "image", d.ImageID)...)
	groups := slices.Clone(d.GroupIDs)
	for _, i := range d.Interfaces {
		groups = append(groups, i.GroupIDs...)
		out = append(out, r.using(runInstances, "subnet", i.SubnetID)...)
	}
	slices.Sort(groups)
	for _, id := range slices.Compact(groups) {
		out = append(out, r.using(runInstances, "security-group", id)...)
	}
	for _, device := range d.Devices {
		if device.EBS != nil {
			out = append(out, r.using(runInstances, "snapshot", device.EBS.SnapshotID)...)
		}
	}
	if p := d.Placement; p != nil {
		out = append(out, r.placing(p)...)
	}
	if s := d.Reservation; s != nil && s.Target != nil {
		out = append(out, r.using(runInstances, "capacity-reservation", s.Target.ID)...)
	}
	return append(out, r.passing(d.Profile)...)
}

// placing asks about a placement group, whose ARN has its name.
func (r *Region) placing(p *Placement) []iampolicy.Request {
	name := or(p.GroupID, p.GroupName)
	if name == "" {
		return nil
	}
	keys := iampolicy.Keys{}
	if g := r.PlacementGroup(name); g != nil {
		name, keys = g.Name, r.resourceKeys(g.ID)
	}
	return []iampolicy.Request{{Action: runInstances, Resource: r.ResourceARN("placement-group", name), Keys: keys}}
}

// making asks about things of some kinds that do not exist yet, and about tagging them.
func (r *Region) making(action string, tags Tagging, kinds ...string) []iampolicy.Request {
	var out []iampolicy.Request
	for _, kind := range kinds {
		keys, arn := iampolicy.Keys{}, r.arn("ec2", kind+"/*")
		keys.Tags("aws:RequestTag/", tags[kind])
		out = append(out, iampolicy.Request{Action: action, Resource: arn, Keys: keys})
		if len(tags[kind]) == 0 {
			continue
		}
		create := iampolicy.Keys{"ec2:CreateAction": {action[len("ec2:"):]}}
		create.Tags("aws:RequestTag/", tags[kind])
		out = append(out, iampolicy.Request{Action: "ec2:CreateTags", Resource: arn, Keys: create})
	}
	return out
}

// using asks about one thing that exists; nothing, if no id is given.
func (r *Region) using(action, kind, id string) []iampolicy.Request {
	if id == "" {
		return nil
	}
	return []iampolicy.Request{{Action: action, Resource: r.ResourceARN(kind, id), Keys: r.resourceKeys(id)}}
}

// resourceKeys are the condition keys for the tags of a thing of EC2.
func (r *Region) resourceKeys(id string) iampolicy.Keys {
	keys := iampolicy.Keys{}
	if tags, ok := r.TagsOf(id); ok {
		keys.Tags("aws:ResourceTag/", tags)
		keys.Tags("ec2:ResourceTag/", tags)
	}
	return keys
}

// ResourceARN is the ARN of a thing of EC2. Those of images and snapshots name no account.
func (r *Region) ResourceARN(kind, id string) string {
	if kind == "image" || kind == "snapshot" {
		return r.ARN("ec2", "", kind+"/"+id)
	}
	return r.arn("ec2", kind+"/"+id)
}

// passing asks whether the caller may give instances the role of a profile.
func (r *Region) passing(ref *ProfileRef) []iampolicy.Request {
	if ref == nil {
		return nil
	}
	p, err := r.Account.Profile(or(ref.Name, roleName(ref.ARN)))
	if err != nil {
		return nil // the launch is refused
	}
	return r.Account.PassPermits(p.Role)
}

// PassPermits asks whether the caller may give EC2 a role.
func (a *Account) PassPermits(role string) []iampolicy.Request {
	known, err := a.Role(role)
	if err != nil {
		return nil
	}
	return []iampolicy.Request{{Action: "iam:PassRole", Resource: known.ARN, Keys: iampolicy.Keys{"iam:PassedToService": {"ec2.amazonaws.com"}}}}
}

// ThingPermits asks about an action on things of EC2 by their ids. IDs that do not exist are skipped: the action
// reports them.
func (r *Region) ThingPermits(action string, add map[string]string, ids ...string) []iampolicy.Request {
	var out []iampolicy.Request
	for _, id := range ids {
		if _, ok := r.TagsOf(id); !ok {
			continue
		}
		keys := r.resourceKeys(id)
		keys.Tags("aws:RequestTag/", add)
		out = append(out, iampolicy.Request{Action: action, Resource: r.ResourceARN(kindOf(id), id), Keys: keys})
	}
	return out
}

// TemplatePermits are those of CreateLaunchTemplate. What is in a template is asked about when it is used.
func (r *Region) TemplatePermits(tags map[string]string) []iampolicy.Request {
	return r.making("ec2:CreateLaunchTemplate", Tagging{"launch-template": tags}, "launch-template")
}

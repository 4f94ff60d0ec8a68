package iam

import (
	"github.com/joiner-sh/joiner/internal/emulator/api"
	"github.com/joiner-sh/joiner/internal/emulator/iampolicy"
	"github.com/joiner-sh/joiner/internal/emulator/world/identity"
	"github.com/joiner-sh/joiner/internal/emulator/world/site"
)

// Permissions returns the requests that IAM evaluates for a call: the call's actions on roles and instance profiles.
func Permissions(c *api.Call, in any) []iampolicy.Request {
	switch in := in.(type) {
	case *createProfileIn:
		out := profilePermissions(c, identity.Profile{Name: in.InstanceProfileName, Path: in.Path}, api.TagMap(in.Tags))
		if len(in.Tags) > 0 {
			tagging := profilePermissions(c, identity.Profile{Name: in.InstanceProfileName, Path: in.Path}, api.TagMap(in.Tags))
			tagging[0].Action = "iam:TagInstanceProfile"
			out = append(out, tagging...)
		}
		return out
	case *profileIn:
		out := profilePermissions(c, profileNamed(c, in.InstanceProfileName), nil)
		if c.Action == "AddRoleToInstanceProfile" {
			out = append(out, c.Account().PassRolePermissions(in.RoleName)...)
		}
		return out
	case *tagProfileIn:
		return profilePermissions(c, profileNamed(c, in.InstanceProfileName), api.TagMap(in.Tags))
	case *roleIn:
		return rolePermissions(c, in.RoleName)
	case *rolePolicyIn:
		return rolePermissions(c, in.RoleName)
	case *simulateIn:
		return []iampolicy.Request{{Action: c.Name(), Resource: in.PolicySourceArn}}
	}
	return []iampolicy.Request{{Action: c.Name(), Resource: "*"}}
}

// rolePermissions returns the request for the call's action on a role. For a role that does not exist, the ARN has no
// path.
func rolePermissions(c *api.Call, name string) []iampolicy.Request {
	r, err := c.Account().Role(name)
	if err != nil {
		r.ARN = "arn:aws:iam::" + c.Caller.Account + ":role/" + name
	}
	return []iampolicy.Request{{Action: c.Name(), Resource: r.ARN}}
}

// profileNamed returns the instance profile with the name. If the profile does not exist, it returns a profile without
// path and tags: IAM evaluates the policies before it reads the profile.
func profileNamed(c *api.Call, name string) identity.Profile {
	p, err := c.Account().Profile(name)
	if err != nil {
		return identity.Profile{Name: name}
	}
	return p
}

// profilePermissions returns the request for the call's action on an instance profile. newTags are the tags that the
// call adds.
func profilePermissions(c *api.Call, p identity.Profile, newTags map[string]string) []iampolicy.Request {
	keys := iampolicy.Keys{}
	keys.AddTags("aws:ResourceTag/", p.Tags)
	keys.AddTags("iam:ResourceTag/", p.Tags)
	keys.AddTags("aws:RequestTag/", newTags)
	arn := api.Or(p.ARN, "arn:"+site.Partition(c.RegionID)+":iam::"+c.Caller.Account+":instance-profile"+api.Or(p.Path, "/")+p.Name)
	return []iampolicy.Request{{Action: c.Name(), Resource: arn, Keys: keys}}
}

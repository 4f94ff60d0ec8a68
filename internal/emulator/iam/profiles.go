package iam

import (
	"github.com/joiner-sh/joiner/internal/emulator/api"
	"github.com/joiner-sh/joiner/internal/emulator/world"
	"github.com/joiner-sh/joiner/internal/emulator/world/identity"
)

type instanceProfile struct {
	Path                string
	InstanceProfileName string
	InstanceProfileId   string
	Arn                 string
	CreateDate          iamTime
	Roles               []role
	Tags                []world.Tag
}

type profileOut struct{ InstanceProfile instanceProfile }

type profileIn struct {
	InstanceProfileName string
	RoleName            string // only to add and to remove a role
}

type createProfileIn struct {
	InstanceProfileName string
	Path                string
	Tags                []world.Tag
}

type listProfilesIn struct {
	PathPrefix string
	paging
}

type profilesOfRoleIn struct {
	RoleName string
	paging
}

type listProfilesOut struct {
	InstanceProfiles []instanceProfile
	IsTruncated      bool
	Marker           string
}

type tagProfileIn struct {
	InstanceProfileName string
	Tags                []world.Tag // for TagInstanceProfile
	TagKeys             []string    // for UntagInstanceProfile
}

func profileOf(c *api.Call, p identity.Profile) instanceProfile {
	out := instanceProfile{
		Path: p.Path, InstanceProfileName: p.Name, InstanceProfileId: p.ID, Arn: p.ARN,
		CreateDate: timeOf(p.CreatedAt), Roles: []role{}, Tags: api.TagList(p.Tags),
	}
	if r, err := c.Account().Role(p.Role); err == nil {
		out.Roles = append(out.Roles, roleOf(r))
	}
	return out
}

func createInstanceProfile(c *api.Call, in *createProfileIn) (profileOut, error) {
	p, err := c.Account().CreateProfile(c.Now, identity.Profile{Name: in.InstanceProfileName, Path: in.Path, Tags: api.TagMap(in.Tags)})
	return profileOut{InstanceProfile: profileOf(c, p)}, err
}

func getInstanceProfile(c *api.Call, in *profileIn) (profileOut, error) {
	p, err := c.Account().Profile(in.InstanceProfileName)
	return profileOut{InstanceProfile: profileOf(c, p)}, err
}

func listInstanceProfiles(c *api.Call, in *listProfilesIn) (listProfilesOut, error) {
	return profilesPage(c, c.Account().Profiles(api.Or(in.PathPrefix, "/")), in.paging)
}

func listInstanceProfilesForRole(c *api.Call, in *profilesOfRoleIn) (listProfilesOut, error) {
	if _, err := c.Account().Role(in.RoleName); err != nil {
		return listProfilesOut{}, err
	}
	return profilesPage(c, c.Account().ProfilesOfRole(in.RoleName), in.paging)
}

func profilesPage(c *api.Call, all []identity.Profile, in paging) (listProfilesOut, error) {
	found, next, err := pageOf(all, func(p identity.Profile) string { return p.Name }, in)
	out := listProfilesOut{InstanceProfiles: []instanceProfile{}, IsTruncated: next != "", Marker: next}
	for _, p := range found {
		out.InstanceProfiles = append(out.InstanceProfiles, profileOf(c, p))
	}
	return out, err
}

func deleteInstanceProfile(c *api.Call, in *profileIn) (api.None, error) {
	return api.None{}, c.Account().DeleteProfile(in.InstanceProfileName)
}

func addRoleToInstanceProfile(c *api.Call, in *profileIn) (api.None, error) {
	return api.None{}, c.Account().AddRoleToProfile(in.InstanceProfileName, in.RoleName)
}

func removeRoleFromInstanceProfile(c *api.Call, in *profileIn) (api.None, error) {
	return api.None{}, c.Account().RemoveRoleFromProfile(in.InstanceProfileName, in.RoleName)
}

func tagInstanceProfile(c *api.Call, in *tagProfileIn) (api.None, error) {
	return api.None{}, c.Account().TagProfile(in.InstanceProfileName, api.TagMap(in.Tags), nil)
}

func untagInstanceProfile(c *api.Call, in *tagProfileIn) (api.None, error) {
	return api.None{}, c.Account().TagProfile(in.InstanceProfileName, nil, in.TagKeys)
}

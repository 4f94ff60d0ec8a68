package emulator

import "github.com/joiner-sh/joiner/internal/emulator/world"

// instanceProfile is an instance profile as IAM writes it.
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
	RoleName            string
}

type createProfileIn struct {
	InstanceProfileName string
	Path                string
	Tags                []world.Tag
}

type listProfilesIn struct {
	PathPrefix string
	marked
}

type profilesOfRoleIn struct {
	RoleName string
	marked
}

type listProfilesOut struct {
	InstanceProfiles []instanceProfile
	IsTruncated      bool
	Marker           string
}

type tagProfileIn struct {
	InstanceProfileName string
	Tags                []world.Tag
	TagKeys             []string
}

// profile writes an instance profile with the role in it.
func (c *call) profile(p world.Profile) instanceProfile {
	out := instanceProfile{
		Path: p.Path, InstanceProfileName: p.Name, InstanceProfileId: p.ID, Arn: p.ARN,
		CreateDate: timeOf(p.CreatedAt), Roles: []role{}, Tags: tagList(p.Tags),
	}
	if r, err := c.account().Role(p.Role); err == nil {
		out.Roles = append(out.Roles, roleOf(r))
	}
	return out
}

func createInstanceProfile(c *call, in *createProfileIn) (profileOut, error) {
	p, err := c.account().CreateProfile(c.now, world.Profile{Name: in.InstanceProfileName, Path: in.Path, Tags: tagMap(in.Tags)})
	return profileOut{InstanceProfile: c.profile(p)}, err
}

func getInstanceProfile(c *call, in *profileIn) (profileOut, error) {
	p, err := c.account().Profile(in.InstanceProfileName)
	return profileOut{InstanceProfile: c.profile(p)}, err
}

func listInstanceProfiles(c *call, in *listProfilesIn) (listProfilesOut, error) {
	return c.profiles(c.account().Profiles(or(in.PathPrefix, "/")), in.marked)
}

func listInstanceProfilesForRole(c *call, in *profilesOfRoleIn) (listProfilesOut, error) {
	if _, err := c.account().Role(in.RoleName); err != nil {
		return listProfilesOut{}, err
	}
	return c.profiles(c.account().ProfilesOfRole(in.RoleName), in.marked)
}

// profiles writes a page of a list of instance profiles.
func (c *call) profiles(all []world.Profile, m marked) (listProfilesOut, error) {
	found, next, err := slice(all, func(p world.Profile) string { return p.Name }, m)
	out := listProfilesOut{InstanceProfiles: []instanceProfile{}, IsTruncated: next != "", Marker: next}
	for _, p := range found {
		out.InstanceProfiles = append(out.InstanceProfiles, c.profile(p))
	}
	return out, err
}

func deleteInstanceProfile(c *call, in *profileIn) (none, error) {
	return none{}, c.account().DeleteProfile(in.InstanceProfileName)
}

func addRoleToInstanceProfile(c *call, in *profileIn) (none, error) {
	return none{}, c.account().AddRoleToProfile(in.InstanceProfileName, in.RoleName)
}

func removeRoleFromInstanceProfile(c *call, in *profileIn) (none, error) {
	return none{}, c.account().RemoveRoleFromProfile(in.InstanceProfileName, in.RoleName)
}

func tagInstanceProfile(c *call, in *tagProfileIn) (none, error) {
	return none{}, c.account().TagProfile(in.InstanceProfileName, tagMap(in.Tags), nil)
}

func untagInstanceProfile(c *call, in *tagProfileIn) (none, error) {
	return none{}, c.account().TagProfile(in.InstanceProfileName, nil, in.TagKeys)
}

package identity

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/joiner-sh/joiner/internal/emulator/world/failure"
	"github.com/joiner-sh/joiner/internal/emulator/world/site"
)

// CreateProfile creates an instance profile without a role. An empty path stands for "/".
func (a *IAM) CreateProfile(now time.Time, p Profile) (Profile, error) {
	if !validName(p.Name, 128) {
		return Profile{}, failure.New("ValidationError", "The specified value for instanceProfileName is invalid. It must contain only alphanumeric characters and/or the following: +=,.@_-")
	}
	if a.profiles[p.Name] != nil {
		return Profile{}, failure.WithStatus(409, "EntityAlreadyExists", "Instance Profile %s already exists.", p.Name)
	}
	if p.Path == "" {
		p.Path = "/"
	}
	p.ID = "AIPA" + a.ids.Letters("profile", 17)
	p.ARN = a.arn("iam", "instance-profile"+p.Path+p.Name)
	p.CreatedAt = now
	p.Tags = maps.Clone(p.Tags)
	p.Role = ""
	if a.profiles == nil {
		a.profiles = map[string]*Profile{}
	}
	a.profiles[p.Name] = &p
	return p, nil
}

// Profile returns an instance profile by name.
func (a *IAM) Profile(name string) (Profile, error) {
	if p := a.profiles[name]; p != nil {
		return *p, nil
	}
	return Profile{}, profileNotFound(name)
}

// ProfileByARN returns an instance profile by its ARN.
func (a *IAM) ProfileByARN(arn string) (Profile, error) {
	p, err := a.Profile(arn[strings.LastIndexByte(arn, '/')+1:])
	if err == nil && p.ARN != arn {
		return Profile{}, profileNotFound(arn)
	}
	return p, err
}

// Profiles returns the instance profiles under a path, sorted by name.
func (a *IAM) Profiles(pathPrefix string) []Profile {
	var out []Profile
	for _, name := range slices.Sorted(maps.Keys(a.profiles)) {
		if strings.HasPrefix(a.profiles[name].Path, pathPrefix) {
			out = append(out, *a.profiles[name])
		}
	}
	return out
}

// ProfilesOfRole returns the instance profiles with the role, sorted by name.
func (a *IAM) ProfilesOfRole(role string) []Profile {
	return slices.DeleteFunc(a.Profiles("/"), func(p Profile) bool { return p.Role != role })
}

// AddRoleToProfile adds a role to an instance profile. A profile has at most one role.
func (a *IAM) AddRoleToProfile(profile, role string) error {
	p := a.profiles[profile]
	if p == nil {
		return profileNotFound(profile)
	}
	if a.roles[role] == nil {
		return roleNotFound(role)
	}
	if p.Role != "" {
		return failure.WithStatus(409, "LimitExceeded", "Cannot exceed quota for InstanceSessionsPerInstanceProfile: 1")
	}
	p.Role = role
	return nil
}

// RemoveRoleFromProfile removes the role from an instance profile.
func (a *IAM) RemoveRoleFromProfile(profile, role string) error {
	p := a.profiles[profile]
	if p == nil {
		return profileNotFound(profile)
	}
	if p.Role != role {
		return failure.WithStatus(404, "NoSuchEntity", "The role with name %s cannot be found.", role)
	}
	p.Role = ""
	return nil
}

// DeleteProfile deletes an instance profile. It returns an error if the profile has a role.
func (a *IAM) DeleteProfile(name string) error {
	p := a.profiles[name]
	if p == nil {
		return profileNotFound(name)
	}
	if p.Role != "" {
		return failure.WithStatus(409, "DeleteConflict", "Cannot delete entity, must remove roles from instance profile first.")
	}
	delete(a.profiles, name)
	return nil
}

// TagProfile adds tags to an instance profile, and removes the tags with the keys in remove.
func (a *IAM) TagProfile(name string, add map[string]string, remove []string) error {
	p := a.profiles[name]
	if p == nil {
		return profileNotFound(name)
	}
	p.Tags = site.WithTags(p.Tags, add, remove)
	return nil
}

func profileNotFound(name string) error {
	return failure.WithStatus(404, "NoSuchEntity", "Instance Profile %s cannot be found.", name)
}

package identity

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/joiner-sh/joiner/internal/emulator/iampolicy"
	"github.com/joiner-sh/joiner/internal/emulator/world/failure"
	"github.com/joiner-sh/joiner/internal/emulator/world/site"
)

// Role is an IAM role.
type Role struct {
	Name, Path  string            // name, and path: "/" by default
	ID          string            // "AROA…"
	ARN         string            // "arn:aws:iam::111122223333:role/node"
	TrustPolicy string            // JSON, as given
	Description string            // free text; empty: none
	CreatedAt   time.Time         // creation time
	Tags        map[string]string // nil: none
	Policies    []string          // ARNs of the attached managed policies, sorted

	inline map[string]iampolicy.Policy // inline policies, by name
}

// InlineNames returns the names of the role's inline policies, sorted.
func (r Role) InlineNames() []string { return slices.Sorted(maps.Keys(r.inline)) }

// TrustsEC2 reports whether the trust policy allows EC2 to assume the role for instances. It does not evaluate the
// policy, but checks the text: whether it contains the principal of EC2, a "*", or no principal.
func (r Role) TrustsEC2() bool {
	return !strings.Contains(r.TrustPolicy, "Principal") || strings.Contains(r.TrustPolicy, `"ec2.amazonaws.com`) ||
		strings.Contains(r.TrustPolicy, `"*"`)
}

// Profile is an instance profile.
type Profile struct {
	Name, Path string            // name, unique in the account, and path: "/" by default
	ID         string            // "AIPA…"
	ARN        string            // "arn:aws:iam::111122223333:instance-profile/…"
	CreatedAt  time.Time         // creation time; see Faults.ProfileLag
	Tags       map[string]string // nil: none
	Role       string            // name of its role; empty: none
}

// CreateRole creates a role. An empty path stands for "/".
func (a *IAM) CreateRole(now time.Time, role Role) (Role, error) {
	if !validName(role.Name, 64) {
		return Role{}, failure.New("ValidationError", "The specified value for roleName is invalid. It must contain only alphanumeric characters and/or the following: +=,.@_-")
	}
	if a.roles[role.Name] != nil {
		return Role{}, failure.WithStatus(409, "EntityAlreadyExists", "Role with name %s already exists.", role.Name)
	}
	if role.Path == "" {
		role.Path = "/"
	}
	role.ID = "AROA" + a.ids.Letters("role", 17)
	role.ARN = a.arn("iam", "role"+role.Path+role.Name)
	role.CreatedAt = now
	role.Tags = maps.Clone(role.Tags)
	if a.roles == nil {
		a.roles = map[string]*Role{}
	}
	a.roles[role.Name] = &role
	return role, nil
}

// CreateSpotRole creates the service-linked role for spot instances.
func (a *IAM) CreateSpotRole(now time.Time) (Role, error) {
	const name = "AWSServiceRoleForEC2Spot"
	if a.roles[name] != nil {
		return Role{}, failure.New("InvalidInput", "Service role name %s has been taken in this account, please try a different suffix.", name)
	}
	a.NoSpotRole = false
	return a.CreateRole(now, Role{
		Name:        name,
		Path:        "/aws-service-role/spot.amazonaws.com/",
		Description: "Default EC2 Spot Service Linked Role",
		TrustPolicy: `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"Service":"spot.amazonaws.com"},"Action":"sts:AssumeRole"}]}`})
}

// Role returns a role by name.
func (a *IAM) Role(name string) (Role, error) {
	if r := a.roles[name]; r != nil {
		return *r, nil
	}
	return Role{}, roleNotFound(name)
}

// Roles returns the roles under a path, sorted by name.
func (a *IAM) Roles(pathPrefix string) []Role {
	var out []Role
	for _, name := range slices.Sorted(maps.Keys(a.roles)) {
		if strings.HasPrefix(a.roles[name].Path, pathPrefix) {
			out = append(out, *a.roles[name])
		}
	}
	return out
}

// DeleteRole deletes a role. It returns an error if the role has managed policies or is in an instance profile.
func (a *IAM) DeleteRole(name string) error {
	r := a.roles[name]
	if r == nil {
		return roleNotFound(name)
	}
	if len(r.Policies) > 0 {
		return failure.WithStatus(409, "DeleteConflict", "Cannot delete entity, must detach all policies first.")
	}
	if len(a.ProfilesOfRole(name)) > 0 {
		return failure.WithStatus(409, "DeleteConflict", "Cannot delete entity, must remove roles from instance profile first.")
	}
	delete(a.roles, name)
	return nil
}

// AttachPolicy attaches a managed policy to a role. The policy need not exist: the world does not have AWS managed
// policies.
func (a *IAM) AttachPolicy(role, policyARN string) error {
	r := a.roles[role]
	if r == nil {
		return roleNotFound(role)
	}
	if !slices.Contains(r.Policies, policyARN) {
		policies := append(slices.Clone(r.Policies), policyARN)
		slices.Sort(policies)
		r.Policies = policies
	}
	return nil
}

// DetachPolicy detaches a managed policy from a role.
func (a *IAM) DetachPolicy(role, policyARN string) error {
	r := a.roles[role]
	if r == nil {
		return roleNotFound(role)
	}
	if !slices.Contains(r.Policies, policyARN) {
		return failure.WithStatus(404, "NoSuchEntity", "Policy %s was not found.", policyARN)
	}
	r.Policies = slices.DeleteFunc(slices.Clone(r.Policies), func(p string) bool { return p == policyARN })
	return nil
}

// PutRolePolicy sets an inline policy of a role. It replaces an inline policy with the same name.
func (a *IAM) PutRolePolicy(role, name, document string) error {
	r := a.roles[role]
	if r == nil {
		return roleNotFound(role)
	}
	parsed, err := iampolicy.Read([]byte(document))
	if err != nil {
		return failure.New("MalformedPolicyDocument", "Syntax errors in policy: %v", err)
	}
	inline := maps.Clone(r.inline) // copies that Role has returned share the map
	if inline == nil {
		inline = map[string]iampolicy.Policy{}
	}
	inline[name] = parsed
	r.inline = inline
	return nil
}

// UpdateTrust replaces the trust policy of a role.
func (a *IAM) UpdateTrust(role, document string) error {
	r := a.roles[role]
	if r == nil {
		return roleNotFound(role)
	}
	r.TrustPolicy = document
	return nil
}

// TagRole adds tags to a role, and removes the tags with the keys in remove.
func (a *IAM) TagRole(name string, add map[string]string, remove []string) error {
	r := a.roles[name]
	if r == nil {
		return roleNotFound(name)
	}
	r.Tags = site.WithTags(r.Tags, add, remove)
	return nil
}

func roleNotFound(name string) error {
	return failure.WithStatus(404, "NoSuchEntity", "The role with name %s cannot be found.", name)
}

// validName reports whether IAM allows the name. longest is the maximum number of bytes.
func validName(name string, longest int) bool {
	if name == "" || len(name) > longest {
		return false
	}
	for _, c := range name {
		isAlphanumeric := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !isAlphanumeric && !strings.ContainsRune("+=,.@_-", c) {
			return false
		}
	}
	return true
}

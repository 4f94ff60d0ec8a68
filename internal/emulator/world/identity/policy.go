package identity

import (
	"slices"
	"time"
	"unicode"

	"github.com/joiner-sh/joiner/internal/emulator/iampolicy"
	"github.com/joiner-sh/joiner/internal/emulator/world/failure"
)

// Policy is a customer managed policy.
type Policy struct {
	Name, Path string    // name, and path: "/" by default
	ID         string    // "ANPA…"
	ARN        string    // "arn:aws:iam::111122223333:policy/…"
	Document   string    // JSON, as given
	CreatedAt  time.Time // creation time

	parsed iampolicy.Policy
}

// maxPolicy is the maximum number of characters of a managed policy, not counting white space.
const maxPolicy = 6144

// CreatePolicy creates a managed policy. An empty path stands for "/".
func (a *IAM) CreatePolicy(now time.Time, p Policy) (Policy, error) {
	if !validName(p.Name, 128) {
		return Policy{}, failure.New("ValidationError", "The specified value for policyName is invalid. It must contain only alphanumeric characters and/or the following: +=,.@_-")
	}
	if p.Path == "" {
		p.Path = "/"
	}
	p.ARN = a.arn("iam", "policy"+p.Path+p.Name)
	if a.policies[p.ARN] != nil {
		return Policy{}, failure.WithStatus(409, "EntityAlreadyExists",
			"A policy called %s already exists. Duplicate names are not allowed.", p.Name)
	}
	size := 0
	for _, r := range p.Document {
		if !unicode.IsSpace(r) {
			size++
		}
	}
	if size > maxPolicy {
		return Policy{}, failure.WithStatus(409, "LimitExceeded", "Cannot exceed quota for PolicySize: %d", maxPolicy)
	}
	var err error
	if p.parsed, err = iampolicy.Read([]byte(p.Document)); err != nil {
		return Policy{}, failure.New("MalformedPolicyDocument", "Syntax errors in policy: %v", err)
	}
	p.ID, p.CreatedAt = "ANPA"+a.ids.Letters("policy", 17), now
	if a.policies == nil {
		a.policies = map[string]*Policy{}
	}
	a.policies[p.ARN] = &p
	return p, nil
}

// Policy returns a managed policy of the account by its ARN.
func (a *IAM) Policy(arn string) (Policy, error) {
	if p := a.policies[arn]; p != nil {
		return *p, nil
	}
	return Policy{}, failure.WithStatus(404, "NoSuchEntity", "Policy %s was not found.", arn)
}

// DeletePolicy deletes a managed policy. It returns an error if the policy is attached to a role.
func (a *IAM) DeletePolicy(arn string) error {
	if _, err := a.Policy(arn); err != nil {
		return err
	}
	for _, r := range a.roles {
		if slices.Contains(r.Policies, arn) {
			return failure.WithStatus(409, "DeleteConflict", "Cannot delete a policy attached to entities.")
		}
	}
	delete(a.policies, arn)
	return nil
}

// IsRestricted reports whether the policies of a role are evaluated: whether the role has an inline policy or a
// customer managed policy. A role with AWS managed policies only, or without policies, is allowed everything, because
// the world does not have the documents of AWS managed policies. In AWS, a role without policies is allowed nothing.
func (a *IAM) IsRestricted(role string) bool {
	r := a.roles[role]
	return r != nil && (len(r.inline) > 0 || slices.ContainsFunc(r.Policies, func(arn string) bool { return a.policies[arn] != nil }))
}

// Judge evaluates the policies of a role, and the service control policies, for a request. The role must be restricted:
// see IsRestricted.
func (a *IAM) Judge(role string, r iampolicy.Request) iampolicy.Verdict {
	for _, scp := range a.scps {
		if iampolicy.Judge([]iampolicy.Policy{scp.parsed}, r).Denied {
			return iampolicy.Verdict{Denied: true}
		}
	}
	var policies []iampolicy.Policy
	if known := a.roles[role]; known != nil {
		for _, arn := range known.Policies {
			if p := a.policies[arn]; p != nil {
				policies = append(policies, p.parsed)
			}
		}
		for _, name := range known.InlineNames() {
			policies = append(policies, known.inline[name])
		}
	}
	return iampolicy.Judge(policies, r)
}

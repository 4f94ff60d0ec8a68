package emulator

import (
	"net/url"
	"strings"
	"time"

	"github.com/joiner-sh/joiner/internal/emulator/world"
)

// iamActions returns the actions of IAM.
func iamActions() map[string]action {
	return map[string]action{
		"CreateRole":                    op(createRole),
		"CreateServiceLinkedRole":       op(createServiceLinkedRole),
		"GetRole":                       op(getRole),
		"ListRoles":                     op(listRoles),
		"DeleteRole":                    op(deleteRole),
		"TagRole":                       op(tagRole),
		"UntagRole":                     op(untagRole),
		"CreatePolicy":                  op(createPolicy),
		"GetPolicy":                     op(getPolicy),
		"DeletePolicy":                  op(deletePolicy),
		"AttachRolePolicy":              op(attachRolePolicy),
		"DetachRolePolicy":              op(detachRolePolicy),
		"ListAttachedRolePolicies":      op(listAttachedRolePolicies),
		"ListRolePolicies":              op(listRolePolicies),
		"PutRolePolicy":                 op(putRolePolicy),
		"UpdateAssumeRolePolicy":        op(updateAssumeRolePolicy),
		"CreateInstanceProfile":         op(createInstanceProfile),
		"GetInstanceProfile":            op(getInstanceProfile),
		"ListInstanceProfiles":          op(listInstanceProfiles),
		"ListInstanceProfilesForRole":   op(listInstanceProfilesForRole),
		"DeleteInstanceProfile":         op(deleteInstanceProfile),
		"AddRoleToInstanceProfile":      op(addRoleToInstanceProfile),
		"RemoveRoleFromInstanceProfile": op(removeRoleFromInstanceProfile),
		"TagInstanceProfile":            op(tagInstanceProfile),
		"UntagInstanceProfile":          op(untagInstanceProfile),
		"SimulatePrincipalPolicy":       op(simulatePrincipalPolicy),
	}
}

// role is a role as IAM writes it.
type role struct {
	Path                     string
	RoleName                 string
	RoleId                   string
	Arn                      string
	CreateDate               iamTime
	AssumeRolePolicyDocument string // URL-encoded
	Description              string
	MaxSessionDuration       int64
	Tags                     []world.Tag
}

// iamTime is a time as the query services write it: to the second.
type iamTime string

func timeOf(t time.Time) iamTime { return iamTime(t.UTC().Format("2006-01-02T15:04:05Z")) }

func roleOf(r world.Role) role {
	return role{
		Path: r.Path, RoleName: r.Name, RoleId: r.ID, Arn: r.ARN, CreateDate: timeOf(r.CreatedAt),
		AssumeRolePolicyDocument: url.QueryEscape(r.TrustPolicy), Description: r.Description,
		MaxSessionDuration: 3600, Tags: tagList(r.Tags),
	}
}

type roleOut struct{ Role role }

type createRoleIn struct {
	Path                     string
	RoleName                 string
	AssumeRolePolicyDocument string
	Description              string
	Tags                     []world.Tag
}

func createRole(c *call, in *createRoleIn) (roleOut, error) {
	if in.AssumeRolePolicyDocument == "" {
		return roleOut{}, required("assumeRolePolicyDocument")
	}
	r, err := c.account().CreateRole(c.now, world.Role{
		Name: in.RoleName, Path: in.Path, TrustPolicy: in.AssumeRolePolicyDocument, Description: in.Description, Tags: tagMap(in.Tags),
	})
	return roleOut{Role: roleOf(r)}, err
}

type serviceRoleIn struct {
	AWSServiceName string
	Description    string
}

// createServiceLinkedRole makes the role of a service in the account. The world knows that of spot instances.
func createServiceLinkedRole(c *call, in *serviceRoleIn) (roleOut, error) {
	if in.AWSServiceName != "spot.amazonaws.com" {
		return roleOut{}, &world.Error{Code: "InvalidInput", Message: "This emulator makes the service-linked role of spot.amazonaws.com only."}
	}
	r, err := c.account().CreateSpotRole(c.now)
	return roleOut{Role: roleOf(r)}, err
}

type roleIn struct{ RoleName string }

func getRole(c *call, in *roleIn) (roleOut, error) {
	r, err := c.account().Role(in.RoleName)
	return roleOut{Role: roleOf(r)}, err
}

// marked are the parameters by which IAM's lists are read page by page.
type marked struct {
	Marker   string
	MaxItems *int64
}

// slice returns the part of a list asked for, and where the next begins.
func slice[T any](items []T, key func(T) string, m marked) ([]T, string, error) {
	p := page{token: m.Marker, size: 100}
	if m.MaxItems != nil {
		if *m.MaxItems < 1 || *m.MaxItems > 1000 {
			return nil, "", &world.Error{Code: "ValidationError", Message: "MaxItems must be between 1 and 1000"}
		}
		p.size = int(*m.MaxItems)
	}
	part, next, err := cut(items, key, p)
	if err != nil {
		return nil, "", &world.Error{Code: "ValidationError", Message: "Invalid Marker."}
	}
	return append([]T{}, part...), next, nil
}

type listRolesIn struct {
	PathPrefix string
	marked
}

type listRolesOut struct {
	Roles       []role
	IsTruncated bool
	Marker      string
}

func listRoles(c *call, in *listRolesIn) (listRolesOut, error) {
	found, next, err := slice(c.account().Roles(or(in.PathPrefix, "/")), func(r world.Role) string { return r.Name }, in.marked)
	if err != nil {
		return listRolesOut{}, err
	}
	out := listRolesOut{Roles: []role{}, IsTruncated: next != "", Marker: next}
	for _, r := range found {
		out.Roles = append(out.Roles, roleOf(r))
	}
	return out, nil
}

func deleteRole(c *call, in *roleIn) (none, error) {
	return none{}, c.account().DeleteRole(in.RoleName)
}

type tagRoleIn struct {
	RoleName string
	Tags     []world.Tag
	TagKeys  []string
}

func tagRole(c *call, in *tagRoleIn) (none, error) {
	return none{}, c.account().TagRole(in.RoleName, tagMap(in.Tags), nil)
}

func untagRole(c *call, in *tagRoleIn) (none, error) {
	return none{}, c.account().TagRole(in.RoleName, nil, in.TagKeys)
}

type rolePolicyIn struct {
	RoleName  string
	PolicyArn string
	marked
}

func attachRolePolicy(c *call, in *rolePolicyIn) (none, error) {
	if !strings.HasPrefix(in.PolicyArn, "arn:") {
		return none{}, &world.Error{Code: "InvalidInput", Message: "ARN " + in.PolicyArn + " is not valid."}
	}
	return none{}, c.account().AttachPolicy(in.RoleName, in.PolicyArn)
}

func detachRolePolicy(c *call, in *rolePolicyIn) (none, error) {
	return none{}, c.account().DetachPolicy(in.RoleName, in.PolicyArn)
}

type attachedPoliciesOut struct {
	AttachedPolicies []attachedPolicy
	IsTruncated      bool
}

type attachedPolicy struct {
	PolicyName string
	PolicyArn  string
}

func listAttachedRolePolicies(c *call, in *rolePolicyIn) (attachedPoliciesOut, error) {
	r, err := c.account().Role(in.RoleName)
	out := attachedPoliciesOut{AttachedPolicies: []attachedPolicy{}}
	for _, arn := range r.Policies {
		out.AttachedPolicies = append(out.AttachedPolicies, attachedPolicy{PolicyName: arn[strings.LastIndexByte(arn, '/')+1:], PolicyArn: arn})
	}
	return out, err
}

type rolePoliciesOut struct {
	PolicyNames []string
	IsTruncated bool
}

// listRolePolicies lists inline policies.
func listRolePolicies(c *call, in *rolePolicyIn) (rolePoliciesOut, error) {
	r, err := c.account().Role(in.RoleName)
	return rolePoliciesOut{PolicyNames: append([]string{}, r.Inline()...)}, err
}

type putRolePolicyIn struct{ RoleName, PolicyName, PolicyDocument string }

func putRolePolicy(c *call, in *putRolePolicyIn) (none, error) {
	if in.PolicyName == "" {
		return none{}, required("policyName")
	}
	return none{}, c.account().PutRolePolicy(in.RoleName, in.PolicyName, in.PolicyDocument)
}

type updateTrustIn struct{ RoleName, PolicyDocument string }

func updateAssumeRolePolicy(c *call, in *updateTrustIn) (none, error) {
	if in.PolicyDocument == "" {
		return none{}, required("policyDocument")
	}
	return none{}, c.account().UpdateTrust(in.RoleName, in.PolicyDocument)
}

// tagMap makes a map of tags.
func tagMap(tags []world.Tag) map[string]string {
	out := make(map[string]string, len(tags))
	for _, t := range tags {
		out[t.Key] = t.Value
	}
	return out
}

// required refuses a request that lacks a parameter, as IAM does.
func required(name string) error {
	return &world.Error{Code: "ValidationError", Message: "1 validation error detected: Value at '" + name + "' failed to satisfy constraint: Member must not be null"}
}

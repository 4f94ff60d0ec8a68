// Package iam serves the actions of IAM and STS from the emulated world.
//
// In: a call with its parameters as a struct.
// Out: the answer as a struct with the names of IAM's and STS's API, or their errors.
// Never: HTTP, or the evaluation of policies (see package iampolicy).
package iam

import (
	"net/url"
	"strings"
	"time"

	"github.com/joiner-sh/joiner/internal/emulator/api"
	"github.com/joiner-sh/joiner/internal/emulator/world"
	"github.com/joiner-sh/joiner/internal/emulator/world/failure"
	"github.com/joiner-sh/joiner/internal/emulator/world/identity"
)

// Actions returns the actions of IAM.
func Actions() map[string]api.Action {
	return map[string]api.Action{
		"CreateRole":                    api.Op(createRole),
		"CreateServiceLinkedRole":       api.Op(createServiceLinkedRole),
		"GetRole":                       api.Op(getRole),
		"ListRoles":                     api.Op(listRoles),
		"DeleteRole":                    api.Op(deleteRole),
		"TagRole":                       api.Op(tagRole),
		"UntagRole":                     api.Op(untagRole),
		"CreatePolicy":                  api.Op(createPolicy),
		"GetPolicy":                     api.Op(getPolicy),
		"DeletePolicy":                  api.Op(deletePolicy),
		"AttachRolePolicy":              api.Op(attachRolePolicy),
		"DetachRolePolicy":              api.Op(detachRolePolicy),
		"ListAttachedRolePolicies":      api.Op(listAttachedRolePolicies),
		"ListRolePolicies":              api.Op(listRolePolicies),
		"PutRolePolicy":                 api.Op(putRolePolicy),
		"UpdateAssumeRolePolicy":        api.Op(updateAssumeRolePolicy),
		"CreateInstanceProfile":         api.Op(createInstanceProfile),
		"GetInstanceProfile":            api.Op(getInstanceProfile),
		"ListInstanceProfiles":          api.Op(listInstanceProfiles),
		"ListInstanceProfilesForRole":   api.Op(listInstanceProfilesForRole),
		"DeleteInstanceProfile":         api.Op(deleteInstanceProfile),
		"AddRoleToInstanceProfile":      api.Op(addRoleToInstanceProfile),
		"RemoveRoleFromInstanceProfile": api.Op(removeRoleFromInstanceProfile),
		"TagInstanceProfile":            api.Op(tagInstanceProfile),
		"UntagInstanceProfile":          api.Op(untagInstanceProfile),
		"SimulatePrincipalPolicy":       api.Op(simulatePrincipalPolicy),
	}
}

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

// iamTime is a time in the format of IAM and STS, with a precision of one second.
type iamTime string

func timeOf(t time.Time) iamTime { return iamTime(t.UTC().Format("2006-01-02T15:04:05Z")) }

func roleOf(r identity.Role) role {
	return role{
		Path: r.Path, RoleName: r.Name, RoleId: r.ID, Arn: r.ARN, CreateDate: timeOf(r.CreatedAt),
		AssumeRolePolicyDocument: url.QueryEscape(r.TrustPolicy), Description: r.Description,
		MaxSessionDuration: 3600 /* seconds */, Tags: api.TagList(r.Tags),
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

func createRole(c *api.Call, in *createRoleIn) (roleOut, error) {
	if in.AssumeRolePolicyDocument == "" {
		return roleOut{}, api.MissingParameter("assumeRolePolicyDocument")
	}
	r, err := c.Account().CreateRole(c.Now, identity.Role{
		Name: in.RoleName, Path: in.Path, TrustPolicy: in.AssumeRolePolicyDocument, Description: in.Description, Tags: api.TagMap(in.Tags),
	})
	return roleOut{Role: roleOf(r)}, err
}

type serviceRoleIn struct {
	AWSServiceName string
	Description    string
}

// createServiceLinkedRole creates the service-linked role of a service. Only the role for spot instances is emulated.
func createServiceLinkedRole(c *api.Call, in *serviceRoleIn) (roleOut, error) {
	if in.AWSServiceName != "spot.amazonaws.com" {
		return roleOut{}, &failure.Error{Code: "InvalidInput", Message: "This emulator makes the service-linked role of spot.amazonaws.com only."}
	}
	r, err := c.Account().CreateSpotRole(c.Now)
	return roleOut{Role: roleOf(r)}, err
}

type roleIn struct{ RoleName string }

func getRole(c *api.Call, in *roleIn) (roleOut, error) {
	r, err := c.Account().Role(in.RoleName)
	return roleOut{Role: roleOf(r)}, err
}

type paging struct {
	Marker   string
	MaxItems *int64
}

// pageOf returns the requested page of a list, and the marker of the next page.
func pageOf[T any](items []T, key func(T) string, in paging) ([]T, string, error) {
	p := api.Page{Token: in.Marker, Size: 100}
	if in.MaxItems != nil {
		if *in.MaxItems < 1 || *in.MaxItems > 1000 {
			return nil, "", &failure.Error{Code: "ValidationError", Message: "MaxItems must be between 1 and 1000"}
		}
		p.Size = int(*in.MaxItems)
	}
	part, next, err := api.PageOf(items, key, p)
	if err != nil {
		return nil, "", &failure.Error{Code: "ValidationError", Message: "Invalid Marker."}
	}
	return append([]T{}, part...), next, nil
}

type listRolesIn struct {
	PathPrefix string
	paging
}

type listRolesOut struct {
	Roles       []role
	IsTruncated bool
	Marker      string
}

func listRoles(c *api.Call, in *listRolesIn) (listRolesOut, error) {
	found, next, err := pageOf(c.Account().Roles(api.Or(in.PathPrefix, "/")), func(r identity.Role) string { return r.Name }, in.paging)
	if err != nil {
		return listRolesOut{}, err
	}
	out := listRolesOut{Roles: []role{}, IsTruncated: next != "", Marker: next}
	for _, r := range found {
		out.Roles = append(out.Roles, roleOf(r))
	}
	return out, nil
}

func deleteRole(c *api.Call, in *roleIn) (api.None, error) {
	return api.None{}, c.Account().DeleteRole(in.RoleName)
}

type tagRoleIn struct {
	RoleName string
	Tags     []world.Tag // for TagRole
	TagKeys  []string    // for UntagRole
}

func tagRole(c *api.Call, in *tagRoleIn) (api.None, error) {
	return api.None{}, c.Account().TagRole(in.RoleName, api.TagMap(in.Tags), nil)
}

func untagRole(c *api.Call, in *tagRoleIn) (api.None, error) {
	return api.None{}, c.Account().TagRole(in.RoleName, nil, in.TagKeys)
}

type rolePolicyIn struct {
	RoleName  string
	PolicyArn string // only to attach and to detach a policy
	paging
}

func attachRolePolicy(c *api.Call, in *rolePolicyIn) (api.None, error) {
	if !strings.HasPrefix(in.PolicyArn, "arn:") {
		return api.None{}, &failure.Error{Code: "InvalidInput", Message: "ARN " + in.PolicyArn + " is not valid."}
	}
	return api.None{}, c.Account().AttachPolicy(in.RoleName, in.PolicyArn)
}

func detachRolePolicy(c *api.Call, in *rolePolicyIn) (api.None, error) {
	return api.None{}, c.Account().DetachPolicy(in.RoleName, in.PolicyArn)
}

type attachedPoliciesOut struct {
	AttachedPolicies []attachedPolicy
	IsTruncated      bool
}

type attachedPolicy struct {
	PolicyName string
	PolicyArn  string
}

func listAttachedRolePolicies(c *api.Call, in *rolePolicyIn) (attachedPoliciesOut, error) {
	r, err := c.Account().Role(in.RoleName)
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

// listRolePolicies lists the names of the inline policies.
func listRolePolicies(c *api.Call, in *rolePolicyIn) (rolePoliciesOut, error) {
	r, err := c.Account().Role(in.RoleName)
	return rolePoliciesOut{PolicyNames: append([]string{}, r.InlineNames()...)}, err
}

type putRolePolicyIn struct{ RoleName, PolicyName, PolicyDocument string }

func putRolePolicy(c *api.Call, in *putRolePolicyIn) (api.None, error) {
	if in.PolicyName == "" {
		return api.None{}, api.MissingParameter("policyName")
	}
	return api.None{}, c.Account().PutRolePolicy(in.RoleName, in.PolicyName, in.PolicyDocument)
}

type updateTrustIn struct{ RoleName, PolicyDocument string }

func updateAssumeRolePolicy(c *api.Call, in *updateTrustIn) (api.None, error) {
	if in.PolicyDocument == "" {
		return api.None{}, api.MissingParameter("policyDocument")
	}
	return api.None{}, c.Account().UpdateTrust(in.RoleName, in.PolicyDocument)
}

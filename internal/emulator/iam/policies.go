package iam

import (
	"slices"

	"github.com/joiner-sh/joiner/internal/emulator/api"
	"github.com/joiner-sh/joiner/internal/emulator/world"
	"github.com/joiner-sh/joiner/internal/emulator/world/identity"
)

type managedPolicy struct {
	PolicyName       string
	PolicyId         string
	Arn              string
	Path             string
	DefaultVersionId string
	AttachmentCount  int64 `aws:",,always"`
	IsAttachable     bool
	CreateDate       iamTime
	UpdateDate       iamTime
}

type policyOut struct{ Policy managedPolicy }

type createPolicyIn struct {
	PolicyName     string
	Path           string
	PolicyDocument string
	Description    string
	Tags           []world.Tag
}

type policyIn struct{ PolicyArn string }

func policyOf(c *api.Call, p identity.Policy) policyOut {
	out := managedPolicy{
		PolicyName: p.Name, PolicyId: p.ID, Arn: p.ARN, Path: p.Path, DefaultVersionId: "v1", IsAttachable: true,
		CreateDate: timeOf(p.CreatedAt), UpdateDate: timeOf(p.CreatedAt),
	}
	for _, r := range c.Account().Roles("/") { // all roles
		if slices.Contains(r.Policies, p.ARN) {
			out.AttachmentCount++
		}
	}
	return policyOut{Policy: out}
}

func createPolicy(c *api.Call, in *createPolicyIn) (policyOut, error) {
	if in.PolicyDocument == "" {
		return policyOut{}, api.MissingParameter("policyDocument")
	}
	p, err := c.Account().CreatePolicy(c.Now, identity.Policy{Name: in.PolicyName, Path: in.Path, Document: in.PolicyDocument})
	if err != nil {
		return policyOut{}, err
	}
	return policyOf(c, p), nil
}

func getPolicy(c *api.Call, in *policyIn) (policyOut, error) {
	p, err := c.Account().Policy(in.PolicyArn)
	if err != nil {
		return policyOut{}, err
	}
	return policyOf(c, p), nil
}

func deletePolicy(c *api.Call, in *policyIn) (api.None, error) {
	return api.None{}, c.Account().DeletePolicy(in.PolicyArn)
}

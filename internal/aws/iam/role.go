package iam

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsiam "github.com/aws/aws-sdk-go-v2/service/iam"
	iamtypes "github.com/aws/aws-sdk-go-v2/service/iam/types"

	"github.com/joiner-sh/joiner/internal/aws/awserr"
	"github.com/joiner-sh/joiner/internal/diagnosis"
)

// Role returns IAM's description of a role, by its name without path. The error is awserr.Gone if the role does not
// exist.
func (d *Client) Role(ctx context.Context, name string) (diagnosis.Role, error) {
	got, err := d.iam.GetRole(ctx, &awsiam.GetRoleInput{RoleName: aws.String(name)})
	if err != nil {
		return diagnosis.Role{}, awserr.Classify("GetRole "+name, err)
	}
	if got.Role == nil {
		return diagnosis.Role{}, &awserr.Error{Op: "GetRole " +
			name, Kind: awserr.Transient, Reason: "EmptyAnswer", Message: "IAM does not describe the role"}
	}
	out := diagnosis.Role{ARN: aws.ToString(got.Role.Arn), Created: aws.ToTime(got.Role.CreateDate)}
	if out.Trusts, err = trustedPrincipals(aws.ToString(got.Role.AssumeRolePolicyDocument)); err != nil {
		return diagnosis.Role{}, fmt.Errorf("read trust policy of role %s: %w", name, err)
	}
	attached := awsiam.NewListAttachedRolePoliciesPaginator(d.iam, &awsiam.ListAttachedRolePoliciesInput{RoleName: aws.String(name)})
	for attached.HasMorePages() {
		page, err := attached.NextPage(ctx)
		if err != nil {
			return diagnosis.Role{}, awserr.Classify("ListAttachedRolePolicies "+name, err)
		}
		for _, p := range page.AttachedPolicies {
			out.Policies = append(out.Policies, aws.ToString(p.PolicyArn))
		}
	}
	slices.Sort(out.Policies)
	inline := awsiam.NewListRolePoliciesPaginator(d.iam, &awsiam.ListRolePoliciesInput{RoleName: aws.String(name)})
	for inline.HasMorePages() {
		page, err := inline.NextPage(ctx)
		if err != nil {
			return diagnosis.Role{}, awserr.Classify("ListRolePolicies "+name, err)
		}
		out.Inline += len(page.PolicyNames)
	}
	return out, nil
}

// trustedPrincipals returns the principals in the Allow statements of a role's trust policy, sorted. document is the
// URL-encoded JSON that IAM returns.
func trustedPrincipals(document string) ([]string, error) {
	text, err := url.QueryUnescape(document)
	if err != nil {
		return nil, err
	}
	if text == "" {
		return nil, nil
	}
	var policy struct{ Statement json.RawMessage }
	if err := json.Unmarshal([]byte(text), &policy); err != nil {
		return nil, err
	}
	type statement struct {
		Effect    string
		Principal json.RawMessage
	}
	var statements []statement
	if err := unmarshalList(policy.Statement, &statements); err != nil {
		return nil, err
	}
	var out []string
	for _, s := range statements {
		if s.Effect != "Allow" {
			continue
		}
		var byKind map[string]json.RawMessage
		if json.Unmarshal(s.Principal, &byKind) != nil { // not an object: the principal is "*"
			var names []string
			if err := unmarshalList(s.Principal, &names); err != nil {
				return nil, err
			}
			out = append(out, names...)
		}
		for _, raw := range byKind {
			var names []string
			if err := unmarshalList(raw, &names); err != nil {
				return nil, err
			}
			out = append(out, names...)
		}
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

// unmarshalList unmarshals raw into the slice. raw is a list or a single item, which IAM accepts in place of a list. If
// raw is empty, the slice stays unchanged.
func unmarshalList[T any](raw json.RawMessage, slice *[]T) error {
	if len(raw) == 0 {
		return nil
	}
	if raw[0] == '[' {
		return json.Unmarshal(raw, slice)
	}
	var item T
	if err := json.Unmarshal(raw, &item); err != nil {
		return err
	}
	*slice = []T{item}
	return nil
}

// MayPass reports whether a principal may pass a role to instances, according to IAM's policy simulator. principal is
// the ARN of a role or a user, and role is the ARN of the passed role. The simulator does not evaluate the
// organization's policies.
func (d *Client) MayPass(ctx context.Context, principal, role string) (bool, error) {
	out, err := d.iam.SimulatePrincipalPolicy(ctx, &awsiam.SimulatePrincipalPolicyInput{
		PolicySourceArn: aws.String(principal),
		ActionNames:     []string{"iam:PassRole"},
		ResourceArns:    []string{role},
		ContextEntries: []iamtypes.ContextEntry{{
			ContextKeyName:   aws.String("iam:PassedToService"),
			ContextKeyType:   iamtypes.ContextKeyTypeEnumString,
			ContextKeyValues: []string{"ec2.amazonaws.com"}}},
	})
	if err != nil {
		return false, awserr.Classify("SimulatePrincipalPolicy "+principal, err)
	}
	return len(out.EvaluationResults) > 0 && out.EvaluationResults[0].EvalDecision == iamtypes.PolicyEvaluationDecisionTypeAllowed, nil
}

// DeniedActions returns the actions that IAM's policy simulator denies the principal for at least one of the resources.
// principal is the ARN of a role or a user. keys has the values of each condition key in the requests. The simulator
// does not evaluate the organization's policies.
func (d *Client) DeniedActions(ctx context.Context, principal string, actions, resources []string,
	keys map[string][]string) ([]string, error) {
	in := &awsiam.SimulatePrincipalPolicyInput{PolicySourceArn: aws.String(principal), ActionNames: actions, ResourceArns: resources}
	for _, name := range slices.Sorted(maps.Keys(keys)) {
		kind := iamtypes.ContextKeyTypeEnumString
		if len(keys[name]) > 1 {
			kind = iamtypes.ContextKeyTypeEnumStringList
		}
		in.ContextEntries = append(in.ContextEntries,
			iamtypes.ContextEntry{ContextKeyName: aws.String(name), ContextKeyType: kind, ContextKeyValues: keys[name]})
	}
	var out []string
	pages := awsiam.NewSimulatePrincipalPolicyPaginator(d.iam, in)
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, awserr.Classify("SimulatePrincipalPolicy "+principal, err)
		}
		for _, r := range page.EvaluationResults {
			if r.EvalDecision != iamtypes.PolicyEvaluationDecisionTypeAllowed {
				out = append(out, aws.ToString(r.EvalActionName))
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

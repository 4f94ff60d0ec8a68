package remedy

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/eks/types"
	"github.com/aws/aws-sdk-go-v2/service/iam"

	"github.com/joiner-sh/joiner/internal/aws/awserr"
	"github.com/joiner-sh/joiner/internal/diagnosis/fix"
)

// AWS calls EKS and IAM with the user's credentials.
type AWS struct {
	region string
	caller string // ARN of the IAM identity of the credentials; empty: not known
	eks    *eks.Client
	iam    *iam.Client
}

// NewAWS returns the client. caller is the ARN of the IAM identity of the credentials, for messages about missing
// permissions.
func NewAWS(cfg aws.Config, caller string) *AWS {
	cfg = awserr.ClientConfig(cfg)
	return &AWS{region: cfg.Region, caller: caller, eks: eks.NewFromConfig(cfg), iam: iam.NewFromConfig(cfg)}
}

// awsCalls returns the supported calls, by service and action. Each function returns the change that the call would
// make. attachPolicy and putPolicy do not read the state before the change: they leave Change.Before empty.
func awsCalls() map[string]func(context.Context, *AWS, fix.AWS) (Change, error) {
	return map[string]func(context.Context, *AWS, fix.AWS) (Change, error){
		"eks create-access-entry":               createEntry,
		"eks delete-access-entry":               deleteEntry,
		"iam attach-role-policy":                attachPolicy,
		"iam put-role-policy":                   putPolicy,
		"iam update-assume-role-policy":         updateTrust,
		"iam add-role-to-instance-profile":      addToProfile,
		"iam remove-role-from-instance-profile": removeFromProfile,
	}
}

// parameters returns the values of the named parameters, in the order of names. It returns an error in any of these
// cases:
//   - a named parameter is missing, or repeated
//   - the call has another parameter, except --region
//   - --region is not the client's region
func (a *AWS) parameters(call fix.AWS, names ...string) ([]string, error) {
	values := map[string]string{}
	for _, p := range call.Params {
		if p.Name != "--region" && !slices.Contains(names, p.Name) || values[p.Name] != "" {
			return nil, fmt.Errorf("the fix has the parameter %s, which is not supported", p.Name)
		}
		values[p.Name] = p.Values[0]
	}
	if region := values["--region"]; region != "" && region != a.region {
		return nil, fmt.Errorf("the fix is for %s, and the AWS configuration for %s", region, a.region)
	}
	out := make([]string, 0, len(names))
	for _, n := range names {
		if values[n] == "" {
			return nil, fmt.Errorf("the fix lacks the parameter %s", n)
		}
		out = append(out, values[n])
	}
	return out, nil
}

// callError returns the classified error of a call; nil if err is nil. If the call was denied, the error names the
// missing permission.
func (a *AWS) callError(service, op string, err error) error {
	return permissionError(service, a.caller, awserr.Classify(op, err))
}

// entry returns the access entry of a principal; nil if there is none.
func (a *AWS) entry(ctx context.Context, cluster, principal string) (*types.AccessEntry, error) {
	out, err := a.eks.DescribeAccessEntry(ctx, &eks.DescribeAccessEntryInput{ClusterName: &cluster, PrincipalArn: &principal})
	switch err := awserr.Classify("DescribeAccessEntry "+principal, err); {
	case awserr.Is(err, awserr.Gone):
		return nil, nil
	case err != nil:
		return nil, permissionError("eks", a.caller, err)
	}
	return out.AccessEntry, nil
}

func (a *AWS) entryText(ctx context.Context, cluster, principal string) (string, error) {
	e, err := a.entry(ctx, cluster, principal)
	if err != nil || e == nil {
		return "", err
	}
	return entryLines(principal, aws.ToString(e.Type), e.KubernetesGroups), nil
}

func entryLines(principal, kind string, groups []string) string {
	text := "principal: " + principal + "\ntype: " + kind + "\n"
	if len(groups) > 0 {
		text += "groups: " + strings.Join(slices.Sorted(slices.Values(groups)), ", ") + "\n"
	}
	return text
}

func createEntry(ctx context.Context, a *AWS, call fix.AWS) (Change, error) {
	v, err := a.parameters(call, "--cluster-name", "--principal-arn", "--type")
	if err != nil {
		return Change{}, err
	}
	cluster, principal, kind := v[0], v[1], v[2]
	before, err := a.entryText(ctx, cluster, principal)
	after := entryLines(principal, kind, nil)
	return Change{What: "access entry of " + principal, Before: before, After: after, apply: func(ctx context.Context) error {
		_, err := a.eks.CreateAccessEntry(ctx, &eks.CreateAccessEntryInput{ClusterName: &cluster, PrincipalArn: &principal, Type: &kind})
		return a.callError("eks", "CreateAccessEntry "+principal, err)
	}}, err
}

// deleteEntry plans the deletion of an access entry. It returns an error if the entry has changed since the diagnosis
// (see checkEntry).
func deleteEntry(ctx context.Context, a *AWS, call fix.AWS) (Change, error) {
	v, err := a.parameters(call, "--cluster-name", "--principal-arn")
	if err != nil {
		return Change{}, err
	}
	cluster, principal := v[0], v[1]
	before, err := a.checkEntry(ctx, cluster, principal, call.Expected)
	return Change{What: "access entry of " + principal, Before: before, apply: func(ctx context.Context) error {
		// Again, because the entry may have changed during the review.
		if _, err := a.checkEntry(ctx, cluster, principal, call.Expected); err != nil {
			return err
		}
		_, err := a.eks.DeleteAccessEntry(ctx, &eks.DeleteAccessEntryInput{ClusterName: &cluster, PrincipalArn: &principal})
		return a.callError("eks", "DeleteAccessEntry "+principal, err)
	}}, err
}

// checkEntry returns the access entry of a principal as text, or an error if the entry differs from want, its state in
// the diagnosis. The text is empty if there is no entry and want is zero.
func (a *AWS) checkEntry(ctx context.Context, cluster, principal string, want fix.Expected) (string, error) {
	e, err := a.entry(ctx, cluster, principal)
	if err != nil {
		return "", err
	}
	refuse := func(why string) error {
		return fmt.Errorf("delete the access entry of %s: refused: %s: run this again", principal, why)
	}
	switch {
	case e == nil && want != fix.Expected{}:
		return "", refuse("the entry is gone")
	case e == nil:
		return "", nil
	case want.Type != "" && aws.ToString(e.Type) != want.Type:
		return "", refuse("its type is " + aws.ToString(e.Type) + ", and was " + want.Type)
	case !want.Created.IsZero() && e.CreatedAt != nil && e.CreatedAt.Unix() != want.Created.Unix():
		return "", refuse("the entry was recreated")
	}
	return entryLines(principal, aws.ToString(e.Type), e.KubernetesGroups), nil
}

func attachPolicy(_ context.Context, a *AWS, call fix.AWS) (Change, error) {
	v, err := a.parameters(call, "--role-name", "--policy-arn")
	if err != nil {
		return Change{}, err
	}
	role, policy := v[0], v[1]
	return Change{What: "policies of role " + role, After: "attached: " + policy + "\n", apply: func(ctx context.Context) error {
		_, err := a.iam.AttachRolePolicy(ctx, &iam.AttachRolePolicyInput{RoleName: &role, PolicyArn: &policy})
		return a.callError("iam", "AttachRolePolicy "+role, err)
	}}, nil
}

// putPolicy plans the creation or replacement of an inline policy of a role.
func putPolicy(_ context.Context, a *AWS, call fix.AWS) (Change, error) {
	v, err := a.parameters(call, "--role-name", "--policy-name", "--policy-document")
	if err != nil {
		return Change{}, err
	}
	role, policy, document := v[0], v[1], v[2]
	return Change{What: "policy " + policy + " of role " + role, After: document + "\n", apply: func(ctx context.Context) error {
		_, err := a.iam.PutRolePolicy(ctx, &iam.PutRolePolicyInput{RoleName: &role, PolicyName: &policy, PolicyDocument: &document})
		return a.callError("iam", "PutRolePolicy "+role, err)
	}}, nil
}

func updateTrust(ctx context.Context, a *AWS, call fix.AWS) (Change, error) {
	v, err := a.parameters(call, "--role-name", "--policy-document")
	if err != nil {
		return Change{}, err
	}
	roleName, document := v[0], v[1]
	role, err := a.iam.GetRole(ctx, &iam.GetRoleInput{RoleName: &roleName})
	if err != nil {
		return Change{}, a.callError("iam", "GetRole "+roleName, err)
	}
	before := ""
	if role.Role != nil {
		before = decodePolicy(aws.ToString(role.Role.AssumeRolePolicyDocument)) + "\n"
	}
	return Change{What: "trust policy of role " + roleName, Before: before, After: document + "\n", apply: func(ctx context.Context) error {
		_, err := a.iam.UpdateAssumeRolePolicy(ctx, &iam.UpdateAssumeRolePolicyInput{RoleName: &roleName, PolicyDocument: &document})
		return a.callError("iam", "UpdateAssumeRolePolicy "+roleName, err)
	}}, nil
}

// profileText returns the role of an instance profile as text; empty if the profile has none.
func (a *AWS) profileText(ctx context.Context, name string) (string, error) {
	out, err := a.iam.GetInstanceProfile(ctx, &iam.GetInstanceProfileInput{InstanceProfileName: &name})
	if err != nil {
		return "", a.callError("iam", "GetInstanceProfile "+name, err)
	}
	if out.InstanceProfile == nil {
		return "", errors.New("GetInstanceProfile " + name + ": IAM does not describe the instance profile")
	}
	text := ""
	for _, r := range out.InstanceProfile.Roles {
		text += "role: " + aws.ToString(r.RoleName) + "\n"
	}
	return text, nil
}

// addToProfile plans the addition of a role to an instance profile. An instance profile has at most one role.
func addToProfile(ctx context.Context, a *AWS, call fix.AWS) (Change, error) {
	v, err := a.parameters(call, "--instance-profile-name", "--role-name")
	if err != nil {
		return Change{}, err
	}
	profile, role := v[0], v[1]
	before, err := a.profileText(ctx, profile)
	after := "role: " + role + "\n"
	return Change{What: "instance profile " + profile, Before: before, After: after, apply: func(ctx context.Context) error {
		_, err := a.iam.AddRoleToInstanceProfile(ctx, &iam.AddRoleToInstanceProfileInput{InstanceProfileName: &profile, RoleName: &role})
		return a.callError("iam", "AddRoleToInstanceProfile "+profile, err)
	}}, err
}

func removeFromProfile(ctx context.Context, a *AWS, call fix.AWS) (Change, error) {
	v, err := a.parameters(call, "--instance-profile-name", "--role-name")
	if err != nil {
		return Change{}, err
	}
	profile, role := v[0], v[1]
	before, err := a.profileText(ctx, profile)
	return Change{
		What:   "instance profile " + profile,
		Before: before,
		After:  strings.Replace(before, "role: "+role+"\n", "", 1),
		apply: func(ctx context.Context) error {
			_, err := a.iam.RemoveRoleFromInstanceProfile(ctx,
				&iam.RemoveRoleFromInstanceProfileInput{InstanceProfileName: &profile, RoleName: &role})
			return a.callError("iam", "RemoveRoleFromInstanceProfile "+profile, err)
		}}, err
}

// decodePolicy decodes a policy, which IAM returns URL-encoded.
func decodePolicy(document string) string {
	text, err := url.QueryUnescape(document)
	if err != nil {
		return document
	}
	return text
}

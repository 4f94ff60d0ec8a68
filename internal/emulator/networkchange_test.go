package emulator_test

import (
	"net/url"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	iamtypes "github.com/aws/aws-sdk-go-v2/service/iam/types"

	"github.com/joiner-sh/joiner/internal/emulator/world/network"
)

func checkCode(t *testing.T, err error, want string) {
	t.Helper()
	if got := code(t, err); got != want {
		t.Errorf("error code %s, want %s: %v", got, want, err)
	}
}

// TestNetworkChanges adds rules to a security group and a route to a route table, as a user does to fix a network.
func TestNetworkChanges(t *testing.T) {
	t.Parallel()
	b, ctx := newFixture(t), t.Context()
	group := b.estate.NodeSG.ID
	b.estate.NodeSG.Egress = nil
	rule := types.IpPermission{IpProtocol: aws.String("tcp"), FromPort: aws.Int32(443), ToPort: aws.Int32(443),
		IpRanges:         []types.IpRange{{CidrIp: aws.String("0.0.0.0/0")}},
		UserIdGroupPairs: []types.UserIdGroupPair{{GroupId: &b.estate.ClusterSG.ID}}}
	if _, err := b.ec2.AuthorizeSecurityGroupEgress(ctx,
		&ec2.AuthorizeSecurityGroupEgressInput{GroupId: &group, IpPermissions: []types.IpPermission{rule}}); err != nil {
		t.Fatal(err)
	}
	if _, err := b.ec2.AuthorizeSecurityGroupIngress(ctx,
		&ec2.AuthorizeSecurityGroupIngressInput{GroupId: &group, IpPermissions: []types.IpPermission{rule}}); err != nil {
		t.Fatal(err)
	}
	seen, err := b.ec2.DescribeSecurityGroups(ctx, &ec2.DescribeSecurityGroupsInput{GroupIds: []string{group}})
	if err != nil {
		t.Fatal(err)
	}
	out, in := seen.SecurityGroups[0].IpPermissionsEgress, seen.SecurityGroups[0].IpPermissions
	if len(out) != 1 || *out[0].FromPort != 443 || *out[0].IpRanges[0].CidrIp != "0.0.0.0/0" ||
		*out[0].UserIdGroupPairs[0].GroupId != b.estate.ClusterSG.ID || len(in) != 2 {
		t.Errorf("outbound rules %+v, inbound rules %+v, want one and two", out, in)
	}
	_, err = b.ec2.AuthorizeSecurityGroupEgress(ctx,
		&ec2.AuthorizeSecurityGroupEgressInput{GroupId: aws.String("sg-none"), IpPermissions: []types.IpPermission{rule}})
	checkCode(t, err, "InvalidGroup.NotFound")
	_, err = b.ec2.AuthorizeSecurityGroupEgress(ctx, &ec2.AuthorizeSecurityGroupEgressInput{GroupId: &group})
	checkCode(t, err, "MissingParameter")

	table := b.estate.Region.Network.CreateRouteTable(network.RouteTable{VPCID: b.estate.VPC.ID})
	gateways, err := b.ec2.DescribeNatGateways(ctx,
		&ec2.DescribeNatGatewaysInput{Filter: []types.Filter{{Name: aws.String("vpc-id"), Values: []string{b.estate.VPC.ID}}}})
	if err != nil || len(gateways.NatGateways) == 0 || gateways.NatGateways[0].State != types.NatGatewayStateAvailable ||
		aws.ToString(gateways.NatGateways[0].NatGatewayAddresses[0].PublicIp) == "" {
		t.Fatalf("NAT gateways: %+v, %v, want an available one with an address", gateways, err)
	}
	route := &ec2.CreateRouteInput{RouteTableId: &table.ID, DestinationCidrBlock: aws.String("0.0.0.0/0"),
		NatGatewayId: gateways.NatGateways[0].NatGatewayId}
	if _, err := b.ec2.CreateRoute(ctx, route); err != nil || len(table.Routes) != 1 || table.Routes[0].Target != *route.NatGatewayId {
		t.Errorf("routes after CreateRoute: %+v, %v, want one to the NAT gateway", table.Routes, err)
	}
	_, err = b.ec2.CreateRoute(ctx, route)
	checkCode(t, err, "RouteAlreadyExists")
	_, err = b.ec2.CreateRoute(ctx, &ec2.CreateRouteInput{RouteTableId: aws.String("rtb-none"), DestinationCidrBlock: aws.String("0.0.0.0/0")})
	checkCode(t, err, "InvalidRouteTableID.NotFound")
	_, err = b.ec2.CreateRoute(ctx, &ec2.CreateRouteInput{RouteTableId: &table.ID, DestinationCidrBlock: aws.String("10.9.0.0/16")})
	checkCode(t, err, "MissingParameter")
}

// TestReplaceRoute: a route whose target was deleted is a black hole until ReplaceRoute gives the route another target.
func TestReplaceRoute(t *testing.T) {
	t.Parallel()
	b, ctx := newFixture(t), t.Context()
	table := b.estate.Region.Network.CreateRouteTable(network.RouteTable{VPCID: b.estate.VPC.ID,
		Routes: []network.Route{{Destination: "0.0.0.0/0", Target: "nat-1", IsBlackhole: true}}})
	state := func() types.RouteState {
		out, err := b.ec2.DescribeRouteTables(ctx, &ec2.DescribeRouteTablesInput{RouteTableIds: []string{table.ID}})
		if err != nil {
			t.Fatal(err)
		}
		return out.RouteTables[0].Routes[0].State
	}
	if got := state(); got != types.RouteStateBlackhole {
		t.Errorf("the route whose target was deleted has the state %s, want blackhole", got)
	}
	in := &ec2.ReplaceRouteInput{RouteTableId: &table.ID, DestinationCidrBlock: aws.String("0.0.0.0/0"), NatGatewayId: aws.String("nat-2")}
	if _, err := b.ec2.ReplaceRoute(ctx, in); err != nil || table.Routes[0].Target != "nat-2" || state() != types.RouteStateActive {
		t.Errorf("routes after ReplaceRoute: %+v, %v, want an active one to nat-2", table.Routes, err)
	}
	_, err := b.ec2.ReplaceRoute(ctx,
		&ec2.ReplaceRouteInput{RouteTableId: &table.ID, DestinationCidrBlock: aws.String("10.9.0.0/16"), NatGatewayId: aws.String("nat-2")})
	checkCode(t, err, "InvalidParameterValue")
	_, err = b.ec2.ReplaceRoute(ctx,
		&ec2.ReplaceRouteInput{RouteTableId: aws.String("rtb-none"), DestinationCidrBlock: aws.String("0.0.0.0/0")})
	checkCode(t, err, "InvalidRouteTableID.NotFound")
	_, err = b.ec2.ReplaceRoute(ctx, &ec2.ReplaceRouteInput{RouteTableId: &table.ID, DestinationCidrBlock: aws.String("0.0.0.0/0")})
	checkCode(t, err, "MissingParameter")
}

// TestRoleChanges: PutRolePolicy adds a permission to a role, and UpdateAssumeRolePolicy replaces the trust policy.
func TestRoleChanges(t *testing.T) {
	t.Parallel()
	b, ctx := newFixture(t), t.Context()
	adminIAM := b.iam
	b.useRole(t, "controller", controllerPolicies(t)...)
	otherRole := "arn:aws:iam::" + account + ":role/other"
	decision := func() iamtypes.PolicyEvaluationDecisionType {
		out, err := adminIAM.SimulatePrincipalPolicy(ctx,
			&iam.SimulatePrincipalPolicyInput{PolicySourceArn: aws.String("arn:aws:iam::" + account + ":role/controller"),
				ActionNames: []string{"iam:PassRole"}, ResourceArns: []string{otherRole}})
		if err != nil {
			t.Fatal(err)
		}
		return out.EvaluationResults[0].EvalDecision
	}
	if got := decision(); got != "implicitDeny" {
		t.Errorf("iam:PassRole without the inline policy: %s, want implicitDeny", got)
	}
	policy := `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"iam:PassRole","Resource":"` + otherRole + `"}]}`
	if _, err := adminIAM.PutRolePolicy(ctx,
		&iam.PutRolePolicyInput{RoleName: aws.String("controller"), PolicyName: aws.String("pass"), PolicyDocument: &policy}); err != nil {
		t.Fatal(err)
	}
	if got := decision(); got != "allowed" {
		t.Errorf("iam:PassRole with the inline policy: %s, want allowed", got)
	}
	names, err := adminIAM.ListRolePolicies(ctx, &iam.ListRolePoliciesInput{RoleName: aws.String("controller")})
	if err != nil || len(names.PolicyNames) != 1 || names.PolicyNames[0] != "pass" {
		t.Errorf("inline policies: %+v, %v, want pass", names, err)
	}
	_, err = adminIAM.PutRolePolicy(ctx,
		&iam.PutRolePolicyInput{RoleName: aws.String("controller"), PolicyName: aws.String("pass"), PolicyDocument: aws.String("{")})
	checkCode(t, err, "MalformedPolicyDocument")
	trust := `{"Version":"2012-10-17","Statement":[]}`
	if _, err := adminIAM.UpdateAssumeRolePolicy(ctx,
		&iam.UpdateAssumeRolePolicyInput{RoleName: aws.String("controller"), PolicyDocument: &trust}); err != nil {
		t.Fatal(err)
	}
	role, err := adminIAM.GetRole(ctx, &iam.GetRoleInput{RoleName: aws.String("controller")})
	text, decodeErr := url.QueryUnescape(aws.ToString(role.Role.AssumeRolePolicyDocument))
	if err != nil || decodeErr != nil || text != trust {
		t.Errorf("the trust policy is %q, %v, %v, want the new one", text, err, decodeErr)
	}
	_, err = adminIAM.UpdateAssumeRolePolicy(ctx, &iam.UpdateAssumeRolePolicyInput{RoleName: aws.String("unknown"), PolicyDocument: &trust})
	checkCode(t, err, "NoSuchEntity")
}

// TestVPCAttributes: DescribeVpcAttribute returns the requested DNS attribute. DNS support is enabled by default.
func TestVPCAttributes(t *testing.T) {
	t.Parallel()
	b, ctx := newFixture(t), t.Context()
	describe := func(name types.VpcAttributeName) *ec2.DescribeVpcAttributeOutput {
		out, err := b.ec2.DescribeVpcAttribute(ctx, &ec2.DescribeVpcAttributeInput{VpcId: &b.estate.VPC.ID, Attribute: name})
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	if out := describe(types.VpcAttributeNameEnableDnsSupport); !*out.EnableDnsSupport.Value || out.EnableDnsHostnames != nil {
		t.Errorf("DNS support by default: %+v, want only this attribute, enabled", out)
	}
	b.estate.VPC.NoDNSHostnames = true
	if out := describe(types.VpcAttributeNameEnableDnsHostnames); *out.EnableDnsHostnames.Value || out.EnableDnsSupport != nil {
		t.Errorf("disabled DNS hostnames: %+v, want only this attribute, disabled", out)
	}
	_, err := b.ec2.DescribeVpcAttribute(ctx,
		&ec2.DescribeVpcAttributeInput{VpcId: aws.String("vpc-none"), Attribute: types.VpcAttributeNameEnableDnsSupport})
	checkCode(t, err, "InvalidVpcID.NotFound")
}

// TestSimulate: SimulatePrincipalPolicy returns the decision of a role's policies about iam:PassRole.
func TestSimulate(t *testing.T) {
	t.Parallel()
	b, ctx := newFixture(t), t.Context()
	adminIAM := b.iam
	b.useRole(t, "controller", controllerPolicies(t)...)
	decision := func(role string) iamtypes.PolicyEvaluationDecisionType {
		out, err := adminIAM.SimulatePrincipalPolicy(ctx, &iam.SimulatePrincipalPolicyInput{
			PolicySourceArn: aws.String("arn:aws:iam::" + account + ":role/controller"), ActionNames: []string{"iam:PassRole"},
			ResourceArns: []string{"arn:aws:iam::" + account + ":role/" + role},
			ContextEntries: []iamtypes.ContextEntry{{ContextKeyName: aws.String("iam:PassedToService"),
				ContextKeyType: iamtypes.ContextKeyTypeEnumString, ContextKeyValues: []string{"ec2.amazonaws.com"}}},
		})
		if err != nil || len(out.EvaluationResults) != 1 {
			t.Fatalf("SimulatePrincipalPolicy: %+v, %v, want one result", out, err)
		}
		return out.EvaluationResults[0].EvalDecision
	}
	if node, other := decision("node"), decision("other"); node != "allowed" || other != "implicitDeny" {
		t.Errorf("iam:PassRole for role node: %s, for role other: %s; want allowed and implicitDeny", node, other)
	}
	_, err := adminIAM.SimulatePrincipalPolicy(ctx,
		&iam.SimulatePrincipalPolicyInput{PolicySourceArn: aws.String("arn:aws:iam::" + account + ":role/unknown"),
			ActionNames: []string{"iam:PassRole"}})
	checkCode(t, err, "NoSuchEntity")
	// The same policies deny calls of the role.
	_, err = b.eks.ListNodegroups(ctx, &eks.ListNodegroupsInput{ClusterName: aws.String("nothing")})
	checkCode(t, err, "AccessDeniedException")
}

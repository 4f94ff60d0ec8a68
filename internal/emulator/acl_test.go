package emulator_test

import (
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/joiner-sh/joiner/internal/emulator/world"
	"github.com/joiner-sh/joiner/internal/emulator/world/network"
)

// TestNetworkACLs: a network ACL is listed with its own rules and with the final deny rule of each direction. A new
// rule whose number is already used is rejected.
func TestNetworkACLs(t *testing.T) {
	t.Parallel()
	b, ctx := newFixture(t), t.Context()
	subnet := b.estate.PrivateSubnets[0]
	var acl *network.ACL
	b.server.Do(func(*world.World, time.Time) {
		acl = b.estate.Region.Network.CreateNetworkACL(network.ACL{VPCID: b.estate.VPC.ID, SubnetIDs: []string{subnet.ID},
			Entries: []network.ACLEntry{{Number: 100, Out: true, Deny: true, Protocol: "6", CIDR: "0.0.0.0/0", From: 443, To: 443}}})
	})
	out, err := b.ec2.DescribeNetworkAcls(ctx,
		&ec2.DescribeNetworkAclsInput{Filters: []types.Filter{{Name: aws.String("association.subnet-id"), Values: []string{subnet.ID}}}})
	if err != nil || len(out.NetworkAcls) != 1 {
		t.Fatalf("EC2 lists %+v, %v, want one ACL", out, err)
	}
	got := out.NetworkAcls[0]
	if len(got.Entries) != 3 || *got.Entries[0].PortRange.To != 443 || got.Entries[0].RuleAction != types.RuleActionDeny ||
		*got.Associations[0].SubnetId != subnet.ID {
		t.Errorf("the ACL is %+v, want the subnet, a deny rule for port 443 and two final rules", got)
	}
	in := &ec2.CreateNetworkAclEntryInput{NetworkAclId: &acl.ID, RuleNumber: aws.Int32(99), Egress: aws.Bool(true), Protocol: aws.String("6"),
		PortRange: &types.PortRange{From: aws.Int32(443), To: aws.Int32(443)}, CidrBlock: aws.String("0.0.0.0/0"),
		RuleAction: types.RuleActionAllow}
	if _, err := b.ec2.CreateNetworkAclEntry(ctx, in); err != nil || !acl.Allows(true, 443) {
		t.Errorf("after the new rule, outbound port 443 is allowed: %t, want true; error %v", acl.Allows(true, 443), err)
	}
	if _, err := b.ec2.CreateNetworkAclEntry(ctx, in); code(t, err) != "NetworkAclEntryAlreadyExists" {
		t.Errorf("a rule with a used number: %v, want NetworkAclEntryAlreadyExists", err)
	}
	in.NetworkAclId = aws.String("acl-none")
	if _, err := b.ec2.CreateNetworkAclEntry(ctx, in); code(t, err) != "InvalidNetworkAclID.NotFound" {
		t.Errorf("a rule for an unknown ACL: %v, want InvalidNetworkAclID.NotFound", err)
	}
}

package controller

import (
	"strings"
	"testing"
	"time"

	awsv1 "github.com/joiner-sh/joiner/api/aws/v1"
	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/emulator"
	"github.com/joiner-sh/joiner/internal/emulator/world"
	"github.com/joiner-sh/joiner/internal/emulator/world/identity"
)

// TestClassOfAnotherVPC: selectors match only resources in the cluster's VPC. If the cluster's VPC is not known, all
// selected resources must be in one VPC. Otherwise a condition names the field of the selector, and nothing is
// launched.
func TestClassOfAnotherVPC(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		isKnown bool // the cluster's VPC is known
		subnet  bool // a subnet of the other VPC is selected
		group   bool // a security group of the other VPC is selected
		both    bool // the subnets or groups of the cluster's VPC are selected too

		condition string // its type
		want      string // its status, its reason, and a part of its message
		wantReady bool   // the class is ready
	}{
		"subnet": {true, true, false, false, awsv1.ConditionSubnetsReady,
			"False SubnetsNotFound spec.subnetSelectorTerms", false},
		"subnet, and the message names the VPC": {true, true, false, false, awsv1.ConditionSubnetsReady,
			"False SubnetsNotFound (only in vpc-", false},
		"group": {true, false, true, false, awsv1.ConditionSecurityGroupsReady,
			"False SecurityGroupsNotFound spec.securityGroupSelectorTerms", false},
		"one of two subnets": {true, true, false, true, awsv1.ConditionSubnetsReady,
			"True SubnetsReady some of spec.subnetSelectorTerms found nothing", true},
		"one of two groups": {true, false, true, true, awsv1.ConditionSecurityGroupsReady,
			"True SecurityGroupsReady some of spec.securityGroupSelectorTerms", true},
		"VPC unknown: subnets of two VPCs": {false, true, false, true, awsv1.ConditionSubnetsReady,
			"False SubnetVPCMismatch spec.subnetSelectorTerms", false},
		"VPC unknown: group of another VPC": {false, false, true, false, awsv1.ConditionSecurityGroupsReady,
			"False SecurityGroupSubnetVPCMismatch spec.securityGroupSelectorTerms", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, "t3.medium")
			vpc, err := r.estate.Region.Network.CreateVPC("10.9.0.0/16", nil)
			if err != nil {
				t.Fatal(err)
			}
			subnet, err := r.estate.Region.Network.CreateSubnet(vpc.ID, r.estate.PrivateSubnets[0].Zone.Name, "10.9.0.0/24", nil)
			if err != nil {
				t.Fatal(err)
			}
			group, err := r.estate.Region.Network.CreateSecurityGroup(vpc.ID, "other", "of another VPC", nil)
			if err != nil {
				t.Fatal(err)
			}
			if c.isKnown {
				r.NodeClasses.VPC = r.estate.VPC.ID
			}
			class := r.class(t)
			if !c.both && c.subnet {
				class.Spec.SubnetSelectorTerms = nil
			}
			if !c.both && c.group {
				class.Spec.SecurityGroupSelectorTerms = nil
			}
			if c.subnet {
				class.Spec.SubnetSelectorTerms = append(class.Spec.SubnetSelectorTerms, awsv1.SubnetSelectorTerm{ID: subnet.ID})
			}
			if c.group {
				class.Spec.SecurityGroupSelectorTerms = append(class.Spec.SecurityGroupSelectorTerms, awsv1.SecurityGroupSelectorTerm{ID: group.ID})
			}
			if err := r.api.Update(t.Context(), class); err != nil {
				t.Fatal(err)
			}
			r.reconcileClassAndPool(t)
			got, _ := r.class(t).StatusConditions().Find(c.condition)
			status, rest, _ := strings.Cut(c.want, " ")
			reason, part, _ := strings.Cut(rest, " ")
			if string(got.Status) != status || got.Reason != reason || !strings.Contains(got.Message, part) {
				t.Errorf("%s is %s %s %q, want %s", c.condition, got.Status, got.Reason, got.Message, c.want)
			}
			r.addPendingPod(t, "web", "500m", "512Mi")
			r.plan(t)
			r.reconcileClaims(t)
			ready := r.class(t).StatusConditions().IsTrue(karpv1.ConditionReady)
			if launched := r.Calls()["ec2:CreateFleet"] > 0; ready != c.wantReady || launched != c.wantReady {
				t.Errorf("the class is ready: %t, launched: %t; want %t for both", ready, launched, c.wantReady)
			}
		})
	}
}

func TestProfileWithoutRole(t *testing.T) {
	t.Parallel()
	r := newRig(t, "t3.medium")
	r.Do(func(w *world.World, now time.Time) {
		if _, err := w.Account(emulator.DefaultAccount).CreateProfile(now, identity.Profile{Name: "empty"}); err != nil {
			t.Error(err)
		}
	})
	class := r.class(t)
	name := "empty"
	class.Spec.Role, class.Spec.InstanceProfile = "", &name
	if err := r.api.Update(t.Context(), class); err != nil {
		t.Fatal(err)
	}
	r.reconcileClassAndPool(t)
	got, _ := r.class(t).StatusConditions().Find(awsv1.ConditionInstanceProfileReady)
	if got.Status != "False" || got.Reason != "InstanceProfileWithoutRole" || !strings.Contains(got.Message, "spec.instanceProfile") {
		t.Errorf("the condition InstanceProfileReady is %s %s %q, want False InstanceProfileWithoutRole", got.Status, got.Reason, got.Message)
	}
}

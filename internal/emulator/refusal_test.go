package emulator_test

import (
	"encoding/base64"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/joiner-sh/joiner/internal/emulator/world"
	"github.com/joiner-sh/joiner/internal/emulator/world/identity"
)

// launchFailure is a state of an account in which launches fail, with EC2's error and the command that fixes the state.
type launchFailure struct {
	// prepare puts the account into the state, and sets launch parameters if the state needs them.
	prepare func(t *testing.T, b *fixture, d *types.RequestLaunchTemplateData)
	spot    bool
	// want is a part of "code: message" of the fleet's error, or of the reason why the instance was terminated.
	want string
	// fix is a command of the AWS command line. $KEY, $POLICY and $ROLE are the ids of the KMS key and the service
	// control policy, and the ARN of the controller's role. Empty: no command fixes the state.
	fix string
}

// launchFailures returns states in which a launch of m5.large in us-east-1a fails, by name.
func launchFailures() map[string]launchFailure {
	withKey := func(k world.Key) func(*testing.T, *fixture, *types.RequestLaunchTemplateData) {
		return func(_ *testing.T, b *fixture, d *types.RequestLaunchTemplateData) {
			id := b.estate.Region.KMS.CreateKey(k).ID
			d.BlockDeviceMappings = []types.LaunchTemplateBlockDeviceMappingRequest{{DeviceName: aws.String("/dev/xvda"),
				Ebs: &types.LaunchTemplateEbsBlockDeviceRequest{Encrypted: aws.Bool(true), KmsKeyId: &id, VolumeSize: aws.Int32(30)}}}
		}
	}
	withImage := func(change func(*world.Image)) func(*testing.T, *fixture, *types.RequestLaunchTemplateData) {
		return func(t *testing.T, b *fixture, d *types.RequestLaunchTemplateData) {
			i, _ := b.estate.Region.Images.ByID(b.image(t, "x86_64"))
			i.ID, i.OwnerID = "", account
			change(&i)
			d.ImageId = aws.String(b.estate.Region.Images.Register(i).ID)
		}
	}
	return map[string]launchFailure{
		"key-disabled": {prepare: withKey(world.Key{Disabled: true}),
			want: "Client.InvalidKMSKey.InvalidState: The KMS key provided is in an incorrect state",
			fix:  "kms enable-key --key-id $KEY"},
		"key-needs-grant": {prepare: withKey(world.Key{NeedsGrant: true}), want: "Client.InternalError: Client error on launch",
			fix: "kms create-grant --key-id $KEY --grantee-principal $ROLE --operations Decrypt GenerateDataKeyWithoutPlaintext CreateGrant"},
		"spot-role": {spot: true, prepare: func(_ *testing.T, b *fixture, _ *types.RequestLaunchTemplateData) {
			b.estate.Region.Account.NoSpotRole = true
		},
			want: "AuthFailure.ServiceLinkedRoleCreationNotPermitted: The provided credentials do not have permission",
			fix:  "iam create-service-linked-role --aws-service-name spot.amazonaws.com"},
		"quota": {prepare: func(_ *testing.T, b *fixture, _ *types.RequestLaunchTemplateData) {
			b.setQuota(world.Quota{Kind: "standard"}, 1)
		},
			want: "VcpuLimitExceeded: You have requested more vCPU capacity than your current vCPU limit of 1",
			fix:  "service-quotas request-service-quota-increase --service-code ec2 --quota-code L-1216C47A --desired-value 64"},
		"spot-quota": {spot: true, prepare: func(_ *testing.T, b *fixture, _ *types.RequestLaunchTemplateData) {
			b.setQuota(world.Quota{Kind: "standard", Spot: true}, 1)
		},
			want: "MaxSpotInstanceCountExceeded: Max spot instance count exceeded",
			fix:  "service-quotas request-service-quota-increase --service-code ec2 --quota-code L-34B43A08 --desired-value 64"},
		"image-pending": {prepare: withImage(func(i *world.Image) { i.State = "pending" }),
			want: "InvalidAMIID.Unavailable: The image ID 'ami-"},
		"image-marketplace": {prepare: withImage(func(i *world.Image) { i.Product = "abc123" }),
			want: "OptInRequired: In order to use this AWS Marketplace product you need to accept terms and subscribe. To do so please visit https://aws.amazon.com/marketplace/pp?sku=abc123"},
		"denied-by-organization": {prepare: func(t *testing.T, b *fixture, _ *types.RequestLaunchTemplateData) {
			if _, err := b.estate.Region.Account.AttachServiceControlPolicy(denyPolicy("ec2:RunInstances")); err != nil {
				t.Error(err)
			}
		}, want: "with an explicit deny in a service control policy: arn:aws:organizations::",
			fix: "organizations detach-policy --policy-id $POLICY --target-id " + account},
		"denied-by-policy": {prepare: func(t *testing.T, b *fixture, _ *types.RequestLaunchTemplateData) {
			iam := b.estate.Region.Account
			p, err := iam.CreatePolicy(b.now, identity.Policy{Name: "frozen", Document: denyPolicy("ec2:RunInstances")})
			if err == nil {
				err = iam.AttachPolicy("controller", p.ARN)
			}
			if err != nil {
				t.Error(err)
			}
		}, want: "with an explicit deny in an identity-based policy: arn:aws:iam::111122223333:policy/frozen. Encoded authorization failure message: ",
			fix: "iam detach-role-policy --role-name controller --policy-arn arn:aws:iam::111122223333:policy/frozen"},
	}
}

func denyPolicy(action string) string {
	return `{"Version":"2012-10-17","Statement":[{"Sid":"Freeze","Effect":"Deny","Action":"` + action + `","Resource":"*"}]}`
}

// TestLaunchFailures: launches fail with EC2's error, and succeed after a command of the AWS command line has fixed the
// account.
func TestLaunchFailures(t *testing.T) {
	t.Parallel()
	for name, f := range launchFailures() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newFixture(t)
			data := types.RequestLaunchTemplateData{UserData: aws.String(base64.StdEncoding.EncodeToString([]byte("#!/bin/bash\n")))}
			b.useRole(t, "controller", `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"*","Resource":"*"}]}`)
			f.prepare(t, b, &data)
			template := b.createTemplate(t, "joiner-a", data)
			if got := b.launchResult(t, template, f.spot); !strings.Contains(got, f.want) {
				t.Fatalf("launch before the fix: %q, want %q", got, f.want)
			}
			if f.fix == "" {
				return
			}
			c := &commandLine{tool: awsTool(t), fixture: b,
				variables: map[string]string{"ROLE": "arn:aws:iam::" + account + ":role/controller"}}
			for _, k := range b.estate.Region.KMS.Keys() {
				c.variables["KEY"] = k.ID
			}
			for _, p := range b.estate.Region.Account.ServiceControlPolicies() {
				c.variables["POLICY"] = p.ID
			}
			c.run(t, step{kind: "=", variable: "DONE", command: f.fix}) // the output is not checked
			if got := b.launchResult(t, template, f.spot); got != "running" {
				t.Errorf("launch after the fix: %q, want running", got)
			}
		})
	}
}

// launchResult requests an instance. It returns EC2's error if the launch fails. Otherwise it returns the instance's
// state after five seconds; for a terminated instance, the reason of the termination.
func (b *fixture) launchResult(t *testing.T, template string, spot bool) string {
	t.Helper()
	in := fleet(template, 1, b.override("m5.large", 0))
	if spot {
		in.TargetCapacitySpecification.DefaultTargetCapacityType = types.DefaultTargetCapacityTypeSpot
	}
	out, err := b.ec2.CreateFleet(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	if len(out.Instances) == 0 {
		_, text, _ := strings.Cut(fleetErrors(out), ": ")
		return text
	}
	b.advance(5 * time.Second)
	i := b.instances(t.Context(), t, out.Instances[0].InstanceIds...)[0]
	if i.State.Name == types.InstanceStateNameTerminated && i.StateReason != nil {
		return *i.StateReason.Message
	}
	return string(i.State.Name)
}

// TestUnavailableImage: a pending image is listed with its state.
func TestUnavailableImage(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	i, _ := b.estate.Region.Images.ByID(b.image(t, "x86_64"))
	i.ID, i.State, i.OwnerID = "", "pending", account
	id := b.estate.Region.Images.Register(i).ID
	out, err := b.ec2.DescribeImages(t.Context(), &ec2.DescribeImagesInput{ImageIds: []string{id}})
	if err != nil || len(out.Images) != 1 || out.Images[0].State != types.ImageStatePending {
		t.Errorf("EC2 lists %+v, %v, want the pending image", out, err)
	}
}

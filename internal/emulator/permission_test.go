package emulator_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	iamtypes "github.com/aws/aws-sdk-go-v2/service/iam/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/aws/aws-sdk-go-v2/service/sts"

	"github.com/joiner-sh/joiner/internal/emulator/iampolicy"
	"github.com/joiner-sh/joiner/internal/emulator/world"
	"github.com/joiner-sh/joiner/internal/emulator/world/identity"
	"github.com/joiner-sh/joiner/internal/permissions"
)

const controllerUID = "11111111-2222-3333-4444-555555555555"

// useRole creates a role, and makes the clients of b use a session of it. documents are the role's policies as JSON.
func (b *fixture) useRole(t *testing.T, role string, documents ...string) {
	t.Helper()
	ctx := t.Context()
	trust := `{"Version":"2012-10-17","Statement":[]}`
	if _, err := b.iam.CreateRole(ctx, &iam.CreateRoleInput{RoleName: &role, AssumeRolePolicyDocument: &trust}); err != nil {
		t.Fatal(err)
	}
	for i, text := range documents {
		policy, err := b.iam.CreatePolicy(ctx,
			&iam.CreatePolicyInput{PolicyName: aws.String(role + strings.Repeat("i", i)), PolicyDocument: aws.String(text)})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := b.iam.AttachRolePolicy(ctx, &iam.AttachRolePolicyInput{RoleName: &role, PolicyArn: policy.Policy.Arn}); err != nil {
			t.Fatal(err)
		}
	}
	var session identity.Session
	var err error
	b.server.Do(func(w *world.World, now time.Time) {
		session, err = w.Account(account).AssumeRole(now, role, "test", 12*time.Hour)
	})
	if err != nil {
		t.Fatal(err)
	}
	b.use(b.config(session.AccessKey, session.SecretKey, session.Token))
}

func controllerPolicies(t *testing.T) []string {
	t.Helper()
	policies, err := permissions.Policies(permissions.Scope{Account: account, Region: region, Cluster: "demo",
		UID: controllerUID, NodeRoles: []string{"node"}})
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, p := range policies {
		text, err := p.JSON()
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, string(text))
	}
	return out
}

func tagsFor(cluster, uid string) map[string]string {
	return map[string]string{
		"kubernetes.io/cluster/" + cluster: "owned", "eks:eks-cluster-name": cluster, "karpenter.sh/nodepool": "web",
		"karpenter.k8s.aws/ec2nodeclass": "default", "joiner.sh/cluster-uid": uid, "topology.kubernetes.io/region": region,
	}
}

func tagSpecifications(tags map[string]string, kinds ...types.ResourceType) []types.TagSpecification {
	var out []types.TagSpecification
	for _, kind := range kinds {
		s := types.TagSpecification{ResourceType: kind}
		for k, v := range tags {
			s.Tags = append(s.Tags, types.Tag{Key: aws.String(k), Value: aws.String(v)})
		}
		out = append(out, s)
	}
	return out
}

// createControllerTemplate creates a launch template with the parameters that the controller sets. tags are those of
// the template, interfaceTags those of the network interfaces of its instances.
func (b *fixture) createControllerTemplate(t *testing.T, name, image string, tags, interfaceTags map[string]string) error {
	t.Helper()
	nic := types.LaunchTemplateTagSpecificationRequest{ResourceType: types.ResourceTypeNetworkInterface}
	for k, v := range interfaceTags {
		nic.Tags = append(nic.Tags, types.Tag{Key: aws.String(k), Value: aws.String(v)})
	}
	data := &types.RequestLaunchTemplateData{
		ImageId: &image, IamInstanceProfile: &types.LaunchTemplateIamInstanceProfileSpecificationRequest{Name: aws.String("demo_node")},
		NetworkInterfaces: []types.LaunchTemplateInstanceNetworkInterfaceSpecificationRequest{{DeviceIndex: aws.Int32(0),
			Groups: []string{b.estate.NodeSG.ID}}},
	}
	if len(nic.Tags) > 0 {
		data.TagSpecifications = []types.LaunchTemplateTagSpecificationRequest{nic}
	}
	_, err := b.ec2.CreateLaunchTemplate(t.Context(), &ec2.CreateLaunchTemplateInput{
		LaunchTemplateName: &name, LaunchTemplateData: data, TagSpecifications: tagSpecifications(tags, types.ResourceTypeLaunchTemplate),
	})
	return err
}

// launch requests one on-demand instance with the template, in one of the first two private subnets. It tags the
// instance, its volumes and the fleet.
func (b *fixture) launch(t *testing.T, template string, tags map[string]string) (*ec2.CreateFleetOutput, error) {
	t.Helper()
	return b.ec2.CreateFleet(t.Context(), &ec2.CreateFleetInput{
		Type: types.FleetTypeInstant,
		LaunchTemplateConfigs: []types.FleetLaunchTemplateConfigRequest{{
			LaunchTemplateSpecification: &types.FleetLaunchTemplateSpecificationRequest{LaunchTemplateName: &template, Version: aws.String("1")},
			Overrides:                   []types.FleetLaunchTemplateOverridesRequest{b.override("m5.large", 0), b.override("m5.large", 1)},
		}},
		TargetCapacitySpecification: &types.TargetCapacitySpecificationRequest{TotalTargetCapacity: aws.Int32(1),
			DefaultTargetCapacityType: types.DefaultTargetCapacityTypeOnDemand},
		TagSpecifications: tagSpecifications(tags, types.ResourceTypeInstance, types.ResourceTypeVolume, types.ResourceTypeFleet),
	})
}

// TestOnVerdict: OnVerdict gets the caller, the action, the resource with its tags, and the verdict of the policies. It
// is not called if the caller has no policies.
func TestOnVerdict(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	var verdicts []string // role, action, whether the resource is an ARN of EC2, cluster UIDs in tags, verdict
	b.server.Do(func(*world.World, time.Time) {
		b.server.OnVerdict = func(caller identity.Identity, r iampolicy.Request, isAllowed bool) {
			uid := append(r.Keys["aws:RequestTag/joiner.sh/cluster-uid"], r.Keys["aws:ResourceTag/joiner.sh/cluster-uid"]...)
			verdicts = append(verdicts, fmt.Sprint(caller.Role, " ", r.Action, " ", strings.HasPrefix(r.Resource, "arn:aws:ec2:"), " ",
				uid, " ", isAllowed))
		}
	})
	image := b.image(t, "x86_64")
	if err := b.createControllerTemplate(t, "theirs", image, tagsFor("other", "9"), nil); err != nil { // as the administrator
		t.Fatal(err)
	}
	b.useRole(t, "controller", controllerPolicies(t)...)
	if err := b.createControllerTemplate(t, "ours", image, tagsFor("demo", controllerUID), nil); err != nil {
		t.Fatal(err)
	}
	_, err := b.ec2.DeleteLaunchTemplate(t.Context(), &ec2.DeleteLaunchTemplateInput{LaunchTemplateName: aws.String("theirs")})
	if got := code(t, err); got != "UnauthorizedOperation" {
		t.Errorf("deleting another cluster's template: %s, want UnauthorizedOperation", got)
	}
	want := []string{
		"controller ec2:CreateLaunchTemplate true [" + controllerUID + "] true", "controller ec2:CreateTags true [" + controllerUID + "] true",
		"controller ec2:DeleteLaunchTemplate true [9] false",
	}
	if !slices.Equal(verdicts, want) {
		t.Errorf("OnVerdict was called with %q, want %q", verdicts, want)
	}
}

// TestPoliciesAreEnforced makes calls with a role that has the controller's policies: the calls that the controller
// makes, and calls that the policies must deny.
func TestPoliciesAreEnforced(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	ctx := t.Context()
	ourTags, theirTags, sameNameTags := tagsFor("demo", controllerUID), tagsFor("other", "9"), tagsFor("demo", "9")
	b.createProfile(t, "demo_node", "node")
	b.createProfile(t, "demo_admin", "admin")
	image := b.image(t, "x86_64")
	for name, tags := range map[string]map[string]string{"theirs": theirTags, "same-name": sameNameTags} { // as the administrator
		if err := b.createControllerTemplate(t, name, image, tags, tags); err != nil {
			t.Fatal(err)
		}
	}
	foreign := map[string]string{} // instance of another cluster, by its launch template
	for name, tags := range map[string]map[string]string{"theirs": theirTags, "same-name": sameNameTags} {
		out, err := b.launch(t, name, tags)
		if err != nil || len(out.Instances) != 1 {
			t.Fatalf("launch from the template %s: %+v %v, want one instance", name, out, err)
		}
		foreign[name] = out.Instances[0].InstanceIds[0]
	}
	b.useRole(t, "controller", controllerPolicies(t)...)

	// Calls of the controller.
	wantAllowed := func(call string, err error) {
		t.Helper()
		if err != nil {
			t.Errorf("%s: %v, want no error", call, err)
		}
	}
	wantAllowed("create a template", b.createControllerTemplate(t, "ours", image, ourTags, ourTags))
	out, err := b.launch(t, "ours", ourTags)
	wantAllowed("launch", err)
	if len(out.Instances) != 1 {
		t.Fatalf("launch: %+v, want one instance", out)
	}
	instance := out.Instances[0].InstanceIds[0]
	_, err = b.ec2.TerminateInstances(ctx, &ec2.TerminateInstancesInput{InstanceIds: []string{instance}})
	wantAllowed("terminate", err)
	_, err = b.ssm.GetParameter(ctx,
		&ssm.GetParameterInput{Name: aws.String("/aws/service/eks/optimized-ami/1.31/amazon-linux-2023/arm64/standard/recommended/image_id")})
	wantAllowed("read a parameter", err)
	_, err = b.sts.GetCallerIdentity(ctx, &sts.GetCallerIdentityInput{})
	wantAllowed("get the caller identity", err)
	path := "/karpenter/" + region + "/demo/uid/"
	_, err = b.iam.CreateInstanceProfile(ctx,
		&iam.CreateInstanceProfileInput{InstanceProfileName: aws.String("p"), Path: &path, Tags: iamTags(ourTags)})
	wantAllowed("create a profile", err)
	_, err = b.iam.AddRoleToInstanceProfile(ctx,
		&iam.AddRoleToInstanceProfileInput{InstanceProfileName: aws.String("p"), RoleName: aws.String("node")})
	wantAllowed("add a role to a profile", err)
	// A call uses a permission once for each resource.
	for permission, minimum := range map[string]int{
		"ec2:CreateLaunchTemplate": 1, "ec2:CreateFleet": 3, "ec2:RunInstances": 5, "ec2:CreateTags": 4, "iam:PassRole": 2,
		"iam:TagInstanceProfile": 1, "ec2:TerminateInstances": 1, "ssm:GetParameter": 1,
	} {
		if got := b.server.Permissions("controller")[permission]; got < minimum {
			t.Errorf("%s was used %d times, want at least %d", permission, got, minimum)
		}
	}

	// Calls that must be denied.
	wantDenied := func(call, wantCode, wantText string, err error) {
		t.Helper()
		if got := code(t, err); got != wantCode || !strings.Contains(err.Error(), wantText) {
			t.Errorf("%s: %v, want %s with the text %q", call, err, wantCode, wantText)
		}
	}
	const unauthorized = "UnauthorizedOperation"
	_, err = b.ec2.TerminateInstances(ctx, &ec2.TerminateInstancesInput{InstanceIds: []string{foreign["theirs"]}})
	wantDenied("terminate another cluster's instance", unauthorized, "instance/"+foreign["theirs"], err)
	_, err = b.ec2.TerminateInstances(ctx, &ec2.TerminateInstancesInput{InstanceIds: []string{foreign["same-name"]}})
	wantDenied("terminate an instance of a cluster with the same name", unauthorized, "with an explicit deny", err)
	_, err = b.ec2.CreateTags(ctx, &ec2.CreateTagsInput{Resources: []string{foreign["theirs"]}, Tags: tagSpecifications(ourTags, "x")[0].Tags})
	wantDenied("tag another cluster's instance", unauthorized, "ec2:CreateTags", err)
	for _, name := range []string{"theirs", "same-name"} {
		_, err = b.ec2.DeleteLaunchTemplate(ctx, &ec2.DeleteLaunchTemplateInput{LaunchTemplateName: aws.String(name)})
		wantDenied("delete the template "+name, unauthorized, "launch-template/lt-", err)
		_, err = b.launch(t, name, ourTags)
		wantDenied("launch from the template "+name, unauthorized,
			"ec2:CreateFleet on resource: arn:aws:ec2:us-east-1:111122223333:launch-template/lt-", err)
	}
	wantDenied("create a template with another cluster's tags", unauthorized, "launch-template/*",
		b.createControllerTemplate(t, "new", image, theirTags, theirTags))
	wantDenied("create a template without tags", unauthorized, "launch-template/*", b.createControllerTemplate(t, "new", image, nil, ourTags))
	_, err = b.launch(t, "ours", theirTags)
	wantDenied("launch with another cluster's tags", unauthorized, "fleet/*", err)
	wantAllowed("create a template whose interfaces are not tagged", b.createControllerTemplate(t, "bare", image, ourTags, nil))
	out, err = b.launch(t, "bare", ourTags)
	if err != nil || len(out.Instances) != 0 || len(out.Errors) != 2 || aws.ToString(out.Errors[0].ErrorCode) != unauthorized ||
		!strings.Contains(aws.ToString(out.Errors[0].ErrorMessage),
			"ec2:RunInstances on resource: arn:aws:ec2:us-east-1:111122223333:network-interface/*") {
		t.Errorf("launch with an interface without tags: %+v %v, want both overrides denied", out, err)
	}
	_, err = b.iam.AddRoleToInstanceProfile(ctx,
		&iam.AddRoleToInstanceProfileInput{InstanceProfileName: aws.String("p"), RoleName: aws.String("admin")})
	wantDenied("add another role to a profile", "AccessDenied", "iam:PassRole on resource: arn:aws:iam::111122223333:role/admin", err)
	_, err = b.iam.DeleteInstanceProfile(ctx, &iam.DeleteInstanceProfileInput{InstanceProfileName: aws.String("demo_admin")})
	wantDenied("delete another cluster's profile", "AccessDenied", "instance-profile/demo_admin", err)
	_, err = b.iam.CreateInstanceProfile(ctx, &iam.CreateInstanceProfileInput{InstanceProfileName: aws.String("q"), Tags: iamTags(ourTags)})
	wantDenied("create a profile with another path", "AccessDenied", "instance-profile/q", err)
	_, err = b.eks.DescribeCluster(ctx, &eks.DescribeClusterInput{Name: aws.String("other")})
	wantDenied("read another cluster", "AccessDeniedException", "cluster/other", err)
	_, err = b.sqs.GetQueueUrl(ctx, &sqs.GetQueueUrlInput{QueueName: aws.String("other")})
	wantDenied("read another queue", "AccessDenied", "us-east-1:111122223333:other", err)
	_, err = b.ssm.GetParameter(ctx, &ssm.GetParameterInput{Name: aws.String("/secret")})
	wantDenied("read a private parameter", "AccessDeniedException", "111122223333:parameter/secret", err)
	_, err = b.iam.CreateRole(ctx, &iam.CreateRoleInput{RoleName: aws.String("r"), AssumeRolePolicyDocument: aws.String("{}")})
	wantDenied("create a role", "AccessDenied", "iam:CreateRole", err)
	_, err = b.ec2.RunInstances(ctx, &ec2.RunInstancesInput{
		DryRun: aws.Bool(true), ImageId: &image, InstanceType: types.InstanceTypeM5Large, MinCount: aws.Int32(1), MaxCount: aws.Int32(1),
	})
	wantDenied("dry run without tags", unauthorized, "ec2:RunInstances", err)
}

// TestPolicyDocuments: IAM validates policy documents, and does not delete an attached policy.
func TestPolicyDocuments(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	for text, want := range map[string]string{
		"":   "ValidationError",
		"{}": "MalformedPolicyDocument",
		`{"Version":"2012-10-17","Statement":{"Effect":"Allow","Action":"a:b","Resource":["*","arn:aws:iam::1:` + strings.Repeat("x", 6200) + `"]}}`: "LimitExceeded",
	} {
		_, err := b.iam.CreatePolicy(t.Context(), &iam.CreatePolicyInput{PolicyName: aws.String("p"), PolicyDocument: &text})
		if code(t, err) != want {
			t.Errorf("%.60s: %v, want %s", text, err, want)
		}
	}
	b.createProfile(t, "p", "node")
	allowAll := `{"Version":"2012-10-17","Statement":{"Effect":"Allow","Action":"*","Resource":"*"}}`
	created, err := b.iam.CreatePolicy(t.Context(), &iam.CreatePolicyInput{PolicyName: aws.String("all"), PolicyDocument: &allowAll})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.iam.AttachRolePolicy(t.Context(),
		&iam.AttachRolePolicyInput{RoleName: aws.String("node"), PolicyArn: created.Policy.Arn}); err != nil {
		t.Fatal(err)
	}
	got, err := b.iam.GetPolicy(t.Context(), &iam.GetPolicyInput{PolicyArn: created.Policy.Arn})
	if err != nil || aws.ToInt32(got.Policy.AttachmentCount) != 1 {
		t.Errorf("the attached policy is %+v, %v, want one attachment", got, err)
	}
	if _, err := b.iam.DeletePolicy(t.Context(), &iam.DeletePolicyInput{PolicyArn: created.Policy.Arn}); code(t, err) != "DeleteConflict" {
		t.Errorf("deleting an attached policy: %v, want DeleteConflict", err)
	}
	if _, err := b.iam.DetachRolePolicy(t.Context(),
		&iam.DetachRolePolicyInput{RoleName: aws.String("node"), PolicyArn: created.Policy.Arn}); err != nil {
		t.Fatal(err)
	}
	if _, err := b.iam.DeletePolicy(t.Context(), &iam.DeletePolicyInput{PolicyArn: created.Policy.Arn}); err != nil {
		t.Error(err)
	}
}

func iamTags(tags map[string]string) []iamtypes.Tag {
	var out []iamtypes.Tag
	for k, v := range tags {
		out = append(out, iamtypes.Tag{Key: aws.String(k), Value: aws.String(v)})
	}
	return out
}

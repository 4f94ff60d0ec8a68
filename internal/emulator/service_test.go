package emulator_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	ekstypes "github.com/aws/aws-sdk-go-v2/service/eks/types"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	iamtypes "github.com/aws/aws-sdk-go-v2/service/iam/types"
	"github.com/aws/aws-sdk-go-v2/service/pricing"
	pricingtypes "github.com/aws/aws-sdk-go-v2/service/pricing/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/google/go-cmp/cmp"

	"github.com/joiner-sh/joiner/internal/emulator/world"
	"github.com/joiner-sh/joiner/internal/emulator/world/ekscluster"
)

// TestIAM creates and lists instance profiles, and checks the errors for used names, unknown names, and deletions in
// the wrong order.
func TestIAM(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	path := "/karpenter/us-east-1/demo/uid/"
	b.createProfile(t, "p", "node")
	if _, err := b.iam.CreateRole(t.Context(),
		&iam.CreateRoleInput{RoleName: aws.String("node"), AssumeRolePolicyDocument: aws.String("{}")}); code(t, err) != "EntityAlreadyExists" {
		t.Errorf("a used role name: %v, want EntityAlreadyExists", err)
	}
	for i := range 3 {
		_, err := b.iam.CreateInstanceProfile(t.Context(), &iam.CreateInstanceProfileInput{
			InstanceProfileName: aws.String(fmt.Sprintf("demo_%d", i)), Path: &path,
			Tags: []iamtypes.Tag{{Key: aws.String("kubernetes.io/cluster/demo"), Value: aws.String("owned")}},
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	_, err := b.iam.AddRoleToInstanceProfile(t.Context(),
		&iam.AddRoleToInstanceProfileInput{InstanceProfileName: aws.String("demo_0"), RoleName: aws.String("node")})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	pages := iam.NewListInstanceProfilesPaginator(b.iam,
		&iam.ListInstanceProfilesInput{PathPrefix: aws.String("/karpenter/us-east-1/demo/"), MaxItems: aws.Int32(2)})
	for pages.HasMorePages() {
		page, err := pages.NextPage(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range page.InstanceProfiles {
			names = append(names, *p.InstanceProfileName)
		}
	}
	if d := cmp.Diff([]string{"demo_0", "demo_1", "demo_2"}, names); d != "" {
		t.Errorf("profiles under the path (-want +got):\n%s", d)
	}
	got, err := b.iam.GetInstanceProfile(t.Context(), &iam.GetInstanceProfileInput{InstanceProfileName: aws.String("demo_0")})
	if err != nil || *got.InstanceProfile.Roles[0].RoleName != "node" ||
		*got.InstanceProfile.Arn != "arn:aws:iam::111122223333:instance-profile"+path+"demo_0" || len(got.InstanceProfile.Tags) != 1 {
		t.Errorf("profile is %+v, %v, want the role, path and tag", got, err)
	}
	if _, err := b.iam.DeleteInstanceProfile(t.Context(),
		&iam.DeleteInstanceProfileInput{InstanceProfileName: aws.String("demo_0")}); code(t, err) != "DeleteConflict" {
		t.Errorf("deleting a profile with a role: %v, want DeleteConflict", err)
	}
	if _, err := b.iam.DeleteRole(t.Context(), &iam.DeleteRoleInput{RoleName: aws.String("node")}); code(t, err) != "DeleteConflict" {
		t.Errorf("deleting a role in a profile: %v, want DeleteConflict", err)
	}
	if _, err := b.iam.GetInstanceProfile(t.Context(),
		&iam.GetInstanceProfileInput{InstanceProfileName: aws.String("none")}); code(t, err) != "NoSuchEntity" {
		t.Errorf("an unknown profile: %v, want NoSuchEntity", err)
	}
}

// TestEKS describes a cluster, and creates an access entry and a Fargate profile. In mode CONFIG_MAP, EKS rejects
// access entries.
func TestEKS(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	cluster := aws.String("demo")
	b.server.Do(func(_ *world.World, now time.Time) {
		_, err := b.estate.Region.EKS.CreateCluster(now,
			ekscluster.Cluster{Name: "demo", Endpoint: "https://127.0.0.1:6443", CA: "Q0E=", AuthMode: ekscluster.AuthConfigMap})
		if err != nil {
			t.Error(err)
		}
	})
	got, err := b.eks.DescribeCluster(t.Context(), &eks.DescribeClusterInput{Name: cluster})
	if err != nil {
		t.Fatal(err)
	}
	c := got.Cluster
	if *c.Endpoint != "https://127.0.0.1:6443" || *c.CertificateAuthority.Data != "Q0E=" ||
		*c.KubernetesNetworkConfig.ServiceIpv4Cidr != "10.100.0.0/16" ||
		c.AccessConfig.AuthenticationMode != "CONFIG_MAP" ||
		!strings.HasPrefix(*c.Identity.Oidc.Issuer, "https://oidc.eks.us-east-1.amazonaws.com/id/") || c.Status != "ACTIVE" {
		t.Errorf("cluster is %+v, want the created cluster, ACTIVE, with an OIDC issuer", c)
	}
	arn := aws.String("arn:aws:iam::111122223333:role/path/node")
	in := &eks.CreateAccessEntryInput{ClusterName: cluster, PrincipalArn: arn, Type: aws.String("EC2_LINUX")}
	if _, err := b.eks.CreateAccessEntry(t.Context(), in); code(t, err) != "InvalidRequestException" {
		t.Errorf("an entry in mode CONFIG_MAP: %v, want InvalidRequestException", err)
	}
	_, err = b.eks.UpdateClusterConfig(t.Context(),
		&eks.UpdateClusterConfigInput{Name: cluster, AccessConfig: &ekstypes.UpdateAccessConfigRequest{AuthenticationMode: "API_AND_CONFIG_MAP"}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.eks.CreateAccessEntry(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	entry, err := b.eks.DescribeAccessEntry(t.Context(), &eks.DescribeAccessEntryInput{ClusterName: cluster, PrincipalArn: arn})
	if err != nil || *entry.AccessEntry.Username != "system:node:{{EC2PrivateDNSName}}" ||
		entry.AccessEntry.KubernetesGroups[0] != "system:nodes" {
		t.Errorf("entry is %+v, %v, want the user name and the group of nodes", entry, err)
	}
	if _, err := b.eks.CreateAccessEntry(t.Context(), in); code(t, err) != "ResourceInUseException" {
		t.Errorf("a second entry of the principal: %v, want ResourceInUseException", err)
	}
	list, err := b.eks.ListAccessEntries(t.Context(), &eks.ListAccessEntriesInput{ClusterName: cluster})
	if err != nil || cmp.Diff([]string{*arn}, list.AccessEntries) != "" {
		t.Errorf("entries: %+v, %v, want only the principal's", list, err)
	}
	if _, err := b.eks.DeleteAccessEntry(t.Context(), &eks.DeleteAccessEntryInput{ClusterName: cluster, PrincipalArn: arn}); err != nil {
		t.Error(err)
	}
	if _, err := b.eks.DescribeAccessEntry(t.Context(),
		&eks.DescribeAccessEntryInput{ClusterName: cluster, PrincipalArn: arn}); code(t, err) != "ResourceNotFoundException" {
		t.Errorf("a deleted entry: %v, want ResourceNotFoundException", err)
	}
	fargate, err := b.eks.CreateFargateProfile(t.Context(), &eks.CreateFargateProfileInput{
		ClusterName: cluster, FargateProfileName: aws.String("system"), PodExecutionRoleArn: arn,
		Selectors: []ekstypes.FargateProfileSelector{{Namespace: aws.String("kube-system"), Labels: map[string]string{"a": "b"}}},
	})
	if err != nil || fargate.FargateProfile.Status != "ACTIVE" || fargate.FargateProfile.Selectors[0].Labels["a"] != "b" {
		t.Errorf("Fargate profile: %+v, %v, want it active with the label a=b", fargate, err)
	}
	if _, err := b.eks.DescribeCluster(t.Context(), &eks.DescribeClusterInput{Name: aws.String("none")}); code(t,
		err) != "ResourceNotFoundException" {
		t.Errorf("an unknown cluster: %v, want ResourceNotFoundException", err)
	}
}

// TestQueue: a received message is invisible until its visibility timeout, is then redelivered, and can be deleted. A
// new message ends the wait of a receiver.
func TestQueue(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	queue, err := b.sqs.CreateQueue(t.Context(),
		&sqs.CreateQueueInput{QueueName: aws.String("demo"), Attributes: map[string]string{"MessageRetentionPeriod": "300"}})
	if err != nil {
		t.Fatal(err)
	}
	receive := func(wait int32) []sqstypes.Message {
		out, err := b.sqs.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{
			QueueUrl: queue.QueueUrl, MaxNumberOfMessages: 10, VisibilityTimeout: 20, WaitTimeSeconds: wait,
			MessageSystemAttributeNames: []sqstypes.MessageSystemAttributeName{"ApproximateReceiveCount"},
		})
		if err != nil {
			t.Fatal(err)
		}
		return out.Messages
	}
	if got := receive(0); len(got) != 0 {
		t.Errorf("an empty queue delivers %v, want no message", got)
	}
	sent := make(chan error, 1)
	go func() {
		_, err := b.sqs.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: queue.QueueUrl, MessageBody: aws.String(`{"a":"<b>"}`)})
		sent <- err
	}()
	got := receive(10)
	if err := <-sent; err != nil {
		t.Fatal(err)
	}
	if len(got) != 1 || *got[0].Body != `{"a":"<b>"}` || got[0].Attributes["ApproximateReceiveCount"] != "1" {
		t.Fatalf("received: %+v, want the sent message for the first time", got)
	}
	if again := receive(0); len(again) != 0 {
		t.Error("a received message is visible to other receivers")
	}
	b.advance(21 * time.Second)
	again := receive(0)
	if len(again) != 1 || again[0].Attributes["ApproximateReceiveCount"] != "2" {
		t.Fatalf("redelivered: %+v, want the message for the second time", again)
	}
	attributes, err := b.sqs.GetQueueAttributes(t.Context(),
		&sqs.GetQueueAttributesInput{QueueUrl: queue.QueueUrl, AttributeNames: []sqstypes.QueueAttributeName{"All"}})
	if err != nil || attributes.Attributes["ApproximateNumberOfMessagesNotVisible"] != "1" ||
		attributes.Attributes["QueueArn"] != "arn:aws:sqs:us-east-1:111122223333:demo" {
		t.Errorf("attributes: %v, %v, want one message that is not visible", attributes, err)
	}
	if _, err := b.sqs.DeleteMessage(t.Context(),
		&sqs.DeleteMessageInput{QueueUrl: queue.QueueUrl, ReceiptHandle: again[0].ReceiptHandle}); err != nil {
		t.Error(err)
	}
	b.advance(time.Minute)
	if left := receive(0); len(left) != 0 {
		t.Error("a deleted message was delivered again")
	}
	_, err = b.sqs.GetQueueUrl(t.Context(), &sqs.GetQueueUrlInput{QueueName: aws.String("none")})
	if code(t, err) != "AWS.SimpleQueueService.NonExistentQueue" && code(t, err) != "QueueDoesNotExist" { // query or JSON protocol
		t.Errorf("an unknown queue: %v, want QueueDoesNotExist", err)
	}
}

// TestInterruption: EC2 sends the warning of a spot interruption to the queue, and terminates the instance two minutes
// later.
func TestInterruption(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	queue, err := b.sqs.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: aws.String("demo")})
	if err != nil {
		t.Fatal(err)
	}
	name := b.createTemplate(t, "joiner-a", types.RequestLaunchTemplateData{})
	in := fleet(name, 1, b.override("m5.large", 0))
	in.TargetCapacitySpecification.DefaultTargetCapacityType = types.DefaultTargetCapacityTypeSpot
	out, err := b.ec2.CreateFleet(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	id := out.Instances[0].InstanceIds[0]
	b.advance(2 * time.Second) // the instance is running
	b.server.Do(func(w *world.World, now time.Time) {
		b.estate.Region.EventQueues = []string{"demo", "missing"} // a queue that does not exist has no effect
		if !w.Interrupt(now, id) {
			t.Error("the instance cannot be interrupted")
		}
	})
	got, err := b.sqs.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: queue.QueueUrl})
	if err != nil || len(got.Messages) != 1 {
		t.Fatalf("messages in the queue: %+v, %v, want one", got, err)
	}
	var event map[string]any
	if err := json.Unmarshal([]byte(*got.Messages[0].Body), &event); err != nil {
		t.Fatal(err)
	}
	delete(event, "id")
	delete(event, "time")
	want := map[string]any{
		"version": "0", "source": "aws.ec2", "detail-type": "EC2 Spot Instance Interruption Warning", "account": account, "region": region,
		"resources": []any{"arn:aws:ec2:us-east-1:111122223333:instance/" + id},
		"detail":    map[string]any{"instance-id": id, "instance-action": "terminate"},
	}
	if d := cmp.Diff(want, event); d != "" {
		t.Errorf("event (-want +got):\n%s", d)
	}
	b.advance(119 * time.Second)
	if s := b.instances(t.Context(), t, id)[0].State.Name; s != "running" {
		t.Errorf("after 119 s the instance is %s, want running", s)
	}
	b.advance(time.Second)
	if s := b.instances(t.Context(), t, id)[0]; s.State.Name != "shutting-down" || *s.StateReason.Code != "Server.SpotInstanceTermination" {
		t.Errorf("after 120 s the instance is %s, %+v, want shutting-down", s.State.Name, s.StateReason)
	}
}

// TestParameters reads the SSM parameters that contain image ids.
func TestParameters(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	paths := ssm.NewGetParametersByPathPaginator(b.ssm,
		&ssm.GetParametersByPathInput{Path: aws.String("/aws/service/eks/optimized-ami/1.31"), Recursive: aws.Bool(true)})
	n := 0
	for paths.HasMorePages() {
		page, err := paths.NextPage(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		n += len(page.Parameters)
	}
	if want := 8 * 3; n != want { // 8 kinds of images, each with two releases and the recommended release
		t.Errorf("%d parameters of images for Kubernetes 1.31, want %d", n, want)
	}
	for _, name := range []string{
		"/aws/service/eks/optimized-ami/1.28/amazon-linux-2-arm64/recommended/image_id",
		"/aws/service/eks/optimized-ami/1.36/amazon-linux-2023/arm64/standard/recommended/image_id",
		"/aws/service/bottlerocket/aws-k8s-1.33-nvidia/x86_64/latest/image_id",
		"arn:aws:ssm:us-east-1::parameter/aws/service/bottlerocket/aws-k8s-1.33/arm64/1.52.0/image_id",
	} {
		p, err := b.ssm.GetParameter(t.Context(), &ssm.GetParameterInput{Name: &name})
		if err != nil || !strings.HasPrefix(*p.Parameter.Value, "ami-0") {
			t.Errorf("%s: %v, %v, want the id of an image", name, p, err)
		}
	}
	_, err := b.ssm.GetParameter(t.Context(),
		&ssm.GetParameterInput{Name: aws.String("/aws/service/eks/optimized-ami/1.33/amazon-linux-2/recommended/image_id")})
	if code(t, err) != "ParameterNotFound" {
		t.Errorf("AL2 for 1.33: %v, want ParameterNotFound", err)
	}
}

// TestPricing reads all prices of a region with Karpenter's filters.
func TestPricing(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	filter := func(field, value string) pricingtypes.Filter {
		return pricingtypes.Filter{Field: &field, Type: pricingtypes.FilterTypeTermMatch, Value: &value}
	}
	pages := pricing.NewGetProductsPaginator(b.pricing,
		&pricing.GetProductsInput{ServiceCode: aws.String("AmazonEC2"), Filters: []pricingtypes.Filter{
			filter("regionCode", region), filter("serviceCode", "AmazonEC2"), filter("preInstalledSw", "NA"), filter("operatingSystem", "Linux"),
			filter("capacitystatus", "Used"), filter("marketoption", "OnDemand"), filter("tenancy", "Shared"),
			filter("productFamily", "Compute Instance"),
		}})
	prices := map[string]string{}
	for pages.HasMorePages() {
		page, err := pages.NextPage(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range page.PriceList {
			var p struct {
				Product struct{ Attributes struct{ InstanceType string } }
				Terms   struct {
					OnDemand map[string]struct {
						PriceDimensions map[string]struct{ PricePerUnit struct{ USD string } }
					}
				}
			}
			if err := json.Unmarshal([]byte(text), &p); err != nil {
				t.Fatal(err)
			}
			for _, term := range p.Terms.OnDemand {
				for _, d := range term.PriceDimensions {
					prices[p.Product.Attributes.InstanceType] = d.PricePerUnit.USD
				}
			}
		}
	}
	// m5.metal is in another product family: "Compute Instance (bare metal)".
	if prices["m5.large"] != "0.0960000000" || prices["m5.metal"] != "" || len(prices) < 500 {
		t.Errorf("%d prices, m5.large %q, m5.metal %q; want at least 500, 0.096 and none", len(prices), prices["m5.large"], prices["m5.metal"])
	}
}

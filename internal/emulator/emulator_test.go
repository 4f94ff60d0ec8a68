package emulator_test

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/pricing"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/aws/smithy-go"

	"github.com/joiner-sh/joiner/internal/aws/awserr"
	"github.com/joiner-sh/joiner/internal/emulator"
	"github.com/joiner-sh/joiner/internal/emulator/world"
	"github.com/joiner-sh/joiner/internal/emulator/world/site"
	"github.com/joiner-sh/joiner/internal/model/catalog"
)

const (
	account = "111122223333"
	region  = "us-east-1"
)

var embedded = sync.OnceValues(catalog.Embedded)

// fixture is a server with one region that is ready for a cluster, its clock, and SDK clients for it.
type fixture struct {
	server *emulator.Server
	url    string
	estate world.ClusterResources

	mu  sync.Mutex
	now time.Time

	ec2     *ec2.Client
	eks     *eks.Client
	iam     *iam.Client
	sts     *sts.Client
	ssm     *ssm.Client
	sqs     *sqs.Client
	pricing *pricing.Client
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	table, err := embedded()
	if err != nil {
		t.Fatal(err)
	}
	setup, err := world.SetupFrom(table, account, region, "demo")
	if err != nil {
		t.Fatal(err)
	}
	b := &fixture{now: time.Now().UTC()}
	w, estate, err := world.New(b.now, setup)
	if err != nil {
		t.Fatal(err)
	}
	w.Timing = site.Timing{Pending: 2 * time.Second, ShuttingDown: 3 * time.Second}
	b.estate = estate
	b.server = &emulator.Server{World: w, Now: b.clock}
	web := httptest.NewServer(b.server)
	t.Cleanup(web.Close)
	b.url = web.URL
	b.use(b.config(account, "secret", "")) // the key stands for the account's administrator
	return b
}

func (b *fixture) config(accessKey, secret, token string) aws.Config {
	return awserr.ClientConfig(aws.Config{
		Region: region, BaseEndpoint: aws.String(b.url), RetryMaxAttempts: 1,
		Credentials: credentials.NewStaticCredentialsProvider(accessKey, secret, token),
	})
}

func (b *fixture) use(c aws.Config) {
	b.ec2, b.eks, b.iam, b.sts = ec2.NewFromConfig(c), eks.NewFromConfig(c), iam.NewFromConfig(c), sts.NewFromConfig(c)
	b.ssm, b.sqs, b.pricing = ssm.NewFromConfig(c), sqs.NewFromConfig(c), pricing.NewFromConfig(c)
}

func (b *fixture) clock() time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.now
}

func (b *fixture) advance(d time.Duration) {
	b.mu.Lock()
	b.now = b.now.Add(d)
	b.mu.Unlock()
	b.server.Do(func(*world.World, time.Time) {})
}

// image returns the id of the recommended AL2023 image. arch is "x86_64" or "arm64".
func (b *fixture) image(t *testing.T, arch string) string {
	t.Helper()
	out, err := b.ssm.GetParameter(t.Context(), &ssm.GetParameterInput{
		Name: aws.String("/aws/service/eks/optimized-ami/1.31/amazon-linux-2023/" + arch + "/standard/recommended/image_id"),
	})
	if err != nil {
		t.Fatal(err)
	}
	return *out.Parameter.Value
}

// createTemplate creates a launch template, and returns its name. If the data have no image or no security group, it
// sets them.
func (b *fixture) createTemplate(t *testing.T, name string, data types.RequestLaunchTemplateData) string {
	t.Helper()
	if data.ImageId == nil {
		data.ImageId = aws.String(b.image(t, "x86_64"))
	}
	if data.SecurityGroupIds == nil {
		data.SecurityGroupIds = []string{b.estate.NodeSG.ID}
	}
	_, err := b.ec2.CreateLaunchTemplate(t.Context(),
		&ec2.CreateLaunchTemplateInput{LaunchTemplateName: aws.String(name), LaunchTemplateData: &data})
	if err != nil {
		t.Fatal(err)
	}
	return name
}

func fleet(template string, count int32, overrides ...types.FleetLaunchTemplateOverridesRequest) *ec2.CreateFleetInput {
	return &ec2.CreateFleetInput{
		Type: types.FleetTypeInstant,
		LaunchTemplateConfigs: []types.FleetLaunchTemplateConfigRequest{{
			LaunchTemplateSpecification: &types.FleetLaunchTemplateSpecificationRequest{LaunchTemplateName: aws.String(template),
				Version: aws.String("$Latest")},
			Overrides: overrides,
		}},
		TargetCapacitySpecification: &types.TargetCapacitySpecificationRequest{
			TotalTargetCapacity: aws.Int32(count), DefaultTargetCapacityType: types.DefaultTargetCapacityTypeOnDemand,
		},
	}
}

// override returns an override. subnet is the index of a private subnet; each is in another zone.
func (b *fixture) override(instanceType string, subnet int) types.FleetLaunchTemplateOverridesRequest {
	return types.FleetLaunchTemplateOverridesRequest{
		InstanceType: types.InstanceType(instanceType), SubnetId: aws.String(b.estate.PrivateSubnets[subnet].ID),
	}
}

// code returns the code of an AWS error; empty for nil. Any other error fails the test.
func code(t *testing.T, err error) string {
	t.Helper()
	if err == nil {
		return ""
	}
	var apiErr smithy.APIError
	if !errors.As(err, &apiErr) {
		t.Fatalf("not an AWS error: %v", err)
	}
	return apiErr.ErrorCode()
}

func (b *fixture) instances(ctx context.Context, t *testing.T, ids ...string) []types.Instance {
	t.Helper()
	var out []types.Instance
	pages := ec2.NewDescribeInstancesPaginator(b.ec2, &ec2.DescribeInstancesInput{InstanceIds: ids})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range page.Reservations {
			out = append(out, r.Instances...)
		}
	}
	return out
}

func (b *fixture) createProfile(t *testing.T, profile, role string) {
	t.Helper()
	_, err := b.iam.CreateRole(t.Context(), &iam.CreateRoleInput{RoleName: &role, AssumeRolePolicyDocument: aws.String("{}")})
	if err == nil {
		_, err = b.iam.CreateInstanceProfile(t.Context(), &iam.CreateInstanceProfileInput{InstanceProfileName: &profile})
	}
	if err == nil {
		_, err = b.iam.AddRoleToInstanceProfile(t.Context(), &iam.AddRoleToInstanceProfileInput{InstanceProfileName: &profile, RoleName: &role})
	}
	if err != nil {
		t.Fatal(err)
	}
}

// setQuota sets a quota, and removes all others.
func (b *fixture) setQuota(q world.Quota, vcpus int64) {
	b.estate.Region.Capacity.Quotas = map[world.Quota]int64{q: vcpus}
}

// offerOnlyInZoneB makes us-east-1b the only zone that offers an instance type.
func (b *fixture) offerOnlyInZoneB(name string) {
	market := b.server.World.Market(region)
	s, _ := market.Stock(name)
	s.Zones = []string{"us-east-1b"}
	market.Offer(s)
}

func fleetErrors(out *ec2.CreateFleetOutput) string {
	text := ""
	for _, e := range out.Errors {
		o := e.LaunchTemplateAndOverrides.Overrides
		text += fmt.Sprintf("%s %s: %s: %s\n", o.InstanceType, aws.ToString(o.SubnetId), *e.ErrorCode, *e.ErrorMessage)
	}
	return text
}

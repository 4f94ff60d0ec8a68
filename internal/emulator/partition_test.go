package emulator_test

import (
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/aws-sdk-go-v2/service/sts"

	"github.com/joiner-sh/joiner/internal/emulator"
)

// TestPartition: all ARNs of an account in China or GovCloud have its partition, including those of IAM and STS.
func TestPartition(t *testing.T) {
	t.Parallel()
	for region, partition := range map[string]string{"cn-northwest-1": "aws-cn", "us-gov-west-1": "aws-us-gov", "eu-west-1": "aws"} {
		t.Run(region, func(t *testing.T) {
			t.Parallel()
			web := httptest.NewServer(&emulator.Server{})
			t.Cleanup(web.Close)
			c := aws.Config{Region: region, BaseEndpoint: aws.String(web.URL),
				Credentials: credentials.NewStaticCredentialsProvider(account, "secret", "")}
			arns := arnsOf(t, c)
			for what, arn := range arns {
				if !strings.HasPrefix(arn, "arn:"+partition+":") {
					t.Errorf("the ARN of the %s is %s, want the partition %s", what, arn, partition)
				}
			}
		})
	}
}

// arnsOf creates resources whose ARNs have no region, and one whose ARN has a region. It returns the ARNs by a
// description.
func arnsOf(t *testing.T, c aws.Config) map[string]string {
	t.Helper()
	arns := map[string]string{}
	tokens, roles := sts.NewFromConfig(c), iam.NewFromConfig(c)
	root, err := tokens.GetCallerIdentity(t.Context(), &sts.GetCallerIdentityInput{})
	if err != nil {
		t.Fatal(err)
	}
	arns["root"] = *root.Arn
	role, err := roles.CreateRole(t.Context(), &iam.CreateRoleInput{RoleName: aws.String("node"), AssumeRolePolicyDocument: aws.String("{}")})
	if err != nil {
		t.Fatal(err)
	}
	arns["role"] = *role.Role.Arn
	profile, err := roles.CreateInstanceProfile(t.Context(), &iam.CreateInstanceProfileInput{InstanceProfileName: aws.String("p")})
	if err != nil {
		t.Fatal(err)
	}
	arns["instance profile"] = *profile.InstanceProfile.Arn
	session, err := tokens.AssumeRole(t.Context(), &sts.AssumeRoleInput{RoleArn: role.Role.Arn, RoleSessionName: aws.String("me")})
	if err != nil {
		t.Fatal(err)
	}
	arns["session"] = *session.AssumedRoleUser.Arn
	queues := sqs.NewFromConfig(c)
	queue, err := queues.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: aws.String("q")})
	if err != nil {
		t.Fatal(err)
	}
	about, err := queues.GetQueueAttributes(t.Context(), &sqs.GetQueueAttributesInput{
		QueueUrl: queue.QueueUrl, AttributeNames: []sqstypes.QueueAttributeName{sqstypes.QueueAttributeNameQueueArn}})
	if err != nil {
		t.Fatal(err)
	}
	arns["queue"] = about.Attributes["QueueArn"]
	return arns
}

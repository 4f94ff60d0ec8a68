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

// TestPartition: all ARNs of an account in China or GovCloud have the region's partition, including those of IAM and
// STS.
func TestPartition(t *testing.T) {
	t.Parallel()
	for regionID, partition := range map[string]string{"cn-northwest-1": "aws-cn", "us-gov-west-1": "aws-us-gov", "eu-west-1": "aws"} {
		t.Run(regionID, func(t *testing.T) {
			t.Parallel()
			web := httptest.NewServer(&emulator.Server{})
			t.Cleanup(web.Close)
			c := aws.Config{Region: regionID, BaseEndpoint: aws.String(web.URL),
				Credentials: credentials.NewStaticCredentialsProvider(account, "secret", "")}
			arns := arnsOf(t, c)
			for kind, arn := range arns {
				if !strings.HasPrefix(arn, "arn:"+partition+":") {
					t.Errorf("the ARN of the %s is %s, want the partition %s", kind, arn, partition)
				}
			}
		})
	}
}

// arnsOf creates a role, an instance profile, a session and a queue. It returns their ARNs and the caller's ARN,
// by kind. ARNs of IAM and STS have no region.
func arnsOf(t *testing.T, c aws.Config) map[string]string {
	t.Helper()
	arns := map[string]string{}
	stsClient, iamClient := sts.NewFromConfig(c), iam.NewFromConfig(c)
	root, err := stsClient.GetCallerIdentity(t.Context(), &sts.GetCallerIdentityInput{})
	if err != nil {
		t.Fatal(err)
	}
	arns["root"] = *root.Arn
	role, err := iamClient.CreateRole(t.Context(),
		&iam.CreateRoleInput{RoleName: aws.String("node"), AssumeRolePolicyDocument: aws.String("{}")})
	if err != nil {
		t.Fatal(err)
	}
	arns["role"] = *role.Role.Arn
	profile, err := iamClient.CreateInstanceProfile(t.Context(), &iam.CreateInstanceProfileInput{InstanceProfileName: aws.String("p")})
	if err != nil {
		t.Fatal(err)
	}
	arns["instance profile"] = *profile.InstanceProfile.Arn
	session, err := stsClient.AssumeRole(t.Context(), &sts.AssumeRoleInput{RoleArn: role.Role.Arn, RoleSessionName: aws.String("me")})
	if err != nil {
		t.Fatal(err)
	}
	arns["session"] = *session.AssumedRoleUser.Arn
	sqsClient := sqs.NewFromConfig(c)
	queue, err := sqsClient.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: aws.String("q")})
	if err != nil {
		t.Fatal(err)
	}
	attributes, err := sqsClient.GetQueueAttributes(t.Context(), &sqs.GetQueueAttributesInput{
		QueueUrl: queue.QueueUrl, AttributeNames: []sqstypes.QueueAttributeName{sqstypes.QueueAttributeNameQueueArn}})
	if err != nil {
		t.Fatal(err)
	}
	arns["queue"] = attributes.Attributes["QueueArn"]
	return arns
}

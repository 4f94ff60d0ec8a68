package main

import (
	"context"
	"errors"
	"os"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsconfig "github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials/stscreds"
	"github.com/aws/aws-sdk-go-v2/service/sts"
)

// webIdentityClient gets the credentials of a service account's role (IRSA) from STS. It creates its STS client from
// the complete AWS configuration. The SDK would create its own client before it has read AWS_ENDPOINT_URL. That client
// would use the default endpoint, which a private cluster may not be able to resolve.
type webIdentityClient struct{ client *sts.Client }

// option makes an AWS configuration get the credentials of IRSA through c.
func (c *webIdentityClient) option() func(*awsconfig.LoadOptions) error {
	return awsconfig.WithWebIdentityRoleCredentialOptions(func(o *stscreds.WebIdentityRoleOptions) { o.Client = c })
}

func (c *webIdentityClient) setConfig(cfg aws.Config) { c.client = sts.NewFromConfig(cfg) }

// AssumeRoleWithWebIdentity calls STS. Before setConfig, it returns an error.
func (c *webIdentityClient) AssumeRoleWithWebIdentity(
	ctx context.Context, in *sts.AssumeRoleWithWebIdentityInput, options ...func(*sts.Options),
) (*sts.AssumeRoleWithWebIdentityOutput, error) {
	if c.client == nil {
		return nil, errors.New("credentials are requested before the AWS configuration is read")
	}
	return c.client.AssumeRoleWithWebIdentity(ctx, in, options...)
}

// credentialsAdvice returns the end of the message about missing credentials: how to provide them. It is empty with
// IRSA, because the error of STS has its own advice.
func credentialsAdvice() string {
	if os.Getenv("AWS_WEB_IDENTITY_TOKEN_FILE") != "" {
		return ""
	}
	return "; give the controller's service account a role (EKS Pod Identity or IRSA), or set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
}

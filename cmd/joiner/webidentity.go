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

// tokenGiver asks STS for credentials of the role that a service account has (IRSA). The SDK makes a client for that before it has read
// where AWS is: AWS_ENDPOINT_URL would count for every call but this one, which needs names that a private cluster may not know. So the
// client is made when the configuration is complete.
type tokenGiver struct{ client *sts.Client }

// option has a configuration ask through t.
func (t *tokenGiver) option() func(*awsconfig.LoadOptions) error {
	return awsconfig.WithWebIdentityRoleCredentialOptions(func(o *stscreds.WebIdentityRoleOptions) { o.Client = t })
}

// use has t ask where a complete configuration says.
func (t *tokenGiver) use(cfg aws.Config) { t.client = sts.NewFromConfig(cfg) }

// AssumeRoleWithWebIdentity asks STS.
func (t *tokenGiver) AssumeRoleWithWebIdentity(
	ctx context.Context, in *sts.AssumeRoleWithWebIdentityInput, options ...func(*sts.Options),
) (*sts.AssumeRoleWithWebIdentityOutput, error) {
	if t.client == nil {
		return nil, errors.New("credentials are asked for before the AWS configuration is read")
	}
	return t.client.AssumeRoleWithWebIdentity(ctx, in, options...)
}

// credentialsAdvice is what to do where there are no credentials: nothing more, where a service account's role was tried and it was said why in vain.
func credentialsAdvice() string {
	if os.Getenv("AWS_WEB_IDENTITY_TOKEN_FILE") != "" {
		return ""
	}
	return "; give the controller's service account a role (EKS Pod Identity or IRSA), or set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
}

package emulator_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/aws/aws-sdk-go-v2/service/sts"

	"github.com/joiner-sh/joiner/internal/emulator/world"
	"github.com/joiner-sh/joiner/internal/emulator/world/identity"
)

// callServices makes one call to each of six services. It returns the error codes of the failed calls by service.
func (b *fixture) callServices(t *testing.T, c aws.Config) map[string]string {
	t.Helper()
	out := map[string]string{}
	for name, call := range map[string]func(context.Context) error{
		"ec2": func(ctx context.Context) error {
			_, err := ec2.NewFromConfig(c).DescribeVpcs(ctx, &ec2.DescribeVpcsInput{})
			return err
		},
		"iam": func(ctx context.Context) error {
			_, err := iam.NewFromConfig(c).ListRoles(ctx, &iam.ListRolesInput{})
			return err
		},
		"sts": func(ctx context.Context) error {
			_, err := sts.NewFromConfig(c).GetCallerIdentity(ctx, &sts.GetCallerIdentityInput{})
			return err
		},
		"eks": func(ctx context.Context) error {
			_, err := eks.NewFromConfig(c).ListClusters(ctx, &eks.ListClustersInput{})
			return err
		},
		"ssm": func(ctx context.Context) error {
			_, err := ssm.NewFromConfig(c).GetParametersByPath(ctx, &ssm.GetParametersByPathInput{Path: aws.String("/none")})
			return err
		},
		"sqs": func(ctx context.Context) error {
			_, err := sqs.NewFromConfig(c).ListQueues(ctx, &sqs.ListQueuesInput{})
			return err
		},
	} {
		if got := code(t, call(t.Context())); got != "" {
			out[name] = got
		}
	}
	return out
}

// TestClocksApart: if the client's clock differs too much from AWS's, each service returns its own error. The SDK then
// corrects its clock by the header Date of the answer, and the next attempt succeeds.
func TestClocksApart(t *testing.T) {
	t.Parallel()
	skewCodes := map[string]string{ // EC2 never fails: it allows 15 minutes, then awserr repeats the call
		"iam": "SignatureDoesNotMatch", "sts": "SignatureDoesNotMatch",
		"eks": "InvalidSignatureException", "ssm": "InvalidSignatureException", "sqs": "InvalidSignatureException",
	}
	for name, c := range map[string]struct {
		apart time.Duration     // AWS's time minus the client's time
		codes map[string]string // error codes without retries, by service
		calls int               // calls of EC2
	}{
		"four minutes":     {4 * time.Minute, nil, 1},
		"AWS is ahead":     {5*time.Minute + 10*time.Second, skewCodes, 1},
		"AWS is behind":    {-5*time.Minute - 10*time.Second, skewCodes, 1},
		"too much for EC2": {15*time.Minute + 10*time.Second, skewCodes, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newFixture(t)
			var s identity.Session
			b.server.Do(func(w *world.World, _ time.Time) { s = w.Account(account).CreateUser("ann") })
			b.advance(c.apart)
			config := b.config(s.AccessKey, s.SecretKey, "")
			if got := b.callServices(t, config); len(got) != len(c.codes) || got["sts"] != c.codes["sts"] || got["sqs"] != c.codes["sqs"] ||
				got["eks"] != c.codes["eks"] || got["ssm"] != c.codes["ssm"] || got["iam"] != c.codes["iam"] {
				t.Errorf("error codes %v, want %v", got, c.codes)
			}
			if n := b.server.Calls()["ec2:DescribeVpcs"]; n != c.calls {
				t.Errorf("EC2 was called %d times, want %d", n, c.calls)
			}
			config.RetryMaxAttempts = 0
			config.Retryer = func() aws.Retryer { return retry.AddWithMaxBackoffDelay(retry.NewStandard(), time.Millisecond) }
			if got := b.callServices(t, config); len(got) > 0 {
				t.Errorf("with retries: %v, want no errors", got)
			}
		})
	}
}

// TestExpiredSession: each service rejects the expired keys of a role with its own error.
func TestExpiredSession(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	b.createProfile(t, "p", "node")
	var s identity.Session
	b.server.Do(func(w *world.World, now time.Time) {
		var err error
		if s, err = w.Account(account).AssumeRole(now, "node", "i-0123", time.Minute); err != nil {
			t.Error(err)
		}
	})
	config := b.config(s.AccessKey, s.SecretKey, s.Token)
	if got := b.callServices(t, config); len(got) > 0 {
		t.Errorf("before the keys expire: %v, want no errors", got)
	}
	b.advance(time.Minute)
	got := b.callServices(t, config)
	for service, want := range map[string]string{
		"ec2": "RequestExpired", "iam": "ExpiredToken", "sts": "ExpiredToken", "sqs": "ExpiredToken",
		"eks": "ExpiredTokenException", "ssm": "ExpiredTokenException",
	} {
		if got[service] != want {
			t.Errorf("%s: %s, want %s", service, got[service], want)
		}
	}
	_, err := ssm.NewFromConfig(config).GetParameter(t.Context(), &ssm.GetParameterInput{Name: aws.String("x")})
	if err == nil || !strings.Contains(err.Error(), "security token included in the request is expired") {
		t.Errorf("SSM's error: %v, want one about the expired token", err)
	}
}

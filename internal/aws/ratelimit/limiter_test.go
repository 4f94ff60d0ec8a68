package ratelimit_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsec2 "github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/iam"

	"github.com/joiner-sh/joiner/internal/aws/awserr"
	"github.com/joiner-sh/joiner/internal/aws/ratelimit"
	"github.com/joiner-sh/joiner/internal/emulator/world"
)

// caller returns a function that makes one call of DescribeVpcs and returns its duration.
func caller(t *testing.T, api *wire, limiter *ratelimit.Limiter) func(context.Context) (time.Duration, error) {
	t.Helper()
	client := awsec2.NewFromConfig(api.config(limiter), func(o *awsec2.Options) { o.Retryer = aws.NopRetryer{} })
	return func(ctx context.Context) (time.Duration, error) {
		start := time.Now()
		_, err := client.DescribeVpcs(ctx, &awsec2.DescribeVpcsInput{})
		return time.Since(start), awserr.Classify("DescribeVpcs", err)
	}
}

// slowLimits allows one call of DescribeVpcs immediately, and another every 100 seconds: the limiter uses 95 % of a
// rate (shareOfRate).
func slowLimits() ratelimit.Limits {
	return ratelimit.Limits{"*": {Burst: 50, PerSecond: 5}, "Describe*": {Burst: 1, PerSecond: 0.01 / 0.95}}
}

const maxDelay = 400 * time.Millisecond // of a call in wire

// TestDeadline: a call that would have to wait beyond its deadline fails at once, and uses no token.
func TestDeadline(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		api, _, _ := newWire(t)
		call := caller(t, api, ratelimit.New(slowLimits(), nil))
		if took, err := call(t.Context()); err != nil || took > maxDelay {
			t.Fatalf("the first call took %s and returned %v; want no wait", took, err)
		}
		for range 3 {
			shortCtx, cancel := context.WithTimeout(t.Context(), time.Minute)
			took, err := call(shortCtx)
			cancel()
			if !awserr.Is(err, awserr.Throttled) || took > 0 || !strings.Contains(err.Error(), "EC2_API_LIMITS") {
				t.Errorf("a call with a short deadline took %s and returned %v; want Throttled at once", took, err)
			}
		}
		if took, err := call(t.Context()); err != nil || took < 90*time.Second || took > 101*time.Second {
			t.Errorf("a call without a deadline took %s and returned %v; want 100 s", took, err)
		}
	})
}

// TestCanceled: a call that is canceled while it waits is not sent, and puts its token back.
func TestCanceled(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		api, _, _ := newWire(t)
		call := caller(t, api, ratelimit.New(slowLimits(), nil))
		if _, err := call(t.Context()); err != nil {
			t.Fatal(err)
		}
		canceled, cancel := context.WithCancel(t.Context())
		time.AfterFunc(10*time.Second, cancel)
		if took, err := call(canceled); !awserr.Is(err, awserr.Canceled) || !errors.Is(err, context.Canceled) || took != 10*time.Second {
			t.Errorf("a call that is canceled after 10 s took %s and returned %v; want Canceled after 10 s", took, err)
		}
		if took, err := call(t.Context()); err != nil || took < 80*time.Second || took > 91*time.Second {
			t.Errorf("the next call took %s and returned %v; want 90 s, the token of the canceled call", took, err)
		}
		if api.made["DescribeVpcs"] != 2 {
			t.Errorf("%d calls were sent, want 2", api.made["DescribeVpcs"])
		}
	})
}

// TestThrottled: after a throttled call, the next call waits, because other clients use the account's rate, too.
func TestThrottled(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		api, _, _ := newWire(t)
		api.server.Do(func(w *world.World, _ time.Time) {
			w.Faults.Throttle = map[string]world.Bucket{"ec2:DescribeVpcs": {Size: 1, Refill: 1}}
		})
		var throttled []bool
		call := caller(t, api, ratelimit.New(ratelimit.Limits{"*": {Burst: 10, PerSecond: 1}}, func(a ratelimit.Attempt) {
			throttled = append(throttled, a.Throttled)
		}))
		var took time.Duration
		for range 3 {
			took, _ = call(t.Context())
		}
		// EC2 refills its only token in a second: the second call comes too early. So would the third, without a delay.
		if want := []bool{false, true, false}; !slices.Equal(throttled, want) || took < time.Second {
			t.Errorf("observed throttling %v, want %v; the last call took %s, want at least 1 s", throttled, want, took)
		}
	})
}

// TestOtherServices: the limits apply only to EC2.
func TestOtherServices(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		api, _, _ := newWire(t)
		client := iam.NewFromConfig(api.config(ratelimit.New(ratelimit.Limits{"*": {Burst: 1, PerSecond: 0.001}}, nil)))
		start := time.Now()
		for range 5 {
			if _, err := client.ListInstanceProfiles(t.Context(), &iam.ListInstanceProfilesInput{}); err != nil {
				t.Fatal(err)
			}
		}
		if took := time.Since(start); took > 5*maxDelay {
			t.Errorf("5 calls to IAM took %s, want no wait", took)
		}
	})
}

// TestShared: calls to all services wait for one bucket. Calls of another limiter do not wait for this bucket.
func TestShared(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		api, _, _ := newWire(t)
		var waited []time.Duration
		shared := ratelimit.NewShared(ratelimit.Rate{Burst: 1, PerSecond: 0.1 / 0.95}, func(a ratelimit.Attempt) { waited = append(waited, a.Waited) })
		iamClient := iam.NewFromConfig(api.config(shared))
		call := caller(t, api, shared)
		start := time.Now()
		for range 2 {
			if _, err := call(t.Context()); err != nil {
				t.Fatal(err)
			}
			if _, err := iamClient.ListInstanceProfiles(t.Context(), &iam.ListInstanceProfilesInput{}); err != nil {
				t.Fatal(err)
			}
		}
		if took := time.Since(start); took < 29*time.Second || took > 31*time.Second {
			t.Errorf("4 calls took %s, want 30 s: one call every 10 s", took)
		}
		if len(waited) != 4 || waited[0] != 0 {
			t.Errorf("the calls waited %v, want 4 waits, of which the first is 0", waited)
		}
		if took, err := caller(t, api, ratelimit.New(slowLimits(), nil))(t.Context()); err != nil || took > maxDelay {
			t.Errorf("a call of another limiter took %s and returned %v; want no wait", took, err)
		}
	})
}

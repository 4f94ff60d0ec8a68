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

// asker returns a function that makes one cheap call to EC2 and returns its duration.
func asker(t *testing.T, line *wire, b *ratelimit.Budget) func(context.Context) (time.Duration, error) {
	t.Helper()
	client := awsec2.NewFromConfig(line.config(b), func(o *awsec2.Options) { o.Retryer = aws.NopRetryer{} })
	return func(ctx context.Context) (time.Duration, error) {
		begun := time.Now()
		_, err := client.DescribeVpcs(ctx, &awsec2.DescribeVpcsInput{})
		return time.Since(begun), awserr.Sort("DescribeVpcs", err)
	}
}

// slow allows one call immediately, and another every 100 seconds.
func slow() ratelimit.Limits {
	return ratelimit.Limits{"*": {Burst: 50, PerSecond: 5}, "Describe*": {Burst: 1, PerSecond: 0.01 / 0.95}}
}

const underway = 400 * time.Millisecond // maximum delay of a call in wire

// TestDeadline: a call that would have to wait beyond its deadline fails at once, and uses no token.
func TestDeadline(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		line, _, _ := newWire(t)
		ask := asker(t, line, ratelimit.New(slow(), nil))
		if took, err := ask(t.Context()); err != nil || took > underway {
			t.Fatalf("the first call: %s, %v", took, err)
		}
		for range 3 {
			hurried, cancel := context.WithTimeout(t.Context(), time.Minute)
			took, err := ask(hurried)
			cancel()
			if !awserr.Is(err, awserr.Throttled) || took > 0 || !strings.Contains(err.Error(), "EC2_API_LIMITS") {
				t.Errorf("a call with a short deadline: %s, %v", took, err)
			}
		}
		if took, err := ask(t.Context()); err != nil || took < 90*time.Second || took > 101*time.Second {
			t.Errorf("a call with a long deadline: %s, %v; want 100 s", took, err)
		}
	})
}

// TestCanceled: a canceled call returns its token.
func TestCanceled(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		line, _, _ := newWire(t)
		ask := asker(t, line, ratelimit.New(slow(), nil))
		if _, err := ask(t.Context()); err != nil {
			t.Fatal(err)
		}
		stopped, stop := context.WithCancel(t.Context())
		time.AfterFunc(10*time.Second, stop)
		if took, err := ask(stopped); !awserr.Is(err, awserr.Canceled) || !errors.Is(err, context.Canceled) || took != 10*time.Second {
			t.Errorf("stopped after 10 s: %s, %v", took, err)
		}
		if took, err := ask(t.Context()); err != nil || took < 80*time.Second || took > 91*time.Second {
			t.Errorf("the next: %s, %v; want 90 s", took, err)
		}
		if line.made["DescribeVpcs"] != 2 {
			t.Errorf("%d calls were made, want 2", line.made["DescribeVpcs"])
		}
	})
}

// TestRefused: after a throttled call, the next call waits, because other clients use the account's rate too.
func TestRefused(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		line, _, _ := newWire(t)
		line.server.Do(func(w *world.World, _ time.Time) {
			w.Faults.Throttle = map[string]world.Bucket{"ec2:DescribeVpcs": {Size: 1, Refill: 1}}
		})
		var refused []bool
		ask := asker(t, line, ratelimit.New(ratelimit.Limits{"*": {Burst: 10, PerSecond: 1}}, func(a ratelimit.Attempt) {
			refused = append(refused, a.Refused)
		}))
		var took time.Duration
		for range 3 {
			took, _ = ask(t.Context())
		}
		// The second call comes too early. The third would too if the budget did not react to throttling.
		if want := []bool{false, true, false}; !slices.Equal(refused, want) || took < time.Second {
			t.Errorf("observed throttling %v, want %v; the last call took %s", refused, want, took)
		}
	})
}

// TestOtherServices: the limits apply only to EC2.
func TestOtherServices(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		line, _, _ := newWire(t)
		client := iam.NewFromConfig(line.config(ratelimit.New(ratelimit.Limits{"*": {Burst: 1, PerSecond: 0.001}}, nil)))
		begun := time.Now()
		for range 5 {
			if _, err := client.ListInstanceProfiles(t.Context(), &iam.ListInstanceProfilesInput{}); err != nil {
				t.Fatal(err)
			}
		}
		if took := time.Since(begun); took > 5*underway {
			t.Errorf("5 calls to IAM took %s", took)
		}
	})
}

// TestOne: one bucket delays calls to all services. Calls of other budgets do not wait for it.
func TestOne(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		line, _, _ := newWire(t)
		var waited []time.Duration
		one := ratelimit.NewOne(ratelimit.Rate{Burst: 1, PerSecond: 0.1 / 0.95}, func(a ratelimit.Attempt) { waited = append(waited, a.Waited) })
		roles := iam.NewFromConfig(line.config(one))
		ask := asker(t, line, one)
		begun := time.Now()
		for range 2 {
			if _, err := ask(t.Context()); err != nil {
				t.Fatal(err)
			}
			if _, err := roles.ListInstanceProfiles(t.Context(), &iam.ListInstanceProfilesInput{}); err != nil {
				t.Fatal(err)
			}
		}
		if took := time.Since(begun); took < 29*time.Second || took > 31*time.Second {
			t.Errorf("4 calls at one in 10 s took %s", took)
		}
		if len(waited) != 4 || waited[0] != 0 {
			t.Errorf("waited %v", waited)
		}
		if took, err := asker(t, line, ratelimit.New(slow(), nil))(t.Context()); err != nil || took > underway {
			t.Errorf("a call of another budget took %s, %v", took, err)
		}
	})
}

// Package ratelimit limits calls to EC2 to the rates that EC2 allows an account, so that EC2 does not throttle them.
//
// In: calls that the AWS SDK is about to send; the limits of EC2.
// Out: the same calls in their order, each delayed until the limits allow it; for each its delay, and whether EC2
// throttled it nevertheless.
// Never: a call of its own, a retry, or a priority among calls.
package ratelimit

import (
	"context"
	"path"
	"sync"
	"time"

	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/smithy-go/middleware"

	"github.com/joiner-sh/joiner/internal/aws/awserr"
)

// Rate is a token bucket: a burst of calls, and a number of calls per second after that.
type Rate struct {
	Burst     float64 // calls at once
	PerSecond float64 // calls per second after the burst
}

// Limits are EC2's rate limits by action: "CreateFleet", or a pattern for path.Match: "Describe*". If several patterns
// match an action, the longest applies. Each action has its own bucket, as in EC2, also if a pattern matches several
// actions.
type Limits map[string]Rate

// Published returns the default limits of an account, from
// https://docs.aws.amazon.com/ec2/latest/devguide/ec2-api-throttling.html: the limits of filtered or paginated reads,
// which we use, of mutating calls, and of the actions with their own limit.
func Published() Limits {
	return Limits{
		"Describe*":          {100, 20},
		"Get*":               {100, 20},
		"*":                  {50, 5},
		"CreateTags":         {100, 10},
		"DeleteTags":         {100, 10},
		"RunInstances":       {5, 2},
		"TerminateInstances": {100, 5},
	}
}

// With returns the limits, overridden by others.
func (l Limits) With(others Limits) Limits {
	out := Limits{}
	for _, some := range []Limits{l, others} {
		for pattern, rate := range some {
			out[pattern] = rate
		}
	}
	return out
}

// of returns the limit of an action; false if it has none.
func (l Limits) of(action string) (Rate, bool) {
	best, found := "", false // the pattern that applies
	for pattern := range l {
		if ok, err := path.Match(pattern, action); err != nil || !ok {
			continue
		}
		if !found || len(pattern) > len(best) || len(pattern) == len(best) && pattern < best {
			best, found = pattern, true
		}
	}
	return l[best], found
}

// The shares of EC2's limits that we use. The rest is unused, because calls do not arrive at EC2 as evenly as we send
// them, and because other clients use the same account.
const (
	shareOfBurst = 0.9
	shareOfRate  = 0.95
)

// Attempt is one attempt of a call. Each retry is an attempt of its own.
type Attempt struct {
	Action  string        // "RunInstances"
	Waited  time.Duration // time that the attempt waited for a token
	Refused bool          // EC2 throttled the attempt
}

// Budget limits the rate of calls to EC2. It is safe for concurrent use. All clients of an account and region share one
// Budget.
type Budget struct {
	limits  Limits
	observe func(Attempt) // nil disables it
	// isOne is true if all actions of all services share one bucket.
	isOne bool

	mu      sync.Mutex
	buckets map[string]*bucket // by key
}

// New returns a Budget of full buckets. observe is called after each attempt; nil disables it.
func New(limits Limits, observe func(Attempt)) *Budget {
	return &Budget{limits: limits, observe: observe, buckets: map[string]*bucket{}}
}

// NewOne returns a Budget with one bucket for the calls to all services of AWS. observe is called after each attempt;
// nil disables it.
func NewOne(rate Rate, observe func(Attempt)) *Budget {
	b := New(Limits{"*": rate}, observe)
	b.isOne = true
	return b
}

// Diagnosis returns the rate of calls that diagnose problems: five per second, without a burst.
func Diagnosis() Rate { return Rate{Burst: 1, PerSecond: 5} }

// key returns the key of the bucket that limits an action.
func (b *Budget) key(action string) string {
	if b.isOne {
		return "*"
	}
	return action
}

// service is the service ID of EC2 in the SDK.
const service = "EC2"

// Keep adds the budget to the calls of a client: it is one of the APIOptions of aws.Config. It does not limit calls to
// other services than EC2, unless the Budget is from NewOne.
func (b *Budget) Keep(stack *middleware.Stack) error {
	step := middleware.FinalizeMiddlewareFunc("JoinerBudget", b.attempt)
	if _, ok := stack.Finalize.Get("Retry"); !ok {
		return stack.Finalize.Add(step, middleware.Before)
	}
	// The step is inside the retries, so that each attempt takes a token. It precedes the signature, so that the
	// signature does not age while the call waits.
	return stack.Finalize.Insert(step, "Retry", middleware.After)
}

// attempt is the middleware that waits for a token before each attempt, and observes the attempt.
func (b *Budget) attempt(ctx context.Context, in middleware.FinalizeInput, next middleware.FinalizeHandler) (
	middleware.FinalizeOutput, middleware.Metadata, error,
) {
	if awsmiddleware.GetServiceID(ctx) != service && !b.isOne {
		return next.HandleFinalize(ctx, in)
	}
	a := Attempt{Action: awsmiddleware.GetOperationName(ctx)}
	var err error
	if a.Waited, err = b.wait(ctx, a.Action); err != nil {
		return middleware.FinalizeOutput{}, middleware.Metadata{}, err
	}
	out, metadata, err := next.HandleFinalize(ctx, in)
	if err != nil && awserr.Is(awserr.Sort(a.Action, err), awserr.Throttled) {
		a.Refused = true
		b.refused(a.Action)
	}
	if b.observe != nil {
		b.observe(a)
	}
	return out, metadata, err
}

// wait blocks until the call may be made, and returns how long it blocked. If the call would have to wait beyond the
// deadline of ctx, wait returns at once with an error of kind awserr.Throttled.
func (b *Budget) wait(ctx context.Context, action string) (time.Duration, error) {
	now := time.Now()
	delay := b.take(now, action)
	if delay <= 0 {
		return 0, nil
	}
	if deadline, ok := ctx.Deadline(); ok && now.Add(delay).After(deadline) {
		b.putBack(action)
		return 0, &awserr.Error{Op: action, Kind: awserr.Throttled, Reason: "RequestLimitExceeded",
			Message: "the wait for earlier calls exceeds the deadline of this call",
			Hint:    "request a higher limit of EC2 API calls from AWS, and set --ec2-api-limits (EC2_API_LIMITS)"}
	}
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-timer.C:
		return delay, nil
	case <-ctx.Done():
		b.putBack(action)
		return 0, ctx.Err()
	}
}

// take takes a token of the action's bucket, possibly one that is not yet available, and returns the time until that
// token is available. It returns 0 for an action without a limit.
func (b *Budget) take(now time.Time, action string) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	k, ok := b.buckets[b.key(action)]
	if !ok {
		rate, limited := b.limits.of(action)
		if !limited {
			return 0
		}
		k = newBucket(now, rate)
		b.buckets[b.key(action)] = k
	}
	return k.take(now)
}

// putBack puts the token of a call that was not made back into the bucket.
func (b *Budget) putBack(action string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if k, ok := b.buckets[b.key(action)]; ok {
		k.tokens++
	}
}

// refused empties the bucket after EC2 has throttled a call: EC2's own bucket is empty, because other clients use it,
// too.
func (b *Budget) refused(action string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if k, ok := b.buckets[b.key(action)]; ok {
		k.fill(time.Now())
		k.tokens = min(k.tokens, 0)
	}
}

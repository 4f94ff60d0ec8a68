// Package ratelimit limits calls to EC2 to the rates that EC2 allows an account, so that EC2 does not throttle them.
//
// In: calls that the AWS SDK is about to send; the limits of EC2.
// Out: the same calls in their order, each delayed until the limits allow it; the delay of each call, and whether EC2
// throttled the call nevertheless.
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

// Rate is the size and refill of a token bucket: a burst of calls, and a number of calls per second after the burst.
type Rate struct {
	Burst     float64 // calls at once
	PerSecond float64 // calls per second after the burst
}

// Limits are EC2's rate limits. The key is an action, "CreateFleet", or a pattern for path.Match, "Describe*". If
// several patterns match an action, the longest applies; of equally long ones, the first by name. As in EC2, each
// action has its own bucket, even if one pattern matches several actions.
type Limits map[string]Rate

// Published returns the default limits of an account, from
// https://docs.aws.amazon.com/ec2/latest/devguide/ec2-api-throttling.html. The limits of Describe* and Get* are those
// of filtered or paginated reads, because our reads are filtered or paginated. The limit of * is that of mutating
// calls.
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

// With returns the limits of l and changes. For a key in both, it takes the limit of changes.
func (l Limits) With(changes Limits) Limits {
	out := Limits{}
	for _, limits := range []Limits{l, changes} {
		for pattern, rate := range limits {
			out[pattern] = rate
		}
	}
	return out
}

// rateOf returns the limit of an action; false if it has none.
func (l Limits) rateOf(action string) (Rate, bool) {
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

// The shares of EC2's limits that we use. We leave the rest unused, because calls do not arrive at EC2 as evenly as we
// send them, and because other clients use the same account.
const (
	shareOfBurst = 0.9
	shareOfRate  = 0.95
)

// Attempt is one attempt of a call. Each retry is another Attempt.
type Attempt struct {
	Action    string        // "RunInstances"
	Waited    time.Duration // time that the attempt waited for a token
	Throttled bool          // AWS throttled the attempt
}

// Limiter limits the rate of calls to AWS. It is safe for concurrent use. All clients of an account and region share
// one Limiter.
type Limiter struct {
	limits  Limits
	observe func(Attempt) // nil disables it
	// isShared is true if all actions of all services share one bucket. If false, only EC2's actions are limited.
	isShared bool

	mu      sync.Mutex
	buckets map[string]*bucket // by the result of key
}

// New returns a Limiter of calls to EC2, with full buckets. observe is called after each attempt; nil disables it.
func New(limits Limits, observe func(Attempt)) *Limiter {
	return &Limiter{limits: limits, observe: observe, buckets: map[string]*bucket{}}
}

// NewShared returns a Limiter with one full bucket, which the calls to all services of AWS share. observe is called
// after each attempt; nil disables it.
func NewShared(rate Rate, observe func(Attempt)) *Limiter {
	l := New(Limits{"*": rate}, observe)
	l.isShared = true
	return l
}

// DiagnosisRate returns the rate of calls that diagnose problems: five per second, without a burst.
func DiagnosisRate() Rate { return Rate{Burst: 1, PerSecond: 5} }

// key returns the key of the bucket that limits an action.
func (l *Limiter) key(action string) string {
	if l.isShared {
		return "*"
	}
	return action
}

const ec2ServiceID = "EC2"

// AddTo adds the limiter to the middleware of a client. Callers put AddTo into the APIOptions of aws.Config. Calls to
// services other than EC2 are limited only by a Limiter from NewShared.
func (l *Limiter) AddTo(stack *middleware.Stack) error {
	step := middleware.FinalizeMiddlewareFunc("JoinerRateLimit", l.attempt)
	if _, ok := stack.Finalize.Get("Retry"); !ok {
		return stack.Finalize.Add(step, middleware.Before)
	}
	// The step comes after the step Retry, so that each attempt takes a token. It comes before the signature, so that
	// the signature does not age while the call waits.
	return stack.Finalize.Insert(step, "Retry", middleware.After)
}

// attempt is the middleware that waits for a token before each attempt, and then reports the attempt to observe.
func (l *Limiter) attempt(ctx context.Context, in middleware.FinalizeInput, next middleware.FinalizeHandler) (
	middleware.FinalizeOutput, middleware.Metadata, error,
) {
	if awsmiddleware.GetServiceID(ctx) != ec2ServiceID && !l.isShared {
		return next.HandleFinalize(ctx, in)
	}
	a := Attempt{Action: awsmiddleware.GetOperationName(ctx)}
	var err error
	if a.Waited, err = l.wait(ctx, a.Action); err != nil {
		return middleware.FinalizeOutput{}, middleware.Metadata{}, err
	}
	out, metadata, err := next.HandleFinalize(ctx, in)
	if err != nil && awserr.Is(awserr.Classify(a.Action, err), awserr.Throttled) {
		a.Throttled = true
		l.emptyBucket(a.Action)
	}
	if l.observe != nil {
		l.observe(a)
	}
	return out, metadata, err
}

// wait blocks until the call may be made, and returns how long it blocked. If the call would have to wait beyond the
// deadline of ctx, wait returns at once with an error of kind awserr.Throttled.
func (l *Limiter) wait(ctx context.Context, action string) (time.Duration, error) {
	now := time.Now()
	delay := l.take(now, action)
	if delay <= 0 {
		return 0, nil
	}
	if deadline, ok := ctx.Deadline(); ok && now.Add(delay).After(deadline) {
		l.putBack(action)
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
		l.putBack(action)
		return 0, ctx.Err()
	}
}

// take takes a token of the action's bucket, possibly one that is not yet available, and returns the time until that
// token is available. It returns 0 for an action without a limit.
func (l *Limiter) take(now time.Time, action string) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	b, ok := l.buckets[l.key(action)]
	if !ok {
		rate, limited := l.limits.rateOf(action)
		if !limited {
			return 0
		}
		b = newBucket(now, rate)
		l.buckets[l.key(action)] = b
	}
	return b.take(now)
}

// putBack puts the token of a call that was not made back into the bucket.
func (l *Limiter) putBack(action string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if b, ok := l.buckets[l.key(action)]; ok {
		b.tokens++
	}
}

// emptyBucket empties the bucket after EC2 has throttled a call: EC2's own bucket is then empty, because other clients
// use it, too.
func (l *Limiter) emptyBucket(action string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if b, ok := l.buckets[l.key(action)]; ok {
		b.fill(time.Now())
		b.tokens = min(b.tokens, 0) // the calls that wait keep their tokens
	}
}

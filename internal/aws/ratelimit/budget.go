// Package ratelimit limits calls to EC2 to the rates that EC2 allows an account, so a burst of launches is delayed, not throttled.
//
// In: calls that the AWS SDK is about to send; the limits of EC2.
// Out: the same calls in the order they came, each when its turn is; how long it waited, and whether EC2 refused it all the same.
// Never: a call of its own, a retry, or a choice between calls.
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

// Limits are EC2's, by action: "CreateFleet", or a pattern as of path.Match: "Describe*". Of several that match the longest
// counts, and each action has a bucket of its own, as at EC2.
type Limits map[string]Rate

// Published returns the limits that every account begins with, by
// https://docs.aws.amazon.com/ec2/latest/devguide/ec2-api-throttling.html: those of reading with filters or pages, which is
// how we read; of changing; and of the actions that have their own.
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

// With returns the limits with others put over them.
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
	best, found := "", false
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

// What we leave unused: calls do not reach EC2 as evenly as they leave us, and we are not alone in the account.
const (
	shareOfBurst = 0.9
	shareOfRate  = 0.95
)

// Attempt is one try of a call, retries being tries of their own.
type Attempt struct {
	Action  string        // "RunInstances"
	Waited  time.Duration // for its turn
	Refused bool          // by EC2, as one too many
}

// Budget is what may be asked of EC2. It is safe for concurrent use; all clients of an account and region share one.
type Budget struct {
	limits  Limits
	observe func(Attempt) // nil disables it
	// isOne: all actions of all services share one bucket.
	isOne bool

	mu      sync.Mutex
	buckets map[string]*bucket // by action
}

// New returns a Budget of full buckets. observe is called after each attempt; nil disables it.
func New(limits Limits, observe func(Attempt)) *Budget {
	return &Budget{limits: limits, observe: observe, buckets: map[string]*bucket{}}
}

// NewOne returns a Budget of one bucket for all calls of a purpose, of any service. Its calls do not use the buckets of other
// Budgets. observe is called after each attempt; nil disables it.
func NewOne(rate Rate, observe func(Attempt)) *Budget {
	b := New(Limits{"*": rate}, observe)
	b.isOne = true
	return b
}

// Diagnosis is the rate of calls that look into what is wrong: five a second, one after the other.
func Diagnosis() Rate { return Rate{Burst: 1, PerSecond: 5} }

// key is the bucket that an action takes its tokens from.
func (b *Budget) key(action string) string {
	if b.isOne {
		return "*"
	}
	return action
}

// service is what the SDK calls EC2.
const service = "EC2"

// Keep puts the budget into a client, as one of aws.Config's APIOptions. Calls to other services pass freely, but where one bucket
// is for all.
func (b *Budget) Keep(stack *middleware.Stack) error {
	step := middleware.FinalizeMiddlewareFunc("JoinerBudget", b.attempt)
	if _, ok := stack.Finalize.Get("Retry"); !ok {
		return stack.Finalize.Add(step, middleware.Before)
	}
	// Within the retries, so that each takes its turn, and before the signature, so that none is signed too early.
	return stack.Finalize.Insert(step, "Retry", middleware.After)
}

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

// wait returns when it is the call's turn, and how long that took. One whose turn would come after its deadline is not
// kept waiting: it fails at once, as throttled.
func (b *Budget) wait(ctx context.Context, action string) (time.Duration, error) {
	now := time.Now()
	turn := b.turn(now, action)
	if turn <= 0 {
		return 0, nil
	}
	if deadline, ok := ctx.Deadline(); ok && now.Add(turn).After(deadline) {
		b.giveBack(action)
		return 0, &awserr.Error{Op: action, Kind: awserr.Throttled, Reason: "RequestLimitExceeded",
			Message: "this call would not be made in time, because other calls are waiting",
			Hint:    "ask AWS for a higher limit of EC2 API calls, and set --ec2-api-limits (EC2_API_LIMITS)"}
	}
	timer := time.NewTimer(turn)
	defer timer.Stop()
	select {
	case <-timer.C:
		return turn, nil
	case <-ctx.Done():
		b.giveBack(action)
		return 0, ctx.Err()
	}
}

// turn takes a token, perhaps one of the future, and returns how long until it is there.
func (b *Budget) turn(now time.Time, action string) time.Duration {
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

// giveBack returns the token of a call that was not made.
func (b *Budget) giveBack(action string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if k, ok := b.buckets[b.key(action)]; ok {
		k.tokens++
	}
}

// refused learns that EC2's own bucket is empty: others use it, too.
func (b *Budget) refused(action string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if k, ok := b.buckets[b.key(action)]; ok {
		k.fill(time.Now())
		k.tokens = min(k.tokens, 0)
	}
}

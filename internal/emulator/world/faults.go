package world

import (
	"path"
	"time"
)

// Faults are the faults that the world injects. Each field is a separate fault, and its zero value disables it.
// Shortages of capacity are not faults: see Region.Capacity.
type Faults struct {
	// ReadLag is the age of the state that descriptions of instances and their tags return: a change becomes visible
	// only after the ReadLag.
	ReadLag time.Duration

	// ProfileLag is how long EC2 does not know an instance profile after its creation.
	ProfileLag time.Duration

	// Throttle has token buckets, by a pattern for calls: "ec2:CreateFleet", "ec2:Describe*", "iam:*". The longest
	// matching pattern applies. Each account, region and action has its own bucket. See EC2Throttle.
	Throttle map[string]Bucket

	// CallErrors are errors with which calls fail. A call fails with the first error that applies to it.
	CallErrors []*CallError

	// Denials are calls that IAM denies.
	Denials []Denial

	// Redeliver = n delivers every n-th message twice. The second delivery is due at once, and happens even if the
	// message was deleted after the first delivery. 0 disables this. SQS guarantees only at least one delivery.
	Redeliver int

	// Reorder delivers the newest messages first. SQS does not guarantee an order.
	Reorder bool

	// BootFaults are faults of starting instances. The first one that applies to an instance is used.
	BootFaults []*BootFault
}

// Bucket is a token bucket: a burst of calls, and a number of calls per second after that.
type Bucket struct {
	Size   float64 // maximum number of tokens, which is the number of calls in a burst
	Refill float64 // tokens per second
}

type bucketLevel struct {
	tokens float64
	at     time.Time
}

// CallError is an error with which some calls fail. A call that fails is not executed, unless Late is set.
type CallError struct {
	Call  string // a pattern: "ec2:CreateFleet", "ec2:*", "*"
	Skip  int    // the number of calls that succeed first
	Count int    // maximum number of calls that fail; 0: no maximum
	Every int    // after Skip, the first of each group of Every calls fails; 0 and 1: every call fails

	Status  int    // HTTP status; 0 is 500
	Code    string // "InternalError"; empty with Garbage
	Message string // empty with Garbage
	Garbage string // text that is sent in place of the error, as by a broken proxy; empty: the error is sent
	Late    bool   // the call is executed before it fails, so that only its answer is lost

	seen, failed int // number of matching calls, and number of failed ones
}

// Denial is a call that IAM denies to a role, or to all callers.
type Denial struct {
	Call string // a pattern: "ec2:CreateFleet"
	Role string // name of the role; empty: all callers
}

// BootFault is a fault of starting instances.
type BootFault struct {
	Pool  CapacityPool // the offerings of the instances; zero: all
	Count int          // maximum number of instances; 0: no maximum

	Delay         time.Duration // additional time in the state pending
	Fail          Reason        // if it has a code, the instance goes from pending to terminated for this reason
	SkipsUserData bool          // the instance runs, but its user data does not: see World.SkipsUserData

	injected int // number of instances with the fault
}

// EC2Throttle returns EC2's default token buckets of an account:
// https://docs.aws.amazon.com/ec2/latest/devguide/ec2-api-throttling.html.
func EC2Throttle() map[string]Bucket {
	return map[string]Bucket{
		"ec2:Describe*":                {Size: 100, Refill: 20},
		"ec2:Get*":                     {Size: 100, Refill: 20},
		"ec2:*":                        {Size: 50, Refill: 5},
		"ec2:CreateTags":               {Size: 100, Refill: 10},
		"ec2:DeleteTags":               {Size: 100, Refill: 10},
		"ec2:RunInstances":             {Size: 5, Refill: 2},
		"ec2:StartInstances":           {Size: 5, Refill: 2},
		"ec2:TerminateInstances":       {Size: 100, Refill: 5},
		"ec2:DescribeSpotPriceHistory": {Size: 100, Refill: 20},
	}
}

// Call has the data of an API call that faults depend on.
type Call struct {
	Account, Region string // account ID of 12 digits, and the name of the region
	Name            string // "ec2:CreateFleet"
	Role            string // name of the caller's role; empty for a user
}

// FaultFor returns the error with which a call fails; nil if there is none. It takes a token from the call's bucket.
// Unless the bucket is empty, it counts the call for the matching CallErrors, up to the first that applies.
func (w *World) FaultFor(now time.Time, c Call) *CallError {
	if b, ok := w.Faults.bucket(c.Name); ok && !w.Region(c.Account, c.Region).draw(now, c.Name, b) {
		return &CallError{Status: 503, Code: "RequestLimitExceeded", Message: "Request limit exceeded."}
	}
	for _, a := range w.Faults.CallErrors {
		if matches(a.Call, c.Name) && a.countCall() {
			return a
		}
	}
	return nil
}

// Denied reports whether Faults.Denials denies the call.
func (w *World) Denied(c Call) bool {
	for _, d := range w.Faults.Denials {
		if matches(d.Call, c.Name) && (d.Role == "" || d.Role == c.Role) {
			return true
		}
	}
	return false
}

// bucket returns the bucket of the longest pattern that matches a call; false if no pattern matches.
func (f *Faults) bucket(call string) (Bucket, bool) {
	best, found := "", false // of patterns of equal length, the first in the alphabet
	for pattern := range f.Throttle {
		isBetter := len(pattern) > len(best) || len(pattern) == len(best) && pattern < best
		if matches(pattern, call) && (!found || isBetter) {
			best, found = pattern, true
		}
	}
	return f.Throttle[best], found
}

// draw takes a token from the region's bucket for a call. It returns false if the bucket is empty.
func (r *Region) draw(now time.Time, call string, b Bucket) bool {
	l := r.buckets[call]
	if l == nil {
		l = &bucketLevel{tokens: b.Size, at: now}
		r.buckets[call] = l
	}
	if passed := now.Sub(l.at); passed > 0 {
		l.tokens = min(b.Size, l.tokens+passed.Seconds()*b.Refill)
		l.at = now
	}
	if l.tokens < 1 {
		return false
	}
	l.tokens--
	return true
}

// Failures returns how many calls have failed with this error.
func (a *CallError) Failures() int { return a.failed }

func (a *CallError) countCall() bool {
	a.seen++
	n := a.seen - a.Skip
	if n <= 0 || a.Count > 0 && a.failed >= a.Count {
		return false
	}
	if a.Every > 1 && (n-1)%a.Every != 0 {
		return false
	}
	a.failed++
	return true
}

// bootFault returns the fault of a new instance of the offering, and counts the instance; nil if the instance has none.
func (f *Faults) bootFault(o Offering) *BootFault {
	for _, b := range f.BootFaults {
		if !b.Pool.includes(o) || b.Count > 0 && b.injected >= b.Count {
			continue
		}
		b.injected++
		return b
	}
	return nil
}

func matches(pattern, call string) bool {
	ok, err := path.Match(pattern, call)
	return err == nil && ok
}

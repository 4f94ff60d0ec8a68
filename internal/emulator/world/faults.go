package world

import (
	"path"
	"time"
)

// Faults are what goes wrong in a world. Each field is a fault of its own; the
// zero value of each is none. What EC2 is short of is said in Region.Capacity.
type Faults struct {
	// ReadLag is how far behind descriptions of instances and their tags are:
	// what was changed, or made, a shorter time ago is not seen yet.
	ReadLag time.Duration

	// ProfileLag is how long EC2 does not know a new instance profile.
	ProfileLag time.Duration

	// Throttle are token buckets, by call: "ec2:CreateFleet", "ec2:Describe*",
	// "iam:*". The most exact pattern counts; a bucket is kept per account,
	// region and action. See EC2Throttle.
	Throttle map[string]Bucket

	// Answers are errors given instead of an answer. The first that applies is given.
	Answers []*Answer

	// Denials are calls that IAM refuses.
	Denials []Denial

	// Redeliver delivers one message in Redeliver twice, the second time at once, even if it was deleted in between; 0 disables
	// it. SQS guarantees at least one delivery, not exactly one.
	Redeliver int

	// Reorder delivers the newest messages first. SQS promises no order.
	Reorder bool

	// Boots are instances that do not start as they should. The first that
	// applies to an instance is taken.
	Boots []*Boot
}

// Bucket is a token bucket: a burst of calls, and a number of calls per second after that.
type Bucket struct {
	Size   float64 // tokens it holds at most, which is how many calls the burst has
	Refill float64 // tokens a second
}

// level is how full a bucket is.
type level struct {
	tokens float64
	at     time.Time
}

// Answer is an error that some calls get. The call is not carried out, unless a field below changes that.
type Answer struct {
	Call  string // a pattern: "ec2:CreateFleet", "ec2:*", "*"
	Skip  int    // the number of calls that succeed first
	Count int    // calls to spoil; 0: no end
	Every int    // one call in Every fails; 0 and 1: each

	Status  int    // HTTP status; 0 is 500
	Code    string // "InternalError"; empty with Garbage
	Message string // the error's sentence; empty with Garbage
	Garbage string // answer with this text instead, as a broken proxy would
	Late    bool   // the call is carried out all the same: only its answer is lost

	seen, given int
}

// Denial is a call that IAM denies a principal.
type Denial struct {
	Call string // a pattern: "ec2:CreateFleet"
	Role string // name of the role it is denied to; empty: to all
}

// Boot is what befalls instances as they start.
type Boot struct {
	Pool  Pool // the offerings whose instances it befalls; zero: all
	Count int  // instances; 0: no end

	Delay  time.Duration // pending takes so much longer
	Fail   Reason        // with a code: it goes from pending to terminated, for this reason
	Silent bool          // it runs, but its user data never does: see World.Silent

	seen int
}

// EC2Throttle returns the token buckets that EC2 gives an account by default:
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

// Call is one API call, as the faults look at it.
type Call struct {
	Account, Region string // 12 digits, and the name of the region that it is made in
	Name            string // "ec2:CreateFleet"
	Role            string // name of the caller's role; empty for a user
}

// FaultFor says how a call is to fail before it is carried out: nil if it is not.
// It takes a token and counts the call.
func (w *World) FaultFor(now time.Time, c Call) *Answer {
	if b, ok := w.Faults.bucket(c.Name); ok && !w.Region(c.Account, c.Region).draw(now, c.Name, b) {
		return &Answer{Status: 503, Code: "RequestLimitExceeded", Message: "Request limit exceeded."}
	}
	for _, a := range w.Faults.Answers {
		if matches(a.Call, c.Name) && a.applies() {
			return a
		}
	}
	return nil
}

// Denied reports whether IAM refuses the call.
func (w *World) Denied(c Call) bool {
	for _, d := range w.Faults.Denials {
		if matches(d.Call, c.Name) && (d.Role == "" || d.Role == c.Role) {
			return true
		}
	}
	return false
}

// bucket finds the bucket of a call: that of the longest pattern that matches.
func (f *Faults) bucket(call string) (Bucket, bool) {
	best, found := "", false
	for pattern := range f.Throttle {
		longer := len(pattern) > len(best) || len(pattern) == len(best) && pattern < best
		if matches(pattern, call) && (!found || longer) {
			best, found = pattern, true
		}
	}
	return f.Throttle[best], found
}

// draw takes a token from the region's bucket for a call.
func (r *Region) draw(now time.Time, call string, b Bucket) bool {
	l := r.buckets[call]
	if l == nil {
		l = &level{tokens: b.Size, at: now}
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

// Spoilt returns how many calls have had this error.
func (a *Answer) Spoilt() int { return a.given }

// applies counts a call and says whether it is spoilt.
func (a *Answer) applies() bool {
	a.seen++
	n := a.seen - a.Skip
	if n <= 0 || a.Count > 0 && a.given >= a.Count {
		return false
	}
	if a.Every > 1 && (n-1)%a.Every != 0 {
		return false
	}
	a.given++
	return true
}

// boot returns what befalls a new instance of the offering; nil: nothing.
func (f *Faults) boot(o Offering) *Boot {
	for _, b := range f.Boots {
		if !b.Pool.holds(o) || b.Count > 0 && b.seen >= b.Count {
			continue
		}
		b.seen++
		return b
	}
	return nil
}

// matches reports whether a call's name fits a pattern.
func matches(pattern, call string) bool {
	ok, err := path.Match(pattern, call)
	return err == nil && ok
}

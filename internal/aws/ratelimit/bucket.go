package ratelimit

import "time"

// bucket is a token bucket. Waiting calls get tokens in the order in which they called take.
type bucket struct {
	size   float64   // maximum number of tokens
	refill float64   // tokens per second
	tokens float64   // available tokens; -n: n calls wait
	at     time.Time // when the field tokens was last updated
}

// newBucket returns a full bucket with our shares of the rate: shareOfBurst and shareOfRate.
func newBucket(now time.Time, r Rate) *bucket {
	size := max(1, r.Burst*shareOfBurst) // with less than one token, no call could be made at once
	return &bucket{size: size, refill: r.PerSecond * shareOfRate, tokens: size, at: now}
}

// take takes a token and returns the time until the token is available; 0 if it is available now.
func (b *bucket) take(now time.Time) time.Duration {
	b.fill(now)
	b.tokens--
	if b.tokens >= 0 {
		return 0
	}
	return time.Duration(-b.tokens / b.refill * float64(time.Second))
}

// fill adds the tokens that have accrued since the last update.
func (b *bucket) fill(now time.Time) {
	if passed := now.Sub(b.at).Seconds(); passed > 0 {
		b.tokens = min(b.size, b.tokens+passed*b.refill)
		b.at = now
	}
}

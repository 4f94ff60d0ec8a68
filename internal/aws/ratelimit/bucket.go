package ratelimit

import "time"

// bucket holds tokens. Below 0 it owes tokens to calls that wait, in the order in which they took them.
type bucket struct {
	size, refill float64
	tokens       float64
	at           time.Time // when tokens was right
}

// newBucket returns a full one, somewhat smaller than EC2's.
func newBucket(now time.Time, r Rate) *bucket {
	size := max(1, r.Burst*shareOfBurst)
	return &bucket{size: size, refill: r.PerSecond * shareOfRate, tokens: size, at: now}
}

// take takes a token and returns how long until it is there; 0 if it is.
func (k *bucket) take(now time.Time) time.Duration {
	k.fill(now)
	k.tokens--
	if k.tokens >= 0 {
		return 0
	}
	return time.Duration(-k.tokens / k.refill * float64(time.Second))
}

// fill adds what has dripped in since.
func (k *bucket) fill(now time.Time) {
	if passed := now.Sub(k.at).Seconds(); passed > 0 {
		k.tokens = min(k.size, k.tokens+passed*k.refill)
		k.at = now
	}
}

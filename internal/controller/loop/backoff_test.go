package loop

import (
	"testing"
	"time"
)

func TestBackoff(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	b := &Backoff{}
	fail := func(key, cause string) (time.Time, bool) {
		return b.FailFor(now, key, cause, time.Second, 10*time.Second)
	}
	for i, want := range []time.Duration{1, 2, 4, 8, 10, 10} {
		until, isNews := fail("a", "x")
		if until.Sub(now) != want*time.Second || isNews != (i == 0) {
			t.Errorf("failure %d: wait %s, isNews %t; want %ds, and isNews only for the first failure", i, until.Sub(now), isNews, want)
		}
	}
	if _, isNews := fail("a", "y"); !isNews {
		t.Error("isNews is false for another cause, want true")
	}
	// 6 failures with cause x and one with cause y.
	if until, times, cause := b.Held(now, "a"); until.Sub(now) != 10*time.Second || times != 7 || cause != "y" {
		t.Errorf("held until %s after %d failures, because of %q; want 10s from now, 7 failures, \"y\"", until, times, cause)
	}
	if until, _, _ := b.Held(now.Add(time.Minute), "a"); !until.IsZero() {
		t.Errorf("held until %s after the wait, want the zero time", until)
	}
	b.Clear("a")
	if until, _ := fail("a", "x"); until.Sub(now) != time.Second {
		t.Errorf("the first failure after Clear waits %s, want 1s", until.Sub(now))
	}
	for range 100 {
		fail("many", "x")
	}
	if until, _, _ := b.Held(now, "many"); until.Sub(now) != 10*time.Second {
		t.Errorf("waits %s after 100 failures, want 10s", until.Sub(now))
	}
}

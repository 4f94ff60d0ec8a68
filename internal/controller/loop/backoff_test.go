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
		until, news := fail("a", "x")
		if until.Sub(now) != want*time.Second || news != (i == 0) {
			t.Errorf("failure %d: until %s, news %t; want %ds", i, until.Sub(now), news, want)
		}
	}
	if _, news := fail("a", "y"); !news {
		t.Error("another cause is no news")
	}
	if until, times, cause := b.Held(now, "a"); until.Sub(now) != 10*time.Second || times != 7 || cause != "y" {
		t.Errorf("held until %s after %d times for %q", until, times, cause)
	}
	if until, _, _ := b.Held(now.Add(time.Minute), "a"); !until.IsZero() {
		t.Errorf("still held until %s", until)
	}
	b.Clear("a")
	if until, _ := fail("a", "x"); until.Sub(now) != time.Second {
		t.Errorf("waits %s after it was cleared", until.Sub(now))
	}
	for range 100 {
		fail("many", "x")
	}
	if until, _, _ := b.Held(now, "many"); until.Sub(now) != 10*time.Second {
		t.Errorf("waits %s after 100 failures", until.Sub(now))
	}
}

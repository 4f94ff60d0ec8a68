package controller

import (
	"errors"
	"testing"
	"time"

	"github.com/joiner-sh/joiner/catalog"
)

// TestMarketBacksOff: a permission that is missing, for prices say, must not fetch a region's instance types every minute
// for ever; a process that does not know them yet asks every minute.
func TestMarketBacksOff(t *testing.T) {
	t.Parallel()
	now, denied := time.Now(), errors.New("denied")
	for name, c := range map[string]struct {
		known bool
		want  time.Duration
	}{
		"prices fail":                      {true, marketRetryMost},
		"instance types are not known yet": {false, marketRetry},
	} {
		m := &Market{}
		if c.known {
			m.offered.Facts = make([]catalog.Facts, 1)
		}
		first, isNews := m.pause(now, denied)
		if first != marketRetry || !isNews {
			t.Errorf("%s: first %s, news %t", name, first, isNews)
		}
		var last time.Duration
		for range 10 {
			last, isNews = m.pause(now, denied)
		}
		if last != c.want || isNews {
			t.Errorf("%s: at last %s, want %s; news %t", name, last, c.want, isNews)
		}
		if pause, _ := m.pause(now, nil); pause != marketRefresh {
			t.Errorf("%s: %s after success", name, pause)
		}
		if again, _ := m.pause(now, denied); again != marketRetry {
			t.Errorf("%s: %s after a success and a failure", name, again)
		}
	}
}

package controller

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/joiner-sh/joiner/internal/controller/offerings"
	"github.com/joiner-sh/joiner/internal/emulator/world"
	"github.com/joiner-sh/joiner/internal/model/catalog"
)

// TestPricesOutliveRefreshes: a failed refresh keeps the previous prices; the age of the prices is reported after each refresh.
func TestPricesOutliveRefreshes(t *testing.T) {
	t.Parallel()
	r := newRig(t, "t3.medium", "m5.large")
	r.classes(t)
	numbers := prometheus.NewRegistry()
	if err := numbers.Register(r.Market.Metrics.PricesAt); err != nil {
		t.Fatal(err)
	}
	at := func(way string) float64 {
		families, err := numbers.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range families {
			for _, m := range f.GetMetric() {
				if m.GetLabel()[0].GetValue() == way {
					return m.GetGauge().GetValue()
				}
			}
		}
		t.Fatalf("there is no metric for the age of %s prices", way)
		return 0
	}
	before := r.Market.Market(time.Now())
	deny := func(calls ...string) {
		r.Do(func(w *world.World, _ time.Time) {
			w.Faults.Denials = nil
			for _, c := range calls {
				w.Faults.Denials = append(w.Faults.Denials, world.Denial{Call: c})
			}
		})
	}
	deny("ec2:*")
	if err := r.Market.Refresh(t.Context()); err == nil {
		t.Error("a failed refresh is not logged")
	}
	if diff := cmp.Diff(before, r.Market.Market(time.Now())); diff != "" {
		t.Errorf("the refresh that failed has changed the market (-before +after):\n%s", diff)
	}
	if at(catalog.Spot) != 0 || !strings.Contains(r.log.String(), `"spot":"unknown, on-demand price used"`) {
		t.Errorf("spot prices of second %g\n%s", at(catalog.Spot), r.log)
	}
	deny()
	if err := r.Market.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	// The Price List is not asked in an isolated VPC: the embedded table stays.
	if at(catalog.Spot) == 0 || at(catalog.OnDemand) != 0 || !strings.Contains(r.log.String(), `"onDemand":"the table in this program"`) {
		t.Errorf("spot prices of second %g, on demand of %g\n%s", at(catalog.Spot), at(catalog.OnDemand), r.log)
	}
	known := r.Market.Market(time.Now())
	deny("ec2:DescribeSpotPriceHistory")
	if err := r.Market.Refresh(t.Context()); err == nil {
		t.Error("missing spot prices are not logged")
	}
	if diff := cmp.Diff(known, r.Market.Market(time.Now())); diff != "" {
		t.Errorf("spot prices are lost (-before +after):\n%s", diff)
	}
}

// TestMarketBacksOff: while a permission is missing, for example for prices, the instance types must not be read every
// minute without end. A process that does not know them yet reads them every minute.
func TestMarketBacksOff(t *testing.T) {
	t.Parallel()
	now, denied := time.Now(), errors.New("denied")
	for name, c := range map[string]struct {
		known bool
		want  time.Duration
	}{
		"prices fail":                      {true, offerings.MarketRetryMost},
		"instance types are not known yet": {false, offerings.MarketRetry},
	} {
		m := &offerings.Catalogs{}
		if c.known {
			m.Offered.Facts = make([]catalog.Facts, 1)
		}
		first, isNews := m.Pause(now, denied)
		if first != offerings.MarketRetry || !isNews {
			t.Errorf("%s: first %s, news %t", name, first, isNews)
		}
		var last time.Duration
		for range 10 {
			last, isNews = m.Pause(now, denied)
		}
		if last != c.want || isNews {
			t.Errorf("%s: at last %s, want %s; news %t", name, last, c.want, isNews)
		}
		if pause, _ := m.Pause(now, nil); pause != offerings.MarketRefresh {
			t.Errorf("%s: %s after success", name, pause)
		}
		if again, _ := m.Pause(now, denied); again != offerings.MarketRetry {
			t.Errorf("%s: %s after a success and a failure", name, again)
		}
	}
}

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

// TestPricesOutliveFailedRefreshes: a failed refresh keeps the previous prices, and each refresh reports the age of the
// prices.
func TestPricesOutliveFailedRefreshes(t *testing.T) {
	t.Parallel()
	r := newRig(t, "t3.medium", "m5.large")
	r.reconcileClassAndPool(t)
	registry := prometheus.NewRegistry()
	if err := registry.Register(r.Market.Metrics.PricesAt); err != nil {
		t.Fatal(err)
	}
	pricesAt := func(capacityType string) float64 { // Unix time of the prices; 0: never refreshed
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range families {
			for _, m := range f.GetMetric() {
				if m.GetLabel()[0].GetValue() == capacityType {
					return m.GetGauge().GetValue()
				}
			}
		}
		t.Fatalf("there is no metric for the age of %s prices", capacityType)
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
		t.Error("a refresh without permissions returns no error")
	}
	if diff := cmp.Diff(before, r.Market.Market(time.Now())); diff != "" {
		t.Errorf("the failed refresh has changed the market (-before +after):\n%s", diff)
	}
	if pricesAt(catalog.Spot) != 0 || !strings.Contains(r.log.String(), `"spot":"unknown, on-demand price used"`) {
		t.Errorf("the spot prices are from Unix time %g, want 0\n%s", pricesAt(catalog.Spot), r.log)
	}
	deny()
	if err := r.Market.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	// In an isolated VPC the Price List is not read: the embedded table stays in use.
	if pricesAt(catalog.Spot) == 0 || pricesAt(catalog.OnDemand) != 0 ||
		!strings.Contains(r.log.String(), `"onDemand":"the table in this program"`) {
		t.Errorf("the spot prices are from Unix time %g, the on-demand prices from %g; want only the second to be 0\n%s",
			pricesAt(catalog.Spot), pricesAt(catalog.OnDemand), r.log)
	}
	withSpot := r.Market.Market(time.Now())
	deny("ec2:DescribeSpotPriceHistory")
	if err := r.Market.Refresh(t.Context()); err == nil {
		t.Error("a refresh without spot prices returns no error")
	}
	if diff := cmp.Diff(withSpot, r.Market.Market(time.Now())); diff != "" {
		t.Errorf("the failed refresh has changed spot prices (-before +after):\n%s", diff)
	}
}

// TestMarketBacksOff: while refreshes fail, the pauses between them grow. A process that does not know the
// instance types yet tries again every minute.
func TestMarketBacksOff(t *testing.T) {
	t.Parallel()
	now, denied := time.Now(), errors.New("denied")
	for name, c := range map[string]struct {
		knowsTypes bool
		want       time.Duration
	}{
		"prices fail":                      {true, offerings.MarketRetryMost},
		"instance types are not known yet": {false, offerings.MarketRetry},
	} {
		m := &offerings.Catalogs{}
		if c.knowsTypes {
			m.Offered.Facts = make([]catalog.Facts, 1)
		}
		first, isNews := m.Pause(now, denied)
		if first != offerings.MarketRetry || !isNews {
			t.Errorf("%s: the first pause is %s, the error is new: %t; want MarketRetry and true", name, first, isNews)
		}
		var last time.Duration
		for range 10 {
			last, isNews = m.Pause(now, denied)
		}
		if last != c.want || isNews {
			t.Errorf("%s: the last pause is %s, want %s; the error is new: %t, want false", name, last, c.want, isNews)
		}
		if pause, _ := m.Pause(now, nil); pause != offerings.MarketRefresh {
			t.Errorf("%s: the pause after a success is %s, want MarketRefresh", name, pause)
		}
		if again, _ := m.Pause(now, denied); again != offerings.MarketRetry {
			t.Errorf("%s: the pause after a success and another failure is %s, want MarketRetry", name, again)
		}
	}
}

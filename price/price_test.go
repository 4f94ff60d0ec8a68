package price_test

import (
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/google/go-cmp/cmp"

	"github.com/joiner-sh/joiner/catalog"
	"github.com/joiner-sh/joiner/emulator"
	"github.com/joiner-sh/joiner/fault"
	"github.com/joiner-sh/joiner/price"
	"github.com/joiner-sh/joiner/world"
)

const region = "us-east-1"

// open serves a region where everything costs ten times as much as the table says.
func open(t *testing.T, types ...string) (*price.Door, *emulator.Server, catalog.Table) {
	t.Helper()
	table, err := catalog.Embedded()
	if err != nil {
		t.Fatal(err)
	}
	prices, err := table.Region(region)
	if err != nil {
		t.Fatal(err)
	}
	setup := world.Setup{Account: emulator.DefaultAccount, Region: region, Cluster: "prod"}
	for _, name := range types {
		f, ok := table.Facts(name)
		if !ok {
			t.Fatalf("the table lacks %s", name)
		}
		setup.Stock = append(setup.Stock, world.Stock{Facts: f, OnDemand: 10 * prices.OnDemand[name]})
	}
	w, _, err := world.New(time.Now(), setup)
	if err != nil {
		t.Fatal(err)
	}
	server := &emulator.Server{World: w}
	srv := httptest.NewServer(server)
	t.Cleanup(srv.Close)
	return price.New(price.Config{Table: table, AWS: aws.Config{Region: region, BaseEndpoint: aws.String(srv.URL), RetryMaxAttempts: 1,
		Credentials: credentials.NewStaticCredentialsProvider(emulator.DefaultAccount, "secret", "")}}), server, table
}

func TestRefresh(t *testing.T) {
	t.Parallel()
	d, server, _ := open(t, "m5.large", "m5.metal", "m6g.large")
	before := d.Book()
	if before.OnDemandFrom != price.FromTable || before.SpotFrom != price.FromNone || before.Of("m5.large", "us-east-1a", catalog.OnDemand) != 96*catalog.Dollar/1000 {
		t.Errorf("at the start: from %s, %s; m5.large costs %s", before.OnDemandFrom, before.SpotFrom, before.Of("m5.large", "", catalog.OnDemand))
	}
	if got := before.Of("m5.large", "us-east-1a", catalog.Spot); got != 96*catalog.Dollar/1000 {
		t.Errorf("while no spot price is known m5.large costs %s", got)
	}
	server.Do(func(w *world.World, now time.Time) {
		w.Market(region).Quote(now.Add(-time.Minute), "m5.large", "us-east-1b", catalog.Dollar/50)
	})
	if err := d.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	book := d.Book()
	if book.OnDemandFrom != price.FromAWS || book.SpotFrom != price.FromAWS {
		t.Errorf("after the refresh from %s, %s", book.OnDemandFrom, book.SpotFrom)
	}
	for name, c := range map[string]struct{ got, want catalog.Price }{
		"on demand":          {book.Of("m5.large", "us-east-1a", catalog.OnDemand), 960 * catalog.Dollar / 1000},
		"bare metal":         {book.Of("m5.metal", "us-east-1a", catalog.OnDemand), 10 * before.Of("m5.metal", "", catalog.OnDemand)},
		"not on the list":    {book.Of("c5.large", "us-east-1a", catalog.OnDemand), before.Of("c5.large", "", catalog.OnDemand)},
		"spot":               {book.Of("m5.large", "us-east-1b", catalog.Spot), catalog.Dollar / 50},
		"spot, unknown zone": {book.Of("m5.large", "us-east-1z", catalog.Spot), 0},
		"spot, unknown type": {book.Of("c5.large", "us-east-1a", catalog.Spot), 0},
		"unknown type":       {book.Of("x1.huge", "us-east-1a", catalog.OnDemand), 0},
		"unknown way":        {book.Of("m5.large", "us-east-1a", "gift"), 0},
	} {
		if c.got != c.want {
			t.Errorf("%s: %s, want %s", name, c.got, c.want)
		}
	}
	if age, ok := book.Age(time.Now().Add(time.Hour)); !ok || age < time.Hour || age > 2*time.Hour {
		t.Errorf("age %s, %t", age, ok)
	}
	if before.OnDemandFrom != price.FromTable || before.Of("m5.large", "", catalog.OnDemand) != 96*catalog.Dollar/1000 {
		t.Error("the old book was altered")
	}
}

// TestRefreshFails: what fails keeps its old prices, what succeeds counts.
func TestRefreshFails(t *testing.T) {
	t.Parallel()
	d, server, _ := open(t, "m5.large", "m5.metal")
	server.Do(func(w *world.World, _ time.Time) { w.Faults.Denials = []world.Denial{{Call: "pricing:*"}} })
	err := d.Refresh(t.Context())
	if !fault.Is(err, fault.Denied) || !strings.Contains(err.Error(), "GetProducts") {
		t.Errorf("denied: %v", err)
	}
	book := d.Book()
	if book.OnDemandFrom != price.FromTable || book.SpotFrom != price.FromAWS {
		t.Errorf("prices from %s, %s; want the table's and AWS's", book.OnDemandFrom, book.SpotFrom)
	}
	server.Do(func(w *world.World, _ time.Time) {
		w.Faults.Denials = nil
		w.Faults.Answers = []*world.Answer{{Call: "*", Garbage: "<html>", Status: 200}}
	})
	if err := d.Refresh(t.Context()); err == nil || d.Book().OnDemandFrom != price.FromTable || d.Book().SpotAt != book.SpotAt {
		t.Errorf("garbage: %v; prices from %s", err, d.Book().OnDemandFrom)
	}
}

// TestReadersDoNotWait reads books while refreshes go on.
func TestReadersDoNotWait(t *testing.T) {
	t.Parallel()
	d, _, _ := open(t, "m5.large", "m5.metal")
	var all sync.WaitGroup
	for range 3 {
		all.Go(func() {
			if err := d.Refresh(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	all.Go(func() {
		for range 1000 {
			if p := d.Book().Of("m5.large", "us-east-1a", catalog.OnDemand); p == 0 {
				t.Error("a book without a price")
			}
		}
	})
	all.Wait()
}

func TestEmbedded(t *testing.T) {
	t.Parallel()
	table, err := catalog.Embedded()
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"eu-west-1": price.FromTable, "mars-north-1": price.FromOther} {
		b := price.Embedded(table, name)
		if b.OnDemandFrom != want || b.Of("m5.large", "", catalog.OnDemand) == 0 {
			t.Errorf("%s: from %s, m5.large costs %s; want from %s", name, b.OnDemandFrom, b.Of("m5.large", "", catalog.OnDemand), want)
		}
		if _, ok := b.Age(time.Now()); ok {
			t.Errorf("%s: prices that nobody gave have an age", name)
		}
	}
}

func TestApply(t *testing.T) {
	t.Parallel()
	b := price.Book{Prices: catalog.Prices{OnDemand: map[string]catalog.Price{"m5.large": 9},
		Spot: map[string]map[string]catalog.Price{"m5.large": {"a": 3}}}}
	typ := catalog.Type{Name: "m5.large", Offerings: []catalog.Offering{
		{Zone: "a", CapacityType: catalog.Spot, Price: 1}, {Zone: "b", CapacityType: catalog.Spot, Price: 1, Available: true},
		{Zone: "a", CapacityType: catalog.OnDemand, Price: 1, Available: true}, {Zone: "a", CapacityType: catalog.Reserved},
	}}
	want := []catalog.Offering{{Zone: "a", CapacityType: catalog.Reserved}, {Zone: "a", CapacityType: catalog.Spot, Price: 3},
		{Zone: "a", CapacityType: catalog.OnDemand, Price: 9, Available: true}}
	if diff := cmp.Diff(want, b.Apply(typ).Offerings); diff != "" {
		t.Errorf("offerings (-want +got):\n%s", diff)
	}
	if typ.Offerings[0].Price != 1 {
		t.Error("Apply altered its argument")
	}
}

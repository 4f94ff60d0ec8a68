package pricing_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/google/go-cmp/cmp"

	"github.com/joiner-sh/joiner/internal/aws/awserr"
	"github.com/joiner-sh/joiner/internal/aws/pricing"
	"github.com/joiner-sh/joiner/internal/emulator"
	"github.com/joiner-sh/joiner/internal/emulator/world"
	"github.com/joiner-sh/joiner/internal/model/catalog"
)

const region = "us-east-1"

// newClient returns a client of an emulated region in which on-demand instances cost ten times the table's price: an
// m5.large costs $0.96 per hour, and $0.096 in the table. It also returns the emulator and the table.
func newClient(t *testing.T, types ...string) (*pricing.Client, *emulator.Server, catalog.Table) {
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
		setup.Stock = append(setup.Stock, world.OfferedType{Facts: f, OnDemand: 10 * prices.OnDemand[name]})
	}
	w, _, err := world.New(time.Now(), setup)
	if err != nil {
		t.Fatal(err)
	}
	server := &emulator.Server{World: w}
	srv := httptest.NewServer(server)
	t.Cleanup(srv.Close)
	return pricing.New(pricing.Config{Table: table, AWS: aws.Config{Region: region, BaseEndpoint: aws.String(srv.URL), RetryMaxAttempts: 1,
		Credentials: credentials.NewStaticCredentialsProvider(emulator.DefaultAccount, "secret", "")}}), server, table
}

func TestRefresh(t *testing.T) {
	t.Parallel()
	d, server, _ := newClient(t, "m5.large", "m5.metal", "m6g.large")
	before := d.Book()
	if before.OnDemandFrom != pricing.FromTable || before.SpotFrom != pricing.FromNone ||
		before.Price("m5.large", "us-east-1a", catalog.OnDemand) != 96*catalog.Dollar/1000 {
		t.Errorf("before the refresh: prices from %s, spot from %s, m5.large costs %s; want the table's", before.OnDemandFrom, before.SpotFrom,
			before.Price("m5.large", "", catalog.OnDemand))
	}
	if got := before.Price("m5.large", "us-east-1a", catalog.Spot); got != 96*catalog.Dollar/1000 {
		t.Errorf("without spot prices a spot m5.large costs %s, want the on-demand price", got)
	}
	server.Do(func(w *world.World, now time.Time) {
		w.Market(region).SetSpotPrice(now.Add(-time.Minute), "m5.large", "us-east-1b", catalog.Dollar/50)
	})
	if err := d.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	book := d.Book()
	if book.OnDemandFrom != pricing.FromAWS || book.SpotFrom != pricing.FromAWS {
		t.Errorf("after the refresh: on-demand prices from %s, spot prices from %s; want both from AWS", book.OnDemandFrom, book.SpotFrom)
	}
	for name, c := range map[string]struct{ got, want catalog.Price }{
		"on demand":             {book.Price("m5.large", "us-east-1a", catalog.OnDemand), 960 * catalog.Dollar / 1000},
		"bare metal":            {book.Price("m5.metal", "us-east-1a", catalog.OnDemand), 10 * before.Price("m5.metal", "", catalog.OnDemand)},
		"not in the Price List": {book.Price("c5.large", "us-east-1a", catalog.OnDemand), before.Price("c5.large", "", catalog.OnDemand)},
		"spot":                  {book.Price("m5.large", "us-east-1b", catalog.Spot), catalog.Dollar / 50},
		"spot, unknown zone":    {book.Price("m5.large", "us-east-1z", catalog.Spot), 0},
		"spot, unknown type":    {book.Price("c5.large", "us-east-1a", catalog.Spot), 0},
		"unknown type":          {book.Price("x1.huge", "us-east-1a", catalog.OnDemand), 0},
		"unknown capacity type": {book.Price("m5.large", "us-east-1a", "unknown"), 0},
	} {
		if c.got != c.want {
			t.Errorf("%s: %s, want %s", name, c.got, c.want)
		}
	}
	if age, ok := book.Age(time.Now().Add(time.Hour)); !ok || age < time.Hour || age > 2*time.Hour {
		t.Errorf("an hour later the age is %s, %t; want one to two hours", age, ok)
	}
	if before.OnDemandFrom != pricing.FromTable || before.Price("m5.large", "", catalog.OnDemand) != 96*catalog.Dollar/1000 {
		t.Error("the old book was altered")
	}
}

// TestRefreshFails: the prices of a failed request stay as they were, those of a successful request take effect.
func TestRefreshFails(t *testing.T) {
	t.Parallel()
	d, server, _ := newClient(t, "m5.large", "m5.metal")
	server.Do(func(w *world.World, _ time.Time) { w.Faults.Denials = []world.Denial{{Call: "pricing:*"}} })
	err := d.Refresh(t.Context())
	if !awserr.Is(err, awserr.Denied) || !strings.Contains(err.Error(), "GetProducts") {
		t.Errorf("with pricing:* denied: %v, want Denied by GetProducts", err)
	}
	book := d.Book()
	if book.OnDemandFrom != pricing.FromTable || book.SpotFrom != pricing.FromAWS {
		t.Errorf("prices from %s, %s; want the table's and AWS's", book.OnDemandFrom, book.SpotFrom)
	}
	server.Do(func(w *world.World, _ time.Time) {
		w.Faults.Denials = nil
		w.Faults.CallErrors = []*world.CallError{{Call: "*", Garbage: "<html>", Status: 200}}
	})
	if err := d.Refresh(t.Context()); err == nil || d.Book().OnDemandFrom != pricing.FromTable || d.Book().SpotAt != book.SpotAt {
		t.Errorf("garbage: %v; on-demand prices from %s; want an error, and the prices and SpotAt from before", err, d.Book().OnDemandFrom)
	}
}

// TestPartOfThePriceList: in a region without bare metal, the client uses the other prices. The error names the missing
// part.
func TestPartOfThePriceList(t *testing.T) {
	t.Parallel()
	d, server, _ := newClient(t, "m5.large")
	if err := d.Refresh(t.Context()); err == nil || !strings.Contains(err.Error(), "bare metal") {
		t.Errorf("no bare metal: %v, want an error with \"bare metal\"", err)
	}
	book := d.Book()
	if got := book.Price("m5.large", "us-east-1a", catalog.OnDemand); book.OnDemandFrom != pricing.FromAWS || got != 960*catalog.Dollar/1000 {
		t.Errorf("m5.large costs %s, from %s; want AWS's price", got, book.OnDemandFrom)
	}
	if err := d.Refresh(t.Context()); err == nil || !d.Book().OnDemandAt.Equal(book.OnDemandAt) {
		t.Errorf("a refresh with incomplete prices changed OnDemandAt, or returned no error: %v", err)
	}
	server.Do(func(w *world.World, _ time.Time) {
		w.Faults.Denials = []world.Denial{{Call: "ec2:*"}, {Call: "pricing:*"}}
	})
	if err := d.Refresh(t.Context()); !awserr.Is(err, awserr.Denied) {
		t.Errorf("denied: %v, want Denied", err)
	}
	if got := d.Book(); got.Price("m5.large", "us-east-1a", catalog.OnDemand) != 960*catalog.Dollar/1000 ||
		got.Price("m5.large", "us-east-1a", catalog.Spot) == 0 {
		t.Error("a refresh that failed has lost prices")
	}
}

// TestIsolated: in a VPC without a path to the Price List, the client never calls it, and gets spot prices from EC2.
func TestIsolated(t *testing.T) {
	t.Parallel()
	_, server, table := newClient(t, "m5.large", "m5.metal")
	server.Do(func(w *world.World, _ time.Time) { w.Faults.Denials = []world.Denial{{Call: "pricing:*"}} })
	srv := httptest.NewServer(server)
	t.Cleanup(srv.Close)
	d := pricing.New(pricing.Config{Table: table, Isolated: true,
		AWS: aws.Config{Region: region, BaseEndpoint: aws.String(srv.URL), RetryMaxAttempts: 1,
			Credentials: credentials.NewStaticCredentialsProvider(emulator.DefaultAccount, "secret", "")}})
	if err := d.Refresh(t.Context()); err != nil {
		t.Errorf("the client called the Price List: %v", err)
	}
	onDemand, spot := d.Book().Origins(d.Book().SpotAt.Add(90 * time.Second))
	if onDemand != "the table in this program" || spot != "AWS, 1m30s old" {
		t.Errorf("on demand from %s, spot from %s; want the table in this program, and AWS, 1m30s old", onDemand, spot)
	}
}

// TestNewestSpotPrice: of several prices in a zone the newest is used, in any order and on any page. A price of 0 is
// ignored.
func TestNewestSpotPrice(t *testing.T) {
	t.Parallel()
	table, err := catalog.Embedded()
	if err != nil {
		t.Fatal(err)
	}
	entry := func(zone, amount, at string) string {
		return "<item><instanceType>m5.large</instanceType><productDescription>Linux/UNIX</productDescription><spotPrice>" + amount +
			"</spotPrice><timestamp>" + at + "</timestamp><availabilityZone>" + zone + "</availabilityZone></item>"
	}
	pages := map[string]string{
		"": "<spotPriceHistorySet>" +
			entry("us-east-1a", "0.0300000000", "2026-01-01T10:00:00.000Z") + entry("us-east-1b", "0.0410000000", "2026-01-01T12:00:00.000Z") +
			entry("us-east-1c", "0.0000000000", "2026-01-01T12:00:00.000Z") + "</spotPriceHistorySet><nextToken>more</nextToken>",
		"more": "<spotPriceHistorySet>" +
			entry("us-east-1a", "0.0350000000", "2026-01-01T11:00:00.000Z") + entry("us-east-1b", "0.0400000000", "2026-01-01T09:00:00.000Z") +
			"</spotPriceHistorySet><nextToken></nextToken>",
	}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/xml")
		w.Header().Set("X-Amzn-Requestid", "1")
		fmt.Fprintf(w, `<DescribeSpotPriceHistoryResponse xmlns="http://ec2.amazonaws.com/doc/2016-11-15/"><requestId>1</requestId>%s</DescribeSpotPriceHistoryResponse>`,
			pages[r.FormValue("NextToken")])
	}))
	t.Cleanup(srv.Close)
	d := pricing.New(pricing.Config{Table: table, Isolated: true,
		AWS: aws.Config{Region: region, BaseEndpoint: aws.String(srv.URL), RetryMaxAttempts: 1,
			Credentials: credentials.NewStaticCredentialsProvider(emulator.DefaultAccount, "secret", "")}})
	if err := d.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := map[string]catalog.Price{"us-east-1a": 35 * catalog.Dollar / 1000, "us-east-1b": 41 * catalog.Dollar / 1000}
	if diff := cmp.Diff(want, d.Book().Prices.Spot["m5.large"]); diff != "" {
		t.Errorf("spot prices (-want +got):\n%s", diff)
	}
}

// TestSpotDoesNotWaitForThePriceList: spot prices take effect even if the Price List does not answer.
func TestSpotDoesNotWaitForThePriceList(t *testing.T) {
	t.Parallel()
	_, server, table := newClient(t, "m5.large", "m5.metal")
	mayAnswer := make(chan struct{})
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Amz-Target") != "" { // the header exists only in calls of the Price List, not of EC2
			<-mayAnswer
		}
		server.ServeHTTP(w, r)
	}))
	t.Cleanup(srv.Close)
	d := pricing.New(pricing.Config{Table: table, AWS: aws.Config{Region: region, BaseEndpoint: aws.String(srv.URL), RetryMaxAttempts: 1,
		Credentials: credentials.NewStaticCredentialsProvider(emulator.DefaultAccount, "secret", "")}})
	var done sync.WaitGroup
	done.Go(func() {
		if err := d.Refresh(t.Context()); err != nil {
			t.Error(err)
		}
	})
	for d.Book().SpotFrom != pricing.FromAWS && t.Context().Err() == nil {
		runtime.Gosched()
	}
	if from := d.Book().OnDemandFrom; from != pricing.FromTable {
		t.Errorf("on-demand prices from %s before the Price List answered, want the table's", from)
	}
	close(mayAnswer)
	done.Wait()
	if from := d.Book().OnDemandFrom; from != pricing.FromAWS {
		t.Errorf("on-demand prices from %s after the Price List answered, want AWS's", from)
	}
}

// TestReadersDoNotWait: each Book that is read during refreshes has prices.
func TestReadersDoNotWait(t *testing.T) {
	t.Parallel()
	d, _, _ := newClient(t, "m5.large", "m5.metal")
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
			if p := d.Book().Price("m5.large", "us-east-1a", catalog.OnDemand); p == 0 {
				t.Error("a Book has no price for m5.large")
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
	for name, want := range map[string]string{"eu-west-1": pricing.FromTable, "mars-north-1": pricing.FromOtherRegion} {
		b := pricing.Embedded(table, name)
		if b.OnDemandFrom != want || b.Price("m5.large", "", catalog.OnDemand) == 0 {
			t.Errorf("%s: from %s, m5.large costs %s; want from %s", name, b.OnDemandFrom, b.Price("m5.large", "", catalog.OnDemand), want)
		}
		if _, ok := b.Age(time.Now()); ok {
			t.Errorf("%s: embedded prices have an age", name)
		}
	}
}

func TestApply(t *testing.T) {
	t.Parallel()
	b := pricing.Book{Prices: catalog.Prices{OnDemand: map[string]catalog.Price{"m5.large": 9},
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

package pricing

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsec2 "github.com/aws/aws-sdk-go-v2/service/ec2"
	awstypes "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/pricing"
	pricingtypes "github.com/aws/aws-sdk-go-v2/service/pricing/types"

	"github.com/joiner-sh/joiner/internal/aws/awserr"
	"github.com/joiner-sh/joiner/internal/model/catalog"
)

// Client is the client for AWS prices. It is safe for concurrent use.
type Client struct {
	region     string
	isIsolated bool // never call the Price List
	ec2        *awsec2.Client
	pricing    *pricing.Client

	book      atomic.Pointer[Book]
	refreshMu sync.Mutex // held by Refresh: one refresh at a time
}

// Config has the parameters of New.
type Config struct {
	AWS      aws.Config    // credentials and region of the clients
	Table    catalog.Table // initial prices
	Isolated bool          // never call the Price List, because the private VPC has no network path to it
}

// New returns a client. Its book has the embedded prices until Refresh succeeds.
func New(c Config) *Client {
	c.AWS = awserr.ClientConfig(c.AWS)
	listConfig := c.AWS.Copy()
	listConfig.Region = listRegion(c.AWS.Region)
	d := &Client{
		region:     c.AWS.Region,
		isIsolated: c.Isolated || strings.HasPrefix(c.AWS.Region, "us-gov-"), // the Price List has no endpoint there
		ec2:        awsec2.NewFromConfig(c.AWS),
		pricing:    pricing.NewFromConfig(listConfig),
	}
	book := Embedded(c.Table, d.region)
	d.book.Store(&book)
	return d
}

// listRegion returns the region of the Price List endpoint for prices of region.
func listRegion(region string) string {
	switch {
	case strings.HasPrefix(region, "ap-"):
		return "ap-south-1"
	case strings.HasPrefix(region, "cn-"):
		return "cn-northwest-1"
	case strings.HasPrefix(region, "eu-"):
		return "eu-central-1"
	}
	return "us-east-1"
}

// Book returns the newest prices. It never blocks.
func (d *Client) Book() Book { return *d.book.Load() }

// Refresh reads on-demand and spot prices from AWS concurrently. It updates each kind of prices in the Book as soon as
// it has read that kind. If a request fails, the Book keeps the prices that it would have replaced, and Refresh
// returns the error.
func (d *Client) Refresh(ctx context.Context) error {
	d.refreshMu.Lock()
	defer d.refreshMu.Unlock()
	var onDemandErr, spotErr error
	var both sync.WaitGroup
	both.Go(func() {
		if d.isIsolated {
			return
		}
		var prices map[string]catalog.Price
		prices, onDemandErr = d.onDemand(ctx)
		if len(prices) > 0 {
			d.update(func(b Book) Book { return b.withOnDemand(prices, onDemandErr == nil, time.Now()) })
		}
	})
	both.Go(func() {
		var prices map[string]map[string]catalog.Price
		prices, spotErr = d.spot(ctx)
		if len(prices) > 0 {
			d.update(func(b Book) Book { return b.withSpot(prices, time.Now()) })
		}
	})
	both.Wait()
	if err := errors.Join(onDemandErr, spotErr); err != nil {
		return fmt.Errorf("refresh prices: %w", err)
	}
	return nil
}

// update replaces the book with the result of next, which may be called more than once.
func (d *Client) update(next func(Book) Book) {
	for {
		old := d.book.Load()
		book := next(*old)
		if d.book.CompareAndSwap(old, &book) {
			return
		}
	}
}

// onDemand reads the on-demand prices from the Price List: those of instances with shared tenancy, and those of bare
// metal, which the list has under dedicated tenancy. If one of the two requests fails, it returns the prices of the
// successful request and the error.
func (d *Client) onDemand(ctx context.Context) (map[string]catalog.Price, error) {
	queries := []struct{ tenancy, family string }{
		{"Shared", "Compute Instance"},
		{"Dedicated", "Compute Instance (bare metal)"},
	}
	found, errs := make([]map[string]catalog.Price, len(queries)), make([]error, len(queries))
	var all sync.WaitGroup
	for i, q := range queries {
		all.Go(func() {
			found[i], errs[i] = d.listPrices(ctx, q.tenancy, q.family)
			if errs[i] == nil && len(found[i]) == 0 {
				errs[i] = &awserr.Error{Op: "GetProducts", Kind: awserr.Transient, Reason: "EmptyAnswer",
					Message: fmt.Sprintf("the Price List has no prices of %q in %s", q.family, d.region)}
			}
		})
	}
	all.Wait()
	out := map[string]catalog.Price{}
	for i := range queries {
		if errs[i] == nil {
			maps.Copy(out, found[i])
		}
	}
	return out, errors.Join(errs...)
}

// listPrices returns the prices of one tenancy and product family, by instance type.
func (d *Client) listPrices(ctx context.Context, tenancy, family string) (map[string]catalog.Price, error) {
	out := map[string]catalog.Price{}
	equals := func(field, value string) pricingtypes.Filter {
		return pricingtypes.Filter{Field: aws.String(field), Type: pricingtypes.FilterTypeTermMatch, Value: aws.String(value)}
	}
	pages := pricing.NewGetProductsPaginator(d.pricing, &pricing.GetProductsInput{
		ServiceCode: aws.String("AmazonEC2"),
		MaxResults:  aws.Int32(100),
		Filters: []pricingtypes.Filter{
			equals("regionCode", d.region), equals("serviceCode", "AmazonEC2"), equals("preInstalledSw", "NA"),
			equals("operatingSystem", "Linux"), equals("capacitystatus", "Used"), equals("marketoption", "OnDemand"),
			equals("tenancy", tenancy), equals("productFamily", family),
		},
	})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, awserr.Classify("GetProducts", err)
		}
		for _, text := range page.PriceList {
			name, price, err := parseProduct(text, currency(d.region))
			if err != nil {
				return nil, &awserr.Error{Op: "GetProducts", Kind: awserr.Transient, Reason: "UnreadableAnswer", Message: err.Error()}
			}
			if price > 0 {
				out[name] = price
			}
		}
	}
	return out, nil
}

// currency returns the currency of a region's prices in the Price List.
func currency(region string) string {
	if strings.HasPrefix(region, "cn-") {
		return "CNY"
	}
	return "USD"
}

// spot returns the current spot prices, by instance type and zone.
func (d *Client) spot(ctx context.Context) (map[string]map[string]catalog.Price, error) {
	out := map[string]map[string]catalog.Price{}
	newest := map[[2]string]time.Time{}
	pages := awsec2.NewDescribeSpotPriceHistoryPaginator(d.ec2, &awsec2.DescribeSpotPriceHistoryInput{
		ProductDescriptions: []string{"Linux/UNIX", "Linux/UNIX (Amazon VPC)"},
		StartTime:           aws.Time(time.Now()), // only the current prices
		MaxResults:          aws.Int32(1000),
	})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, awserr.Classify("DescribeSpotPriceHistory", err)
		}
		for _, p := range page.SpotPriceHistory {
			name, zone, at, ok := fieldsOf(p)
			price, err := catalog.ParsePrice(aws.ToString(p.SpotPrice))
			if !ok || err != nil || price <= 0 || at.Before(newest[[2]string{name, zone}]) {
				continue
			}
			newest[[2]string{name, zone}] = at
			if out[name] == nil {
				out[name] = map[string]catalog.Price{}
			}
			out[name][zone] = price
		}
	}
	return out, nil
}

func fieldsOf(p awstypes.SpotPrice) (name, zone string, at time.Time, ok bool) {
	name, zone = string(p.InstanceType), aws.ToString(p.AvailabilityZone)
	return name, zone, aws.ToTime(p.Timestamp), name != "" && zone != ""
}

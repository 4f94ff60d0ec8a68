package emulator

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/joiner-sh/joiner/internal/emulator/api"
	"github.com/joiner-sh/joiner/internal/emulator/world"
	"github.com/joiner-sh/joiner/internal/emulator/world/failure"
)

func pricingActions() map[string]api.Action {
	return map[string]api.Action{"GetProducts": api.Op(getProducts)}
}

type getProductsIn struct {
	ServiceCode string
	Filters     []productFilter
	MaxResults  int
	NextToken   string
}

type productFilter struct {
	Type  string // TERM_MATCH
	Field string
	Value string
}

type getProductsOut struct {
	FormatVersion string
	PriceList     []string // each is a JSON document
	NextToken     string   `json:",omitempty"`
}

type product struct {
	sku        string
	attributes map[string]string
	price      string // in currency, per hour
	currency   string // "USD" or "CNY"
}

// getProducts lists the on-demand prices of instance types on Linux.
func getProducts(c *api.Call, in *getProductsIn) (getProductsOut, error) {
	if in.ServiceCode != "AmazonEC2" {
		return getProductsOut{}, &failure.Error{Code: "NotFoundException", Message: "Invalid service code " + in.ServiceCode}
	}
	var found []product
	for _, region := range c.World.Markets() {
		market := c.World.Market(region)
		for _, name := range market.Names() {
			s, _ := market.Stock(name)
			if s.OnDemand == 0 {
				continue
			}
			if p := productOf(region, s); p.matches(in.Filters) {
				found = append(found, p)
			}
		}
	}
	pageSize := 100 // AWS's maximum
	if in.MaxResults > 0 {
		pageSize = min(in.MaxResults, pageSize)
	}
	found, next, err := api.PageOf(found, func(p product) string { return p.sku }, api.Page{Token: in.NextToken, Size: pageSize})
	if err != nil {
		return getProductsOut{},
			&failure.Error{Code: "InvalidNextTokenException", Message: "The pagination token is invalid. Try again without a pagination token."}
	}
	out := getProductsOut{FormatVersion: "aws_v1", PriceList: make([]string, len(found)), NextToken: next}
	for i, p := range found {
		if out.PriceList[i], err = p.json(); err != nil {
			return getProductsOut{}, fmt.Errorf("write product %s: %w", p.sku, err)
		}
	}
	return out, nil
}

// productOf returns the product of an instance type in the price list. Bare metal has a product family of its own, and
// dedicated tenancy.
func productOf(region string, s world.OfferedType) product {
	family, tenancy := "Compute Instance", "Shared"
	if s.Facts.BareMetal {
		family, tenancy = "Compute Instance (bare metal)", "Dedicated"
	}
	currency := "USD"
	if strings.HasPrefix(region, "cn-") {
		currency = "CNY"
	}
	return product{
		sku: region + "." + s.Facts.Name, currency: currency,
		price: strconv.FormatFloat(s.OnDemand.Dollars(), 'f', 10, 64),
		attributes: map[string]string{
			"instanceType": s.Facts.Name, "regionCode": region, "servicecode": "AmazonEC2", "servicename": "Amazon Elastic Compute Cloud",
			"operatingSystem": "Linux", "preInstalledSw": "NA", "capacitystatus": "Used", "tenancy": tenancy, "marketoption": "OnDemand",
			"licenseModel": "No License required", "operation": "RunInstances", "productFamily": family,
			"vcpu":         strconv.FormatInt(s.Facts.Processor.VCPUs, 10),
			"memory":       strconv.FormatFloat(float64(s.Facts.MemoryMiB)/1024, 'f', -1, 64) + " GiB",
			"locationType": "AWS Region",
		},
	}
}

// matches reports whether the product matches all filters. Names and values of attributes are compared
// case-insensitively.
func (p product) matches(filters []productFilter) bool {
	for _, f := range filters {
		attribute := ""
		for name, value := range p.attributes {
			if strings.EqualFold(name, f.Field) {
				attribute = value
			}
		}
		if !strings.EqualFold(attribute, f.Value) {
			return false
		}
	}
	return true
}

func (p product) json() (string, error) {
	const term, rate = "JRTCKXETXF", "6YS6EN2CT7" // AWS's codes for on-demand terms and for hourly rates
	family := p.attributes["productFamily"]
	offer := p.sku + "." + term
	entry := map[string]any{
		"serviceCode": "AmazonEC2", "version": "20260801000000", "publicationDate": "2026-08-01T00:00:00Z",
		"product": map[string]any{"productFamily": family, "sku": p.sku, "attributes": p.attributes},
		"terms": map[string]any{"OnDemand": map[string]any{offer: map[string]any{
			"sku": p.sku, "offerTermCode": term, "effectiveDate": "2026-08-01T00:00:00Z", "termAttributes": map[string]string{},
			"priceDimensions": map[string]any{offer + "." + rate: map[string]any{
				"rateCode": offer + "." + rate, "unit": "Hrs", "beginRange": "0", "endRange": "Inf", "appliesTo": []string{},
				"description":  "$" + p.price + " per On Demand Linux " + p.attributes["instanceType"] + " Instance Hour",
				"pricePerUnit": map[string]string{p.currency: p.price},
			}},
		}}},
	}
	raw, err := json.Marshal(entry)
	return string(raw), err
}

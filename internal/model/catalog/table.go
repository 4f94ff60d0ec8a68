package catalog

import (
	"cmp"
	_ "embed" // for the two files of the table
	"fmt"
	"slices"
	"strings"
)

// embeddedTypes is types.tsv, which ParseTypes documents. hack/catalog writes it and prices.tsv. Beside them it writes
// left-out.txt, which lists the types that are missing in types.tsv, each with the reason.
//
//go:embed table/types.tsv
var embeddedTypes string

// embeddedPrices is prices.tsv, which ParseRegion documents.
//
//go:embed table/prices.tsv
var embeddedPrices string

// Table has the data about EC2's types that the program embeds, for planning offline, for tests and for the emulator.
// These data become outdated: if AWS can be queried, use AWS.
type Table struct {
	types []Facts // sorted by name
}

// Embedded parses the embedded table. This takes about ten milliseconds, so callers should keep the
// result.
func Embedded() (Table, error) {
	types, err := ParseTypes("types.tsv", embeddedTypes)
	if err != nil {
		return Table{}, fmt.Errorf("read embedded types: %w", err)
	}
	return Table{types}, nil
}

// Types returns all types of all regions, sorted by name. The caller must not change them.
func (t Table) Types() []Facts { return t.types }

// Facts returns the facts of the named type, and whether the table has the type.
func (t Table) Facts(name string) (Facts, bool) {
	i, ok := slices.BinarySearchFunc(t.types, name, func(f Facts, name string) int { return cmp.Compare(f.Name, name) })
	if !ok {
		return Facts{}, false
	}
	return t.types[i], true
}

// Complete returns f with the facts that aws/ec2 does not read: sustained network bandwidth and branch interfaces. Each
// is taken from the table if f does not have it.
func (t Table) Complete(f Facts) Facts {
	known, ok := t.Facts(f.Name)
	if !ok {
		return f
	}
	f.Network.BaselineMbps = cmp.Or(f.Network.BaselineMbps, known.Network.BaselineMbps)
	f.Network.BranchInterfaces = cmp.Or(f.Network.BranchInterfaces, known.Network.BranchInterfaces)
	return f
}

// Regions returns the names of the regions that the table has prices for, sorted.
func (t Table) Regions() []string { return slices.Sorted(slices.Values(PriceRegions(embeddedPrices))) }

// Region reads the prices and zones of a region.
func (t Table) Region(name string) (Region, error) {
	if regions := t.Regions(); !slices.Contains(regions, name) {
		return Region{}, fmt.Errorf("region %q is not in the embedded table, which has %s", name, strings.Join(regions, ", "))
	}
	r, err := ParseRegion(embeddedPrices, name)
	if err != nil {
		return Region{}, fmt.Errorf("read embedded prices of region %s: %w", name, err)
	}
	return r, nil
}

// Catalog returns the catalog of a region under the settings. It has every type that the region offers and that is
// compatible with the settings, with on-demand and spot offerings in each zone that has the type.
func (t Table) Catalog(region string, s Settings) (Catalog, error) {
	r, err := t.Region(region)
	if err != nil {
		return Catalog{}, err
	}
	c := Catalog{Region: region, PodVolume: PodVolume(s)}
	prices := Prices{OnDemand: r.OnDemand}
	for _, f := range t.types {
		if Incompatible(f, s) != "" {
			continue
		}
		if offerings := prices.Offerings(f, r.ZonesOf(f.Name)); len(offerings) > 0 {
			c.Types = append(c.Types, Build(f, s, region).WithOfferings(offerings))
		}
	}
	return c, nil
}

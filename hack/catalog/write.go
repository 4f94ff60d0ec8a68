package main

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/joiner-sh/joiner/internal/model/catalog"
)

// newerRegion is the only region of the newer price source, the price list in Karpenter's AWS provider.
const newerRegion = "us-east-1"

type region struct {
	name  string
	zones []string // zone IDs
	rows  []row
}

// row has the prices of a type in one region.
type row struct {
	typ      string // name of the instance type
	onDemand string // dollars per hour
	spot     string // dollars per hour; "-": no spot price
	zones    string // last character of the ID of each zone; "?": not known
}

type file struct {
	name string
	data []byte
}

// regions returns the regions for which the records have zones, each with the types that have a price there.
func regions(src sources, types []catalog.Facts) []region {
	zones := map[string]map[string]bool{}
	for _, r := range src.records {
		for name, ids := range r.Zones {
			if zones[name] == nil {
				zones[name] = map[string]bool{}
			}
			for _, id := range ids {
				zones[name][id] = true
			}
		}
	}
	var out []region
	for _, name := range sortedNames(zones) {
		r := region{name: name, zones: sortedNames(zones[name])}
		for _, f := range types {
			if row, ok := src.rowOf(name, f.Name); ok {
				r.rows = append(r.rows, row)
			}
		}
		out = append(out, r)
	}
	return out
}

// rowOf returns a type's prices and zones in a region; false if the type has no on-demand price there. In us-east-1 it
// takes the on-demand price only from the provider's price list, which is a year newer than the records.
func (s sources) rowOf(regionName, typ string) (row, bool) {
	r := s.records[typ]
	out := row{typ: typ, onDemand: r.Pricing[regionName].Linux.OnDemand, spot: "-", zones: "?"}
	if regionName == newerRegion {
		out.onDemand = ""
		if price, ok := s.usEast1[typ]; ok {
			out.onDemand = strconv.FormatFloat(price, 'f', -1, 64)
		}
	}
	price, err := catalog.ParsePrice(out.onDemand)
	if err != nil || price == 0 {
		return row{}, false
	}
	if mean := r.Pricing[regionName].Linux.SpotMean; mean != "" && mean != "N/A" {
		out.spot = mean
	}
	if ids := slices.Sorted(slices.Values(r.Zones[regionName])); len(ids) > 0 {
		var suffixes strings.Builder
		for _, id := range ids {
			suffixes.WriteString(id[len(id)-1:])
		}
		out.zones = suffixes.String()
	}
	return out, true
}

func (t table) files() ([]file, error) {
	types, err := typesFile(t.types)
	if err != nil {
		return nil, err
	}
	prices, err := pricesFile(t.regions)
	if err != nil {
		return nil, err
	}
	return []file{
		{"types.tsv", types}, {"prices.tsv", prices}, {"left-out.txt", t.leftOutFile()}, {"by-name.txt", t.byNameFile()},
	}, nil
}

func (t table) leftOutFile() []byte {
	names := map[string][]string{} // by reason
	for _, l := range t.leftOut {
		names[l.why] = append(names[l.why], l.name)
	}
	var out bytes.Buffer
	out.WriteString("# Written by hack/catalog: reasons why types are not in the table, each with these types.\n")
	for _, why := range sortedNames(names) {
		fmt.Fprintf(&out, "%s\t%s\n", why, strings.Join(names[why], " "))
	}
	return out.Bytes()
}

func (t table) byNameFile() []byte {
	var out bytes.Buffer
	out.WriteString("# Written by hack/catalog: types that are newer than the records. Their vCPUs, memory and\n" +
		"# processor follow from the naming scheme, checked against their prices; what else is\n" +
		"# missing is listed in their \"unknown\".\n")
	sizes := map[string][]string{} // by family
	for _, name := range sortedNames(t.byName) {
		family, size, _ := strings.Cut(name, ".")
		sizes[family] = append(sizes[family], size)
	}
	for _, family := range sortedNames(sizes) {
		fmt.Fprintf(&out, "%s: %s\n", family, strings.Join(sizes[family], " "))
	}
	return out.Bytes()
}

func sortedNames[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

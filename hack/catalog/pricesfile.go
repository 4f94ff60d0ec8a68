package main

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/joiner-sh/joiner/internal/model/catalog"
)

const pricesHelp = `# Written by hack/catalog: a column per region, a line per instance type. A type has in each region that offers it:
# dollars per hour on demand (Linux); the mean spot price of May 2025 as a whole percentage of that, in dollars or "-" (none);
# the last characters of the IDs of the zones that have it ("?": not known; "^": as in the line above; missing: all zones).
# Regions with many types are first. Empty cells at the end of a line are missing.
`

// pricesFile returns prices.tsv, whose format catalog.ParseRegion documents. It returns an error if the format cannot
// represent a price.
func pricesFile(regions []region) ([]byte, error) {
	regions = slices.Clone(regions)
	slices.SortStableFunc(regions, func(a, b region) int { return cmp.Compare(len(b.rows), len(a.rows)) })
	cells := map[string][]string{} // by type, a cell per region
	for i, r := range regions {
		for _, row := range r.rows {
			cell, err := priceCell(row, r.zones)
			if err != nil {
				return nil, fmt.Errorf("%s in %s: %w", row.typ, r.name, err)
			}
			if cells[row.typ] == nil {
				cells[row.typ] = make([]string, len(regions))
			}
			cells[row.typ][i] = cell
		}
	}
	var out bytes.Buffer
	out.WriteString(pricesHelp)
	nameLine, zoneLine := "region", "zones"
	for _, r := range regions {
		nameLine += "\t" + r.name
		zoneLine += "\t" + strings.Join(r.zones, " ")
	}
	out.WriteString(nameLine + "\n" + zoneLine + "\n")
	above := make([]string, len(regions)) // zones in the previous line
	for _, name := range sortedNames(cells) {
		for i, cell := range cells[name] {
			zones := ""
			if fields := strings.Fields(cell); len(fields) == 3 {
				zones = fields[2]
			}
			if len(zones) > 1 && zones == above[i] {
				cells[name][i] = strings.TrimSuffix(cell, zones) + "^"
			}
			above[i] = zones
		}
		out.WriteString(strings.TrimRight(name+"\t"+strings.Join(cells[name], "\t"), "\t") + "\n")
	}
	return out.Bytes(), nil
}

// priceCell returns the cell of r, an instance type in a region with these zone IDs: the prices, and the zones that
// offer the type unless all do.
func priceCell(r row, zones []string) (string, error) {
	onDemand, err := catalog.ParsePrice(r.onDemand)
	if err != nil {
		return "", err
	}
	cell := r.onDemand + " "
	if r.spot == "-" {
		cell += r.spot
	} else {
		spot, err := catalog.ParsePrice(r.spot)
		if err != nil {
			return "", err
		}
		text, err := spotCell(spot, onDemand)
		if err != nil {
			return "", err
		}
		cell += text
	}
	allZones := ""
	for _, id := range zones {
		allZones += id[len(id)-1:]
	}
	if r.zones != allZones {
		cell += " " + r.zones
	}
	return cell, nil
}

// spotCell returns a spot price as a percentage of the on-demand price if that is exact, and in dollars otherwise.
func spotCell(spot, onDemand catalog.Price) (string, error) {
	percent := int((100*spot + onDemand/2) / onDemand) // rounded to the nearest
	if percent > 0 && percent <= 255 {                 // ParseRegion reads 8 bits
		exact, err := catalog.SpotPercent(onDemand, percent)
		if err != nil {
			return "", err
		}
		if exact == spot {
			return strconv.Itoa(percent), nil
		}
	}
	return spot.String(), nil
}

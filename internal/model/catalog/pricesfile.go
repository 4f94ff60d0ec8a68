package catalog

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Words in prices.tsv.
const (
	regionsLine  = "region" // first column of the line with the regions
	zonesLine    = "zones"  // first column of the line with the zones
	noSpot       = "-"      // no spot price
	unknownZones = "?"      // no source lists the zones that have the type
	zonesAbove   = "^"      // the same zones as in the line above
)

// PriceRegions returns the names of the regions in the text of prices.tsv, in the order of its columns. It returns nil
// if the text has no line of regions.
func PriceRegions(text string) []string {
	for line := range strings.Lines(text) {
		if columns := splitLine(line); columns[0] == regionsLine {
			return columns[1:]
		}
	}
	return nil
}

// ParseRegion parses a region's column in prices.tsv. The file has comments after "#", then these lines, whose columns
// are separated by tabs:
//
//	region  REGION              …  // the names of the regions
//	zones   ZONE-IDS            …  // the IDs of each region's zones, separated by spaces
//	TYPE    PRICE SPOT [ZONES]  …  // in each region; empty: the region does not offer the type
//
// PRICE is the on-demand price per hour. SPOT is the typical spot price: a whole percentage of PRICE, rounded to
// microdollars; a price per hour, with a decimal point; or "-" for none. ZONES has the last characters of the IDs of
// the zones that have the type; "^" stands for the ZONES in the line above. Without ZONES all zones have it; with "?" the
// zones are unknown. Empty columns at the end of a line may be missing. ParseRegion returns an error if the region has no
// column.
func ParseRegion(text, name string) (Region, error) {
	r := Region{
		Name: name, OnDemand: map[string]Price{}, SpotTypical: map[string]Price{}, zoneDigits: map[string]string{},
	}
	column := 1 + slices.Index(PriceRegions(text), name)
	if column == 0 {
		return Region{}, fmt.Errorf("region %q has no column", name)
	}
	lineNumber := 0
	above := "" // ZONES in the previous line
	for line := range strings.Lines(text) {
		lineNumber++
		columns := splitLine(line)
		if strings.HasPrefix(line, "#") || columns[0] == regionsLine {
			continue
		}
		var fields []string
		if column < len(columns) {
			fields = strings.Fields(columns[column])
		}
		var err error
		switch {
		case columns[0] == zonesLine:
			r.Zones, err = zones(name, fields)
		case len(fields) > 0:
			err = r.addType(columns[0], fields, above)
		}
		above = r.zoneDigits[columns[0]]
		if err != nil {
			return Region{}, fmt.Errorf("line %d: %w", lineNumber, err)
		}
	}
	return r, nil
}

func splitLine(line string) []string { return strings.Split(strings.TrimSuffix(line, "\n"), "\t") }

// zones returns the zones with these IDs, and assigns their names: use1-az4 becomes us-east-1d.
func zones(region string, ids []string) ([]Zone, error) {
	var out []Zone
	for _, id := range ids {
		_, digit, ok := strings.Cut(id, "-az")
		if !ok || len(digit) != 1 || digit[0] < '1' || digit[0] > '9' {
			return nil, fmt.Errorf("zone id %q does not end in -az and a digit", id)
		}
		out = append(out, Zone{Name: region + string('a'+digit[0]-'1'), ID: id})
	}
	return out, nil
}

// addType adds a type to the maps of r. The fields are PRICE, SPOT and, optionally, ZONES. above has the ZONES of the line
// above; empty if it has none.
func (r Region) addType(name string, fields []string, above string) error {
	if len(fields) != 2 && len(fields) != 3 {
		return fmt.Errorf("%s: want 2 or 3 fields, have %d", name, len(fields))
	}
	price, err := ParsePrice(fields[0])
	if err != nil {
		return err
	}
	r.OnDemand[name] = price
	zones := ""
	if len(fields) == 3 {
		zones = fields[2]
	}
	if zones == zonesAbove {
		if above == "" {
			return fmt.Errorf("%s: %q: want zones, because the line above has none", name, zonesAbove)
		}
		zones = above
	}
	r.zoneDigits[name] = zones
	if fields[1] == noSpot {
		return nil
	}
	r.SpotTypical[name], err = parseSpot(fields[1], price)
	return err
}

func parseSpot(text string, onDemand Price) (Price, error) {
	if strings.Contains(text, ".") {
		return ParsePrice(text)
	}
	percent, err := strconv.ParseUint(text, 10, 8)
	if err != nil {
		return 0, fmt.Errorf("read spot price %q: not a whole number of percent", text)
	}
	return SpotPercent(onDemand, int(percent))
}

// SpotPercent returns percent hundredths of an on-demand price, rounded to the nearest microdollar, half up. It returns
// an error if the result is out of range.
func SpotPercent(onDemand Price, percent int) (Price, error) {
	const micro = 1000 // billionths in a microdollar
	scaled := int64(onDemand) * int64(percent)
	if onDemand != 0 && scaled/int64(onDemand) != int64(percent) {
		return 0, errors.New("the spot price is out of range")
	}
	return Price((scaled + 100*micro/2) / (100 * micro) * micro), nil
}

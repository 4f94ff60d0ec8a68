package catalog

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Region has the data of the embedded table about one region.
type Region struct {
	Name string // "us-east-1"

	// Zones are the availability zones, sorted. Their IDs are real. Their names are derived from the IDs (az1 gets the
	// letter a), because the real names differ from account to account.
	Zones []Zone

	OnDemand map[string]Price // on-demand prices by type, for Linux with shared tenancy
	// SpotTypical has, by type, the mean of the zones' spot prices on the day when the source of the table was made. It
	// is for the emulator, not for decisions.
	SpotTypical map[string]Price

	zoneDigits map[string]string // by type: the last characters of the IDs of the zones that have the type, or anyZone
}

// anyZone stands for all zones of the region. It is used if no source lists the zones that have the type.
const anyZone = "?"

// ZonesOf returns the zones that have the type, or all zones if that is unknown; none if the region does not offer the
// type.
func (r Region) ZonesOf(typ string) []Zone {
	ids, ok := r.zoneDigits[typ]
	if !ok {
		return nil
	}
	if ids == anyZone {
		return r.Zones
	}
	var out []Zone
	for _, z := range r.Zones {
		if strings.Contains(ids, z.ID[len(z.ID)-1:]) {
			out = append(out, z)
		}
	}
	return out
}

// Types returns the names of the types that the region offers, sorted.
func (r Region) Types() []string { return slices.Sorted(maps.Keys(r.OnDemand)) }

// parseRegion parses a region's file: comments after "#", one line "zones" with the IDs of the zones, then a line per
// type. A type's line has four columns, separated by tabs: the name, the on-demand price, the typical spot price or
// "-", and the zones that have the type. The zones are given by the last characters of their IDs, or by "?" if they are
// unknown.
func parseRegion(name, text string) (Region, error) {
	r := Region{
		Name: name, OnDemand: map[string]Price{}, SpotTypical: map[string]Price{}, zoneDigits: map[string]string{},
	}
	n := 0
	for line := range strings.Lines(text) {
		n++
		line = strings.TrimSuffix(line, "\n")
		fields := strings.Split(line, "\t")
		var err error
		switch {
		case strings.HasPrefix(line, "#"):
		case fields[0] == "zones":
			r.Zones, err = zones(name, fields[1:])
		case len(fields) == 4:
			err = r.addType(fields)
		default:
			err = fmt.Errorf("want 4 columns, have %d", len(fields))
		}
		if err != nil {
			return Region{}, fmt.Errorf("line %d: %w", n, err)
		}
	}
	return r, nil
}

// zones returns the zones with these IDs, and assigns their names: use1-az4 becomes us-east-1d.
func zones(region string, ids []string) ([]Zone, error) {
	var out []Zone
	for _, id := range ids {
		_, number, ok := strings.Cut(id, "-az")
		if !ok || len(number) != 1 || number[0] < '1' || number[0] > '9' {
			return nil, fmt.Errorf("zone id %q does not end in -az and a digit", id)
		}
		out = append(out, Zone{Name: region + string('a'+number[0]-'1'), ID: id})
	}
	return out, nil
}

// addType adds the type of a line with these columns to the maps of r.
func (r Region) addType(fields []string) error {
	typ := fields[0]
	price, err := ParsePrice(fields[1])
	if err != nil {
		return err
	}
	r.OnDemand[typ], r.zoneDigits[typ] = price, fields[3]
	if fields[2] == "-" {
		return nil
	}
	r.SpotTypical[typ], err = ParsePrice(fields[2])
	return err
}

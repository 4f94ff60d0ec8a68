package catalog

import (
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

	zoneDigits map[string]string // by type: the last characters of the IDs of the zones that have it; "" or unknownZones: all zones
}

// ZonesOf returns the zones that have the type, or all zones if that is unknown; none if the region does not offer the
// type.
func (r Region) ZonesOf(typ string) []Zone {
	lastDigits, ok := r.zoneDigits[typ]
	if !ok {
		return nil
	}
	if lastDigits == "" || lastDigits == unknownZones {
		return r.Zones
	}
	var out []Zone
	for _, z := range r.Zones {
		if strings.Contains(lastDigits, z.ID[len(z.ID)-1:]) {
			out = append(out, z)
		}
	}
	return out
}

// Types returns the names of the types that the region offers, sorted.
func (r Region) Types() []string { return slices.Sorted(maps.Keys(r.OnDemand)) }

package catalog

import (
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
)

const pricesText = "# comment\n" +
	"region\teu-west-1\tus-east-1\n" +
	"zones\teuw1-az1 euw1-az2\tuse1-az4\n" +
	"m5.large\t0.1 35 2\t0.0961234 1.25\n" +
	"m5.xlarge\t0.15 - ^\n" +
	"m6.large\t0.2 -\n" +
	"m7.large\t0.3 33 ?\t\n"

func TestParseRegion(t *testing.T) {
	t.Parallel()
	if got := PriceRegions(pricesText); !slices.Equal(got, []string{"eu-west-1", "us-east-1"}) {
		t.Errorf("PriceRegions returns %q, want eu-west-1 and us-east-1", got)
	}
	r, err := ParseRegion(pricesText, "eu-west-1")
	if err != nil {
		t.Fatal(err)
	}
	zone1, zone2 := Zone{Name: "eu-west-1a", ID: "euw1-az1"}, Zone{Name: "eu-west-1b", ID: "euw1-az2"}
	got := map[string][]Zone{}
	for _, name := range append(r.Types(), "m8.large") {
		got[name] = r.ZonesOf(name)
	}
	want := map[string][]Zone{
		"m5.large": {zone2}, "m5.xlarge": {zone2}, "m6.large": {zone1, zone2}, "m7.large": {zone1, zone2}, "m8.large": nil,
	}
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Errorf("zones by type (-want +got):\n%s", diff)
	}
	if diff := gocmp.Diff(map[string]Price{"m5.large": 1e8, "m5.xlarge": 15e7, "m6.large": 2e8, "m7.large": 3e8}, r.OnDemand); diff != "" {
		t.Errorf("on-demand prices (-want +got):\n%s", diff)
	}
	if diff := gocmp.Diff(map[string]Price{"m5.large": 35e6, "m7.large": 99e6}, r.SpotTypical); diff != "" {
		t.Errorf("spot prices (-want +got):\n%s", diff)
	}
	r, err = ParseRegion(pricesText, "us-east-1")
	if err != nil {
		t.Fatal(err)
	}
	if r.SpotTypical["m5.large"] != 125e7 || len(r.OnDemand) != 1 {
		t.Errorf("us-east-1 has the spot prices %v and the on-demand prices %v, want m5.large alone, for $1.25 on spot",
			r.SpotTypical, r.OnDemand)
	}
}

// TestSpotPercent: the result is rounded to whole microdollars. The comments have the exact results.
func TestSpotPercent(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		onDemand Price
		percent  int
		want     Price
	}{
		{96_123_400, 35, 33_643_000},  // 33643.19 microdollars
		{204_750_000, 41, 83_948_000}, // 83947.5 microdollars
		{48_750_000, 15, 7_313_000},   // 7312.5 microdollars
		{0, 35, 0},
	} {
		if got, err := SpotPercent(c.onDemand, c.percent); err != nil || got != c.want {
			t.Errorf("SpotPercent(%d, %d) returns %d and %v, want %d", c.onDemand, c.percent, got, err, c.want)
		}
	}
	if got, err := SpotPercent(1<<62, 50); err == nil {
		t.Errorf("SpotPercent returns %d where the result is out of range, want an error", got)
	}
}

// TestParseRegionErrors replaces a part of pricesText. An error about a line names the line.
func TestParseRegionErrors(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ old, new, want string }{
		"no line of regions": {"region\t", "regions\t", `region "eu-west-1" has no column`},
		"no such region":     {"eu-west-1", "eu-west-2", `region "eu-west-1" has no column`},
		"no zones above":     {"m6.large\t0.2 -", "m6.large\t0.2 -\nm6.xlarge\t0.4 - ^", `line 7: m6.xlarge: "^": want zones, because the line above has none`},
		"too few fields":     {"0.2 -", "0.2", "line 6: m6.large: want 2 or 3 fields, have 1"},
		"too many fields":    {"0.2 -", "0.2 - 1 2", "line 6: m6.large: want 2 or 3 fields, have 4"},
		"on-demand price":    {"0.2 -", "x -", `line 6: read price "x": not a decimal number`},
		"spot price":         {"0.2 -", "0.2 .x", `line 6: read price ".x": not a decimal number`},
		"spot percentage":    {"0.2 -", "0.2 x", `line 6: read spot price "x": not a whole number of percent`},
		"zone ID":            {"euw1-az1", "euw1", `line 3: zone id "euw1" does not end in -az and a digit`},
	} {
		if strings.Count(pricesText, c.old) != 1 {
			t.Errorf("%s: pricesText must contain %q once", name, c.old)
		}
		_, err := ParseRegion(strings.Replace(pricesText, c.old, c.new, 1), "eu-west-1")
		if err == nil || err.Error() != c.want {
			t.Errorf("%s: ParseRegion returns the error %q, want %q", name, err, c.want)
		}
	}
}

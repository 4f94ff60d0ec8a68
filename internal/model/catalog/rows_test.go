package catalog

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRoundTrip(t *testing.T) {
	t.Parallel()
	tab := table(t)
	for _, set := range []Settings{{}, {Family: Windows2022}, {Family: Bottlerocket, InstanceStore: RAID0}} {
		c, err := tab.Catalog("eu-west-1", set)
		if err != nil {
			t.Fatal(err)
		}
		c.Types[3].Offerings[0].Available = false // so that false is encoded, too
		first, err := Encode(c)
		if err != nil {
			t.Fatal(err)
		}
		back, err := Decode(first)
		if err != nil {
			t.Fatal(err)
		}
		c.PodVolume = "" // a fact of the EC2NodeClass, which rows of instance types do not have
		if diff := cmp.Diff(c, back); diff != "" {
			t.Errorf("after a round trip (-want +got):\n%s", diff)
		}
		second, err := Encode(back)
		if err != nil || !bytes.Equal(first, second) {
			t.Errorf("the decoded catalog is encoded to other bytes (error %v)", err)
		}
	}
}

const smallRow = `{"instanceType":"a.b","labels":{"node.kubernetes.io/instance-type":"a.b"},
 "capacity":{"cpu":"2","memory":"1Gi","pods":"10"},"allocatable":{"cpu":"2","memory":"1Gi","pods":"10"},
 "offerings":[{"zone":"z","capacityType":"spot","pricePerHour":0.01,"available":true}]}`

func TestDecodeByHand(t *testing.T) {
	t.Parallel()
	c, err := Decode([]byte("[" + strings.Replace(smallRow, "0.01", "1e-2", 1) + "]"))
	if err != nil {
		t.Fatal(err)
	}
	want := []Offering{{Zone: "z", CapacityType: Spot, Price: Dollar / 100, Available: true}}
	if diff := cmp.Diff(want, c.Types[0].Offerings); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestDecodeErrors(t *testing.T) {
	t.Parallel()
	change := func(from, to string) string { return "[" + strings.Replace(smallRow, from, to, 1) + "]" }
	for name, c := range map[string]struct{ text, want string }{
		"not json":                 {"instance types", "want a JSON list"},
		"an object":                {"{}", "want a JSON list"},
		"no name":                  {change(`"instanceType":"a.b"`, `"instanceType":""`), "row 1 (no name): instanceType is missing"},
		"label of another type":    {change(`instance-type":"a.b"`, `instance-type":"c.d"`), `is "c.d", want "a.b"`},
		"an invalid quantity":      {change(`"cpu":"2"`, `"cpu":"two"`), "capacity: read quantity"},
		"no memory":                {change(`"capacity":{"cpu":"2","memory":"1Gi"`, `"capacity":{"cpu":"2"`), "must be more than 0"},
		"an unknown capacity type": {change(`"spot"`, `"credit"`), `capacityType is "credit"`},
		"no zone":                  {change(`"zone":"z"`, `"zone":""`), "offering 1: zone is missing"},
		"a negative price":         {change("0.01", "-0.01"), "pricePerHour"},
		"a type twice":             {"[" + smallRow + "," + smallRow + "]", "a.b is listed twice"},
		"two regions": {"[" + smallRow + "," +
			strings.Replace(smallRow, `"labels":{`, `"labels":{"topology.kubernetes.io/region":"r",`, 1) + "]", "all rows must have the same region"},
		"a price in words": {change("0.01", `"cheap"`), "want a JSON list"},
	} {
		_, err := Decode([]byte(c.text))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want …%s…", name, err, c.want)
		}
	}
}

func TestParsePrice(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Price{
		"0.0960000000": 96_000_000, "98.32": 98_320_000_000, "1": Dollar, ".5": Dollar / 2, "0": 0,
		"0.0000000014": 1, "0.0000000015": 2, "007.10": 7_100_000_000,
	} {
		if got, err := ParsePrice(text); err != nil || got != want {
			t.Errorf("%s: %d, %v; want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", ".", "-1", "1.2.3", "1e3", "0,5", "99999999999999999999"} {
		if got, err := ParsePrice(text); err == nil {
			t.Errorf("%q is read as %d, want an error", text, got)
		}
	}
}

func TestOfferings(t *testing.T) {
	t.Parallel()
	f := Facts{Name: "t.x", UsageClasses: []string{OnDemand, Spot}}
	zones := []Zone{{"a", "1"}, {"b", "2"}}
	onDemand := map[string]Price{"t.x": 10}
	for name, c := range map[string]struct {
		prices Prices
		facts  Facts
		want   []string
	}{
		"spot not known yet": {Prices{OnDemand: onDemand}, f, []string{"a on-demand 10", "a spot 10", "b on-demand 10", "b spot 10"}},
		"spot in one zone": {Prices{OnDemand: onDemand, Spot: map[string]map[string]Price{"t.x": {"b": 3}}}, f,
			[]string{"b spot 3", "a on-demand 10", "b on-demand 10"}},
		"no spot anywhere": {Prices{OnDemand: onDemand, Spot: map[string]map[string]Price{}}, f,
			[]string{"a on-demand 10", "b on-demand 10"}},
		"no on-demand price": {Prices{Spot: map[string]map[string]Price{"t.x": {"a": 3}}}, f, []string{"a spot 3"}},
		"no price at all":    {Prices{}, f, nil},
		"only on demand": {Prices{OnDemand: onDemand}, Facts{Name: "t.x", UsageClasses: []string{OnDemand}},
			[]string{"a on-demand 10", "b on-demand 10"}},
	} {
		var got []string
		for _, o := range c.prices.Offerings(c.facts, zones) {
			got = append(got, o.Zone+" "+o.CapacityType+" "+number(int64(o.Price)))
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

package catalog

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/joiner-sh/joiner/internal/model/requirements"
	"github.com/joiner-sh/joiner/internal/model/resources"
)

func accept(t *testing.T, all ...requirements.Requirement) requirements.Requirements {
	t.Helper()
	out, invalid := requirements.All(all...)
	if invalid != nil {
		t.Fatalf("requirement %v is invalid", invalid)
	}
	return out
}

func in(key string, values ...string) requirements.Requirement {
	return requirements.Requirement{Key: key, Operator: requirements.In, Values: values}
}

// poolTypes returns a pool with two types, each on demand in two zones and on spot in one.
func poolTypes(t *testing.T, pool string, reqs ...requirements.Requirement) PoolTypes {
	t.Helper()
	typ := func(name, family string, price Price) Type {
		return Type{
			Name: name, Labels: requirements.Labels{LabelInstanceType: name, "karpenter.k8s.aws/instance-family": family,
				"karpenter.k8s.aws/instance-cpu": "2"},
			Capacity: resources.Amounts{CPU: 2000}, Allocatable: resources.Amounts{CPU: 1900},
		}.WithOfferings([]Offering{
			{Zone: "a", ZoneID: "az1", CapacityType: OnDemand, Price: price, Available: true},
			{Zone: "b", ZoneID: "az2", CapacityType: OnDemand, Price: price, Available: true},
			{Zone: "a", ZoneID: "az1", CapacityType: Spot, Price: price / 2, Available: true},
		})
	}
	return PoolTypes{Pool: pool, Requirements: accept(t, append(reqs, in("karpenter.sh/nodepool", pool))...),
		Types: []Type{typ("c7i.large", "c7i", 100), typ("m7i.large", "m7i", 200)}}
}

func overlaidText(types []Type) string {
	var out []string
	for _, t := range types {
		for _, o := range t.Offerings {
			if o.Repriced {
				out = append(out, fmt.Sprintf("%s/%s/%s=%d", t.Name, o.Zone, o.CapacityType, o.Price))
			}
		}
		if t.Overlaid {
			out = append(out, t.Name+"{"+t.Allocatable.String()+"}")
		}
	}
	return strings.Join(out, " ")
}

func TestApplyOverlays(t *testing.T) {
	t.Parallel()
	set := func(p Price) *Repricing { return &Repricing{SetPrice, p} }
	dongles := func(n int64) resources.Amounts { return resources.Amounts{}.With("example.com/dongle", n) }
	family := in("karpenter.k8s.aws/instance-family", "m7i")
	for name, c := range map[string]struct {
		overlays  []Overlay
		want      string // result for pool apps
		conflicts map[string]string
	}{
		"no overlays": {},
		"all offerings": {overlays: []Overlay{{Name: "a", Price: set(7)}},
			want: "c7i.large/a/on-demand=7 c7i.large/a/spot=7 c7i.large/b/on-demand=7 m7i.large/a/on-demand=7 m7i.large/a/spot=7 m7i.large/b/on-demand=7"},
		"by a label of the type": {overlays: []Overlay{{Name: "a",
			Requirements: accept(t, family, in(LabelCapacityType, Spot)), Price: &Repricing{AddPrice, -30}}},
			want: "m7i.large/a/spot=70"},
		// 10*Dollar is 10 %, because the amount is in billionths of a percent.
		"by zone": {overlays: []Overlay{{Name: "a", Requirements: accept(t, in(LabelZone, "b")), Price: &Repricing{PercentPrice, 10 * Dollar}}},
			want: "c7i.large/b/on-demand=110 m7i.large/b/on-demand=220"},
		"by a label of the pool": {overlays: []Overlay{{Name: "a",
			Requirements: accept(t, in("team", "web"), family, in(LabelZone, "b")), Price: set(7)}}, want: "m7i.large/b/on-demand=7"},
		"only of another pool": {overlays: []Overlay{{Name: "a",
			Requirements: accept(t, in("karpenter.sh/nodepool", "batch")), Price: set(7)}}},
		"by an unknown label": {overlays: []Overlay{{Name: "a", Requirements: accept(t, in("rack", "1")), Price: set(7)}}},
		"by absence of an unknown label": {overlays: []Overlay{{Name: "a",
			Requirements: accept(t, requirements.Requirement{Key: "rack", Operator: requirements.DoesNotExist}, family,
				in(LabelZoneID, "az2")), Price: set(7)}}, want: "m7i.large/b/on-demand=7"},
		"by number, satisfied by no type": {overlays: []Overlay{{Name: "a",
			Requirements: accept(t, requirements.Requirement{Key: "karpenter.k8s.aws/instance-cpu", Operator: requirements.Gt,
				Values: []string{"2"}}), Price: set(7)}}},
		"by a reservation, which no offering has": {overlays: []Overlay{{Name: "a",
			Requirements: accept(t, requirements.Requirement{Key: LabelReservationID, Operator: requirements.Exists}), Price: set(7)}}},
		"the higher weight takes precedence": {overlays: []Overlay{
			{Name: "light", Requirements: accept(t, family, in(LabelZone, "b")), Price: set(7)},
			{Name: "heavy", Weight: 10, Requirements: accept(t, family, in(LabelZone, "b")), Price: set(9)},
		}, want: "m7i.large/b/on-demand=9"},
		"equal weights, equal prices": {overlays: []Overlay{
			{Name: "a", Requirements: accept(t, family, in(LabelZone, "b")), Price: set(7)},
			{Name: "b", Requirements: accept(t, in(LabelZone, "b")), Price: set(7)},
		}, want: "c7i.large/b/on-demand=7 m7i.large/b/on-demand=7"},
		"equal weights, different prices": {overlays: []Overlay{
			{Name: "a", Requirements: accept(t, in(LabelZone, "b")), Price: set(7), Capacity: dongles(1)},
			{Name: "b", Requirements: accept(t, family, in(LabelZone, "b")), Price: set(8)},
		}, want: "m7i.large/b/on-demand=8", conflicts: map[string]string{"a": "b"}},
		"equal weights, different targets": {overlays: []Overlay{
			{Name: "a", Requirements: accept(t, in(LabelInstanceType, "c7i.large"), in(LabelZone, "b")), Price: set(7)},
			{Name: "b", Requirements: accept(t, family, in(LabelZone, "b")), Price: set(8)},
		}, want: "c7i.large/b/on-demand=7 m7i.large/b/on-demand=8"},
		"a conflict below a higher weight": {overlays: []Overlay{
			{Name: "a", Weight: 1, Requirements: accept(t, family, in(LabelZone, "b")), Price: set(7)},
			{Name: "b", Weight: 1, Requirements: accept(t, family, in(LabelZone, "b")), Price: set(8)},
			{Name: "c", Weight: 2, Requirements: accept(t, family, in(LabelZone, "b")), Price: set(9)},
		}, want: "m7i.large/b/on-demand=9", conflicts: map[string]string{"a": "b"}},
		"one offering is enough for a resource": {overlays: []Overlay{{Name: "a",
			Requirements: accept(t, family, in(LabelZone, "b")), Capacity: dongles(2)}},
			want: "m7i.large{cpu=1900m example.com/dongle=2}"},
		"resources of several overlays": {overlays: []Overlay{
			{Name: "a", Weight: 1, Requirements: accept(t, family), Capacity: dongles(2).With("hugepages-2Mi", 1<<21)},
			{Name: "b", Requirements: accept(t, family), Capacity: dongles(5).With("example.com/key", 1)},
		}, want: "m7i.large{cpu=1900m example.com/dongle=2 example.com/key=1 hugepages-2Mi=2097152}"},
		"resources contradict": {overlays: []Overlay{
			{Name: "a", Requirements: accept(t, family), Capacity: dongles(2)}, {Name: "b", Requirements: accept(t, family), Capacity: dongles(5)},
		}, want: "m7i.large{cpu=1900m example.com/dongle=5}", conflicts: map[string]string{"a": "b"}},
	} {
		pools := []PoolTypes{poolTypes(t, "apps", in("team", "web")), poolTypes(t, "batch")}
		applied := ApplyOverlays(pools, c.overlays)
		if got := overlaidText(applied.Types["apps"]); got != c.want {
			t.Errorf("%s: %s\nwant %s", name, got, c.want)
		}
		if len(c.conflicts) != len(applied.Conflicts) || len(c.conflicts) > 0 && !cmp.Equal(c.conflicts, applied.Conflicts) {
			t.Errorf("%s: conflicts %v, want %v", name, applied.Conflicts, c.conflicts)
		}
		if diff := cmp.Diff([]PoolTypes{poolTypes(t, "apps", in("team", "web")), poolTypes(t, "batch")}, pools); diff != "" {
			t.Errorf("%s: ApplyOverlays has changed its input:\n%s", name, diff)
		}
		for i, j := 0, len(c.overlays)-1; i < j; i, j = i+1, j-1 {
			c.overlays[i], c.overlays[j] = c.overlays[j], c.overlays[i]
		}
		if diff := cmp.Diff(applied, ApplyOverlays(pools, c.overlays)); diff != "" {
			t.Errorf("%s: the result depends on the order of the list of overlays:\n%s", name, diff)
		}
	}
}

// TestConflictInAllPools: an overlay that contradicts another one in one pool is applied in no pool.
func TestConflictInAllPools(t *testing.T) {
	t.Parallel()
	applied := ApplyOverlays([]PoolTypes{poolTypes(t, "apps"), poolTypes(t, "batch")}, []Overlay{
		{Name: "a", Price: &Repricing{SetPrice, 7}},
		{Name: "b", Requirements: accept(t, in("karpenter.sh/nodepool", "batch"), in(LabelZone, "b"),
			in(LabelInstanceType, "m7i.large")), Price: &Repricing{SetPrice, 8}},
	})
	if applied.Types["apps"] != nil || applied.Conflicts["a"] != "b" || overlaidText(applied.Types["batch"]) != "m7i.large/b/on-demand=8" {
		t.Errorf("apps %s, batch %s, conflicts %v; want overlay a in no pool",
			overlaidText(applied.Types["apps"]), overlaidText(applied.Types["batch"]), applied.Conflicts)
	}
}

func TestCatalogOfPool(t *testing.T) {
	t.Parallel()
	m := Market{"default": {Types: []Type{{Name: "a"}}, Pools: map[string][]Type{"apps": {{Name: "a", Overlaid: true}}}}}
	if m.Types("default", "apps")[0].Overlaid != true || m.Types("default", "batch")[0].Overlaid || m.Types("other", "apps") != nil {
		t.Errorf("Types must return the types of the pool, if there are any, then those of the NodeClass: %+v", m)
	}
}

func TestAssumedPrices(t *testing.T) {
	t.Parallel()
	p := Prices{OnDemand: map[string]Price{"m5.large": 9}, Spot: map[string]map[string]Price{},
		Assumed: map[string]Price{"m5.large": 7, "m99.large": 5}}
	zones := []Zone{{Name: "a"}}
	want := []Offering{{Zone: "a", CapacityType: OnDemand, Price: 5, Available: true},
		{Zone: "a", CapacityType: Spot, Price: 5, Available: true}}
	if diff := cmp.Diff(want, p.Offerings(Facts{Name: "m99.large", UsageClasses: []string{OnDemand, Spot}}, zones)); diff != "" {
		t.Errorf("a type without a price (-want +got):\n%s", diff)
	}
	if got := p.Offerings(Facts{Name: "m5.large", UsageClasses: []string{OnDemand}}, zones); got[0].Price != 9 {
		t.Errorf("a type with a price costs %d, want its on-demand price, 9", got[0].Price)
	}
	if got := p.Offerings(Facts{Name: "m98.large", UsageClasses: []string{OnDemand, Spot}}, zones); got != nil {
		t.Errorf("a type without any price has offerings: %+v", got)
	}
}

func TestRepricing(t *testing.T) {
	t.Parallel()
	const from = 2 * Dollar / 10 // 0.2000
	for _, c := range []struct{ price, adjustment, want, wantError string }{
		{"0.25", "", "0.25", ""}, {"3", "", "3.0000", ""}, {"0", "", "0.000000001", ""}, {"99999999", "", "1000000.0000", ""},
		{"", "+0.05", "0.25", ""}, {"", "-0.05", "0.15", ""}, {"", "-.05", "0.15", ""}, {"", "-1", "0.000000001", ""},
		{"", "+10%", "0.22", ""}, {"", "-10%", "0.18", ""}, {"", "-12.5%", "0.175", ""}, {"", "+1000%", "2.2", ""},
		{"", "-100%", "0.000000001", ""},
		{"", "+900000000%", "1000000.0000", ""},
		{"", "", "0.2", ""},
		{"1", "+1", "", "exclude each other"}, {"", "0.05", "", "write for instance"}, {"", "+-1", "", "write for instance"},
		{"", "+", "", "write for instance"},
		{"", "-101%", "", "-100% is the limit"}, {"-1", "", "", "not a decimal number"},
		{"cheap", "", "", "not a decimal number"}, {"", "+1e3", "", "write for instance"},
		{"99999999999999999999", "", "", "out of range"},
	} {
		r, err := ParseRepricing(c.price, c.adjustment)
		if c.wantError != "" {
			if err == nil || !strings.Contains(err.Error(), c.wantError) {
				t.Errorf("price %q, adjustment %q: %v, want an error with %q", c.price, c.adjustment, err, c.wantError)
			}
			continue
		}
		if err != nil {
			t.Errorf("price %q, adjustment %q: %v", c.price, c.adjustment, err)
			continue
		}
		got := from
		if r != nil {
			got = r.Apply(from)
		}
		want, err := ParsePrice(c.want)
		if err != nil {
			t.Fatal(err)
		}
		if got != want {
			t.Errorf("price %q, adjustment %q: %s, want %s", c.price, c.adjustment, got, want)
		}
	}
}

package catalog

import (
	"cmp"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
)

func TestTable(t *testing.T) {
	t.Parallel()
	tab := table(t)
	if !slices.IsSortedFunc(tab.Types(), func(a, b Facts) int { return cmp.Compare(a.Name, b.Name) }) {
		t.Error("types are not sorted by name")
	}
	if n := len(tab.Types()); n < 1200 {
		t.Errorf("%d types, want at least 1200", n)
	}
	for _, f := range tab.Types() {
		if f.MemoryMiB <= 0 || f.Processor.VCPUs <= 0 || f.Processor.Cores <= 0 || f.Arch() == "" {
			t.Errorf("%s: memory %d, vCPUs %d, cores %d, architectures %v; want a value for each",
				f.Name, f.MemoryMiB, f.Processor.VCPUs, f.Processor.Cores, f.Processor.Architectures)
		}
		if len(f.Network.Cards) == 0 || f.Network.IPv4PerInterface < 2 || defaultCard(f).MaxInterfaces < 1 {
			t.Errorf("%s: network %+v, want interfaces on the default card, at least 2 addresses each", f.Name, f.Network)
		}
		if (f.Hypervisor == "") != f.BareMetal {
			t.Errorf("%s: hypervisor %q, bare metal %t; want a hypervisor unless bare metal", f.Name, f.Hypervisor, f.BareMetal)
		}
		if f.Processor.Manufacturer == "" && f.Name != "t1.micro" {
			t.Errorf("%s: no manufacturer", f.Name)
		}
		for fact, isMissing := range map[string]bool{
			UnknownClock:     f.Processor.ClockMHz == 0,
			UnknownBandwidth: f.Network.BaselineMbps == 0,
			UnknownEBS:       f.EBS.MaximumMbps == 0 && f.EBS.Optimized == "default",
		} {
			if isMissing != slices.Contains(f.Unknown, fact) {
				t.Errorf("%s: %s is missing: %t, but listed as unknown are %v", f.Name, fact, isMissing, f.Unknown)
			}
		}
	}
}

// TestRegions: each region has at least 250 types, and those in minimum have as many as listed.
func TestRegions(t *testing.T) {
	t.Parallel()
	tab := table(t)
	minimum := map[string]int{
		"us-east-1": 1200, "us-west-2": 800, "eu-west-1": 700, "eu-central-1": 700, "ap-southeast-1": 600,
	}
	for _, name := range tab.Regions() {
		r, err := tab.Region(name)
		if err != nil {
			t.Fatal(err)
		}
		if n := len(r.Types()); n < max(minimum[name], 250) {
			t.Errorf("%s has %d types, want at least %d", name, n, max(minimum[name], 250))
		}
		delete(minimum, name)
		if len(r.Zones) < 2 {
			t.Errorf("%s has zones %v, want at least 2", name, r.Zones)
		}
		for _, typ := range r.Types() {
			if _, ok := tab.Facts(typ); !ok {
				t.Errorf("%s offers %s, but the table has no facts about it", name, typ)
			}
			if r.OnDemand[typ] <= 0 {
				t.Errorf("%s: price of %s is %s, want more than 0", name, typ, r.OnDemand[typ])
			}
			if len(r.ZonesOf(typ)) == 0 {
				t.Errorf("%s: %s is in no zone", name, typ)
			}
			if spot, ok := r.SpotTypical[typ]; ok && spot <= 0 {
				t.Errorf("%s: spot price of %s is %s, want more than 0", name, typ, spot)
			}
		}
	}
	if len(minimum) > 0 {
		t.Errorf("regions that are missing: %v", minimum)
	}
	for _, name := range []string{"mars-north-1", "types"} {
		if _, err := tab.Region(name); err == nil || !strings.Contains(err.Error(), "not in the embedded table, which has ap-northeast-1") {
			t.Errorf("region %s: error %v, want one that lists the regions", name, err)
		}
	}
}

func TestCatalogOfRegion(t *testing.T) {
	t.Parallel()
	c, err := table(t).Catalog("us-east-1", Settings{})
	if err != nil {
		t.Fatal(err)
	}
	always := []string{
		LabelInstanceType, LabelArch, LabelOS, LabelRegion, LabelCPU, LabelMemory, LabelHypervisor, LabelFamily,
		LabelSize, LabelCategory, LabelGeneration, LabelFlex, LabelEncryptionInTransit, LabelTenancy,
	}
	for _, typ := range c.Types {
		for _, key := range always {
			if v, ok := typ.Labels[key]; !ok || v == "" && key != LabelHypervisor {
				t.Errorf("%s: label %s is %q, want a value", typ.Name, key, v)
			}
		}
		if len(typ.Offerings) < 2 {
			t.Errorf("%s: offerings %v, want at least 2", typ.Name, typ.Offerings)
		}
		if typ.Allocatable.CPU <= 0 || typ.Allocatable.Memory <= 0 || typ.Allocatable.Pods <= 0 {
			t.Errorf("%s: allocatable %v, want CPU, memory and pods", typ.Name, typ.Allocatable)
		}
		if exceeded := typ.Allocatable.Lacking(typ.Capacity); exceeded != nil {
			t.Errorf("%s: allocatable exceeds the capacity in %v", typ.Name, exceeded)
		}
	}
	i := slices.IndexFunc(c.Types, func(t Type) bool { return t.Name == "m5.large" })
	var got []string
	for _, o := range c.Types[i].Offerings {
		got = append(got, o.Zone+" "+o.ZoneID+" "+o.CapacityType+" "+o.Price.String())
	}
	want := []string{ // use1-az3 has no m5
		"us-east-1a use1-az1 on-demand 0.0960", "us-east-1a use1-az1 spot 0.0960",
		"us-east-1b use1-az2 on-demand 0.0960", "us-east-1b use1-az2 spot 0.0960",
		"us-east-1d use1-az4 on-demand 0.0960", "us-east-1d use1-az4 spot 0.0960",
		"us-east-1e use1-az5 on-demand 0.0960", "us-east-1e use1-az5 spot 0.0960",
		"us-east-1f use1-az6 on-demand 0.0960", "us-east-1f use1-az6 spot 0.0960",
	}
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Errorf("m5.large (-want +got):\n%s", diff)
	}
}

func TestComplete(t *testing.T) {
	t.Parallel()
	got := table(t).Complete(Facts{Name: "m5.large", MemoryMiB: 1}).Network
	if got.BaselineMbps != 750 || got.BranchInterfaces != 9 {
		t.Errorf("Complete returns the network %+v, want 750 Mbps and 9 branch interfaces", got)
	}
	if f := table(t).Complete(Facts{Name: "x99.large"}); f.Network.BaselineMbps != 0 {
		t.Errorf("Complete adds facts to an unknown type: %+v", f)
	}
}

func BenchmarkEmbedded(b *testing.B) {
	for b.Loop() {
		tab, err := Embedded()
		if err != nil {
			b.Fatal(err)
		}
		if _, err := tab.Catalog("us-east-1", Settings{}); err != nil {
			b.Fatal(err)
		}
	}
}

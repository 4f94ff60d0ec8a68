package catalog

import (
	"testing"

	"github.com/joiner-sh/joiner/internal/model/resources"
)

func ptr[T any](v T) *T { return &v }

// TestPods has Interfaces as {Card, Device, EFAOnly}.
func TestPods(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		typ  string
		set  Settings
		want int64
	}{
		"by interfaces":                  {"m5.large", Settings{}, 29},
		"maxPods":                        {"m5.large", Settings{MaxPods: ptr[int64](110)}, 110},
		"maxPods of 0":                   {"m5.large", Settings{MaxPods: ptr[int64](0)}, 0},
		"a reserved interface":           {"m5.large", Settings{ReservedENIs: 1}, 20},
		"all reserved":                   {"m5.large", Settings{ReservedENIs: 3}, 0},
		"more reserved than there are":   {"m5.large", Settings{ReservedENIs: 9}, 0},
		"pods per core":                  {"m5.large", Settings{PodsPerCore: 10}, 20},
		"pods per core, not the limit":   {"m5.large", Settings{PodsPerCore: 99}, 29},
		"bottlerocket ignores per core":  {"m5.large", Settings{Family: Bottlerocket, PodsPerCore: 10}, 29},
		"windows":                        {"m5.large", Settings{Family: Windows2019}, 110},
		"windows per core":               {"m5.large", Settings{Family: Windows2019, PodsPerCore: 10}, 20},
		"an interface for efa on card 0": {"m6idn.32xlarge", Settings{Interfaces: []Interface{{0, 0, false}, {0, 1, true}}}, 345},
		"an interface for efa on card 1": {"m6idn.32xlarge", Settings{Interfaces: []Interface{{0, 0, false}, {1, 0, true}}}, 394},
	} {
		if got := Build(factsOf(t, c.typ), c.set, "r").Capacity.Pods; got != c.want {
			t.Errorf("%s: %d pods, want %d", name, got, c.want)
		}
	}
}

// TestEphemeralStorage has Volumes as {Device, Root, Bytes}.
func TestEphemeralStorage(t *testing.T) {
	t.Parallel()
	const gi = 1 << 30
	for name, c := range map[string]struct {
		typ  string
		set  Settings
		want int64
	}{
		"al2023":              {"m5.large", Settings{}, 20 * gi},
		"bottlerocket":        {"m5.large", Settings{Family: Bottlerocket}, 20 * gi},
		"windows":             {"m5.large", Settings{Family: Windows2025}, 50 * gi},
		"the family's device": {"m5.large", Settings{Volumes: []Volume{{"/dev/xvda", false, 80 * gi}}}, 80 * gi},
		"another device":      {"m5.large", Settings{Volumes: []Volume{{"/dev/xvdz", false, 80 * gi}}}, 20 * gi},
		"bottlerocket's system device": {"m5.large",
			Settings{Family: Bottlerocket, Volumes: []Volume{{"/dev/xvda", false, 4 * gi}}}, 20 * gi},
		"bottlerocket's data device": {"m5.large",
			Settings{Family: Bottlerocket, Volumes: []Volume{{"/dev/xvdb", false, 99 * gi}}}, 99 * gi},
		"root before device": {"m5.large",
			Settings{Volumes: []Volume{{"/dev/xvda", false, 80 * gi}, {"/dev/sdb", true, 30 * gi}}}, 30 * gi},
		"root without size": {"m5.large",
			Settings{Volumes: []Volume{{"/dev/xvda", false, 80 * gi}, {"/dev/sdb", true, 0}}}, 80 * gi},
		"custom: the last volume": {"m5.large",
			Settings{Family: Custom, Volumes: []Volume{{"/dev/a", false, 8 * gi}, {"/dev/b", false, 9 * gi}}}, 9 * gi},
		"custom: the last without size": {"m5.large",
			Settings{Family: Custom, Volumes: []Volume{{"/dev/a", false, 8 * gi}, {"/dev/b", false, 0}}}, 20 * gi},
		"custom: nothing mapped":                          {"m5.large", Settings{Family: Custom}, 20 * gi},
		"raid0 of local disks":                            {"m5d.large", Settings{InstanceStore: RAID0}, 75e9},
		"raid0 without local disks":                       {"m5.large", Settings{InstanceStore: RAID0}, 20 * gi},
		"a volume without device (Karpenter would crash)": {"m5.large", Settings{Volumes: []Volume{{"", false, 8 * gi}}}, 20 * gi},
	} {
		if got := Build(factsOf(t, c.typ), c.set, "r").Capacity.EphemeralStorage; got != c.want {
			t.Errorf("%s: %d bytes, want %d", name, got, c.want)
		}
	}
}

func TestOverhead(t *testing.T) {
	t.Parallel()
	threshold := func(text string) Threshold {
		th, err := ParseThreshold(text)
		if err != nil {
			t.Fatal(err)
		}
		return th
	}
	for name, c := range map[string]struct {
		set      Settings
		resource string
		want     int64 // capacity minus allocatable of m5.large: reserves 574 = 255 + 11*29 Mi, keeps 100 Mi free
	}{
		"memory":                        {Settings{}, resources.Memory, (574 + 100) * mib},
		"cpu":                           {Settings{}, resources.CPU, 70},
		"max pods do not change memory": {Settings{MaxPods: ptr[int64](110)}, resources.Memory, (574 + 100) * mib},
		"max pods of bottlerocket change memory": {Settings{Family: Bottlerocket, MaxPods: ptr[int64](110)}, resources.Memory,
			(11*110 + 255 + 100) * mib},
		"reserved interfaces keep memory": {Settings{ReservedENIs: 1}, resources.Memory, (574 + 100) * mib},
		"kube reserved memory":            {Settings{KubeReserved: map[string]int64{"memory": 1 << 30}}, resources.Memory, (1024 + 100) * mib},
		"kube reserved memory keeps cpu":  {Settings{KubeReserved: map[string]int64{"memory": 1 << 30}}, resources.CPU, 70},
		"kube reserved cpu of 0":          {Settings{KubeReserved: map[string]int64{"cpu": 0}}, resources.CPU, 0},
		"system reserved is added":        {Settings{SystemReserved: map[string]int64{"cpu": 100}}, resources.CPU, 170},
		"pids are no resource of a node":  {Settings{SystemReserved: map[string]int64{"pid": 100}}, "pid", 0},
		"eviction by amount": {Settings{EvictionHard: map[string]Threshold{MemoryAvailable: threshold("500Mi")}},
			resources.Memory, (574 + 500) * mib},
		"eviction by share": {Settings{EvictionHard: map[string]Threshold{MemoryAvailable: threshold("5%")}},
			resources.Memory, 574*mib + 397253018}, // 5 % of 7577 MiB, rounded up
		"eviction off": {Settings{EvictionHard: map[string]Threshold{MemoryAvailable: threshold("100%")}},
			resources.Memory, 574 * mib},
		"disk eviction by share": {Settings{EvictionHard: map[string]Threshold{NodeFSAvailable: threshold("50%")}},
			resources.EphemeralStorage, 11 << 30}, // 1 GiB reserved, and half of 20 GiB
	} {
		typ := Build(factsOf(t, "m5.large"), c.set, "r")
		if got := typ.Capacity.Of(c.resource) - typ.Allocatable.Of(c.resource); got != c.want {
			t.Errorf("%s: the overhead of %s is %d, want %d", name, c.resource, got, c.want)
		}
	}
}

func TestMemory(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		set  Settings
		want int64
	}{
		"estimated":          {Settings{}, 7577 * mib},
		"another overhead":   {Settings{MemoryOverhead: ptr(0.1)}, 7372 * mib},
		"no overhead":        {Settings{MemoryOverhead: ptr(0.0)}, 8192 * mib},
		"measured":           {Settings{Measured: Measured{Memory: 12345678}}, 12345678},
		"only pods measured": {Settings{Measured: Measured{Pods: []Correction{{29, 110}}}}, 7577 * mib},
	} {
		if got := Build(factsOf(t, "m5.large"), c.set, "r").Capacity.Memory; got != c.want {
			t.Errorf("%s: %d bytes of memory, want %d", name, got, c.want)
		}
	}
}

func TestNothingIsNegative(t *testing.T) {
	t.Parallel()
	set := Settings{SystemReserved: map[string]int64{"memory": 1 << 40, "cpu": 1 << 40}}
	free := Build(factsOf(t, "m5.large"), set, "r").Allocatable
	if free.Memory != 0 || free.CPU != 0 {
		t.Errorf("allocatable is %v, want 0 CPU and 0 memory", free)
	}
}

func TestIncompatible(t *testing.T) {
	t.Parallel()
	efa := []Interface{{0, 0, false}, {0, 1, true}}
	for name, c := range map[string]struct {
		typ  string
		set  Settings
		want Obstacle
	}{
		"default settings":            {"m5.large", Settings{}, ""},
		"a1 on al2023":                {"a1.large", Settings{}, NotOnAL2023},
		"a1 on bottlerocket":          {"a1.large", Settings{Family: Bottlerocket}, ""},
		"arm64 on windows":            {"m6g.large", Settings{Family: Windows2022}, NotOnWindows},
		"arm64 gpu on al2":            {"g5g.xlarge", Settings{Family: AL2, PublishedImages: true}, NotOnAL2},
		"arm64 gpu on own al2 image":  {"g5g.xlarge", Settings{Family: AL2}, ""},
		"arm64 gpu on al2023":         {"g5g.xlarge", Settings{Family: AL2023, PublishedImages: true}, ""},
		"amd64 gpu on al2":            {"g4dn.xlarge", Settings{Family: AL2, PublishedImages: true}, ""},
		"nested virtualization":       {"m5.large", Settings{NestedVirtualization: true}, NoNestedVirtual},
		"tracking on nitro":           {"m5.large", Settings{ConnectionTracking: true}, ""},
		"tracking on bare metal":      {"m5.metal", Settings{ConnectionTracking: true}, NoConnectionTracking},
		"tracking on xen":             {"t2.large", Settings{ConnectionTracking: true}, NoConnectionTracking},
		"cluster placement":           {"m5.large", Settings{PlacementStrategy: "cluster"}, ""},
		"cluster placement of t3":     {"t3.large", Settings{PlacementStrategy: "cluster"}, NoSuchPlacement},
		"efa":                         {"m6idn.32xlarge", Settings{Interfaces: efa}, ""},
		"efa where there is none":     {"m5.large", Settings{Interfaces: efa}, TooFewEFA},
		"a second card":               {"m5.large", Settings{Interfaces: []Interface{{0, 0, false}, {1, 0, false}}}, NoSuchInterface},
		"a fourth interface of three": {"m5.large", Settings{Interfaces: []Interface{{0, 3, false}}}, NoSuchInterface},
		"interfaces without ena":      {"t2.large", Settings{Interfaces: []Interface{{0, 0, false}}}, NoSuchInterface},
	} {
		if got := Incompatible(factsOf(t, c.typ), c.set); got != c.want {
			t.Errorf("%s: the obstacle is %q, want %q", name, got, c.want)
		}
	}
}

func TestParseThreshold(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Threshold{
		"5%": {Percent: 5}, "12.5%": {Percent: 12.5}, "100%": {}, "0%": {}, "500Mi": {Amount: 500 << 20}, "1G": {Amount: 1e9},
	} {
		if got, err := ParseThreshold(text); err != nil || got != want {
			t.Errorf("ParseThreshold(%s) = %+v, %v; want %+v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "%", "-1%", "101%", "NaN%", "much"} {
		if got, err := ParseThreshold(text); err == nil {
			t.Errorf("%q is read as %+v, want an error", text, got)
		}
	}
}

package catalog

import (
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/joiner-sh/joiner/internal/model/resources"
)

var embeddedOnce = sync.OnceValues(Embedded)

// table returns the embedded table. Tests share it and must not change it.
func table(t *testing.T) Table {
	t.Helper()
	tab, err := embeddedOnce()
	if err != nil {
		t.Fatal(err)
	}
	return tab
}

func factsOf(t *testing.T, name string) Facts {
	t.Helper()
	f, ok := table(t).Facts(name)
	if !ok {
		t.Fatalf("%s is not in the table", name)
	}
	return f
}

// TestGolden compares sizes with those of Karpenter's AWS provider 1.14, for AL2023 nodes with default settings.
func TestGolden(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]struct {
		apiMiB, memoryMi, pods   int64
		reservedCPU, reservedMi  int64
		freeCPU, freeMemoryBytes int64
	}{
		"m5.large":       {8192, 7577, 29, 70, 574, 1930, 7238320128},
		"m5.xlarge":      {16384, 15155, 58, 80, 893, 3920, 14849933312},
		"c6g.large":      {4096, 3729, 29, 70, 574, 1930, 3203399680},
		"t4g.small":      {2048, 1835, 11, 70, 376, 1930, 1425014784},
		"t3.large":       {8192, 7577, 35, 70, 640, 1930, 7169114112},
		"g5.12xlarge":    {196608, 181862, 737, 190, 8362, 47810, 181823078400},
		"m5.metal":       {393216, 363724, 737, 310, 8362, 95690, 372519206912},
		"m6idn.32xlarge": {524288, 484966, 394, 390, 4589, 127610, 503606935552},
		"p5.48xlarge":    {2097152, 1939865, 100, 550, 1355, 191450, 2032570204160},
	} {
		f := factsOf(t, name)
		typ := Build(f, Settings{Family: AL2023}, "us-east-1")
		kube := kubeReserved(f, Settings{Family: AL2023})
		got := want
		got.apiMiB, got.memoryMi, got.pods = f.MemoryMiB, typ.Capacity.Memory/mib, typ.Capacity.Pods
		got.reservedCPU, got.reservedMi = kube.CPU, kube.Memory/mib
		got.freeCPU, got.freeMemoryBytes = typ.Allocatable.CPU, typ.Allocatable.Memory
		if got != want {
			t.Errorf("%s:\n got %+v\nwant %+v", name, got, want)
		}
		if got := typ.Allocatable.EphemeralStorage; got != 18253611008 {
			t.Errorf("%s: allocatable ephemeral storage is %d, want 18253611008 for a 20Gi volume", name, got)
		}
	}
}

func TestGoldenWindows(t *testing.T) {
	t.Parallel()
	typ := Build(factsOf(t, "m5.large"), Settings{Family: Windows2022}, "us-east-1")
	want := resources.Amounts{CPU: 2000, Memory: 7577 * mib, EphemeralStorage: 50 << 30, Pods: 110}.
		With(ResourcePrivateIPv4, 9).With(ResourcePodENI, 9)
	if diff := cmp.Diff(want, typ.Capacity); diff != "" {
		t.Errorf("capacity (-want +got):\n%s", diff)
	}
	if got := typ.Allocatable.Memory; got != 6304038912 {
		t.Errorf("allocatable memory %d, want 6304038912", got)
	}
	if got := typ.Labels[LabelOS] + " " + typ.Labels[LabelWindowsBuild]; got != "windows 10.0.20348" {
		t.Errorf("os and build are %s, want windows 10.0.20348", got)
	}
}

func TestGoldenDevices(t *testing.T) {
	t.Parallel()
	for _, want := range []struct {
		typ, resource string
		count         int64
	}{
		{"m5.large", ResourcePodENI, 9},
		{"m5.xlarge", ResourcePodENI, 18},
		{"c6g.large", ResourcePodENI, 9},
		{"g4dn.8xlarge", ResourcePodENI, 58},
		{"p5.48xlarge", ResourcePodENI, 120},
		{"p5.48xlarge", ResourceEFA, 32},
		{"m6idn.32xlarge", ResourceEFA, 2},
		{"m5.large", ResourceEFA, 0},
		{"p5.48xlarge", ResourceNVIDIA, 8},
		{"g4ad.16xlarge", ResourceAMD, 4},
		{"dl1.24xlarge", ResourceGaudi, 8},
		{"inf2.24xlarge", ResourceNeuron, 6},
		{"inf2.24xlarge", ResourceNeuronCore, 12},
		{"trn1.2xlarge", ResourceNeuron, 1},
		{"trn1.2xlarge", ResourceNeuronCore, 2},
	} {
		typ := Build(factsOf(t, want.typ), Settings{}, "us-east-1")
		if got := typ.Capacity.Of(want.resource); got != want.count {
			t.Errorf("%s: %s is %d, want %d", want.typ, want.resource, got, want.count)
		}
	}
}

// TestGoldenLabels: m5.large has exactly these labels, the other types at least these. "" means empty or missing.
func TestGoldenLabels(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]map[string]string{
		"m5.large": {
			LabelInstanceType: "m5.large", LabelArch: "amd64", LabelOS: "linux", LabelRegion: "us-east-1",
			LabelCategory: "m", LabelFamily: "m5", LabelGeneration: "5", LabelSize: "large", LabelFlex: "false",
			LabelCPU: "2", LabelCPUManufacturer: "intel", LabelClock: "3100", LabelMemory: "8192",
			LabelEBSBandwidth: "4750", LabelNetworkBandwidth: "750", LabelHypervisor: "nitro",
			LabelEncryptionInTransit: "false", LabelTenancy: "default",
		},
		"p5.48xlarge": {
			LabelGPUName: "h100", LabelGPUCount: "8", LabelGPUManufacturer: "nvidia", LabelGPUMemory: "81920",
			LabelLocalNVMe: "30400", LabelEncryptionInTransit: "true",
		},
		"inf2.xlarge": {
			LabelAcceleratorName: "inferentia2", LabelAcceleratorManufacturer: "aws", LabelAcceleratorCount: "1",
			LabelNetworkBandwidth: "2083",
		},
		"m5.metal":           {LabelHypervisor: "", LabelSize: "metal"},
		"c7i-flex.xlarge":    {LabelFlex: "true", LabelFamily: "c7i-flex", LabelGeneration: "7"},
		"u-6tb1.56xlarge":    {LabelCategory: "u", LabelGeneration: "1", LabelFamily: "u-6tb1"},
		"u7i-12tb.224xlarge": {LabelCategory: "u", LabelGeneration: "7"},
		"h1.2xlarge":         {LabelLocalNVMe: "", LabelHypervisor: "xen"},
	} {
		labels := Build(factsOf(t, name), Settings{}, "us-east-1").Labels
		for key, value := range want {
			if got := labels[key]; got != value {
				t.Errorf("%s: label %s is %q, want %q", name, key, got, value)
			}
		}
		if name == "m5.large" && len(labels) != len(want) {
			t.Errorf("m5.large: %d labels, want %d: %v", len(labels), len(want), labels)
		}
	}
}

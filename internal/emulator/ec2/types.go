package ec2

import (
	"math"
	"slices"
	"strings"

	"github.com/joiner-sh/joiner/internal/emulator/api"
	"github.com/joiner-sh/joiner/internal/emulator/world/failure"
	"github.com/joiner-sh/joiner/internal/model/catalog"
)

type describeTypesIn struct {
	Types   []string     `aws:"InstanceType"`
	Filters []api.Filter `aws:"Filter"`
	api.Paged
}

type describeTypesOut struct {
	InstanceTypes []instanceType `aws:"InstanceTypeSet"`
	NextToken     string
}

func describeInstanceTypes(c *api.Call, in *describeTypesIn) (describeTypesOut, error) {
	if len(in.Types) > 0 && in.MaxResults != nil {
		return describeTypesOut{},
			&failure.Error{Code: "InvalidParameterCombination", Message: "The parameter InstanceTypes cannot be used with the parameter MaxResults"}
	}
	market := c.World.Market(c.RegionID)
	names := market.Names()
	if len(in.Types) > 0 {
		names = in.Types
	}
	facts := make([]catalog.Facts, 0, len(names))
	var unknown []string
	for _, name := range names {
		s, ok := market.Stock(name)
		if !ok {
			unknown = append(unknown, name)
			continue
		}
		facts = append(facts, s.Facts)
	}
	if len(unknown) > 0 {
		return describeTypesOut{},
			&failure.Error{Code: "InvalidInstanceType", Message: "The following supplied instance types do not exist: [" +
				strings.Join(unknown, ", ") + "]"}
	}
	facts, err := api.FilterItems(facts, in.Filters, typeFilters)
	if err != nil {
		return describeTypesOut{}, err
	}
	p, err := in.Page(100, 100)
	if err != nil {
		return describeTypesOut{}, err
	}
	facts, next, err := api.PageOf(facts, func(f catalog.Facts) string { return f.Name }, p)
	if err != nil {
		return describeTypesOut{}, err
	}
	out := describeTypesOut{InstanceTypes: make([]instanceType, len(facts)), NextToken: next}
	for i, f := range facts {
		out.InstanceTypes[i] = typeOf(f)
	}
	return out, nil
}

func typeFilters(f catalog.Facts) api.Filterable {
	return api.Filterable{Values: map[string][]string{
		"instance-type": {f.Name}, "bare-metal": api.BoolValues(f.BareMetal), "current-generation": api.BoolValues(f.CurrentGeneration),
		"burstable-performance-supported": api.BoolValues(f.Burstable), "free-tier-eligible": api.BoolValues(f.FreeTier),
		"hypervisor":                            {f.Hypervisor},
		"processor-info.supported-architecture": f.Processor.Architectures, "supported-virtualization-type": f.Virtualization,
		"supported-usage-class": f.UsageClasses, "supported-root-device-type": f.RootDevices,
		"instance-storage-supported": api.BoolValues(f.Storage.TotalGB > 0),
	}}
}

type instanceType struct {
	InstanceType                  string
	CurrentGeneration             bool
	FreeTierEligible              bool
	SupportedUsageClasses         []string
	SupportedRootDeviceTypes      []string
	SupportedVirtualizationTypes  []string
	BareMetal                     bool
	Hypervisor                    string
	ProcessorInfo                 processorInfo
	VCpuInfo                      vcpuInfo
	MemoryInfo                    memoryInfo
	InstanceStorageSupported      bool
	InstanceStorageInfo           *storageInfo
	EbsInfo                       ebsInfo
	NetworkInfo                   networkInfo
	GpuInfo                       *gpuInfo
	FpgaInfo                      *fpgaInfo
	InferenceAcceleratorInfo      *inferenceInfo
	NeuronInfo                    *neuronInfo
	PlacementGroupInfo            placementInfo
	HibernationSupported          bool
	BurstablePerformanceSupported bool
	DedicatedHostsSupported       bool
	AutoRecoverySupported         bool
	SupportedBootModes            []string
	NitroEnclavesSupport          string
}

type processorInfo struct {
	SupportedArchitectures   []string
	SustainedClockSpeedInGhz *float64
	SupportedFeatures        []string
	Manufacturer             string
}

type vcpuInfo struct {
	DefaultVCpus          int64
	DefaultCores          int64
	DefaultThreadsPerCore int64
}

type memoryInfo struct {
	SizeInMiB int64
}

type storageInfo struct {
	TotalSizeInGB     int64
	Disks             []disk
	NvmeSupport       string
	EncryptionSupport string
}

type disk struct {
	SizeInGB int64
	Count    int64
	Type     string
}

type ebsInfo struct {
	EbsOptimizedSupport string
	EncryptionSupport   string
	EbsOptimizedInfo    *ebsOptimizedInfo
	NvmeSupport         string
}

type ebsOptimizedInfo struct {
	BaselineBandwidthInMbps  int64
	BaselineThroughputInMBps float64
	BaselineIops             int64
	MaximumBandwidthInMbps   int64
	MaximumThroughputInMBps  float64
	MaximumIops              int64
}

type networkInfo struct {
	NetworkPerformance           string
	MaximumNetworkInterfaces     int64
	MaximumNetworkCards          int64
	DefaultNetworkCardIndex      int64
	NetworkCards                 []networkCard
	Ipv4AddressesPerInterface    int64
	Ipv6AddressesPerInterface    int64
	Ipv6Supported                bool
	EnaSupport                   string
	EfaSupported                 bool
	EfaInfo                      *efaInfo
	EncryptionInTransitSupported bool
}

type networkCard struct {
	NetworkCardIndex         int64
	NetworkPerformance       string
	MaximumNetworkInterfaces int64
}

type efaInfo struct {
	MaximumEfaInterfaces int64
}

type deviceMemory struct {
	SizeInMiB int64
}

type gpuInfo struct {
	Gpus                []accelerator
	TotalGpuMemoryInMiB int64
}

// accelerator is a model of GPUs, FPGAs or inference accelerators, with the number of devices.
type accelerator struct {
	Name         string
	Manufacturer string
	Count        int64
	MemoryInfo   deviceMemory
}

type fpgaInfo struct {
	Fpgas                []accelerator
	TotalFpgaMemoryInMiB int64
}

type inferenceInfo struct {
	Accelerators           []accelerator `aws:"Accelerators,,member"` // the items have another name than in other lists
	TotalInferenceMemoryMB int64         `aws:"TotalInferenceMemoryInMiB"`
}

type neuronInfo struct {
	NeuronDevices                []neuronDevice
	TotalNeuronDeviceMemoryInMiB int64
}

type neuronDevice struct {
	Count      int64
	Name       string
	CoreInfo   neuronCores
	MemoryInfo deviceMemory
}

type neuronCores struct {
	Count   int64
	Version int64
}

type placementInfo struct {
	SupportedStrategies []string
}

// typeOf converts the facts of an instance type to EC2's wire format. If catalog.Facts lacks a property, the
// answer omits the property or reports it as unsupported.
func typeOf(f catalog.Facts) instanceType {
	enclaves := "unsupported"
	if f.NitroEnclaves {
		enclaves = "supported"
	}
	out := instanceType{
		InstanceType:                 f.Name,
		CurrentGeneration:            f.CurrentGeneration,
		FreeTierEligible:             f.FreeTier,
		SupportedUsageClasses:        f.UsageClasses,
		SupportedRootDeviceTypes:     f.RootDevices,
		SupportedVirtualizationTypes: f.Virtualization,
		BareMetal:                    f.BareMetal,
		Hypervisor:                   f.Hypervisor,
		ProcessorInfo: processorInfo{
			SupportedArchitectures: f.Processor.Architectures,
			SupportedFeatures:      f.Processor.Features,
			Manufacturer:           f.Processor.Manufacturer,
		},
		VCpuInfo: vcpuInfo{
			DefaultVCpus:          f.Processor.VCPUs,
			DefaultCores:          f.Processor.Cores,
			DefaultThreadsPerCore: f.Processor.ThreadsPerCore,
		},
		MemoryInfo:                    memoryInfo{SizeInMiB: f.MemoryMiB},
		InstanceStorageSupported:      f.Storage.TotalGB > 0,
		InstanceStorageInfo:           storageOf(f.Storage),
		EbsInfo:                       ebsOf(f.EBS),
		NetworkInfo:                   networkOf(f.Network),
		PlacementGroupInfo:            placementInfo{SupportedStrategies: f.PlacementStrategies},
		BurstablePerformanceSupported: f.Burstable,
		SupportedBootModes:            f.BootModes,
		NitroEnclavesSupport:          enclaves,
	}
	if f.Processor.ClockMHz > 0 {
		ghz := float64(f.Processor.ClockMHz) / 1000
		out.ProcessorInfo.SustainedClockSpeedInGhz = &ghz
	}
	out.setAccelerators(f)
	return out
}

func (t *instanceType) setAccelerators(f catalog.Facts) {
	if devices, total := devicesOf(f.GPUs); len(devices) > 0 {
		t.GpuInfo = &gpuInfo{Gpus: devices, TotalGpuMemoryInMiB: total}
	}
	if devices, total := devicesOf(f.Inference); len(devices) > 0 {
		t.InferenceAcceleratorInfo = &inferenceInfo{Accelerators: devices, TotalInferenceMemoryMB: total}
	}
	if devices, total := devicesOf(f.FPGAs); len(devices) > 0 {
		t.FpgaInfo = &fpgaInfo{Fpgas: devices, TotalFpgaMemoryInMiB: total}
	}
	if len(f.Neuron) == 0 {
		return
	}
	t.NeuronInfo = &neuronInfo{}
	for _, n := range f.Neuron {
		t.NeuronInfo.NeuronDevices = append(t.NeuronInfo.NeuronDevices, neuronDevice{
			Count:      n.Count,
			Name:       n.Name,
			CoreInfo:   neuronCores{Count: n.Cores, Version: n.CoreVersion},
			MemoryInfo: deviceMemory{SizeInMiB: n.MemoryMiB},
		})
		t.NeuronInfo.TotalNeuronDeviceMemoryInMiB += n.Count * n.MemoryMiB
	}
}

// devicesOf converts accelerators to EC2's wire format. totalMiB is the memory of all devices.
func devicesOf(models []catalog.Accelerator) (out []accelerator, totalMiB int64) {
	for _, a := range models {
		out = append(out,
			accelerator{Name: a.Name, Manufacturer: a.Manufacturer, Count: a.Count, MemoryInfo: deviceMemory{SizeInMiB: a.MemoryMiB}})
		totalMiB += a.Count * a.MemoryMiB
	}
	return out, totalMiB
}

func storageOf(s catalog.Storage) *storageInfo {
	if s.TotalGB == 0 {
		return nil
	}
	out := &storageInfo{TotalSizeInGB: s.TotalGB, NvmeSupport: s.NVMe, EncryptionSupport: "required"}
	for _, d := range s.Disks {
		out.Disks = append(out.Disks, disk{SizeInGB: d.SizeGB, Count: d.Count, Type: d.Kind})
	}
	return out
}

func ebsOf(e catalog.EBS) ebsInfo {
	out := ebsInfo{EbsOptimizedSupport: e.Optimized, EncryptionSupport: "supported", NvmeSupport: e.NVMe}
	if e.MaximumMbps > 0 {
		out.EbsOptimizedInfo = &ebsOptimizedInfo{
			BaselineBandwidthInMbps: e.BaselineMbps, BaselineThroughputInMBps: megabytes(e.BaselineMbps), BaselineIops: e.BaselineIOPS,
			MaximumBandwidthInMbps: e.MaximumMbps, MaximumThroughputInMBps: megabytes(e.MaximumMbps), MaximumIops: e.MaximumIOPS,
		}
	}
	return out
}

// megabytes converts megabits to megabytes, rounded to two decimals like EC2's numbers.
func megabytes(megabits int64) float64 { return math.Round(float64(megabits)/8*100) / 100 }

func networkOf(n catalog.Network) networkInfo {
	out := networkInfo{
		NetworkPerformance: n.Performance, MaximumNetworkInterfaces: n.MaxInterfaces, MaximumNetworkCards: int64(len(n.Cards)),
		DefaultNetworkCardIndex: n.DefaultCard, Ipv4AddressesPerInterface: n.IPv4PerInterface, Ipv6AddressesPerInterface: n.IPv6PerInterface,
		Ipv6Supported: n.IPv6, EnaSupport: n.ENA, EfaSupported: n.EFAInterfaces > 0, EncryptionInTransitSupported: n.EncryptionInTransit,
	}
	if n.EFAInterfaces > 0 {
		out.EfaInfo = &efaInfo{MaximumEfaInterfaces: n.EFAInterfaces}
	}
	for _, c := range n.Cards {
		out.NetworkCards = append(out.NetworkCards,
			networkCard{
				NetworkCardIndex:         c.Index,
				NetworkPerformance:       api.Or(c.Performance, n.Performance),
				MaximumNetworkInterfaces: c.MaxInterfaces,
			})
	}
	return out
}

type offeringsIn struct {
	LocationType string
	Filters      []api.Filter `aws:"Filter"`
	api.Paged
}

type offeringsOut struct {
	Offerings []typeOffering `aws:"InstanceTypeOfferingSet"`
	NextToken string
}

type typeOffering struct {
	InstanceType string
	LocationType string
	Location     string
}

func describeInstanceTypeOfferings(c *api.Call, in *offeringsIn) (offeringsOut, error) {
	locationType := api.Or(in.LocationType, "region")
	if !slices.Contains([]string{"region", "availability-zone", "availability-zone-id"}, locationType) {
		return offeringsOut{}, api.InvalidValue("LocationType", in.LocationType)
	}
	market := c.World.Market(c.RegionID)
	var all []typeOffering
	for _, name := range market.Names() {
		s, _ := market.Stock(name)
		if locationType == "region" {
			all = append(all, typeOffering{name, locationType, c.RegionID})
			continue
		}
		for _, z := range c.Region.Zones() {
			if !s.OffersIn(z.Name) {
				continue
			}
			location := z.Name
			if locationType == "availability-zone-id" {
				location = z.ID
			}
			all = append(all, typeOffering{name, locationType, location})
		}
	}
	all, err := api.FilterItems(all, in.Filters, func(o typeOffering) api.Filterable {
		return api.Filterable{Values: map[string][]string{"instance-type": {o.InstanceType}, "location": {o.Location}}}
	})
	if err != nil {
		return offeringsOut{}, err
	}
	p, err := in.Page(1000, 1000)
	if err != nil {
		return offeringsOut{}, err
	}
	all, next, err := api.PageOf(all, func(o typeOffering) string { return o.InstanceType + "/" + o.Location }, p)
	return offeringsOut{Offerings: append([]typeOffering{}, all...), NextToken: next}, err
}

package ec2

import (
	"context"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsec2 "github.com/aws/aws-sdk-go-v2/service/ec2"
	awstypes "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/joiner-sh/joiner/internal/aws/awserr"
	"github.com/joiner-sh/joiner/internal/model/catalog"
)

// Market holds the instance types of our region and their zones. Unlike a catalog.Market, it has no prices.
type Market struct {
	Facts []catalog.Facts     // the types that can be nodes, sorted by name
	Zones map[string][]string // by instance type: names of the zones that offer the type, sorted
}

// Market reads the instance types and their zones from EC2. The baseline network bandwidth and the branch interfaces
// stay zero; catalog.Table.Complete sets them.
func (d *Client) Market(ctx context.Context) (Market, error) {
	return readMarket(ctx, d.reads, d.cluster.Region)
}

// ReadMarket does the same as Client.Market in the region of cfg, for callers without a cluster, such as the command
// line.
func ReadMarket(ctx context.Context, cfg aws.Config) (Market, error) {
	return readMarket(ctx, sdkClient(cfg), cfg.Region)
}

func readMarket(ctx context.Context, client *awsec2.Client, region string) (Market, error) {
	facts, err := readFacts(ctx, client)
	if err != nil {
		return Market{}, err
	}
	zones, err := readZones(ctx, client)
	if err != nil {
		return Market{}, err
	}
	if len(facts) == 0 || len(zones) == 0 {
		return Market{}, &awserr.Error{Op: "DescribeInstanceTypes", Kind: awserr.Transient, Reason: "EmptyAnswer",
			Message: "EC2 lists no instance types in region " + region}
	}
	return Market{Facts: facts, Zones: zones}, nil
}

func readFacts(ctx context.Context, client *awsec2.Client) ([]catalog.Facts, error) {
	byName := map[string]catalog.Facts{}
	pages := awsec2.NewDescribeInstanceTypesPaginator(client, &awsec2.DescribeInstanceTypesInput{
		MaxResults: aws.Int32(100),
		Filters: []awstypes.Filter{
			filter("supported-virtualization-type", "hvm"),
			filter("processor-info.supported-architecture", "x86_64", "arm64"),
		},
	})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, awserr.Classify("DescribeInstanceTypes", err)
		}
		for _, t := range page.InstanceTypes {
			// factsOf needs these fields.
			if t.InstanceType != "" && t.VCpuInfo != nil && t.MemoryInfo != nil && t.ProcessorInfo != nil && t.NetworkInfo != nil {
				byName[string(t.InstanceType)] = factsOf(t)
			}
		}
	}
	out := make([]catalog.Facts, 0, len(byName))
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		out = append(out, byName[name])
	}
	return out, nil
}

// readZones returns the names of the zones that offer each instance type, sorted.
func readZones(ctx context.Context, client *awsec2.Client) (map[string][]string, error) {
	out := map[string][]string{}
	pages := awsec2.NewDescribeInstanceTypeOfferingsPaginator(client, &awsec2.DescribeInstanceTypeOfferingsInput{
		LocationType: awstypes.LocationTypeAvailabilityZone,
		MaxResults:   aws.Int32(1000),
	})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, awserr.Classify("DescribeInstanceTypeOfferings", err)
		}
		for _, o := range page.InstanceTypeOfferings {
			name := string(o.InstanceType)
			out[name] = append(out[name], aws.ToString(o.Location))
		}
	}
	for name, zones := range out {
		slices.Sort(zones)
		out[name] = slices.Compact(zones)
	}
	return out, nil
}

func factsOf(t awstypes.InstanceTypeInfo) catalog.Facts {
	f := catalog.Facts{
		Name:              string(t.InstanceType),
		CurrentGeneration: aws.ToBool(t.CurrentGeneration),
		FreeTier:          aws.ToBool(t.FreeTierEligible),
		BareMetal:         aws.ToBool(t.BareMetal),
		Burstable:         aws.ToBool(t.BurstablePerformanceSupported),
		NitroEnclaves:     t.NitroEnclavesSupport == awstypes.NitroEnclavesSupportSupported,
		UsageClasses:      sortedStrings(t.SupportedUsageClasses),
		Virtualization:    sortedStrings(t.SupportedVirtualizationTypes),
		Hypervisor:        string(t.Hypervisor),
		BootModes:         sortedStrings(t.SupportedBootModes),
		RootDevices:       sortedStrings(t.SupportedRootDeviceTypes),
		MemoryMiB:         aws.ToInt64(t.MemoryInfo.SizeInMiB),
		Processor:         processorOf(t),
		Storage:           storageOf(t.InstanceStorageInfo),
		EBS:               ebsOf(t.EbsInfo),
		Network:           networkOf(t.NetworkInfo),
	}
	if t.PlacementGroupInfo != nil {
		f.PlacementStrategies = sortedStrings(t.PlacementGroupInfo.SupportedStrategies)
	}
	setAccelerators(&f, t)
	return f
}

func processorOf(t awstypes.InstanceTypeInfo) catalog.Processor {
	p := catalog.Processor{
		Manufacturer:   aws.ToString(t.ProcessorInfo.Manufacturer),
		ClockMHz:       int64(math.Round(aws.ToFloat64(t.ProcessorInfo.SustainedClockSpeedInGhz) * 1000)),
		Features:       sortedStrings(t.ProcessorInfo.SupportedFeatures),
		VCPUs:          int64(aws.ToInt32(t.VCpuInfo.DefaultVCpus)),
		Cores:          int64(aws.ToInt32(t.VCpuInfo.DefaultCores)),
		ThreadsPerCore: int64(aws.ToInt32(t.VCpuInfo.DefaultThreadsPerCore)),
	}
	for _, a := range t.ProcessorInfo.SupportedArchitectures { // EC2 lists the default first
		p.Architectures = append(p.Architectures, string(a))
	}
	return p
}

func storageOf(s *awstypes.InstanceStorageInfo) catalog.Storage {
	if s == nil {
		return catalog.Storage{}
	}
	out := catalog.Storage{TotalGB: aws.ToInt64(s.TotalSizeInGB), NVMe: string(s.NvmeSupport)}
	for _, d := range s.Disks {
		out.Disks = append(out.Disks, catalog.Disk{Count: int64(aws.ToInt32(d.Count)), SizeGB: aws.ToInt64(d.SizeInGB), Kind: string(d.Type)})
	}
	return out
}

func ebsOf(e *awstypes.EbsInfo) catalog.EBS {
	if e == nil {
		return catalog.EBS{}
	}
	out := catalog.EBS{Optimized: string(e.EbsOptimizedSupport), NVMe: string(e.NvmeSupport)}
	if o := e.EbsOptimizedInfo; o != nil {
		out.BaselineMbps, out.MaximumMbps = int64(aws.ToInt32(o.BaselineBandwidthInMbps)), int64(aws.ToInt32(o.MaximumBandwidthInMbps))
		out.BaselineIOPS, out.MaximumIOPS = int64(aws.ToInt32(o.BaselineIops)), int64(aws.ToInt32(o.MaximumIops))
	}
	return out
}

func networkOf(n *awstypes.NetworkInfo) catalog.Network {
	out := catalog.Network{
		Performance:         aws.ToString(n.NetworkPerformance),
		DefaultCard:         int64(aws.ToInt32(n.DefaultNetworkCardIndex)),
		MaxInterfaces:       int64(aws.ToInt32(n.MaximumNetworkInterfaces)),
		IPv4PerInterface:    int64(aws.ToInt32(n.Ipv4AddressesPerInterface)),
		IPv6PerInterface:    int64(aws.ToInt32(n.Ipv6AddressesPerInterface)),
		IPv6:                aws.ToBool(n.Ipv6Supported),
		ENA:                 string(n.EnaSupport),
		EncryptionInTransit: aws.ToBool(n.EncryptionInTransitSupported),
	}
	if n.EfaInfo != nil {
		out.EFAInterfaces = int64(aws.ToInt32(n.EfaInfo.MaximumEfaInterfaces))
	}
	for _, c := range n.NetworkCards {
		out.Cards = append(out.Cards, catalog.NetworkCard{Index: int64(aws.ToInt32(c.NetworkCardIndex)),
			MaxInterfaces: int64(aws.ToInt32(c.MaximumNetworkInterfaces)), Performance: aws.ToString(c.NetworkPerformance)})
	}
	slices.SortFunc(out.Cards, func(a, b catalog.NetworkCard) int { return int(a.Index - b.Index) })
	if len(out.Cards) == 0 { // Cards is never empty
		out.Cards = []catalog.NetworkCard{{MaxInterfaces: out.MaxInterfaces, Performance: out.Performance}}
	}
	return out
}

// setAccelerators sets GPUs, Inference, Neuron and FPGAs of f.
func setAccelerators(f *catalog.Facts, t awstypes.InstanceTypeInfo) {
	if t.GpuInfo != nil {
		for _, g := range t.GpuInfo.Gpus {
			a := catalog.Accelerator{Name: aws.ToString(g.Name), Manufacturer: aws.ToString(g.Manufacturer), Count: int64(aws.ToInt32(g.Count))}
			if g.MemoryInfo != nil {
				a.MemoryMiB = int64(aws.ToInt32(g.MemoryInfo.SizeInMiB))
			}
			f.GPUs = append(f.GPUs, a)
		}
	}
	if t.InferenceAcceleratorInfo != nil {
		for _, i := range t.InferenceAcceleratorInfo.Accelerators {
			a := catalog.Accelerator{Name: aws.ToString(i.Name), Manufacturer: aws.ToString(i.Manufacturer), Count: int64(aws.ToInt32(i.Count))}
			if i.MemoryInfo != nil {
				a.MemoryMiB = int64(aws.ToInt32(i.MemoryInfo.SizeInMiB))
			}
			f.Inference = append(f.Inference, a)
		}
	}
	if t.NeuronInfo != nil {
		for _, n := range t.NeuronInfo.NeuronDevices {
			f.Neuron = append(f.Neuron, neuronOf(n))
		}
	}
	if t.FpgaInfo != nil {
		for _, p := range t.FpgaInfo.Fpgas {
			a := catalog.Accelerator{Name: aws.ToString(p.Name), Manufacturer: aws.ToString(p.Manufacturer), Count: int64(aws.ToInt32(p.Count))}
			if p.MemoryInfo != nil {
				a.MemoryMiB = int64(aws.ToInt32(p.MemoryInfo.SizeInMiB))
			}
			f.FPGAs = append(f.FPGAs, a)
		}
	}
}

func neuronOf(n awstypes.NeuronDeviceInfo) catalog.Neuron {
	out := catalog.Neuron{Name: aws.ToString(n.Name), Count: int64(aws.ToInt32(n.Count))}
	if n.CoreInfo != nil {
		out.Cores, out.CoreVersion = int64(aws.ToInt32(n.CoreInfo.Count)), int64(aws.ToInt32(n.CoreInfo.Version))
	}
	if n.MemoryInfo != nil {
		out.MemoryMiB = int64(aws.ToInt32(n.MemoryInfo.SizeInMiB))
	}
	return out
}

// sortedStrings converts names to strings, drops the empty ones and sorts the rest.
func sortedStrings[S ~string](names []S) []string {
	var out []string
	for _, n := range names {
		if s := strings.TrimSpace(string(n)); s != "" {
			out = append(out, s)
		}
	}
	slices.Sort(out)
	return out
}

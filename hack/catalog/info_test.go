package main

import (
	"github.com/aws/aws-sdk-go-v2/aws"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/joiner-sh/joiner/internal/model/catalog"
)

// infoOf converts f to the type of EC2's API, with the fields that Karpenter's AWS provider reads.
func infoOf(f catalog.Facts) ec2types.InstanceTypeInfo {
	info := ec2types.InstanceTypeInfo{
		InstanceType:                  ec2types.InstanceType(f.Name),
		BareMetal:                     aws.Bool(f.BareMetal),
		BurstablePerformanceSupported: aws.Bool(f.Burstable),
		Hypervisor:                    ec2types.InstanceTypeHypervisor(f.Hypervisor),
		MemoryInfo:                    &ec2types.MemoryInfo{SizeInMiB: aws.Int64(f.MemoryMiB)},
		NetworkInfo:                   networkOf(f.Network),
		PlacementGroupInfo:            &ec2types.PlacementGroupInfo{},
		ProcessorInfo: &ec2types.ProcessorInfo{
			Manufacturer:             aws.String(f.Processor.Manufacturer),
			SustainedClockSpeedInGhz: aws.Float64(float64(f.Processor.ClockMHz) / 1000),
		},
		VCpuInfo: &ec2types.VCpuInfo{
			DefaultCores: int32p(f.Processor.Cores), DefaultVCpus: int32p(f.Processor.VCPUs),
		},
	}
	for _, a := range f.Processor.Architectures {
		info.ProcessorInfo.SupportedArchitectures = append(info.ProcessorInfo.SupportedArchitectures, ec2types.ArchitectureType(a))
	}
	for _, u := range f.UsageClasses {
		info.SupportedUsageClasses = append(info.SupportedUsageClasses, ec2types.UsageClassType(u))
	}
	for _, v := range f.Virtualization {
		info.SupportedVirtualizationTypes = append(info.SupportedVirtualizationTypes, ec2types.VirtualizationType(v))
	}
	for _, p := range f.PlacementStrategies {
		info.PlacementGroupInfo.SupportedStrategies = append(info.PlacementGroupInfo.SupportedStrategies, ec2types.PlacementGroupStrategy(p))
	}
	if f.Storage.TotalGB > 0 {
		info.InstanceStorageInfo = &ec2types.InstanceStorageInfo{
			NvmeSupport: ec2types.EphemeralNvmeSupport(f.Storage.NVMe), TotalSizeInGB: aws.Int64(f.Storage.TotalGB),
		}
	}
	info.EbsInfo = &ec2types.EbsInfo{EbsOptimizedSupport: ec2types.EbsOptimizedSupport(f.EBS.Optimized),
		NvmeSupport: ec2types.EbsNvmeSupport(f.EBS.NVMe)}
	if f.EBS.MaximumMbps > 0 {
		info.EbsInfo.EbsOptimizedInfo = &ec2types.EbsOptimizedInfo{
			BaselineBandwidthInMbps: int32p(f.EBS.BaselineMbps), MaximumBandwidthInMbps: int32p(f.EBS.MaximumMbps),
			BaselineIops: int32p(f.EBS.BaselineIOPS), MaximumIops: int32p(f.EBS.MaximumIOPS),
		}
	}
	addDevices(&info, f)
	return info
}

func networkOf(n catalog.Network) *ec2types.NetworkInfo {
	out := &ec2types.NetworkInfo{
		DefaultNetworkCardIndex:      int32p(n.DefaultCard),
		EncryptionInTransitSupported: aws.Bool(n.EncryptionInTransit),
		Ipv4AddressesPerInterface:    int32p(n.IPv4PerInterface),
		MaximumNetworkInterfaces:     int32p(n.MaxInterfaces),
		EnaSupport:                   ec2types.EnaSupport(n.ENA),
		EfaSupported:                 aws.Bool(n.EFAInterfaces > 0),
	}
	if n.EFAInterfaces > 0 {
		out.EfaInfo = &ec2types.EfaInfo{MaximumEfaInterfaces: int32p(n.EFAInterfaces)}
	}
	for _, c := range n.Cards {
		out.NetworkCards = append(out.NetworkCards, ec2types.NetworkCardInfo{
			NetworkCardIndex: int32p(c.Index), MaximumNetworkInterfaces: int32p(c.MaxInterfaces),
		})
	}
	return out
}

func addDevices(info *ec2types.InstanceTypeInfo, f catalog.Facts) {
	for _, g := range f.GPUs {
		if info.GpuInfo == nil {
			info.GpuInfo = &ec2types.GpuInfo{}
		}
		info.GpuInfo.Gpus = append(info.GpuInfo.Gpus, ec2types.GpuDeviceInfo{
			Name: aws.String(g.Name), Manufacturer: aws.String(g.Manufacturer), Count: int32p(g.Count),
			MemoryInfo: &ec2types.GpuDeviceMemoryInfo{SizeInMiB: int32p(g.MemoryMiB)},
		})
	}
	for _, n := range f.Neuron {
		if info.NeuronInfo == nil {
			info.NeuronInfo = &ec2types.NeuronInfo{}
		}
		info.NeuronInfo.NeuronDevices = append(info.NeuronInfo.NeuronDevices, ec2types.NeuronDeviceInfo{
			Name: aws.String(n.Name), Count: int32p(n.Count),
			CoreInfo:   &ec2types.NeuronDeviceCoreInfo{Count: int32p(n.Cores), Version: int32p(n.CoreVersion)},
			MemoryInfo: &ec2types.NeuronDeviceMemoryInfo{SizeInMiB: int32p(n.MemoryMiB)},
		})
	}
}

func int32p(n int64) *int32 { return aws.Int32(int32(n)) }

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/karpenter-provider-aws/pkg/fake"
	"github.com/aws/karpenter-provider-aws/pkg/providers/instancetype"
	"github.com/aws/karpenter-provider-aws/pkg/providers/pricing"

	"github.com/joiner-sh/joiner/internal/model/catalog"
)

// instancesModule contains the data of ec2instances.info as JSON.
const instancesModule = "github.com/LeanerCloud/ec2-instances-info"

// sources has the data of all sources, by instance type.
type sources struct {
	records   map[string]record                  // ec2-instances-info, May 2025
	limits    map[string]*instancetype.VPCLimits // limits of network interfaces, from the VPC resource controller, May 2026
	bandwidth map[string]int64                   // EC2's documentation, Mbps
	usEast1   map[string]float64                 // AWS price list, July 2026, dollars per hour
	efa       map[string]bool                    // types that support EFA, from efa.txt
	clocks    map[string]int64                   // clock speed by family in MHz, see recordedClocks
}

// record is an instance type in ec2-instances-info, with the fields that this program uses. The module's own Go type
// lacks half of these fields.
type record struct {
	Name               string              `json:"instance_type"`
	Arch               []string            `json:"arch"`
	VCPU               int64               `json:"vCPU"`
	MemoryGiB          float64             `json:"memory"`
	Processor          string              `json:"physical_processor"`
	Clock              string              `json:"clock_speed_ghz"` // "3.1 GHz", "Up to 3.7 GHz"
	Generation         string              `json:"generation"`      // "current", "previous"
	Virtualization     []string            `json:"linux_virtualization_types"`
	BasePerformance    *float64            `json:"base_performance"` // set only for burstable types
	NetworkPerformance string              `json:"network_performance"`
	IPv6               bool                `json:"ipv6_support"`
	PlacementGroups    bool                `json:"placement_group_support"`
	Zones              map[string][]string `json:"availability_zones"` // zone ids by region

	GPUs      int64  `json:"GPU"`
	GPUModel  string `json:"GPU_model"`
	GPUMemory int64  `json:"GPU_memory"` // GiB, of all GPUs together
	FPGAs     int64  `json:"FPGA"`

	EBSOptimized    bool  `json:"ebs_optimized"`
	EBSBaselineMbps int64 `json:"ebs_baseline_bandwidth"`
	EBSMaximumMbps  int64 `json:"ebs_max_bandwidth"`
	EBSBaselineIOPS int64 `json:"ebs_baseline_iops"`
	EBSMaximumIOPS  int64 `json:"ebs_iops"`

	Storage *struct {
		Devices int64 `json:"devices"`
		SizeGB  int64 `json:"size"` // of one disk
		SSD     bool  `json:"ssd"`
		NVMe    bool  `json:"nvme_ssd"` // also true for hard disks with an NVMe interface
	} `json:"storage"`

	Pricing map[string]struct {
		Linux struct {
			OnDemand string `json:"ondemand"`
			SpotMean string `json:"spot_avg"`
		} `json:"linux"`
	} `json:"pricing"`
}

// load reads the data of all sources. Their modules must be in the module cache.
func load() (sources, error) {
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", instancesModule).Output()
	if err != nil {
		return sources{}, fmt.Errorf("find module %s: %w", instancesModule, err)
	}
	data, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(dir)), "data", "instances.json"))
	if err != nil {
		return sources{}, fmt.Errorf("read module %s: run `go mod download` first: %w", instancesModule, err)
	}
	var records []record
	if err := json.Unmarshal(data, &records); err != nil {
		return sources{}, fmt.Errorf("read instances.json: %w", err)
	}
	src := sources{
		records:   map[string]record{},
		limits:    instancetype.Limits,
		bandwidth: instancetype.InstanceTypeBandwidthMegabits,
		usEast1:   map[string]float64{},
		efa:       efaTypes(),
	}
	for name, price := range pricing.InitialOnDemandPricesAWS["us-east-1"] {
		src.usEast1[string(name)] = price
	}
	for _, r := range records {
		src.records[r.Name] = r
	}
	src.clocks, err = recordedClocks()
	return src, err
}

// recordedClocks returns the sustained clock speeds in MHz of the few families for which Karpenter's AWS provider
// contains a recorded API response. The records have the clock speed of the price list, which differs from the API's
// for a third of the types.
func recordedClocks() (map[string]int64, error) {
	response, err := fake.NewEC2API().DescribeInstanceTypes(context.Background(), &ec2.DescribeInstanceTypesInput{})
	if err != nil {
		return nil, fmt.Errorf("read the recorded API responses: %w", err)
	}
	clocks := map[string]int64{}
	for _, info := range response.InstanceTypes {
		family, _, _ := strings.Cut(string(info.InstanceType), ".")
		clocks[family] = catalog.MHz(aws.ToFloat64(info.ProcessorInfo.SustainedClockSpeedInGhz))
	}
	return clocks, nil
}

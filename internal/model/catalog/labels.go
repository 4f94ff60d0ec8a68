package catalog

import (
	"math"
	"strconv"
	"strings"

	"github.com/joiner-sh/joiner/internal/model/requirements"
)

// Labels that a node has because of its instance type and NodeClass, besides those in catalog.go.
const (
	LabelWindowsBuild            = "node.kubernetes.io/windows-build"
	LabelCategory                = "karpenter.k8s.aws/instance-category"   // "m"
	LabelFamily                  = "karpenter.k8s.aws/instance-family"     // "m5"
	LabelGeneration              = "karpenter.k8s.aws/instance-generation" // "5"
	LabelSize                    = "karpenter.k8s.aws/instance-size"       // "large"
	LabelFlex                    = "karpenter.k8s.aws/instance-capability-flex"
	LabelCPU                     = "karpenter.k8s.aws/instance-cpu" // vCPUs
	LabelCPUManufacturer         = "karpenter.k8s.aws/instance-cpu-manufacturer"
	LabelClock                   = "karpenter.k8s.aws/instance-cpu-sustained-clock-speed-mhz"
	LabelMemory                  = "karpenter.k8s.aws/instance-memory"            // MiB
	LabelEBSBandwidth            = "karpenter.k8s.aws/instance-ebs-bandwidth"     // Mbps
	LabelNetworkBandwidth        = "karpenter.k8s.aws/instance-network-bandwidth" // Mbps
	LabelHypervisor              = "karpenter.k8s.aws/instance-hypervisor"
	LabelEncryptionInTransit     = "karpenter.k8s.aws/instance-encryption-in-transit-supported"
	LabelTenancy                 = "karpenter.k8s.aws/instance-tenancy"    // TenancyDefault or TenancyDedicated
	LabelPlacementGroup          = "karpenter.k8s.aws/placement-group-id"  // only of nodes in a placement group
	LabelLocalNVMe               = "karpenter.k8s.aws/instance-local-nvme" // decimal GB
	LabelGPUName                 = "karpenter.k8s.aws/instance-gpu-name"
	LabelGPUManufacturer         = "karpenter.k8s.aws/instance-gpu-manufacturer"
	LabelGPUCount                = "karpenter.k8s.aws/instance-gpu-count"
	LabelGPUMemory               = "karpenter.k8s.aws/instance-gpu-memory" // MiB of one GPU
	LabelAcceleratorName         = "karpenter.k8s.aws/instance-accelerator-name"
	LabelAcceleratorManufacturer = "karpenter.k8s.aws/instance-accelerator-manufacturer"
	LabelAcceleratorCount        = "karpenter.k8s.aws/instance-accelerator-count"
)

// LabelPartition is the label with the partition, counted from 1, of a node in a placement group with partitions. No
// type or offering has this label, because the partition is chosen at launch.
const LabelPartition = "karpenter.k8s.aws/placement-group-partition"

// The tenancies, as values of LabelTenancy.
const (
	TenancyDefault   = "default"
	TenancyDedicated = "dedicated" // on dedicated hardware
)

// labels returns the labels of every node of the type. Facts in Facts.Unknown have no labels, so that no pod is placed
// by a guess.
func labels(f Facts, s Settings, region string) requirements.Labels {
	l := requirements.Labels{
		LabelInstanceType:        f.Name,
		LabelArch:                f.Arch(),
		LabelOS:                  "linux",
		LabelRegion:              region,
		LabelCPU:                 number(f.Processor.VCPUs),
		LabelMemory:              number(f.MemoryMiB),
		LabelHypervisor:          f.Hypervisor,
		LabelEncryptionInTransit: strconv.FormatBool(f.Network.EncryptionInTransit),
		LabelTenancy:             TenancyDefault, // Type.Dedicated replaces it
	}
	set(l, LabelPlacementGroup, s.PlacementGroup)
	if build := familyOf(s.Family).windowsBuild; build != "" {
		l[LabelOS], l[LabelWindowsBuild] = "windows", build
	}
	nameLabels(l, f.Name)
	set(l, LabelCPUManufacturer, kebab(f.Processor.Manufacturer))
	setNumber(l, LabelClock, f.Processor.ClockMHz)
	setNumber(l, LabelNetworkBandwidth, f.Network.BaselineMbps)
	if f.EBS.Optimized == "default" {
		setNumber(l, LabelEBSBandwidth, f.EBS.MaximumMbps)
	}
	if f.Storage.NVMe != "unsupported" {
		setNumber(l, LabelLocalNVMe, f.Storage.TotalGB)
	}
	deviceLabels(l, f)
	return l
}

// nameLabels sets the labels that follow from the name of a type: "m5.large", "c7i-flex.xlarge", "u-6tb1.56xlarge" (a
// type with 6 TiB of memory, category u and generation 1).
func nameLabels(l requirements.Labels, name string) {
	family, size, ok := strings.Cut(name, ".")
	if !ok {
		return
	}
	l[LabelFamily], l[LabelSize] = family, size
	l[LabelFlex] = strconv.FormatBool(strings.Contains(family, "-flex"))

	rest := strings.TrimLeft(family, "abcdefghijklmnopqrstuvwxyz")
	category := strings.TrimSuffix(family, rest)
	// The rest of u-6tb1 is "-6tb1": the generation is the digits after "tb".
	if terabytes, after, ok := strings.Cut(rest, "tb"); ok && strings.HasPrefix(terabytes, "-") && digits(terabytes[1:]) == terabytes[1:] {
		rest = after
	}
	if generation := digits(rest); category != "" && generation != "" {
		l[LabelCategory], l[LabelGeneration] = category, generation
	}
}

// digits returns the leading digits of s.
func digits(s string) string { return s[:len(s)-len(strings.TrimLeft(s, "0123456789"))] }

// deviceLabels sets the labels of GPUs if the type has a single model of GPU, and the labels of accelerators if it has
// a single model of accelerator. Some types list the same accelerators as Neuron and as Inference: Neuron is used.
func deviceLabels(l requirements.Labels, f Facts) {
	if len(f.GPUs) == 1 {
		gpu := f.GPUs[0]
		set(l, LabelGPUName, kebab(gpu.Name))
		set(l, LabelGPUManufacturer, kebab(gpu.Manufacturer))
		l[LabelGPUCount] = number(gpu.Count)
		setNumber(l, LabelGPUMemory, gpu.MemoryMiB)
	}
	switch {
	case len(f.Neuron) == 1:
		l[LabelAcceleratorName] = kebab(f.Neuron[0].Name)
		l[LabelAcceleratorManufacturer] = "aws"
		l[LabelAcceleratorCount] = number(f.Neuron[0].Count)
	case len(f.Neuron) == 0 && len(f.Inference) == 1:
		l[LabelAcceleratorName] = kebab(f.Inference[0].Name)
		l[LabelAcceleratorManufacturer] = kebab(f.Inference[0].Manufacturer)
		l[LabelAcceleratorCount] = number(f.Inference[0].Count)
	}
}

func set(l requirements.Labels, key, value string) {
	if value != "" {
		l[key] = value
	}
}

// setNumber sets a label, unless the number is 0, which means unknown.
func setNumber(l requirements.Labels, key string, n int64) {
	if n != 0 {
		l[key] = number(n)
	}
}

func number(n int64) string { return strconv.FormatInt(n, 10) }

// kebab returns s in lower case, with hyphens in place of blanks: "radeon-pro-v520".
func kebab(s string) string { return strings.ToLower(strings.ReplaceAll(s, " ", "-")) }

// MHz converts gigahertz (3.1), which EC2 reports, to whole megahertz (3100).
func MHz(ghz float64) int64 { return int64(math.Round(ghz * 1000)) }

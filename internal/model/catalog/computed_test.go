package catalog

import (
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/joiner-sh/joiner/internal/model/resources"
)

// This file computes the sizes and labels of nodes a second time, in integers, from the facts of the types. It uses no
// function of the package, only these documents:
//
//   - pods: github.com/awslabs/amazon-eks-ami, head of eni-max-pods.txt;
//   - reserved for Kubernetes: the EKS user guide, "Reserve compute resources for
//     nodes", and bottlerocket.dev, settings.kubernetes.kube-reserved;
//   - allocatable: kubernetes.io, "Reserve Compute Resources for System Daemons",
//     with the eviction thresholds of the EKS images: 100Mi, 10 % of the disk;
//   - labels: karpenter.sh, "Well-Known Labels".

type computedNode struct {
	Capacity, Free map[string]int64 // by resource, without zeros; cpu in millicores; Free is allocatable
	Labels         map[string]string
}

// TestComputed compares Build with computeNode: for every type of the table, in every AMI family that runs on the type.
func TestComputed(t *testing.T) {
	t.Parallel()
	families := []string{AL2, AL2023, Bottlerocket, Custom, Windows2019, Windows2022, Windows2025}
	compared := map[string]int{}
	for _, f := range table(t).Types() {
		for _, family := range families {
			set := Settings{Family: family}
			if Incompatible(f, set) != "" {
				continue
			}
			typ := Build(f, set, "sa-east-1")
			got := computedNode{amountsOf(typ.Capacity), amountsOf(typ.Allocatable), typ.Labels}
			if diff := cmp.Diff(computeNode(f, family, "sa-east-1"), got); diff != "" {
				t.Errorf("%s, %s (-computed +catalog):\n%s", f.Name, family, diff)
			}
			compared[family]++
		}
	}
	minimum := map[string]int{AL2: 1270, AL2023: 1260, Bottlerocket: 1270, Custom: 1270, Windows2019: 850, Windows2022: 850, Windows2025: 850}
	for family, n := range minimum {
		if compared[family] < n {
			t.Errorf("%s: compared %d types, want at least %d", family, compared[family], n)
		}
	}
}

func amountsOf(a resources.Amounts) map[string]int64 {
	out := map[string]int64{}
	for _, name := range a.Names() {
		if n := a.Of(name); n != 0 {
			out[name] = n
		}
	}
	return out
}

func computeNode(f Facts, family, region string) computedNode {
	isWindows := strings.HasPrefix(family, "Windows")
	isARM := f.Processor.Architectures[0] == "arm64"
	var cards []NetworkCard
	for _, c := range f.Network.Cards {
		if c.Index == f.Network.DefaultCard {
			cards = append(cards, c)
		}
	}
	addresses := cards[0].MaxInterfaces*(f.Network.IPv4PerInterface-1) + 2
	pods, disk := addresses, int64(20)
	if isWindows {
		pods, disk = 110, 50
	}
	mebibytes := f.MemoryMiB
	if isARM {
		mebibytes -= 64 // reserved by the kernel
	}
	mebibytes -= (mebibytes*75 + 999) / 1000 // Karpenter's estimate of the overhead: 7.5 %, rounded up

	total := map[string]int64{
		"cpu": f.Processor.VCPUs * 1000, "memory": mebibytes << 20, "ephemeral-storage": disk << 30, "pods": pods,
	}
	maps.Copy(total, computeDevices(f, isWindows))
	free := maps.Clone(total)
	reservedPods := addresses // memory is reserved for this number of pods
	if family == "Bottlerocket" || isWindows {
		reservedPods = pods
	}
	free["cpu"] -= computeReservedCPU(f.Processor.VCPUs)
	free["memory"] -= (255 + 11*reservedPods + 100) << 20  // 100 MiB for eviction
	free["ephemeral-storage"] = (disk - 1 - disk/10) << 30 // without 1 GiB reserved, and 10 % for eviction
	for _, amounts := range []map[string]int64{total, free} {
		maps.DeleteFunc(amounts, func(_ string, n int64) bool { return n <= 0 })
	}
	return computedNode{total, free, computeLabels(f, family, region)}
}

// computeReservedCPU returns the CPU reserved for Kubernetes, in millicores. It adds quarters of a millicore: 240 for
// the first vCPU, 40 for the second, 20 each for the third and the fourth, and 10 for each further one.
func computeReservedCPU(vcpus int64) int64 {
	var quarters int64
	for i := range vcpus {
		switch {
		case i == 0:
			quarters += 240
		case i == 1:
			quarters += 40
		case i < 4:
			quarters += 20
		default:
			quarters += 10
		}
	}
	return quarters / 4
}

func computeDevices(f Facts, isWindows bool) map[string]int64 {
	out := map[string]int64{
		"vpc.amazonaws.com/efa": f.Network.EFAInterfaces, "vpc.amazonaws.com/pod-eni": f.Network.BranchInterfaces,
	}
	plugins := map[string]string{"NVIDIA": "nvidia.com/gpu", "AMD": "amd.com/gpu", "Habana": "habana.ai/gaudi"}
	for _, gpu := range f.GPUs {
		if resource, ok := plugins[gpu.Manufacturer]; ok {
			out[resource] += gpu.Count
		}
	}
	for _, n := range f.Neuron {
		out["aws.amazon.com/neuron"] += n.Count
		out["aws.amazon.com/neuroncore"] += n.Count * n.Cores
	}
	if isWindows {
		out["vpc.amazonaws.com/PrivateIPv4Address"] = f.Network.IPv4PerInterface - 1
	}
	return out
}

// typeName matches the name of a type. Its groups are the category, the generation, the rest of the family, and the
// size.
var typeName = regexp.MustCompile(`^([a-z]+)(?:-[0-9]+tb)?([0-9]+)([^.]*)\.(.+)$`)

func computeLabels(f Facts, family, region string) map[string]string {
	const prefix = "karpenter.k8s.aws/instance-"
	parts := typeName.FindStringSubmatch(f.Name)
	out := map[string]string{
		"node.kubernetes.io/instance-type": f.Name, "topology.kubernetes.io/region": region,
		"kubernetes.io/arch": map[bool]string{true: "arm64", false: "amd64"}[slices.Contains(f.Processor.Architectures, "arm64")],
		"kubernetes.io/os":   "linux",

		prefix + "category": parts[1], prefix + "generation": parts[2], prefix + "size": parts[4],
		prefix + "family":                          f.Name[:strings.IndexByte(f.Name, '.')],
		prefix + "capability-flex":                 map[bool]string{true: "true", false: "false"}[strings.HasSuffix(parts[3], "-flex")],
		prefix + "hypervisor":                      f.Hypervisor,
		prefix + "tenancy":                         "default",
		prefix + "encryption-in-transit-supported": map[bool]string{true: "true", false: "false"}[f.Network.EncryptionInTransit],
	}
	if build := map[string]string{"Windows2019": "10.0.17763", "Windows2022": "10.0.20348", "Windows2025": "10.0.26100"}[family]; build != "" {
		out["kubernetes.io/os"], out["node.kubernetes.io/windows-build"] = "windows", build
	}
	numbers := map[string]int64{
		"cpu": f.Processor.VCPUs, "memory": f.MemoryMiB, "cpu-sustained-clock-speed-mhz": f.Processor.ClockMHz,
		"network-bandwidth": f.Network.BaselineMbps,
	}
	if f.EBS.Optimized == "default" {
		numbers["ebs-bandwidth"] = f.EBS.MaximumMbps
	}
	if f.Storage.NVMe == "required" || f.Storage.NVMe == "supported" {
		numbers["local-nvme"] = f.Storage.TotalGB
	}
	words := map[string]string{"cpu-manufacturer": f.Processor.Manufacturer}
	if len(f.GPUs) == 1 {
		words["gpu-name"], words["gpu-manufacturer"] = f.GPUs[0].Name, f.GPUs[0].Manufacturer
		numbers["gpu-count"], numbers["gpu-memory"] = f.GPUs[0].Count, f.GPUs[0].MemoryMiB
	}
	if len(f.Inference) == 1 {
		words["accelerator-name"], words["accelerator-manufacturer"] = f.Inference[0].Name, f.Inference[0].Manufacturer
		numbers["accelerator-count"] = f.Inference[0].Count
	}
	if len(f.Neuron) == 1 {
		words["accelerator-name"], words["accelerator-manufacturer"] = f.Neuron[0].Name, "aws"
		numbers["accelerator-count"] = f.Neuron[0].Count
	}
	for key, n := range numbers {
		if n != 0 { // 0 means unknown
			out[prefix+key] = strconv.FormatInt(n, 10)
		}
	}
	for key, word := range words {
		if word != "" {
			out[prefix+key] = strings.ToLower(strings.Join(strings.Fields(word), "-"))
		}
	}
	return out
}

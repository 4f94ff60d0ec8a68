package instance

import (
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	kubeletconfig "k8s.io/kubernetes/pkg/kubelet/apis/config"
)

// memoryKiB returns the memory that the operating system reports. The hypervisor and the kernel reserve 5.5 %, and
// arm64 kernels 64 MiB more. These amounts were measured on instances of the m, c and t families.
func (b *boot) memoryKiB() int64 {
	kib := b.Facts.MemoryMiB * 1024
	kib -= kib * 55 / 1000
	if b.Image.Architecture == "arm64" {
		kib -= 64 * 1024
	}
	return kib
}

// addressablePods returns the number of pods that can have an address of the instance's interfaces: the value for the
// instance type in the images' eni-max-pods.txt.
func (b *boot) addressablePods() int64 {
	interfaces := b.Facts.Network.MaxInterfaces
	for _, card := range b.Facts.Network.Cards {
		if card.Index == b.Facts.Network.DefaultCard {
			interfaces = card.MaxInterfaces
		}
	}
	return interfaces*(b.Facts.Network.IPv4PerInterface-1) + 2 // 2: aws-node and kube-proxy use hostNetwork
}

// kubeReserved returns the value of kubeReserved that the image's bootstrap sets: the memory depends on the number of
// pods, the CPU on the number of vCPUs. Source: bootstrap.sh and nodeadm of amazon-eks-ami; the helpers
// kube_reserve_cpu and kube_reserve_memory of Bottlerocket, which have the same rules.
func (b *boot) kubeReserved(pods int64) map[string]string {
	return map[string]string{
		"cpu":               fmt.Sprintf("%dm", reservedCPU(b.Facts.Processor.VCPUs*1000)),
		"memory":            fmt.Sprintf("%dMi", 255+11*pods),
		"ephemeral-storage": "1Gi",
	}
}

// reservedCPU returns how many millicores bootstrap.sh reserves; total is the instance's number of millicores. The
// reserved part is 6 % of the first core, 1 % of the second, 0.5 % of the third and fourth, and 0.25 % of all others.
func reservedCPU(total int64) int64 {
	bounds := []int64{0, 1000, 2000, 4000, total}
	shares := []int64{600, 100, 50, 25} // reserved part of the millicores between two bounds, in 1/10000
	var sum int64
	for i, share := range shares {
		if upper := min(bounds[i+1], total); upper > bounds[i] {
			sum += (upper - bounds[i]) * share / 10000
		}
	}
	return sum
}

// resources returns the capacity of the instance, and the part that the kubelet reports as allocatable.
func (b *boot) resources(config *kubeletconfig.KubeletConfiguration) (capacity, allocatable corev1.ResourceList, err error) {
	vcpus := b.Facts.Processor.VCPUs
	pods := int64(config.MaxPods)
	if config.PodsPerCore > 0 {
		pods = min(pods, int64(config.PodsPerCore)*vcpus)
	}
	capacity = corev1.ResourceList{
		corev1.ResourceCPU:              *resource.NewQuantity(vcpus, resource.DecimalSI),
		corev1.ResourceMemory:           *resource.NewQuantity(b.memoryKiB()<<10, resource.BinarySI),
		corev1.ResourceEphemeralStorage: *resource.NewQuantity(b.RootGiB<<30-12<<20, resource.BinarySI), // volume minus 12 MiB
		corev1.ResourcePods:             *resource.NewQuantity(pods, resource.DecimalSI),
		"hugepages-1Gi":                 *resource.NewQuantity(0, resource.DecimalSI),
		"hugepages-2Mi":                 *resource.NewQuantity(0, resource.DecimalSI),
	}
	allocatable = capacity.DeepCopy()
	for _, reserved := range []map[string]string{config.KubeReserved, config.SystemReserved} {
		for name, amount := range reserved {
			q, err := resource.ParseQuantity(amount)
			if err != nil {
				return nil, nil, fmt.Errorf("failed to parse quantity %q for %q resource: %w", amount, name, err)
			}
			subtract(allocatable, corev1.ResourceName(name), q)
		}
	}
	for signal, name := range map[string]corev1.ResourceName{
		"memory.available": corev1.ResourceMemory, "nodefs.available": corev1.ResourceEphemeralStorage,
	} {
		q, err := threshold(config.EvictionHard[signal], capacity[name])
		if err != nil {
			return nil, nil, err
		}
		subtract(allocatable, name, q)
	}
	return capacity, allocatable, nil
}

// subtract subtracts an amount of a resource, down to zero.
func subtract(from corev1.ResourceList, name corev1.ResourceName, amount resource.Quantity) {
	left, ok := from[name]
	if !ok {
		return // pid, which is not part of allocatable
	}
	left.Sub(amount)
	if left.Sign() < 0 {
		left = resource.Quantity{}
	}
	from[name] = left
}

// threshold returns the amount of an eviction threshold. text is an amount or a percentage of total. An empty text
// returns 0.
func threshold(text string, total resource.Quantity) (resource.Quantity, error) {
	if text == "" {
		return resource.Quantity{}, nil
	}
	if percent, ok := strings.CutSuffix(text, "%"); ok {
		share, err := strconv.ParseFloat(percent, 64)
		if err != nil {
			return resource.Quantity{}, fmt.Errorf("read eviction threshold %q: %w", text, err)
		}
		return *resource.NewQuantity(int64(float64(total.Value())*share/100), resource.BinarySI), nil
	}
	q, err := resource.ParseQuantity(text)
	if err != nil {
		return resource.Quantity{}, fmt.Errorf("read eviction threshold %q: %w", text, err)
	}
	return q, nil
}

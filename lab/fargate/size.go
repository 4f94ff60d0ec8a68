package fargate

import (
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	resourcehelper "k8s.io/component-helpers/resource"
)

// tooLargeMessage is the message of Fargate's scheduler for a pod that no size fits.
const tooLargeMessage = "Your pod's cpu/memory requirements exceed the max Fargate configuration"

// reservedMiB is the memory in MiB that Fargate adds for the kubelet and other Kubernetes components.
const reservedMiB = 256

// row has the valid memory sizes for one amount of CPU. Source:
// https://docs.aws.amazon.com/eks/latest/userguide/fargate-pod-configuration.html.
type row struct {
	milli             int64 // thousandths of a CPU
	least, most, step int64 // MiB
}

// rows returns the valid sizes of Fargate nodes, the smallest amount of CPU first.
func rows() []row {
	const gib = 1024 // MiB
	return []row{
		{250, 512, 2 * gib, 512}, {500, gib, 4 * gib, gib}, {1000, 2 * gib, 8 * gib, gib}, {2000, 4 * gib, 16 * gib, gib},
		{4000, 8 * gib, 30 * gib, gib}, {8000, 16 * gib, 60 * gib, 4 * gib}, {16000, 32 * gib, 120 * gib, 8 * gib},
	}
}

type size struct {
	milli int64 // thousandths of a CPU
	mib   int64 // memory
}

// sizeOf returns the smallest size that fits a pod's requests. It returns false if no size fits, or if the pod requests
// a resource that Fargate does not have.
func sizeOf(pod *corev1.Pod) (size, bool) {
	requests := resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{})
	for name, amount := range requests {
		switch name {
		case corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage:
		default:
			if !amount.IsZero() {
				return size{}, false
			}
		}
	}
	const mib = 1 << 20
	memory := reservedMiB + (requests.Memory().Value()+mib-1)/mib
	for _, r := range rows() {
		if r.milli < requests.Cpu().MilliValue() || r.most < memory {
			continue
		}
		memoryMiB := r.least
		for memoryMiB < memory {
			memoryMiB += r.step
		}
		if r.milli == 250 && memoryMiB == 3*512 {
			memoryMiB = r.most // 0.25 vCPU allows only 0.5, 1 or 2 GiB
		}
		return size{r.milli, memoryMiB}, true
	}
	return size{}, false
}

// String returns the size in the format of CapacityAnnotation: "0.25vCPU 0.5GB".
func (s size) String() string {
	number := func(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }
	return fmt.Sprintf("%svCPU %sGB", number(float64(s.milli)/1000), number(float64(s.mib)/1024))
}

func (s size) capacity() corev1.ResourceList {
	return corev1.ResourceList{
		corev1.ResourceCPU:              *resource.NewMilliQuantity(s.milli, resource.DecimalSI),
		corev1.ResourceMemory:           *resource.NewQuantity(s.mib<<20, resource.BinarySI),
		corev1.ResourceEphemeralStorage: resource.MustParse("20Gi"),
		corev1.ResourcePods:             *resource.NewQuantity(1, resource.DecimalSI),
	}
}

package catalog

import (
	"math"

	"github.com/joiner-sh/joiner/internal/model/resources"
)

// Signals of the kubelet's hard eviction that reduce the allocatable resources.
const (
	MemoryAvailable = "memory.available"
	NodeFSAvailable = "nodefs.available"
)

// overhead returns the resources that pods cannot request: those reserved for Kubernetes and for the system, and those
// that the hard eviction thresholds keep free. Soft thresholds are not included, because the kubelet does not subtract
// them.
func overhead(f Facts, s Settings, total resources.Amounts) resources.Amounts {
	kube := kubeReserved(f, s)
	var system, eviction resources.Amounts
	for _, name := range []string{resources.CPU, resources.Memory, resources.EphemeralStorage} {
		if v, ok := s.KubeReserved[name]; ok {
			kube = kube.With(name, v)
		}
		if v, ok := s.SystemReserved[name]; ok {
			system = system.With(name, v)
		}
	}
	// The kubelet's defaults are 100 MiB of memory and 10 % of the disk.
	eviction.Memory = threshold(s, MemoryAvailable, Threshold{Amount: 100 * mib}, total.Memory)
	eviction.EphemeralStorage = threshold(s, NodeFSAvailable, Threshold{Percent: 10}, total.EphemeralStorage)
	return kube.Add(system).Add(eviction)
}

// kubeReserved returns what the AMI's bootstrap reserves for Kubernetes by default: 255 MiB of memory plus 11 MiB per
// pod, reservedCPU, and 1 GiB of disk. Source: bootstrap.sh and nodeadm of amazon-eks-ami, and Bottlerocket.
func kubeReserved(f Facts, s Settings) resources.Amounts {
	podCount := pods(f, s)
	if familyOf(s.Family).reservesByENI {
		podCount = addressablePods(f, s, 0)
	}
	return resources.Amounts{
		CPU:              reservedCPU(f.Processor.VCPUs * 1000),
		Memory:           (11*podCount + 255) * mib,
		EphemeralStorage: 1 << 30,
	}
}

// reservedCPU returns 6 % of the first core, 1 % of the second, 0.5 % of the next two and 0.25 % of the others, each
// rounded down, in millicores.
func reservedCPU(millis int64) int64 {
	var sum int64
	for _, tier := range []struct{ from, to, perTenThousand int64 }{
		{0, 1000, 600},
		{1000, 2000, 100},
		{2000, 4000, 50},
		{4000, math.MaxInt64, 25},
	} {
		if part := min(millis, tier.to) - tier.from; part > 0 {
			sum += part * tier.perTenThousand / 10_000
		}
	}
	return sum
}

// threshold returns the amount of a resource that the hard eviction threshold of the signal keeps free. It uses the
// threshold of the NodeClass or, if there is none, fallback. A percentage is of total, rounded up.
func threshold(s Settings, signal string, fallback Threshold, total int64) int64 {
	t, ok := s.EvictionHard[signal]
	if !ok {
		t = fallback
	}
	if t.Percent > 0 {
		return int64(math.Ceil(float64(total) / 100 * t.Percent))
	}
	return t.Amount
}

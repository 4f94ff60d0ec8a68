package conversion

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/model/resources"
)

// Requests returns the amounts that kube-scheduler counts for the pod, with Pods: 1. It computes them in three steps:
//
//   - For each resource it takes the larger of two amounts. The first is the sum over containers and sidecars (init
//     containers that restart always). The second is the maximum over the other init containers, each with the sidecars
//     started before it.
//   - For cpu, memory and huge pages, a pod-level request replaces that amount.
//   - It adds the overhead of the pod's runtime class.
//
// While a container is being resized in place, its request is the largest of three amounts: the one in the spec, the
// allocated one, and the actual one. If the node has refused the resize, the one in the spec does not count.
//
// Source: the Kubernetes documentation on sidecar containers, pod-level resources and in-place resize (KEP-753, 2837,
// 1287), and k8s.io/component-helpers/resource, with which the results were compared. Fractions are rounded up per
// container instead of per pod, so the result may be larger by up to one millicore or byte per container.
func Requests(pod *corev1.Pod) resources.Amounts {
	refused := resizeRefused(pod)
	var sum resources.Amounts
	for i := range pod.Spec.Containers {
		c := &pod.Spec.Containers[i]
		sum = sum.Add(containerRequests(c, pod.Status.ContainerStatuses, refused))
	}
	var sidecars, peak resources.Amounts
	for i := range pod.Spec.InitContainers {
		c := &pod.Spec.InitContainers[i]
		if !isSidecar(c) {
			peak = peak.Max(sidecars.Add(RequestAmounts(c.Resources.Requests)))
			continue
		}
		own := containerRequests(c, pod.Status.InitContainerStatuses, refused)
		sidecars = sidecars.Add(own)
		sum = sum.Add(own)
		peak = peak.Max(sidecars)
	}
	total := overrideByPod(sum.Max(peak), pod, refused).Add(RequestAmounts(pod.Spec.Overhead))
	total.Pods = 1
	return total
}

// impossibleRequest describes the first impossible request of the pod: a negative request, or one for more than any
// instance type has. It is empty for nearly all pods.
func impossibleRequest(pod *corev1.Pod) string {
	for i := range pod.Spec.Containers {
		c := &pod.Spec.Containers[i]
		if why := impossibleAmount(c.Resources.Requests); why != "" {
			return fmt.Sprintf("its containers[%d].resources.requests.%s", i, why)
		}
	}
	for i := range pod.Spec.InitContainers {
		c := &pod.Spec.InitContainers[i]
		if why := impossibleAmount(c.Resources.Requests); why != "" {
			return fmt.Sprintf("its initContainers[%d].resources.requests.%s", i, why)
		}
	}
	if pod.Spec.Resources != nil {
		if why := impossibleAmount(pod.Spec.Resources.Requests); why != "" {
			return "its resources.requests." + why
		}
	}
	if why := impossibleAmount(pod.Spec.Overhead); why != "" {
		return "its overhead." + why
	}
	return ""
}

// impossibleAmount describes an impossible amount: "memory is -1, less than nothing". If there are several, it returns
// the text that sorts first; if there are none, an empty text.
func impossibleAmount(list corev1.ResourceList) string {
	first := ""
	for name, q := range list {
		most := int64(maxAmount)
		if name == corev1.ResourceCPU {
			most /= 1000 // from millicores to the cores of q
		}
		var why string
		switch {
		case q.Sign() < 0:
			why = "less than nothing"
		case q.CmpInt64(most) > 0:
			why = "more than any instance type has"
		default:
			continue
		}
		if text := fmt.Sprintf("%.100s is %s, %s", name, q.String(), why); first == "" || text < first {
			first = text
		}
	}
	return first
}

func isSidecar(c *corev1.Container) bool {
	return c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
}

// containerRequests returns the largest of the container's request in the spec, and the allocated and the actual amount
// in its status. If the node has refused a resize, the request in the spec does not count.
func containerRequests(c *corev1.Container, statuses []corev1.ContainerStatus, refused bool) resources.Amounts {
	request := RequestAmounts(c.Resources.Requests)
	i := slices.IndexFunc(statuses, func(s corev1.ContainerStatus) bool { return s.Name == c.Name })
	if i < 0 || statuses[i].Resources == nil {
		return request
	}
	current := RequestAmounts(statuses[i].Resources.Requests).Max(RequestAmounts(statuses[i].AllocatedResources))
	if refused {
		return current
	}
	return request.Max(current)
}

// overrideByPod returns sum, the requests of the containers. For each resource that the pod requests at pod level, the
// pod-level request replaces the amount in sum.
func overrideByPod(sum resources.Amounts, pod *corev1.Pod, refused bool) resources.Amounts {
	if pod.Spec.Resources == nil || len(pod.Spec.Resources.Requests) == 0 {
		return sum
	}
	wanted := RequestAmounts(pod.Spec.Resources.Requests)
	effective := wanted
	if pod.Status.Resources != nil {
		effective = RequestAmounts(pod.Status.Resources.Requests).Max(RequestAmounts(pod.Status.AllocatedResources))
		if !refused {
			effective = effective.Max(wanted)
		}
	}
	for name := range pod.Spec.Resources.Requests {
		if isPodLevel(name) {
			sum = sum.With(string(name), effective.Of(string(name)))
		}
	}
	return sum
}

func isPodLevel(name corev1.ResourceName) bool {
	return name == corev1.ResourceCPU || name == corev1.ResourceMemory ||
		strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix)
}

// resizeRefused reports whether the node has reported that it can never resize the pod as requested.
func resizeRefused(pod *corev1.Pod) bool {
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == corev1.PodResizePending {
			return c.Reason == corev1.PodReasonInfeasible
		}
	}
	return false
}

// HostPorts returns the ports that the pod uses on its node while it runs: those of containers and sidecars, sorted. In
// a pod on the host network every container port is a host port: the API server sets hostPort in the pod, but not in a
// template.
func HostPorts(spec *corev1.PodSpec) []cluster.HostPort {
	var out []cluster.HostPort
	add := func(c *corev1.Container) {
		for _, p := range c.Ports {
			port := p.HostPort
			if port == 0 && spec.HostNetwork {
				port = p.ContainerPort
			}
			if port <= 0 {
				continue
			}
			out = append(out, cluster.HostPort{
				IP: cmp.Or(p.HostIP, "0.0.0.0"), Port: port, Protocol: cmp.Or(string(p.Protocol), string(corev1.ProtocolTCP)),
			})
		}
	}
	for i := range spec.Containers {
		add(&spec.Containers[i])
	}
	for i := range spec.InitContainers {
		if isSidecar(&spec.InitContainers[i]) {
			add(&spec.InitContainers[i])
		}
	}
	return MergeHostPorts(out, nil)
}

// MergeHostPorts returns both lists as one, sorted and without duplicates.
func MergeHostPorts(a, b []cluster.HostPort) []cluster.HostPort {
	if len(a)+len(b) == 0 {
		return nil
	}
	out := slices.Concat(a, b)
	slices.SortFunc(out, func(x, y cluster.HostPort) int {
		return cmp.Or(cmp.Compare(x.Port, y.Port), cmp.Compare(x.Protocol, y.Protocol), cmp.Compare(x.IP, y.IP))
	})
	return slices.Compact(out)
}

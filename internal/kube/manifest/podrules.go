package manifest

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/joiner-sh/joiner/internal/suggest"
)

// Source: ValidateTolerations of k8s.io/kubernetes, pkg/apis/core/validation.
func tolerationProblems(path string, all []corev1.Toleration) []problem {
	var out []problem
	for i, t := range all {
		at := fmt.Sprintf("%s.tolerations[%d] (%s)", path, i, t.Key)
		if t.Effect != "" && !isEffect(t.Effect) {
			text := fmt.Sprintf("%s: effect %q is unknown; use NoSchedule, PreferNoSchedule or NoExecute, or leave it out", at, t.Effect)
			out = append(out, problem{text, "effect", string(t.Effect)})
		}
		switch {
		case !slices.Contains([]corev1.TolerationOperator{"", "Exists", "Equal", "Lt", "Gt"}, t.Operator):
			out = append(out, problem{fmt.Sprintf("%s: operator %q is unknown; use Exists or Equal", at, t.Operator), "operator",
				string(t.Operator)})
		case t.Operator == corev1.TolerationOpExists && t.Value != "":
			text := fmt.Sprintf("%s: operator Exists allows no value, but the value is %q; use operator Equal, or remove the value", at, t.Value)
			out = append(out, problem{text, "value", t.Value})
		case t.Key == "" && t.Operator != corev1.TolerationOpExists:
			out = append(out, problem{at + ": the key is missing; set it, or use operator Exists to tolerate all taints", "tolerations", ""})
		}
		if t.TolerationSeconds != nil && t.Effect != corev1.TaintEffectNoExecute {
			text := at + ": tolerationSeconds requires effect NoExecute; set that effect, or remove tolerationSeconds"
			out = append(out, problem{text, "tolerationSeconds", ""})
		}
	}
	return out
}

// Source: validateResourceRequirements of k8s.io/kubernetes, pkg/apis/core/validation.
func resourceProblems(path string, given corev1.ResourceRequirements) []problem {
	var out []problem
	for _, field := range []struct {
		name string
		list corev1.ResourceList
	}{{"requests", given.Requests}, {"limits", given.Limits}} {
		for _, name := range slices.Sorted(maps.Keys(field.list)) {
			q, at := field.list[name], fmt.Sprintf("%s.resources.%s.%s", path, field.name, name)
			switch {
			case q.Sign() < 0:
				out = append(out, problem{fmt.Sprintf("%s: %s is negative", at, q.String()), string(name), q.String()})
			case !isContainerResource(name):
				out = append(out, problem{at + ": unknown resource" + resourceHint(name), string(name), ""})
			case isExtended(name) && q.MilliValue()%1000 != 0:
				out = append(out, problem{fmt.Sprintf("%s: %s must be a whole number", at, q.String()), string(name), q.String()})
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(given.Requests)) {
		request, limit, at := given.Requests[name], given.Limits[name], fmt.Sprintf("%s.resources.requests.%s", path, name)
		_, hasLimit := given.Limits[name]
		switch {
		case !hasLimit:
		case request.Cmp(limit) > 0:
			out = append(out, problem{fmt.Sprintf("%s: %s is more than its limit, %s", at, request.String(), limit.String()),
				string(name), request.String()})
		case mustEqualLimit(name) && request.Cmp(limit) < 0:
			text := fmt.Sprintf("%s: %s must equal its limit, %s", at, request.String(), limit.String())
			out = append(out, problem{text, string(name), request.String()})
		}
	}
	return out
}

// podResourceProblems returns the problems of pod-level resources, which must cover the requests of the containers.
// Source: validatePodResourceRequirements of k8s.io/kubernetes, pkg/apis/core/validation.
func podResourceProblems(path string, spec *corev1.PodSpec) []problem {
	if spec.Resources == nil {
		return nil
	}
	var out []problem
	for _, list := range []corev1.ResourceList{spec.Resources.Requests, spec.Resources.Limits} {
		for _, name := range slices.Sorted(maps.Keys(list)) {
			if name != corev1.ResourceCPU && name != corev1.ResourceMemory && !strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix) {
				text := fmt.Sprintf("%s.resources: pod-level resources do not support %s; move it to the resources of a container", path, name)
				return []problem{{text, string(name), ""}}
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(spec.Resources.Requests)) {
		podLevel, sum := spec.Resources.Requests[name], resource.Quantity{}
		for i := range spec.Containers {
			sum.Add(spec.Containers[i].Resources.Requests[name])
		}
		if sum.Cmp(podLevel) > 0 {
			text := fmt.Sprintf("%s.resources.requests.%s: %s is less than the sum of the containers' requests, %s", path, name,
				podLevel.String(), sum.String())
			out = append(out, problem{text, string(name), podLevel.String()})
		}
	}
	return out
}

// isContainerResource reports whether containers may request the resource: a native resource of Kubernetes, or any
// resource whose name has a domain.
func isContainerResource(name corev1.ResourceName) bool {
	return slices.Contains(containerResources, string(name)) || strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix) ||
		strings.Contains(string(name), "/")
}

// containerResources are the native resources that containers may request, apart from huge pages.
var containerResources = []string{string(corev1.ResourceCPU), string(corev1.ResourceMemory), string(corev1.ResourceEphemeralStorage)}

var resourceWords = map[string]string{
	"gpu": "nvidia.com/gpu", "gpus": "nvidia.com/gpu", "mem": "memory", "ram": "memory", "vcpu": "cpu", "disk": "ephemeral-storage",
	"storage": "ephemeral-storage", "neuron": "aws.amazon.com/neuron", "efa": "vpc.amazonaws.com/efa",
}

// resourceHint returns a hint for an unknown resource: the name that was probably meant, or that an extended resource
// needs a domain.
func resourceHint(name corev1.ResourceName) string {
	meant := resourceWords[strings.ToLower(string(name))]
	if meant == "" {
		meant = suggest.Nearest(string(name), containerResources)
	}
	if meant == "" {
		return "; an extended resource needs a domain, for instance nvidia.com/gpu"
	}
	return " (did you mean " + meant + "?)"
}

// isExtended reports whether the resource is an extended one: it has a domain other than those of Kubernetes.
func isExtended(name corev1.ResourceName) bool {
	domain, _, ok := strings.Cut(string(name), "/")
	return ok && domain != "kubernetes.io" && !strings.HasSuffix(domain, ".kubernetes.io")
}

// mustEqualLimit reports whether Kubernetes requires that the request of the resource equals its limit.
func mustEqualLimit(name corev1.ResourceName) bool {
	return isExtended(name) || strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix)
}

func portProblems(path string, port corev1.ContainerPort, hostNetwork bool) []problem {
	const highest = 65535
	switch {
	case port.HostPort < 0 || port.HostPort > highest:
		text := fmt.Sprintf("%s.hostPort: %d is not between 1 and %d", path, port.HostPort, highest)
		return []problem{{text, "hostPort", fmt.Sprint(port.HostPort)}}
	case hostNetwork && port.HostPort != 0 && port.HostPort != port.ContainerPort:
		text := fmt.Sprintf("%s.hostPort: %d must equal containerPort, %d, because the pod uses hostNetwork", path,
			port.HostPort, port.ContainerPort)
		return []problem{{text, "hostPort", fmt.Sprint(port.HostPort)}}
	}
	return nil
}

func minDomainsProblems(path string, c *corev1.TopologySpreadConstraint) []problem {
	switch n := c.MinDomains; {
	case n == nil:
	case *n < 1:
		return []problem{{fmt.Sprintf("%s.minDomains: %d is less than 1", path, *n), "minDomains", fmt.Sprint(*n)}}
	case c.WhenUnsatisfiable == corev1.ScheduleAnyway:
		text := path + ".minDomains requires whenUnsatisfiable: DoNotSchedule; set that, or remove minDomains"
		return []problem{{text, "minDomains", ""}}
	}
	return nil
}

func weightProblem(path string, weight int32) []problem {
	if weight >= 1 && weight <= 100 {
		return nil
	}
	return []problem{{fmt.Sprintf("%s.weight: %d is not between 1 and 100", path, weight), "weight", fmt.Sprint(weight)}}
}

// limitDoubts returns a note for each request that lacks its limit, if the API server requires an equal limit.
func limitDoubts(container string, given corev1.ResourceRequirements) []problem {
	var out []problem
	for _, name := range slices.Sorted(maps.Keys(given.Requests)) {
		q := given.Requests[name]
		if _, hasLimit := given.Limits[name]; hasLimit || q.IsZero() || !mustEqualLimit(name) {
			continue
		}
		text := fmt.Sprintf("container %s: the API server rejects resources.requests.%s without an equal limit; set resources.limits.%s: %s",
			container, name, name, amountText(q))
		out = append(out, problem{text, string(name), q.String()})
	}
	return out
}

// amountText returns an amount as YAML text. An amount without a unit is quoted, because YAML would parse it as a
// number.
func amountText(q resource.Quantity) string {
	text := q.String()
	if strings.Trim(text, "0123456789") == "" {
		return `"` + text + `"`
	}
	return text
}

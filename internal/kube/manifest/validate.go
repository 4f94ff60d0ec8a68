package manifest

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	awsv1 "github.com/joiner-sh/joiner/api/aws/v1"
	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/kube/conversion"
	"github.com/joiner-sh/joiner/internal/node/bootstrap"
)

// problem is a value in a manifest that affects a plan, and that the API server or the controller would reject. Notes
// about values that are probably mistakes have the same type.
type problem struct {
	text       string // one sentence
	key, value string // texts that identify the line in the file
}

// problems returns the problems of the object that affect plans. For the kinds of our API, the CRDs check most fields.
func problems(object client.Object) []problem {
	switch v := object.(type) {
	case *corev1.Pod:
		return podProblems("spec", &v.Spec)
	case *appsv1.Deployment:
		return templateProblems(&v.Spec.Template, "spec.replicas", v.Spec.Replicas)
	case *appsv1.ReplicaSet:
		return templateProblems(&v.Spec.Template, "spec.replicas", v.Spec.Replicas)
	case *appsv1.StatefulSet:
		return templateProblems(&v.Spec.Template, "spec.replicas", v.Spec.Replicas)
	case *appsv1.DaemonSet:
		return templateProblems(&v.Spec.Template, "", nil)
	case *batchv1.Job:
		return templateProblems(&v.Spec.Template, "spec.parallelism", v.Spec.Parallelism)
	case *batchv1.CronJob:
		job := &v.Spec.JobTemplate.Spec
		return append(countProblems("spec.jobTemplate.spec.parallelism", job.Parallelism),
			podProblems("spec.jobTemplate.spec.template.spec", &job.Template.Spec)...)
	case *karpv1.NodePool:
		return poolProblems(v)
	case *awsv1.EC2NodeClass:
		return classProblems(v)
	case *corev1.Node:
		return taintProblems("spec.taints", v.Spec.Taints)
	case *corev1.PersistentVolume:
		return volumeProblems(v)
	case *storagev1.StorageClass:
		return storageProblems(v)
	case *schedulingv1.PriorityClass:
		return priorityProblems(v)
	case *policyv1.PodDisruptionBudget:
		return selectorProblems("spec.selector", v.Spec.Selector)
	}
	return nil
}

// classProblems returns the first problem of an EC2NodeClass, without the problems that its CRD detects.
func classProblems(c *awsv1.EC2NodeClass) []problem {
	if reason, message := conversion.KubeletProblem(c); reason == awsv1.ReasonInvalidKubeletConfiguration {
		return []problem{{text: message, key: "kubelet"}}
	}
	if c.Spec.UserData != nil && len(*c.Spec.UserData) > bootstrap.MaxInput { // more than MaxBytes, because userData may shrink
		text := fmt.Sprintf("spec.userData has %d bytes, and EC2 takes %d; shorten it", len(*c.Spec.UserData), bootstrap.MaxBytes)
		return []problem{{text: text, key: "userData"}}
	}
	if text := conversion.DiskProblem(c.Spec.BlockDeviceMappings); text != "" {
		return []problem{{text: text, key: "blockDeviceMappings"}}
	}
	return nil
}

func priorityProblems(c *schedulingv1.PriorityClass) []problem {
	if c.Value <= highestUserPriority || strings.HasPrefix(c.Name, "system-") {
		return nil
	}
	text := fmt.Sprintf("value: %d is more than %d, the highest that users may define", c.Value, highestUserPriority)
	return []problem{{text, "value", fmt.Sprint(c.Value)}}
}

// templateProblems returns the problems of a pod template and of count. field is the path of the field that sets the
// number of pods, and count is its value.
func templateProblems(template *corev1.PodTemplateSpec, field string, count *int32) []problem {
	return append(countProblems(field, count), podProblems("spec.template.spec", &template.Spec)...)
}

// maxReplicas is the largest accepted number of pods of one workload. No cluster can hold as many.
const maxReplicas = 1_000_000

// countProblems returns a problem if the number of pods is out of range; nil means the default.
func countProblems(path string, n *int32) []problem {
	if n == nil || *n >= 0 && *n <= maxReplicas {
		return nil
	}
	text := fmt.Sprintf("%s: %d is not between 0 and %d", path, *n, maxReplicas)
	return []problem{{text, lastKey(path), fmt.Sprint(*n)}}
}

// poolProblems returns the problems of a NodePool, without the problems that its CRD detects. The API server accepts a
// NodePool with one of these problems, but the NodePool does not become Ready.
func poolProblems(p *karpv1.NodePool) []problem {
	var out []problem
	for _, name := range slices.Sorted(maps.Keys(p.Spec.Limits)) {
		if q := p.Spec.Limits[name]; q.Sign() < 0 {
			text := fmt.Sprintf("spec.limits.%s: %s is negative; correct it", name, q.String())
			out = append(out, problem{text, string(name), q.String()})
		}
	}
	for _, key := range slices.Sorted(maps.Keys(p.Spec.Template.Labels)) {
		if errs := validation.IsQualifiedName(key); len(errs) > 0 {
			text := fmt.Sprintf("spec.template.metadata.labels: the key %q: %s; correct it", key, errs[0])
			out = append(out, problem{text, key, ""})
		}
	}
	return out
}

func taintProblems(path string, taints []corev1.Taint) []problem {
	var out []problem
	for i, t := range taints {
		switch {
		case t.Key == "":
			out = append(out, problem{fmt.Sprintf("%s[%d]: the key is missing", path, i), "taints", ""})
		case !isEffect(t.Effect):
			text := fmt.Sprintf("%s[%d] (%s): effect %q is unknown; use NoSchedule, PreferNoSchedule or NoExecute",
				path, i, t.Key, t.Effect)
			out = append(out, problem{text, "effect", string(t.Effect)})
		}
	}
	return out
}

func isEffect(e corev1.TaintEffect) bool {
	return e == corev1.TaintEffectNoSchedule || e == corev1.TaintEffectPreferNoSchedule || e == corev1.TaintEffectNoExecute
}

func podProblems(path string, spec *corev1.PodSpec) []problem {
	var out []problem
	if len(spec.Containers) == 0 {
		out = append(out, problem{path + ".containers: a pod needs at least one container", "containers", ""})
	}
	out = append(out, tolerationProblems(path, spec.Tolerations)...)
	out = append(out, nodeSelectorProblems(path+".nodeSelector", spec.NodeSelector)...)
	out = append(out, containerProblems(path, spec)...)
	out = append(out, spreadProblems(path, spec.TopologySpreadConstraints)...)
	out = append(out, podAffinityProblems(path, spec.Affinity)...)
	affinity := path + ".affinity.nodeAffinity."
	if terms := conversion.RequiredNodeAffinity(spec); terms != nil {
		for i := range terms.NodeSelectorTerms {
			at := fmt.Sprintf("%srequiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[%d]", affinity, i)
			out = append(out, termProblems(at, &terms.NodeSelectorTerms[i])...)
		}
	}
	if spec.Affinity != nil && spec.Affinity.NodeAffinity != nil {
		soft := spec.Affinity.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution
		for i := range soft {
			at := fmt.Sprintf("%spreferredDuringSchedulingIgnoredDuringExecution[%d]", affinity, i)
			out = append(out, weightProblem(at, soft[i].Weight)...)
			out = append(out, termProblems(at+".preference", &soft[i].Preference)...)
		}
	}
	return out
}

// nodeSelectorProblems returns the problems of a node selector: keys and values that no label can have.
func nodeSelectorProblems(path string, selector map[string]string) []problem {
	var out []problem
	for _, key := range slices.Sorted(maps.Keys(selector)) {
		if errs := validation.IsQualifiedName(key); len(errs) > 0 {
			out = append(out, problem{fmt.Sprintf("%s: %q is not a label key: %s", path, key, errs[0]), key, ""})
		}
		if errs := validation.IsValidLabelValue(selector[key]); len(errs) > 0 {
			out = append(out, problem{fmt.Sprintf("%s[%s]: %q is not a label value: %s", path, key, selector[key], errs[0]), key, selector[key]})
		}
	}
	return out
}

func termProblems(path string, term *corev1.NodeSelectorTerm) []problem {
	var out []problem
	for i := range term.MatchExpressions {
		e := &term.MatchExpressions[i]
		if errs := validation.IsQualifiedName(e.Key); len(errs) > 0 {
			out = append(out, problem{fmt.Sprintf("%s.matchExpressions[%d]: %q is not a label key: %s", path, i, e.Key, errs[0]), "key", e.Key})
		}
		if _, ok := conversion.NodeValues(e); !ok {
			text := fmt.Sprintf("%s.matchExpressions[%d] (%s): operator %q with values %q is invalid;"+
				" use In or NotIn with values, Exists or DoesNotExist without, Gt or Lt with one whole number",
				path, i, e.Key, e.Operator, e.Values)
			out = append(out, problem{text, "operator", string(e.Operator)})
		}
	}
	return out
}

// invalidQuantity returns the path and the text of the first value, in the order of paths, that should be an amount and
// is not. isAmount means that the value should be an amount or a map of amounts. Decoding would also fail, but without
// the path.
func invalidQuantity(value any, path string, isAmount bool) (string, string) {
	switch v := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			at := key
			if path != "" {
				at = path + "." + key
			}
			_, isMap := v[key].(map[string]any)
			isSingle := (key == "sizeLimit" || key == "divisor") && !strings.HasPrefix(path, "metadata") // one amount, not a map
			if invalid, text := invalidQuantity(v[key], at, isAmount || isSingle || isMap && holdsAmounts(key, path)); invalid != "" {
				return invalid, text
			}
		}
	case []any:
		for i, item := range v {
			if invalid, text := invalidQuantity(item, fmt.Sprintf("%s[%d]", path, i), false); invalid != "" {
				return invalid, text
			}
		}
	case string:
		if isAmount && !isQuantity(v) {
			return path, v
		}
	}
	return "", ""
}

// longExponent matches an exponent with more than three digits. resource.ParseQuantity would compute all digits of such
// a number.
var longExponent = regexp.MustCompile(`[eE][+-]?[0-9]{4,}$`)

func isQuantity(text string) bool {
	if longExponent.MatchString(text) {
		return false
	}
	_, err := resource.ParseQuantity(text)
	return err == nil
}

// holdsAmounts reports whether the map under key, in the object at path, has amounts by resource. In metadata and in
// other objects the same keys have other meanings.
func holdsAmounts(key, path string) bool {
	if strings.HasPrefix(path, "metadata") {
		return false
	}
	switch key {
	case "requests", "limits":
		return strings.HasSuffix(path, "resources") || path == "spec" // pods, and NodePools
	case "overhead", "capacity", "allocatable":
		return true
	}
	return false
}

// lastKey returns the text after the last dot or bracket of a path: "operator" for "spec.tolerations[0].operator".
func lastKey(path string) string { return path[strings.LastIndexAny(path, ".]")+1:] }

const highestUserPriority = 1_000_000_000 // the largest value of a PriorityClass that users are allowed to create

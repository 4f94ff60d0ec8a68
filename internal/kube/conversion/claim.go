package conversion

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	awsv1 "github.com/joiner-sh/joiner/api/aws/v1"
	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/kube/kubeclient"
	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/model/requirements"
	"github.com/joiner-sh/joiner/internal/scheduling/packing"
)

// maxTypes is the maximum number of instance types in a NodeClaim. If there are more, the cheapest ones are listed.
// Karpenter has the same limit.
const maxTypes = 600

// ClaimFor returns the NodeClaim of a planned node, from the template of its NodePool. The error is kubeclient.ErrStale
// if the NodePool changed since the plan.
func ClaimFor(planned packing.PlannedNode, pool *karpv1.NodePool) (*karpv1.NodeClaim, error) {
	spec := pool.Spec.Template.Spec
	ref := spec.NodeClassRef
	switch {
	case pool.DeletionTimestamp != nil:
		return nil, fmt.Errorf("%w: nodepool %s is being deleted", kubeclient.ErrStale, pool.Name)
	case ref == nil || ref.Name != planned.NodeClass:
		return nil, fmt.Errorf("%w: nodepool %s no longer uses node class %s", kubeclient.ErrStale, pool.Name, planned.NodeClass)
	case len(planned.Offerings) == 0:
		return nil, fmt.Errorf("%w: the planned NodeClaim has no offerings", kubeclient.ErrStale)
	}
	reqs := claimRequirements(planned)
	return newClaim(pool, claimLabels(planned, ref, reqs), claimAnnotations(planned, pool), karpv1.NodeClaimSpec{
		Taints:        taintObjects(planned.Taints),
		StartupTaints: taintObjects(planned.StartupTaints),
		Requirements:  reqs,
		Resources:     karpv1.ResourceRequirements{Requests: Quantities(withoutVolumes(planned.Requests))},
	}), nil
}

// StaticClaimFor returns a NodeClaim for one more node of a static pool. The NodeClaim has the NodePool's requirements;
// its instance type is chosen at launch. The error is kubeclient.ErrStale if the NodePool is being deleted or is not
// static.
func StaticClaimFor(pool *karpv1.NodePool) (*karpv1.NodeClaim, error) {
	template := pool.Spec.Template
	ref := template.Spec.NodeClassRef
	switch {
	case pool.DeletionTimestamp != nil:
		return nil, fmt.Errorf("%w: nodepool %s is being deleted", kubeclient.ErrStale, pool.Name)
	case ref == nil || pool.Spec.Replicas == nil:
		return nil, fmt.Errorf("%w: nodepool %s is not static", kubeclient.ErrStale, pool.Name)
	}
	reqs := slices.Clone(template.Spec.Requirements)
	known := awsv1.WellKnownLabels() // as labels of a template, they restrict the instance
	for _, key := range slices.Sorted(maps.Keys(template.Labels)) {
		if slices.Contains(known, key) {
			reqs = append(reqs, requirementObject(requirements.Requirement{
				Key: key, Operator: requirements.In, Values: []string{template.Labels[key]},
			}))
		}
	}
	if reqs == nil {
		reqs = karpv1.Requirements{} // the CRD rejects null
	}
	planned := packing.PlannedNode{Pool: pool.Name, Labels: template.Labels}
	return newClaim(pool, claimLabels(planned, ref, reqs), claimAnnotations(planned, pool), karpv1.NodeClaimSpec{
		Taints: template.Spec.Taints, StartupTaints: template.Spec.StartupTaints, Requirements: reqs,
	}), nil
}

// newClaim returns a NodeClaim of the pool. It adds the fields that are equal in all NodeClaims of the pool.
func newClaim(pool *karpv1.NodePool, labels, annotations map[string]string, spec karpv1.NodeClaimSpec) *karpv1.NodeClaim {
	template := pool.Spec.Template.Spec
	spec.NodeClassRef = template.NodeClassRef.DeepCopy()
	spec.TerminationGracePeriod, spec.ExpireAfter = template.TerminationGracePeriod, template.ExpireAfter
	out := &karpv1.NodeClaim{
		ObjectMeta: metav1.ObjectMeta{
			GenerateName: pool.Name + "-",
			Labels:       labels,
			Annotations:  annotations,
			// Set at creation: a claim that is deleted during its launch must stay until the instance is terminated.
			Finalizers: []string{karpv1.FinalizerTermination},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion:         karpv1.GroupVersion.String(),
				Kind:               "NodePool",
				Name:               pool.Name,
				UID:                pool.UID,
				BlockOwnerDeletion: ptr.To(true),
			}},
		},
		Spec: spec,
	}
	if fields, err := CurrentPoolFields(pool); err == nil { // after an error, the claim never counts as drifted from its pool
		SetRecordedFields(out, &fields, nil)
	}
	return out
}

// claimRequirements returns the requirements of the planned node, with exactly the instance types, zones and capacity
// types of its offerings.
func claimRequirements(planned packing.PlannedNode) karpv1.Requirements {
	var types, zones, capacityTypes []string
	for _, o := range planned.Offerings {
		if !slices.Contains(types, o.InstanceType) && len(types) < maxTypes {
			types = append(types, o.InstanceType)
		}
		if !slices.Contains(zones, o.Zone) {
			zones = append(zones, o.Zone)
		}
		if !slices.Contains(capacityTypes, o.CapacityType) {
			capacityTypes = append(capacityTypes, o.CapacityType)
		}
	}
	slices.Sort(zones)
	slices.Sort(capacityTypes)
	offered := map[string][]string{ // types stay ordered by price
		catalog.LabelInstanceType: types, catalog.LabelZone: zones, catalog.LabelCapacityType: capacityTypes,
	}
	var out karpv1.Requirements
	minValues := map[string]int{} // of the keys in offered
	for _, r := range planned.Requirements {
		if _, ok := offered[r.Key]; ok {
			minValues[r.Key] = max(minValues[r.Key], r.MinValues)
			continue
		}
		out = append(out, requirementObject(r))
	}
	for _, key := range slices.Sorted(maps.Keys(offered)) {
		out = append(out, requirementObject(requirements.Requirement{
			Key: key, Operator: requirements.In, Values: offered[key], MinValues: minValues[key],
		}))
	}
	slices.SortStableFunc(out, func(a, b karpv1.Requirement) int { return cmp.Compare(a.Key, b.Key) })
	return out
}

// claimLabels returns the labels of the planned node, of its NodePool and of its EC2NodeClass. It adds a label for each
// required custom key, with one allowed value, because no other component sets that label on the Node. Keys that EC2
// defines get their value at launch.
func claimLabels(planned packing.PlannedNode, ref *karpv1.NodeClassReference, reqs karpv1.Requirements) map[string]string {
	labels := maps.Clone(planned.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	known := awsv1.WellKnownLabels()
	values := requirementValues(reqs)
	for _, key := range values.Keys() {
		if _, ok := labels[key]; ok || slices.Contains(known, key) {
			continue
		}
		if value, ok := anyValue(values[key]); ok {
			labels[key] = value
		}
	}
	// These labels are set when the node has joined.
	for _, key := range []string{karpv1.LabelRegistered, karpv1.LabelInitialized, corev1.LabelHostname} {
		delete(labels, key)
	}
	labels[karpv1.LabelNodePool] = planned.Pool
	labels[ref.LabelKey()] = ref.Name
	return labels
}

// claimAnnotations returns the annotations of the pool's template and those that describe the planned node.
func claimAnnotations(planned packing.PlannedNode, pool *karpv1.NodePool) map[string]string {
	out := maps.Clone(pool.Spec.Template.Annotations)
	if out == nil {
		out = map[string]string{}
	}
	if slices.ContainsFunc(pool.Spec.Template.Spec.Requirements, func(r karpv1.Requirement) bool { return r.MinValues != nil }) {
		out[karpv1.AnnotationMinValuesRelaxed] = strconv.FormatBool(len(planned.Relaxed) > 0)
	}
	if len(planned.Pods) > 0 {
		out[AnnotationPods] = podsText(planned.Pods)
	}
	return out
}

// anyValue returns a label value that v accepts, the same one in each call. It returns false if v accepts no value, or
// accepts a missing label.
func anyValue(v requirements.Values) (string, bool) {
	switch {
	case v.Absent:
		return "", false
	case !v.Complement && len(v.Listed) > 0:
		return v.Listed[0], true
	case !v.Complement:
		return "", false
	}
	from, step := int64(1), int64(1)
	switch {
	case v.Min != nil:
		from = *v.Min
	case v.Max != nil:
		from, step = *v.Max, -1
	}
	for n := range int64(len(v.Listed)) + 1 { // at most len(v.Listed) values are refused
		text := strconv.FormatInt(from+n*step, 10)
		if v.Accepts(text) {
			return text, true
		}
	}
	return "", false
}

// taintObjects is the reverse of Taints.
func taintObjects(taints []requirements.Taint) []corev1.Taint {
	var out []corev1.Taint
	for _, t := range taints {
		out = append(out, corev1.Taint{Key: t.Key, Value: t.Value, Effect: corev1.TaintEffect(t.Effect)})
	}
	return out
}

// requirementObject is the reverse of requirementsOf for one requirement.
func requirementObject(r requirements.Requirement) karpv1.Requirement {
	out := karpv1.Requirement{Key: r.Key, Operator: corev1.NodeSelectorOperator(r.Operator), Values: r.Values}
	if r.MinValues > 0 {
		out.MinValues = ptr.To(r.MinValues)
	}
	return out
}

// AnnotationPods on a NodeClaim is the list of the pods that it was created for, as "namespace/name", separated by
// commas.
//
// Until the node is ready and the pods have had time to be bound, plans treat the pods as running on the
// node. Otherwise each plan would place them again on the nodes in flight. These nodes are only as large as needed, so
// a slightly different placement would leave some pods unplaced and launch one more node. The list is an annotation, so
// that a controller that restarts does not launch nodes for the same pods again.
const AnnotationPods = "joiner.sh/pods"

// maxPodsBytes is the maximum length of AnnotationPods, far below the 256 KiB for all annotations of an object. 737
// pods, the most that EKS recommends on any node, can have about 130 bytes each.
const maxPodsBytes = 96 << 10

// podsText returns the value of AnnotationPods. Pods beyond the maximum length are left out: each plan places them
// again.
func podsText(pods []string) string {
	size := 0
	for i, pod := range pods {
		if size += len(pod) + 1; size > maxPodsBytes {
			pods = pods[:i]
			break
		}
	}
	return strings.Join(pods, ",")
}

// SetPods changes the pods that the claim is for. pods are "namespace/name".
func SetPods(claim *karpv1.NodeClaim, pods []string) {
	if claim.Annotations == nil {
		claim.Annotations = map[string]string{}
	}
	claim.Annotations[AnnotationPods] = podsText(pods)
}

// PodsOf returns the pods that the claim was created for, as "namespace/name".
func PodsOf(claim *karpv1.NodeClaim) []string {
	text := claim.Annotations[AnnotationPods]
	if text == "" {
		return nil
	}
	return strings.Split(text, ",")
}

package conversion

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	awsv1 "github.com/joiner-sh/joiner/api/aws/v1"
	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/disruption/drift"
)

// PoolHash returns the drift hash of a NodePool's template, with its version: the values of the annotations
// karpv1.AnnotationNodePoolHash and karpv1.AnnotationNodePoolHashVersion.
func PoolHash(pool *karpv1.NodePool) (hash, version string, err error) {
	hash, err = drift.Hash(pool.Spec.Template)
	if err != nil {
		return "", "", fmt.Errorf("hash nodepool %s: %w", pool.Name, err)
	}
	return hash, drift.PoolVersion, nil
}

// ClassHash returns the drift hash of an EC2NodeClass, with its version: the values of the annotations
// awsv1.AnnotationHash and awsv1.AnnotationHashVersion. authority is the cluster's certificate authority that nodes
// get, in base64.
func ClassHash(class *awsv1.EC2NodeClass, authority string) (hash, version string, err error) {
	hash, err = drift.Hash([]any{class.Spec, class.Spec.ResolvedAMIFamily(), authority})
	if err != nil {
		return "", "", fmt.Errorf("hash ec2nodeclass %s: %w", class.Name, err)
	}
	return hash, drift.ClassVersion, nil
}

// Annotations on NodeClaims that let drift detection name the changed field. Only Joiner uses them. Joiner sets them on
// a NodeClaim of Karpenter when the NodeClaim matches its NodePool and EC2NodeClass.
const (
	// AnnotationPoolParts on a NodeClaim is a set of short hashes, one for each field of the NodePool's template at the
	// time when the NodeClaim was made.
	AnnotationPoolParts = "joiner.sh/nodepool-parts"
	// AnnotationClassParts on a NodeClaim is a set of short hashes, one for each field of the EC2NodeClass at the time
	// when the instance was launched.
	AnnotationClassParts = "joiner.sh/ec2nodeclass-parts"
)

// CurrentPoolFields returns the current template of the pool in the form that drift detection compares.
func CurrentPoolFields(pool *karpv1.NodePool) (drift.Origin, error) {
	hash, version, err := PoolHash(pool)
	if err != nil {
		return drift.Origin{}, err
	}
	out := drift.Origin{Stamp: drift.Stamp{Hash: hash, Version: version}, Parts: map[string]string{}}
	for _, part := range []any{pool.Spec.Template.ObjectMeta, pool.Spec.Template.Spec} {
		parts, err := drift.Parts(part)
		if err != nil {
			return drift.Origin{}, fmt.Errorf("hash nodepool %s: %w", pool.Name, err)
		}
		maps.Copy(out.Parts, parts)
	}
	spec := pool.Spec.Template.Spec
	out.Texts = templateTexts(spec.Taints, spec.StartupTaints, spec.NodeClassRef)
	out.Texts["labels"] = mapText(pool.Spec.Template.Labels, pool.Spec.Template.Labels)
	out.Texts["expireAfter"] = durationText(spec.ExpireAfter)
	if spec.TerminationGracePeriod != nil {
		out.Texts["terminationGracePeriod"] = spec.TerminationGracePeriod.Duration.String()
	}
	return out, nil
}

// CurrentClassFields returns the current fields of the class in the form that drift detection compares. authority has
// the same meaning as in ClassHash.
func CurrentClassFields(class *awsv1.EC2NodeClass, authority string) (drift.Origin, error) {
	hash, version, err := ClassHash(class, authority)
	if err != nil {
		return drift.Origin{}, err
	}
	parts, err := drift.Parts(class.Spec)
	if err != nil {
		return drift.Origin{}, fmt.Errorf("hash ec2nodeclass %s: %w", class.Name, err)
	}
	parts["amiFamily"], parts[drift.FieldAuthority] = drift.Short(class.Spec.ResolvedAMIFamily()), drift.Short(authority)
	if k := class.Spec.Kubelet; k != nil && len(k.More) > 0 { // drift.Parts ignores More
		more, err := drift.Hash(k.More)
		if err != nil {
			return drift.Origin{}, fmt.Errorf("hash ec2nodeclass %s: %w", class.Name, err)
		}
		parts["kubelet"] = drift.Short(parts["kubelet"] + more)
	}
	return drift.Origin{Stamp: drift.Stamp{Hash: hash, Version: version}, Parts: parts}, nil
}

// RecordedFields returns the fields of the template and of the class that a claim was made from, as recorded on the
// claim. The text "labels" in recordedPool has only the keys that the pool sets now.
func RecordedFields(claim *karpv1.NodeClaim, pool *karpv1.NodePool) (recordedPool, recordedClass drift.Origin) {
	a := claim.Annotations
	recordedPool = drift.Origin{
		Stamp: drift.Stamp{Hash: a[karpv1.AnnotationNodePoolHash], Version: a[karpv1.AnnotationNodePoolHashVersion]},
		Parts: drift.PartsOf(a[AnnotationPoolParts]),
		Texts: templateTexts(claim.Spec.Taints, claim.Spec.StartupTaints, claim.Spec.NodeClassRef),
	}
	recordedPool.Texts["labels"] = mapText(claim.Labels, pool.Spec.Template.Labels)
	recordedPool.Texts["expireAfter"] = durationText(claim.Spec.ExpireAfter)
	if claim.Spec.TerminationGracePeriod != nil {
		recordedPool.Texts["terminationGracePeriod"] = claim.Spec.TerminationGracePeriod.Duration.String()
	}
	recordedClass = drift.Origin{
		Stamp: drift.Stamp{Hash: a[awsv1.AnnotationHash], Version: a[awsv1.AnnotationHashVersion]},
		Parts: drift.PartsOf(a[AnnotationClassParts]),
	}
	return recordedPool, recordedClass
}

// templateTexts returns the fields as texts by name, so that a message about drift can name the old and the new value.
func templateTexts(taints, startupTaints []corev1.Taint, ref *karpv1.NodeClassReference) map[string]string {
	out := map[string]string{"taints": taintsText(taints), "startupTaints": taintsText(startupTaints)}
	if ref != nil {
		out["nodeClassRef"] = ref.Name
	}
	return out
}

func taintsText(taints []corev1.Taint) string {
	var out []string
	for _, t := range taints {
		out = append(out, t.ToString())
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}

// mapText returns the entries whose key is in keys, sorted by key: "a=1, b=2". It ignores the values of keys.
func mapText(entries, keys map[string]string) string {
	var out []string
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		if value, ok := entries[key]; ok {
			out = append(out, key+"="+value)
		}
	}
	return strings.Join(out, ", ")
}

func durationText(d karpv1.NillableDuration) string {
	if d.Duration == nil {
		return karpv1.Never
	}
	return d.Duration.String()
}

// SetRecordedFields records on a claim the pool and class that it is made from: hash, version and parts. If pool or
// class is nil, its record is not changed; nil Parts remove the recorded parts.
func SetRecordedFields(claim *karpv1.NodeClaim, pool, class *drift.Origin) {
	if claim.Annotations == nil {
		claim.Annotations = map[string]string{}
	}
	if pool != nil {
		claim.Annotations[karpv1.AnnotationNodePoolHash] = pool.Stamp.Hash
		claim.Annotations[karpv1.AnnotationNodePoolHashVersion] = pool.Stamp.Version
		recordParts(claim.Annotations, AnnotationPoolParts, pool.Parts)
	}
	if class != nil {
		claim.Annotations[awsv1.AnnotationHash] = class.Stamp.Hash
		claim.Annotations[awsv1.AnnotationHashVersion] = class.Stamp.Version
		recordParts(claim.Annotations, AnnotationClassParts, class.Parts)
	}
}

func recordParts(annotations map[string]string, key string, parts map[string]string) {
	if parts == nil {
		delete(annotations, key)
		return
	}
	annotations[key] = drift.PartsText(parts)
}

package conversion

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	awsv1 "github.com/joiner-sh/joiner/api/aws/v1"
	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/kube/kubeclient"
	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/model/requirements"
	"github.com/joiner-sh/joiner/internal/model/resources"
	"github.com/joiner-sh/joiner/internal/suggest"
)

// PoolValue returns the NodePool as the solver sees it, without the fields that depend on nodes and node classes.
func PoolValue(p *karpv1.NodePool) cluster.Pool {
	template := &p.Spec.Template
	out := cluster.Pool{
		Name:          p.Name,
		UID:           string(p.UID),
		NodeClass:     kubeclient.ClassName(template.Spec.NodeClassRef),
		Requirements:  requirementsOf(template.Spec.Requirements),
		Labels:        template.Labels,
		Taints:        Taints(template.Spec.Taints),
		StartupTaints: Taints(template.Spec.StartupTaints),
		Limits:        limitsOf(p),
	}
	if p.Spec.Weight != nil {
		out.Weight = int(*p.Spec.Weight)
	}
	return out
}

// limitsOf returns the NodePool's limits. Unlike requests, limits are rounded down: with a limit of 1.5 nodes, one node
// may be launched. A negative limit is treated as zero: nothing may be launched.
func limitsOf(p *karpv1.NodePool) cluster.Limits {
	var out cluster.Limits
	for name, q := range p.Spec.Limits {
		if name == karpv1.ResourceNodes {
			n := int(min(max(floor(q), 0), math.MaxInt32))
			out.Nodes = &n
			continue
		}
		if out.Ceiling == nil {
			out.Ceiling = map[string]int64{}
		}
		if string(name) == resources.CPU {
			out.Ceiling[resources.CPU] = max(floorMilli(q), 0)
			continue
		}
		out.Ceiling[string(name)] = max(floor(q), 0)
	}
	return out
}

// UnusableByIntentReason returns why Joiner launches no node of the NodePool for pending pods: the NodePool is being
// deleted, is static, or has a node class of another kind. It ignores the NodePool's status. It is empty if nodes may
// be launched.
func UnusableByIntentReason(p *karpv1.NodePool) string {
	ref := p.Spec.Template.Spec.NodeClassRef
	switch {
	case p.DeletionTimestamp != nil:
		return "it is being deleted"
	case p.Spec.Replicas != nil:
		return "it is static (spec.replicas), so it is not for pending pods"
	case ref != nil && ref.Group == awsv1.Group && isMisspeltClass(ref.Kind):
		return fmt.Sprintf("there is no kind %s of %s; write spec.template.spec.nodeClassRef.kind: %s", ref.Kind, ref.Group, awsv1.Kind)
	case ref != nil && (ref.Group != awsv1.Group || ref.Kind != awsv1.Kind):
		return fmt.Sprintf("its node class is a %s of %s, which another controller serves", ref.Kind, ref.Group)
	}
	return ""
}

// isMisspeltClass reports whether a kind is a misspelled EC2NodeClass, or AWSNodeTemplate, which was the name of
// EC2NodeClass before v1beta1.
func isMisspeltClass(kind string) bool {
	return kind != awsv1.Kind && (kind == "AWSNodeTemplate" || suggest.Nearest(kind, []string{awsv1.Kind}) != "")
}

// UnreadyReason returns what must be fixed before nodes may be launched for the NodePool; empty if nodes may be
// launched.
//
// A NodePool whose condition ValidationSucceeded is false for its current generation is not ready. UnreadyReason reads
// the Ready condition of the class, not of the pool. So a pool can be used as soon as its class is ready, before the
// pool's condition is written. live is false for manifests: a missing class or Ready condition is then no reason.
func UnreadyReason(p *karpv1.NodePool, class *awsv1.EC2NodeClass, live bool) string {
	ref := p.Spec.Template.Spec.NodeClassRef
	if ref == nil {
		return "it names no node class (spec.template.spec.nodeClassRef)"
	}
	c, ok := p.StatusConditions().Find(karpv1.ConditionValidationSucceeded)
	if ok && c.Status == metav1.ConditionFalse && c.ObservedGeneration == p.Generation {
		return "it is not valid: " + c.Message
	}
	if problem := classProblem(class, live); problem != "" {
		return fmt.Sprintf("EC2NodeClass %s %s", ref.Name, problem)
	}
	return ""
}

// classProblem returns why no node can be launched with the EC2NodeClass; empty if nodes can be launched.
func classProblem(class *awsv1.EC2NodeClass, live bool) string {
	switch {
	case class == nil && live:
		return "does not exist"
	case class == nil:
		return ""
	case class.DeletionTimestamp != nil:
		return "is being deleted"
	}
	ready, ok := class.StatusConditions().Find(karpv1.ConditionReady)
	switch {
	case !ok && live:
		return "is not reconciled yet"
	case !ok:
		return ""
	case ready.ObservedGeneration != class.Generation:
		return "has changed and is not reconciled yet"
	case ready.Status == metav1.ConditionTrue:
		return ""
	}
	if why := cmp.Or(failures(class), ready.Message); why != "" {
		return "is not ready: " + why
	}
	return "is not ready"
}

// failures joins the messages of the class's false conditions, because the Ready condition has only their names.
func failures(class *awsv1.EC2NodeClass) string {
	var out []string
	for _, c := range class.Status.Conditions {
		if c.Type != karpv1.ConditionReady && c.Status == metav1.ConditionFalse &&
			c.ObservedGeneration == class.Generation && c.Message != "" && !slices.Contains(out, c.Message) {
			out = append(out, c.Message)
		}
	}
	return strings.Join(out, "; ")
}

// requirementsOf converts karpv1.Requirements to the type of package requirements. It replaces outdated keys by their
// current names: see StableKey.
func requirementsOf(reqs karpv1.Requirements) []requirements.Requirement {
	out := make([]requirements.Requirement, 0, len(reqs))
	for _, r := range reqs {
		c := requirements.Requirement{
			Key: StableKey(r.Key), Operator: requirements.Operator(r.Operator), Values: r.Values,
		}
		if r.MinValues != nil {
			c.MinValues = *r.MinValues
		}
		out = append(out, c)
	}
	return out
}

// requirementValues returns, by key, the values that all of reqs accept.
func requirementValues(reqs karpv1.Requirements) requirements.Requirements {
	out, _ := requirements.All(requirementsOf(reqs)...)
	return out
}

package faults

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
)

// planFaults are faults of labels and requirements of NodePools and pods.
func planFaults() []Fault {
	const noLabel = "no NodePool gives its nodes that label"
	return []Fault{
		{
			Name:      "label-without-nodepool",
			What:      "pods select a label that no NodePool sets on its nodes",
			Check:     "ARCH-4",
			Cause:     noLabel,
			NeedsPods: true,
			Smoke:     true,
			Break: func(_ context.Context, s *Scene) error {
				s.Pods.Spec.Template.Spec.NodeSelector["pod-type"] = s.Name
				return nil
			}},
		{
			Name:      "label-of-other-value",
			What:      "pods select another value of a label than the NodePool sets",
			Check:     "ARCH-4",
			Cause:     noLabel,
			NeedsPods: true,
			Break: func(_ context.Context, s *Scene) error {
				s.Pool.Spec.Template.Labels["tier-"+s.Name] = "silver"
				s.Pods.Spec.Template.Spec.NodeSelector["tier-"+s.Name] = "gold"
				return nil
			},
			// Only the user knows which of the two values is right.
			Edit: func(ctx context.Context, s *Scene) error {
				var pool karpv1.NodePool
				if err := s.Lab.Client.Get(ctx, client.ObjectKeyFromObject(s.Pool), &pool); err != nil {
					return fmt.Errorf("read the NodePool: %w", err)
				}
				pool.Spec.Template.Labels["tier-"+s.Name] = "gold"
				if err := s.Lab.Client.Update(ctx, &pool); err != nil {
					return fmt.Errorf("edit the NodePool: %w", err)
				}
				return nil
			}},
		{
			Name:      "label-of-other-case",
			What:      "pods select a label that the NodePool spells with a capital letter",
			Check:     "ARCH-4",
			Cause:     noLabel,
			NeedsPods: true,
			Break: func(_ context.Context, s *Scene) error {
				s.Pool.Spec.Template.Labels["Team-"+s.Name] = "a"
				s.Pods.Spec.Template.Spec.NodeSelector["team-"+s.Name] = "a"
				return nil
			}},
		{
			Name:      "label-by-requirement",
			What:      "pods select a value of a label that the NodePool's requirements leave out",
			Check:     "ARCH-4",
			Cause:     noLabel,
			NeedsPods: true,
			Break: func(_ context.Context, s *Scene) error {
				s.require(In("tier-"+s.Name, "silver", "bronze"))
				s.Pods.Spec.Template.Spec.NodeSelector["tier-"+s.Name] = "gold"
				return nil
			}},
		{
			Name:  "arm-of-x86-families",
			What:  "the NodePool requires arm64 and instance families that are x86 only",
			Check: "ARCH-1",
			Cause: "no instance type is left after the requirement karpenter.k8s.aws/instance-family In [m5, c5]",
			Break: func(_ context.Context, s *Scene) error {
				s.Pool.Spec.Template.Spec.Requirements[0] = In(corev1.LabelArchStable, "arm64")
				s.require(In("karpenter.k8s.aws/instance-family", "m5", "c5"))
				return nil
			}},
		{
			Name:  "type-not-offered",
			What:  "the NodePool requires an instance type that the region does not offer",
			Check: "ARCH-1",
			Cause: "no instance type is left after the requirement node.kubernetes.io/instance-type In [m5.huge]",
			Break: func(_ context.Context, s *Scene) error {
				s.require(In(corev1.LabelInstanceTypeStable, "m5.huge"))
				return nil
			}},
		{
			Name:  "more-cores-than-offered",
			What:  "the NodePool requires more vCPUs than any instance type has",
			Check: "ARCH-1",
			Cause: "karpenter.k8s.aws/instance-cpu Gt [4000]",
			Break: func(_ context.Context, s *Scene) error {
				s.require(karpv1.Requirement{Key: "karpenter.k8s.aws/instance-cpu", Operator: corev1.NodeSelectorOpGt, Values: []string{"4000"}})
				return nil
			}},
		{
			Name:  "generation-and-category-apart",
			What:  "the NodePool requires a generation that no instance type of its category has",
			Check: "ARCH-1",
			Cause: "karpenter.k8s.aws/instance-generation Gt [90]",
			Break: func(_ context.Context, s *Scene) error {
				s.require(karpv1.Requirement{Key: "karpenter.k8s.aws/instance-generation", Operator: corev1.NodeSelectorOpGt, Values: []string{"90"}})
				return nil
			}},
		{
			Name:             "half-of-two-architectures",
			What:             "the NodePool allows both architectures, but only instance families of one",
			Check:            "ARCH-1",
			Cause:            "no arm64 instance type is left",
			ExpectSuspicious: true,
			Break: func(_ context.Context, s *Scene) error {
				s.Pool.Spec.Template.Spec.Requirements[0] = In(corev1.LabelArchStable, "amd64", "arm64")
				s.require(In("karpenter.k8s.aws/instance-family", "m5", "c5"))
				return nil
			}},
	}
}

func (s *Scene) require(r karpv1.Requirement) {
	s.Pool.Spec.Template.Spec.Requirements = append(s.Pool.Spec.Template.Spec.Requirements, r)
}

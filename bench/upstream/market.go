package upstream

import (
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/scheduling"

	awsv1 "github.com/joiner-sh/joiner/api/aws/v1"
	"github.com/joiner-sh/joiner/internal/kube/conversion"
	"github.com/joiner-sh/joiner/internal/model/catalog"
)

// register adds EC2's labels and the kind EC2NodeClass to upstream's global tables, as the AWS provider does when it is
// loaded.
var register = sync.OnceFunc(func() {
	v1.WellKnownLabels.Insert(awsv1.WellKnownLabels()...)
	cloudprovider.ReservationIDLabel = awsv1.LabelCapacityReservationID
	scheme.Scheme.AddKnownTypeWithName(schema.GroupVersionKind{Group: awsv1.Group, Version: "v1", Kind: awsv1.Kind}, &nodeClass{})
})

// instanceTypes returns the instance types as the AWS provider would pass them to the scheduler: with the same labels,
// allocatable resources, offerings and prices. A well-known label that a type lacks gets the requirement DoesNotExist.
func instanceTypes(c catalog.Catalog) []*cloudprovider.InstanceType {
	register()
	out := make([]*cloudprovider.InstanceType, 0, len(c.Types))
	for _, t := range c.Types {
		out = append(out, instanceType(t))
	}
	return out
}

func instanceType(t catalog.Type) *cloudprovider.InstanceType {
	out := &cloudprovider.InstanceType{
		Name:     t.Name,
		Capacity: conversion.Quantities(t.Capacity),
		Overhead: &cloudprovider.InstanceTypeOverhead{KubeReserved: conversion.Quantities(t.Capacity.Sub(t.Allocatable))},
	}
	offeringLabels := map[string][]string{} // values of the offerings' labels, by label
	for _, o := range t.Offerings {
		reqs := scheduling.NewRequirements(
			scheduling.NewRequirement(cloudprovider.ReservationIDLabel, corev1.NodeSelectorOpDoesNotExist),
			scheduling.NewRequirement(awsv1.LabelCapacityReservationType, corev1.NodeSelectorOpDoesNotExist),
			scheduling.NewRequirement(awsv1.LabelCapacityReservationInterruptible, corev1.NodeSelectorOpDoesNotExist),
		)
		for key, value := range o.Labels() {
			reqs.Add(scheduling.NewRequirement(key, corev1.NodeSelectorOpIn, value))
			if !slices.Contains(offeringLabels[key], value) {
				offeringLabels[key] = append(offeringLabels[key], value)
			}
		}
		out.Offerings = append(out.Offerings, &cloudprovider.Offering{
			Requirements: reqs, Price: o.Price.Dollars(), Available: o.Available,
		})
	}
	out.Requirements = scheduling.NewRequirements()
	for _, key := range awsv1.WellKnownLabels() {
		switch value, labeled := t.Labels[key]; {
		case key == v1.NodePoolLabelKey: // the NodePool sets this label, not the type
		case labeled:
			out.Requirements.Add(scheduling.NewRequirement(key, corev1.NodeSelectorOpIn, value))
		case len(offeringLabels[key]) > 0:
			out.Requirements.Add(scheduling.NewRequirement(key, corev1.NodeSelectorOpIn, offeringLabels[key]...))
		default:
			out.Requirements.Add(scheduling.NewRequirement(key, corev1.NodeSelectorOpDoesNotExist))
		}
	}
	return out
}

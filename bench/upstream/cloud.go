package upstream

import (
	"cmp"
	"context"
	"fmt"

	"github.com/awslabs/operatorpkg/status"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/scheduling"

	awsv1 "github.com/joiner-sh/joiner/api/aws/v1"
	"github.com/joiner-sh/joiner/bench/fleet"
	"github.com/joiner-sh/joiner/internal/model/catalog"
)

// cloud is the cloud provider from which upstream gets the instance types. It launches no instances; the fleet does.
type cloud struct {
	cloudprovider.CloudProvider // nil: any other method panics

	types map[string][]*cloudprovider.InstanceType // instance types, by name of the NodePool
}

// Name returns the name of the cloud provider.
func (c *cloud) Name() string { return "bench" }

// GetInstanceTypes returns the instance types of the NodePool.
func (c *cloud) GetInstanceTypes(_ context.Context, p *v1.NodePool) ([]*cloudprovider.InstanceType, error) {
	return c.types[p.Name], nil
}

// GetSupportedNodeClasses returns the kind EC2NodeClass.
func (c *cloud) GetSupportedNodeClasses() []status.Object {
	return []status.Object{&nodeClass{}}
}

// nodeClass is Joiner's EC2NodeClass as a status.Object. Upstream needs only its kind, and reads no conditions.
type nodeClass struct{ awsv1.EC2NodeClass }

func (*nodeClass) GetConditions() []status.Condition { return nil }
func (*nodeClass) SetConditions([]status.Condition)  {}
func (*nodeClass) StatusConditions(...status.ForOption) status.ConditionSet {
	return status.ConditionSet{}
}

// orderOf returns the order that launches the claim, with the cheapest offering that meets the claim's requirements.
func orderOf(claim *v1.NodeClaim, market catalog.Market) (fleet.Order, error) {
	requirements := scheduling.NewNodeSelectorRequirementsWithMinValues(claim.Spec.Requirements...)
	order := fleet.Order{Name: claim.Name, Pool: claim.Labels[v1.NodePoolLabelKey], Class: claim.Spec.NodeClassRef.Name}
	found := false
	for _, t := range market.Types(order.Class, order.Pool) {
		if !requirements.Get(corev1.LabelInstanceTypeStable).Has(t.Name) {
			continue
		}
		for _, o := range t.Offerings {
			fits := o.Available && requirements.Get(corev1.LabelTopologyZone).Has(o.Zone) &&
				requirements.Get(v1.CapacityTypeLabelKey).Has(o.CapacityType)
			if fits && (!found || cmp.Compare(o.Price, order.Offering.Price) < 0) {
				order.Type, order.Offering, found = t, o, true
			}
		}
	}
	if !found {
		return order, fmt.Errorf("launch upstream's claim %s: no offering of %s meets its requirements: %v", claim.Name,
			order.Class, claim.Spec.Requirements)
	}
	return order, nil
}

func compareKeys(a, b types.NamespacedName) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

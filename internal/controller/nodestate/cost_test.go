package nodestate

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/model/catalog"
)

// oneTypeMarket has one instance type, and counts the calls of Type.
type oneTypeMarket struct{ typeCalls int }

func (s *oneTypeMarket) Type(class, pool, name string) (catalog.Type, bool) {
	s.typeCalls++
	if class != "default" || pool != "general" || name != "m5.large" {
		return catalog.Type{}, false
	}
	return catalog.Type{Name: name, Offerings: []catalog.Offering{
		{Zone: "a", CapacityType: catalog.OnDemand, Price: 10},
		{Zone: "b", CapacityType: catalog.OnDemand, Price: 11},
		{Zone: "b", CapacityType: catalog.Spot, Price: 4},
	}}, true
}

// ListPrice knows one price: spot in zone c, where the class has no subnet.
func (s *oneTypeMarket) ListPrice(name, zone, capacityType string) catalog.Price {
	if name == "m5.large" && zone == "c" && capacityType == catalog.Spot {
		return 3
	}
	return 0
}

// TestCostSum: each instance costs the price of its offering, and 0 if no price is known. Type is called once for each
// of the two types.
func TestCostSum(t *testing.T) {
	t.Parallel()
	claim := func(instanceType, zone, capacityType, providerID string) *karpv1.NodeClaim {
		c := &karpv1.NodeClaim{}
		c.Labels = map[string]string{
			corev1.LabelInstanceTypeStable: instanceType, corev1.LabelTopologyZone: zone, karpv1.LabelCapacityType: capacityType,
		}
		c.Spec.NodeClassRef = &karpv1.NodeClassReference{Name: "default"}
		c.Status.ProviderID = providerID
		return c
	}
	market := &oneTypeMarket{}
	sum := CostSum{Market: market, Pool: "general"}
	for _, c := range []*karpv1.NodeClaim{
		claim("m5.large", "a", "on-demand", "1"), // 10
		claim("m5.large", "b", "spot", "2"),      // 4
		claim("m5.large", "b", "spot", "3"),      // 4
		claim("m5.large", "a", "on-demand", ""),  // 0: not launched yet
		claim("m5.large", "c", "spot", "4"),      // 3: the list price, because the class has no subnet in zone c
		claim("m5.large", "c", "on-demand", "6"), // 10: the on-demand price of zone a
		claim("m5.large", "d", "spot", "7"),      // 0: neither an offering nor a list price
		claim("t2.nano", "a", "on-demand", "5"),  // 0: the instance type is unknown
	} {
		sum.Add(c)
	}
	if sum.Sum != 10+4+4+3+10 || market.typeCalls != 2 {
		t.Errorf("the sum is %d after %d calls of Type, want 31 after 2", sum.Sum, market.typeCalls)
	}
	noMarket := CostSum{Pool: "general"}
	if noMarket.Add(claim("m5.large", "a", "on-demand", "1")); noMarket.Sum != 0 {
		t.Errorf("without a market the sum is %d, want 0", noMarket.Sum)
	}
}

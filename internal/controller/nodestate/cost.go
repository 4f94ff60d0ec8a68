package nodestate

import (
	corev1 "k8s.io/api/core/v1"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/model/catalog"
)

// TypeMarket has the instance types of a node class and a pool, with their prices.
type TypeMarket interface {
	// Type returns the instance type with this name; false if the class and pool do not have it.
	Type(class, pool, name string) (catalog.Type, bool)
	// ListPrice returns AWS's price of a type in a zone, even if no class has a subnet there; 0 if unknown.
	ListPrice(name, zone, capacityType string) catalog.Price
}

// CostSum adds up the hourly prices of instances. It calls Market.Type once for each class and type.
type CostSum struct {
	Market TypeMarket                 // the prices; nil: all prices are 0
	Pool   string                     // name of the NodePool
	types  map[[2]string]catalog.Type // by node class and type name
	Sum    catalog.Price              // price per hour of the instances added so far
}

// Add adds the hourly price of the claim's offering. The class may no longer have the offering, for example because its
// subnet or image is gone. Then Add takes the type's on-demand price in another zone for an on-demand instance, and the
// list price for any other instance. It adds 0 for a claim without an instance, and for an offering without a known
// price.
func (s *CostSum) Add(claim *karpv1.NodeClaim) {
	ref := claim.Spec.NodeClassRef
	if s.Market == nil || ref == nil || claim.Status.ProviderID == "" {
		return
	}
	key := [2]string{ref.Name, claim.Labels[corev1.LabelInstanceTypeStable]}
	t, known := s.types[key]
	if !known {
		t, _ = s.Market.Type(key[0], s.Pool, key[1])
		if s.types == nil {
			s.types = map[[2]string]catalog.Type{}
		}
		s.types[key] = t
	}
	zone, capacityType := claim.Labels[corev1.LabelTopologyZone], claim.Labels[karpv1.LabelCapacityType]
	for _, o := range t.Offerings {
		if o.Zone == zone && o.CapacityType == capacityType {
			s.Sum += o.Price
			return
		}
	}
	// On-demand prices are equal in all zones, also those of NodeOverlays.
	for _, o := range t.Offerings {
		if o.CapacityType == capacityType && capacityType == catalog.OnDemand {
			s.Sum += o.Price
			return
		}
	}
	s.Sum += s.Market.ListPrice(key[1], zone, capacityType)
}

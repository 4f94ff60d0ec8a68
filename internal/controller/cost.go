package controller

import (
	corev1 "k8s.io/api/core/v1"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/model/catalog"
)

// typeMarket knows the instance types as they are for a node class and a pool, with their prices.
type typeMarket interface {
	Type(class, pool, name string) (catalog.Type, bool)
	// ListPrice is what AWS asks for a type in a zone, wherever the classes have subnets; 0: nobody knows.
	ListPrice(name, zone, way string) catalog.Price
}

// bill adds up what machines cost an hour. A type is looked up once.
type bill struct {
	market typeMarket
	pool   string
	types  map[[2]string]catalog.Type // by class and name
	sum    catalog.Price
}

// add counts the machine of a claim, by the offering that it was bought as. What the class would not buy any more, for it has no subnet there
// or finds no image for it, costs what it did. A machine that is not bought yet, or that AWS does not sell any more, costs nothing that is known.
func (b *bill) add(claim *karpv1.NodeClaim) {
	ref := claim.Spec.NodeClassRef
	if b.market == nil || ref == nil || claim.Status.ProviderID == "" {
		return
	}
	key := [2]string{ref.Name, claim.Labels[corev1.LabelInstanceTypeStable]}
	t, known := b.types[key]
	if !known {
		t, _ = b.market.Type(key[0], b.pool, key[1])
		if b.types == nil {
			b.types = map[[2]string]catalog.Type{}
		}
		b.types[key] = t
	}
	zone, way := claim.Labels[corev1.LabelTopologyZone], claim.Labels[karpv1.LabelCapacityType]
	for _, o := range t.Offerings {
		if o.Zone == zone && o.CapacityType == way {
			b.sum += o.Price
			return
		}
	}
	// Where overlays change what a type costs on demand, they do so in any zone.
	for _, o := range t.Offerings {
		if o.CapacityType == way && way == catalog.OnDemand {
			b.sum += o.Price
			return
		}
	}
	b.sum += b.market.ListPrice(key[1], zone, way)
}

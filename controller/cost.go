package controller

import (
	corev1 "k8s.io/api/core/v1"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/catalog"
)

// typeMarket knows the instance types as they are for a node class and a pool, with their prices.
type typeMarket interface {
	Type(class, pool, name string) (catalog.Type, bool)
}

// bill adds up what machines cost an hour. A type is looked up once.
type bill struct {
	market typeMarket
	pool   string
	types  map[[2]string]catalog.Type // by class and name
	sum    catalog.Price
}

// add counts the machine of a claim, by the offering that it was bought as. One that is not bought yet, or that is not sold any more,
// costs nothing that is known.
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
}

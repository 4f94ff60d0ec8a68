package cli

import (
	"maps"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/model/requirements"
)

// applyDedicatedTenancy changes the instance types of each NodePool that requires dedicated tenancy, as the controller
// does. It keeps only the types that support dedicated tenancy, and sets their prices to those of dedicated instances.
func applyDedicatedTenancy(market catalog.Market, pools []*karpv1.NodePool) {
	for _, pool := range pools {
		ref := pool.Spec.Template.Spec.NodeClassRef
		if ref == nil || !wantsDedicated(pool) {
			continue
		}
		c, types := market[ref.Name], []catalog.Type{}
		for _, t := range c.Of(pool.Name) {
			if catalog.CanDedicate(t.Name) {
				types = append(types, t.Dedicated())
			}
		}
		if c.Pools = maps.Clone(c.Pools); c.Pools == nil { // EC2NodeClasses may share the map
			c.Pools = map[string][]catalog.Type{}
		}
		c.Pools[pool.Name] = types
		market[ref.Name] = c
	}
}

// wantsDedicated reports whether the pool requires dedicated tenancy. It is false for invalid requirements, which the
// plan reports.
func wantsDedicated(pool *karpv1.NodePool) bool {
	var all []requirements.Requirement
	for _, r := range pool.Spec.Template.Spec.Requirements {
		all = append(all, requirements.Requirement{Key: karpv1.StableLabel(r.Key), Operator: requirements.Operator(r.Operator), Values: r.Values})
	}
	accepted, invalid := requirements.All(all...)
	return invalid == nil && catalog.WantsDedicated(accepted)
}

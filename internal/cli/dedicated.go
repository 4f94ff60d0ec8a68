package cli

import (
	"maps"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/model/requirements"
)

// dedicate limits NodePools that require dedicated tenancy to the instance types that support it, as the controller
// does.
func dedicate(market catalog.Market, pools []*karpv1.NodePool) {
	for _, pool := range pools {
		ref := pool.Spec.Template.Spec.NodeClassRef
		if ref == nil || !wantsDedicated(pool) {
			continue
		}
		c, own := market[ref.Name], []catalog.Type{}
		for _, t := range c.Of(pool.Name) {
			if catalog.CanDedicate(t.Name) {
				own = append(own, t.Dedicated())
			}
		}
		if c.Pools = maps.Clone(c.Pools); c.Pools == nil {
			c.Pools = map[string][]catalog.Type{}
		}
		c.Pools[pool.Name] = own
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
	says, wrong := requirements.All(all...)
	return wrong == nil && catalog.WantsDedicated(says)
}

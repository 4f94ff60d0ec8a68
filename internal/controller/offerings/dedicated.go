package offerings

import (
	"context"
	"fmt"
	"maps"

	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/controller/nodestate"
	"github.com/joiner-sh/joiner/internal/model/catalog"
)

type dedicatedTypes struct {
	from *catalog.Type  // first element of the original list; it identifies that list
	list []catalog.Type // the derived types
}

// dedicate returns the catalog of a class in which pools that require dedicated hardware have their own types. It does
// not change c.
func (m *Catalogs) dedicate(class string, c catalog.Catalog) (catalog.Catalog, error) {
	var pools karpv1.NodePoolList
	if err := m.Cache.List(context.Background(), &pools, client.UnsafeDisableDeepCopy); err != nil {
		return c, fmt.Errorf("list nodepools: %w", err)
	}
	byPool := maps.Clone(c.Pools)
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range pools.Items {
		pool := &pools.Items[i]
		ref := pool.Spec.Template.Spec.NodeClassRef
		types := c.Of(pool.Name)
		if !nodestate.IsServed(ref) || ref.Name != class || len(types) == 0 {
			continue
		}
		if required, ok := poolRequirements(pool); !ok || !catalog.WantsDedicated(required) {
			continue
		}
		if byPool == nil {
			byPool = map[string][]catalog.Type{}
		}
		byPool[pool.Name] = m.dedicated(class+"/"+pool.Name, types)
	}
	c.Pools = byPool
	return c, nil
}

// dedicated returns the types on dedicated hardware. It derives them again only if types has changed, because deriving
// takes as long as a plan. key names the class and the pool. The caller must hold the lock.
func (m *Catalogs) dedicated(key string, types []catalog.Type) []catalog.Type {
	if known, ok := m.dedicatedOf[key]; ok && known.from == &types[0] {
		return known.list
	}
	derived := dedicatedTypes{from: &types[0]}
	for _, t := range types {
		if catalog.CanDedicate(t.Name) {
			derived.list = append(derived.list, t.Dedicated())
		}
	}
	if m.dedicatedOf == nil {
		m.dedicatedOf = map[string]dedicatedTypes{}
	}
	m.dedicatedOf[key] = derived
	return derived.list
}

func isDedicated(t catalog.Type) bool {
	return t.Labels[catalog.LabelTenancy] == catalog.TenancyDedicated
}

package ec2

import (
	"strings"
	"time"

	"github.com/joiner-sh/joiner/internal/model/catalog"
)

// quota returns the vCPU quota that instances of a type count against. EC2 has two quotas of each name: one for
// on-demand and one for spot. The EC2 user guide's Standard quota covers the families A, C, D, H, I, M, R, T and Z.
func quota(instanceType string) string {
	family, _, _ := strings.Cut(instanceType, ".")
	letters := family
	if i := strings.IndexFunc(family, func(r rune) bool { return r < 'a' || r > 'z' }); i >= 0 {
		letters = family[:i]
	}
	switch letters {
	case "g", "gr", "vt":
		return "G and VT"
	case "dl", "f", "hpc", "inf", "mac", "p", "trn", "u", "x":
		return letters
	}
	return "Standard"
}

// ceilings holds the size in vCPUs from which a quota allows no instance, by quota and capacity type.
type ceilings map[quotaKey]int64

type quotaKey struct{ quota, capacityType string }

// ceilings derives size limits from the quotas that launches have exceeded. If a type does not fit into a quota, types
// of the same size or larger do not fit either. A smaller type may fit.
func (s *Shortages) ceilings(now time.Time, types []catalog.Type) ceilings {
	out := ceilings{}
	for i := range types {
		t := &types[i]
		for _, capacityType := range []string{catalog.OnDemand, catalog.Spot} {
			e, ok := s.entries[shortKey{capacityType: capacityType, instanceType: t.Name}]
			if !ok || !now.Before(e.until) || s.isProbed(now, e) {
				continue
			}
			k := quotaKey{quota(t.Name), capacityType}
			if least, known := out[k]; !known || t.Capacity.CPU < least {
				out[k] = t.Capacity.CPU
			}
		}
	}
	return out
}

func (c ceilings) excludes(t *catalog.Type, capacityType string) bool {
	if len(c) == 0 {
		return false
	}
	least, ok := c[quotaKey{quota(t.Name), capacityType}]
	return ok && t.Capacity.CPU >= least
}

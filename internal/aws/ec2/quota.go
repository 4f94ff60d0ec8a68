package ec2

import (
	"strings"
	"time"

	"github.com/joiner-sh/joiner/internal/model/catalog"
)

// quotaName returns the name of the vCPU quota that limits instances of a type. EC2 has two quotas of each name: for
// on-demand and for spot. "Standard" is the quota of the families A, C, D, H, I, M, R, T and Z, according to
// the EC2 user guide.
func quotaName(instanceType string) string {
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

// ceilings has for each quota the Capacity.CPU, in millicores, of the smallest type that the quota does not allow.
type ceilings map[quotaKey]int64

type quotaKey struct{ quota, capacityType string }

// quotaCeilings derives the ceilings from the quota shortages that may not be probed at now. If a type does not fit
// into a quota, types of the same size or larger do not fit either, while a smaller type may fit.
func (s *Shortages) quotaCeilings(now time.Time, types []catalog.Type) ceilings {
	out := ceilings{}
	for i := range types {
		t := &types[i]
		for _, capacityType := range []string{catalog.OnDemand, catalog.Spot} {
			// A shortage in all zones is one of the quota, see keyOf.
			e, ok := s.entries[shortKey{capacityType: capacityType, instanceType: t.Name}]
			if !ok || !now.Before(e.until) || s.mayProbe(now, e) {
				continue
			}
			k := quotaKey{quotaName(t.Name), capacityType}
			if ceiling, known := out[k]; !known || t.Capacity.CPU < ceiling {
				out[k] = t.Capacity.CPU
			}
		}
	}
	return out
}

// excludes reports whether the type is too large for its quota.
func (c ceilings) excludes(t *catalog.Type, capacityType string) bool {
	if len(c) == 0 {
		return false
	}
	ceiling, ok := c[quotaKey{quotaName(t.Name), capacityType}]
	return ok && t.Capacity.CPU >= ceiling
}

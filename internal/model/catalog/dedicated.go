package catalog

import (
	"maps"
	"slices"
	"strings"

	"github.com/joiner-sh/joiner/internal/model/requirements"
)

// The on-demand price of an instance on dedicated hardware is assumed to be 11/10 of the price on shared hardware. In
// the AWS Price List, the difference varies by type and is mostly below 10 %, so the price of a plan is mostly too
// high.
const (
	dedicatedNumerator   = 11
	dedicatedDenominator = 10
)

// CanDedicate reports whether a type can be launched on dedicated hardware: all can except T2. Source: EC2 User Guide,
// "Burstable performance instances".
func CanDedicate(name string) bool { return !strings.HasPrefix(name, "t2.") }

// WantsDedicated reports whether nodes with these requirements must be on dedicated hardware. If both tenancies are
// allowed, shared hardware is used, which costs less.
func WantsDedicated(reqs requirements.Requirements) bool {
	tenancy, ok := reqs[LabelTenancy]
	return ok && tenancy.Accepts(TenancyDedicated) && !tenancy.Accepts(TenancyDefault)
}

// Dedicated returns the type for nodes on dedicated hardware: with the tenancy in the labels, without reserved
// offerings, and with higher on-demand prices, except prices that an overlay has set. Bare-metal types keep their
// prices, because their instances are always on dedicated hardware. t is not changed.
func (t Type) Dedicated() Type {
	t.Labels = maps.Clone(t.Labels)
	t.Labels[LabelTenancy] = TenancyDedicated
	offerings := slices.DeleteFunc(slices.Clone(t.Offerings), func(o Offering) bool { return o.CapacityType == Reserved })
	if _, size, _ := strings.Cut(t.Name, "."); !strings.HasPrefix(size, "metal") {
		for i := range offerings {
			if o := &offerings[i]; o.CapacityType == OnDemand && !o.Repriced {
				o.Price = o.Price * dedicatedNumerator / dedicatedDenominator
			}
		}
	}
	return t.WithOfferings(offerings)
}

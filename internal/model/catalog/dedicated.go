package catalog

import (
	"maps"
	"slices"
	"strings"

	"github.com/joiner-sh/joiner/internal/model/requirements"
)

// The on-demand price of an instance on dedicated hardware is assumed to be 10 % higher than on shared hardware. The
// difference in the AWS Price List varies by type and is mostly smaller, so the price of a plan is rather too high than
// too low.
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

// Dedicated returns the type as its nodes are on dedicated hardware: with that tenancy in the labels, without reserved
// offerings, and with the higher on-demand prices unless an overlay set them. Instances of a metal type are always on
// dedicated hardware, so they cost the same. t is not changed.
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

package controller

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	awsv1 "github.com/joiner-sh/joiner/api/aws/v1"
	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/model/requirements"
)

func tenancyRig(t *testing.T, tenancies ...string) *rig {
	t.Helper()
	r := newRig(t, "t2.large", "m5.large") // t2.large is cheaper, and has no dedicated hardware
	pool := r.pool(t)
	pool.Spec.Template.Spec.Requirements = append(pool.Spec.Template.Spec.Requirements, karpv1.Requirement{
		Key: awsv1.LabelInstanceTenancy, Operator: corev1.NodeSelectorOpIn, Values: tenancies})
	if err := r.api.Update(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	r.reconcileClassAndPool(t)
	return r
}

// TestTenancy: a pool that requires dedicated hardware gets it: only types that support it, at the price of dedicated
// hardware. A pool that allows both tenancies gets shared hardware.
func TestTenancy(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		tenancies      []string
		want, wantType string
	}{
		"dedicated": {[]string{"dedicated"}, "dedicated", "m5.large"},
		"both":      {[]string{"default", "dedicated"}, "default", "t2.large"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := tenancyRig(t, c.tenancies...)
			r.addLargePods(t, "web", 1)
			r.plan(t)
			r.reconcileClaims(t)
			launched := r.instances()
			if len(launched) != 1 || launched[0].Tenancy != c.want || launched[0].Type != c.wantType {
				t.Fatalf("launched %+v, want one %s with tenancy %s\n%s", launched, c.wantType, c.want, r.log)
			}
			claim := r.claims(t)[0]
			if claim.Labels[awsv1.LabelInstanceTenancy] != c.want {
				t.Errorf("the tenancy label of the claim is %q, want that of the instance", claim.Labels[awsv1.LabelInstanceTenancy])
			}
			r.join(t)
			r.reconcileClaims(t)
			if got := r.nodes(t)[0].Labels[awsv1.LabelInstanceTenancy]; got != c.want {
				t.Errorf("the tenancy label of the Node is %q, want that of the instance", got)
			}
			market, ok := r.Market.Catalog(r.class(t), r.now())
			if !ok {
				t.Fatal("there is no market")
			}
			shared, ofPool := onDemandPrice(market.Types, "m5.large"), onDemandPrice(market.Of("apps"), "m5.large")
			if isMore := ofPool > shared && ofPool <= shared*11/10; isMore != (c.want == "dedicated") {
				t.Errorf("m5.large costs the pool %s, and %s on shared hardware; want more, by at most a tenth, only for dedicated hardware", ofPool, shared)
			}
		})
	}
}

func onDemandPrice(types []catalog.Type, name string) catalog.Price {
	for _, t := range types {
		for _, o := range t.Offerings {
			if t.Name == name && o.CapacityType == catalog.OnDemand {
				return o.Price
			}
		}
	}
	return 0
}

// TestWantsDedicated: only a pool that excludes shared hardware requires dedicated hardware.
func TestWantsDedicated(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		op     requirements.Operator
		values []string
		want   bool
	}{
		"in dedicated":     {requirements.In, []string{"dedicated"}, true},
		"not in default":   {requirements.NotIn, []string{"default"}, true},
		"in both":          {requirements.In, []string{"default", "dedicated"}, false},
		"in default":       {requirements.In, []string{"default"}, false},
		"any":              {requirements.Exists, nil, false},
		"in another value": {requirements.In, []string{"host"}, false},
		"not in dedicated": {requirements.NotIn, []string{"dedicated"}, false},
	} {
		reqs, problem := requirements.All(requirements.Requirement{Key: catalog.LabelTenancy, Operator: c.op, Values: c.values})
		if problem != nil {
			t.Fatal(problem)
		}
		if got := catalog.WantsDedicated(reqs); got != c.want {
			t.Errorf("%s: WantsDedicated is %t, want %t", name, got, c.want)
		}
	}
}

// TestDedicatedType: dedicated hardware has a higher on-demand price, except for bare metal, which is always dedicated.
// The spot price is the same. Reserved offerings are removed.
func TestDedicatedType(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]catalog.Price{"m5.large": 110, "m5.metal": 100} {
		in := catalog.Type{Name: name, Labels: requirements.Labels{catalog.LabelTenancy: catalog.TenancyDefault}, Offerings: []catalog.Offering{
			{Zone: "a", CapacityType: catalog.Reserved, Price: 1, Reservation: catalog.Reservation{ID: "cr-1"}},
			{Zone: "a", CapacityType: catalog.Spot, Price: 40}, {Zone: "a", CapacityType: catalog.OnDemand, Price: 100}}}
		out := in.Dedicated()
		if len(out.Offerings) != 2 || out.Offerings[0].Price != 40 || out.Offerings[1].Price != want ||
			out.Labels[catalog.LabelTenancy] != "dedicated" ||
			in.Labels[catalog.LabelTenancy] != "default" || in.Offerings[2].Price != 100 {
			t.Errorf("%s: the dedicated type is %+v, want spot at 40 and on-demand at %d;\nthe original, which must not change: %+v",
				name, out, want, in)
		}
	}
}

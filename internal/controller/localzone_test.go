package controller

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/controller/offerings"
	"github.com/joiner-sh/joiner/internal/emulator/world"
	"github.com/joiner-sh/joiner/internal/model/catalog"
)

var boston = catalog.Zone{Name: "us-east-1-bos-1a", ID: "use1-bos1-az1"}

// localRig returns a rig with a subnet in a local zone, which offers only m5.large. The pool is restricted to this
// zone, and accepts spot and on-demand.
func localRig(t *testing.T) *rig {
	t.Helper()
	r := newRig(t, "m5.large", "c5.large")
	r.Do(func(w *world.World, _ time.Time) {
		market := w.Market(testRegion)
		c5, _ := market.Stock("c5.large")
		for _, z := range r.estate.Region.Zones() { // all zones but the local one, which is added below
			c5.Zones = append(c5.Zones, z.Name)
		}
		market.Offer(c5)
		r.estate.Region.AddZone(boston)
		subnet, err := r.estate.Region.Network.CreateSubnet(r.estate.VPC.ID, boston.Name, "10.0.128.0/19",
			map[string]string{"karpenter.sh/discovery": testCluster})
		if err != nil {
			t.Fatal(err)
		}
		r.estate.PrivateSubnets = append(r.estate.PrivateSubnets, subnet)
	})
	pool := r.pool(t)
	pool.Spec.Template.Spec.Requirements = karpv1.Requirements{
		{Key: karpv1.LabelCapacityType, Operator: corev1.NodeSelectorOpIn,
			Values: []string{karpv1.CapacityTypeOnDemand, karpv1.CapacityTypeSpot}},
		{Key: corev1.LabelTopologyZone, Operator: corev1.NodeSelectorOpIn, Values: []string{boston.Name}},
	}
	if err := r.api.Update(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	offered, err := r.Market.EC2.Market(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	r.Market.Offered = offered
	r.reconcileClassAndPool(t)
	return r
}

// TestLocalZone: in a local zone, only instance types that the zone offers are launched. They are on-demand, because
// there is no spot price.
func TestLocalZone(t *testing.T) {
	t.Parallel()
	r := localRig(t)
	if zones := offerings.ZonesOf(r.class(t)); !slices.Contains(zones, boston) || len(zones) != 4 {
		t.Fatalf("the class has the zones %v, want four, one of them boston", zones)
	}
	r.addLargePods(t, "web", 2)
	r.plan(t)
	r.reconcileClaims(t)
	if n := len(r.instances()); n != 2 {
		t.Fatalf("%d instances, want 2\n%s", n, r.log)
	}
	for _, i := range r.instances() {
		if i.Zone != boston.Name || i.Type != "m5.large" || i.Spot {
			t.Errorf("launched %s in %s, spot: %t; want m5.large in boston, on-demand", i.Type, i.Zone, i.Spot)
		}
	}
	labels := r.claims(t)[0].Labels
	if labels[corev1.LabelTopologyZone] != boston.Name || labels[catalog.LabelZoneID] != boston.ID {
		t.Errorf("the claim has the labels %v, want the local zone and its ID", labels)
	}
}

// TestLocalZoneSpot: only types with a spot price in the local zone are launched as spot.
func TestLocalZoneSpot(t *testing.T) {
	t.Parallel()
	r := localRig(t)
	r.Do(func(w *world.World, now time.Time) {
		w.Market(testRegion).SetSpotPrice(now.Add(-time.Hour), "m5.large", boston.Name, catalog.Dollar/50)
	})
	if err := r.Market.Prices.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.Market.Version++
	c, ok := r.Market.Catalog(r.class(t), r.now())
	if !ok {
		t.Fatal("there is no market")
	}
	got := map[string]int{}
	for _, typ := range c.Types {
		for _, o := range typ.Offerings {
			if o.Zone == boston.Name {
				got[typ.Name+" "+o.CapacityType]++
			}
		}
	}
	if len(got) != 2 || got["m5.large spot"] != 1 || got["m5.large on-demand"] != 1 {
		t.Errorf("offerings in the local zone: %v, want one spot and one on-demand of m5.large", got)
	}
	r.addLargePods(t, "web", 1)
	r.plan(t)
	r.reconcileClaims(t)
	if i := r.instances(); len(i) != 1 || !i[0].Spot || i[0].Zone != boston.Name {
		t.Errorf("launched %+v, want one spot instance in the local zone\n%s", i, r.log)
	}
}

package offering_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/joiner-sh/joiner/internal/model/bitset"
	"github.com/joiner-sh/joiner/internal/scenario"
	"github.com/joiner-sh/joiner/internal/scheduling/offering"
	"github.com/joiner-sh/joiner/internal/scheduling/podgroup"
)

// market has two types in two zones, two capacity types, and a capacity reservation.
const market = `# A market.
catalog
  m5.large us-east-1a spot 0.0400 cpu=2 mem=8Gi pods=110
  m5.large us-east-1b spot 0.0300
  m5.large us-east-1a on-demand 0.0960
  m5.large us-east-1a reserved 0.00000001 reservation=cr-1 left=2
  m5.xlarge us-east-1a spot 0.0700 cpu=4 mem=16Gi pods=110
  m5.xlarge us-east-1a on-demand 0.1920
  m5.xlarge us-east-1b on-demand 0.1920 short
`

func stock(t *testing.T, text string) (*offering.Stock, *podgroup.Queue) {
	t.Helper()
	s, err := scenario.Parse(market + text)
	if err != nil {
		t.Fatal(err)
	}
	q := podgroup.New(s.Snapshot)
	return offering.New(s.Snapshot, s.Market, func() *podgroup.Queue { return q }), q
}

// names returns the offers as text: pool:type/zone/capacity type, with "on" for on-demand.
func names(st *offering.Stock, numbers []int) string {
	var out []string
	for _, o := range numbers {
		capacityType, _, _ := strings.Cut(st.Offers[o].CapacityType, "-")
		out = append(out, st.PoolOf(o).Name+":"+strings.TrimPrefix(st.TypeOf(o).Name, "m5.")+"/"+
			strings.TrimPrefix(st.Offers[o].Zone, "us-east-1")+"/"+capacityType)
	}
	return strings.Join(out, " ")
}

func members(s bitset.Set) (out []int) {
	s.Each(func(i int) { out = append(out, i) })
	return out
}

// TestStages checks the order of stages: heavier pools first, and the lightest preference dropped first. Each stage has
// an offer with room for the pod, and no offer that is unavailable or over a limit.
func TestStages(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, text string
		want       []string
	}{
		{"weights", `pools
  light
    require karpenter.sh/capacity-type In on-demand
  heavy weight=5
    require karpenter.sh/capacity-type In spot
pods
  web cpu=1 mem=1Gi
`, []string{"heavy:large/b/spot heavy:large/a/spot heavy:xlarge/a/spot", "light:large/a/on light:xlarge/a/on"}},
		{"preferences", `pools
  all
    require karpenter.sh/capacity-type In spot on-demand
pods
  web cpu=1 mem=1Gi
    prefer 1 topology.kubernetes.io/zone In us-east-1b
    prefer 9 karpenter.sh/capacity-type In on-demand
`, []string{"all:large/a/on all:xlarge/a/on", "all:large/b/spot all:large/a/spot all:large/a/on all:xlarge/a/spot all:xlarge/a/on"}},
		// web gets no stage: in zone b, only m5.large is available, with 1 CPU beside the DaemonSet pod.
		{"room", `pools
  all
    require karpenter.sh/capacity-type In spot on-demand
daemons
  kube-system/logs cpu=1 mem=100Mi
pods
  web cpu=1500m mem=1Gi
    require topology.kubernetes.io/zone In us-east-1b
  web-a cpu=1500m mem=1Gi
`, []string{"all:large/b/spot all:large/a/spot all:large/a/on all:xlarge/a/spot all:xlarge/a/on"}},
		{"limits", `pools
  all limit:cpu=3
    require karpenter.sh/capacity-type In spot on-demand
pods
  web cpu=1 mem=1Gi
`, []string{"all:large/b/spot all:large/a/spot all:large/a/on"}},
		{"soft taints", `pools
  plain
    require karpenter.sh/capacity-type In on-demand
  soft
    require karpenter.sh/capacity-type In spot
    taint slow:PreferNoSchedule
pods
  web cpu=1 mem=1Gi
`, []string{"plain:large/a/on plain:xlarge/a/on",
			"plain:large/a/on plain:xlarge/a/on soft:large/b/spot soft:large/a/spot soft:xlarge/a/spot"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			st, q := stock(t, c.text)
			a := st.Accept(q)
			var got []string
			for i := range q.Classes {
				for _, set := range a.Stages(&q.Classes[i]) {
					got = append(got, names(st, members(a.Sets[set])))
				}
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("the stages are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(c.want, "\n"))
			}
		})
	}
}

// TestVariants checks that a pool that allows several values of a label has one variant for each value that some pod
// distinguishes.
func TestVariants(t *testing.T) {
	t.Parallel()
	st, _ := stock(t, `pools
  all
    require team In a b c d
    require colour In red green
    require karpenter.sh/capacity-type In on-demand
pods
  web cpu=1 mem=1Gi
    require team In b
  db cpu=1 mem=2Gi
    require team NotIn c
`)
	var got []string
	for _, v := range st.Variants {
		got = append(got, v.Chosen["team"]+v.Chosen["colour"])
		if _, joined := v.LabelsAtLaunch()["karpenter.sh/initialized"]; joined || v.LabelsAtLaunch()["team"] != v.Chosen["team"] {
			t.Errorf("the labels at launch are %v, want team=%s, and not karpenter.sh/initialized", v.LabelsAtLaunch(), v.Chosen["team"])
		}
	}
	// For the pods, d is like a, and all colours are alike.
	if want := []string{"agreen", "bgreen", "cgreen"}; !slices.Equal(got, want) {
		t.Errorf("the variants are %v, want %v", got, want)
	}
}

// TestReservation checks that a reserved offering is never an alternative of other offerings, and its only alternative
// is itself.
func TestReservation(t *testing.T) {
	t.Parallel()
	st, q := stock(t, `pools
  all
    require karpenter.sh/capacity-type In reserved spot on-demand
nodes
  coming pool=all cpu=2 mem=8Gi pods=110 joining
    label karpenter.k8s.aws/capacity-reservation-id=cr-1
pods
  web cpu=1 mem=1Gi
`)
	if len(st.Reservations) != 1 || st.Reservations[0].Left != 1 || len(st.Reservations[0].Offers) != 1 {
		t.Fatalf("the reservations are %+v, want one with Left 1, because node coming uses the other instance", st.Reservations)
	}
	reserved := st.Reservations[0].Offers[0]
	ask := q.Classes[0].Ask
	if got := names(st, members(st.Alternatives(reserved, ask, nil))); got != "all:large/a/reserved" {
		t.Errorf("the alternatives of the reserved offering are %s, want only itself", got)
	}
	for _, o := range st.VariantOf(reserved).ByPrice {
		if all := st.Alternatives(o, ask, nil); all.Has(reserved) || !all.Has(o) {
			t.Errorf("the alternatives of %s are %s, want itself and no reserved offering", names(st, []int{o}), names(st, members(all)))
		}
	}
	for _, l := range st.Accept(q).Lots([]int{0}) {
		if l.Offer == reserved {
			t.Error("the reserved offering is in a lot, want it in none")
		}
	}
}

// TestChoices checks that the combinations of the types, zones and capacity types of the choices contain no
// unsuitable offering.
func TestChoices(t *testing.T) {
	t.Parallel()
	st, q := stock(t, `pools
  all
    require karpenter.sh/capacity-type In spot on-demand
pods
  web cpu=1 mem=1Gi
`)
	all := st.Alternatives(0, q.Classes[0].Ask, nil)
	if got := len(st.Choices(0, all, false)); got != all.Count() {
		t.Errorf("%d of %d alternatives are choices, want all", got, all.Count())
	}
	for removed := range st.Offers {
		if !st.Offers[removed].Available {
			continue
		}
		some := all.Clone()
		some.Remove(removed)
		kept := st.Choices(some.Next(0), some, false)
		if len(kept) == 0 || !slices.IsSortedFunc(kept, func(a, b int) int { return int(st.Offers[a].Price - st.Offers[b].Price) }) {
			t.Errorf("without %s the choices are %s, want at least one, cheapest first", names(st, []int{removed}), names(st, kept))
		}
		has := func(same func(o int) bool) bool { return slices.ContainsFunc(kept, same) }
		x := &st.Offers[removed]
		if has(func(o int) bool { return st.TypeOf(o) == st.TypeOf(removed) }) &&
			has(func(o int) bool { return st.Offers[o].Zone == x.Zone }) &&
			has(func(o int) bool { return st.Offers[o].CapacityType == x.CapacityType }) {
			t.Errorf("the unsuitable %s is a combination of the choices %s, want it excluded", names(st, []int{removed}), names(st, kept))
		}
	}
}

// TestLots checks that offerings that no pod distinguishes are one lot, with the cheapest as its offer.
func TestLots(t *testing.T) {
	t.Parallel()
	st, q := stock(t, `pools
  all
    require karpenter.sh/capacity-type In spot on-demand
pods
  any cpu=1 mem=1Gi
  steady cpu=1 mem=2Gi
    require karpenter.sh/capacity-type In on-demand
`)
	a := st.Accept(q)
	lots := func(sets ...int) string {
		var offers []int
		for _, l := range a.Lots(sets) {
			offers = append(offers, l.Offer)
		}
		return names(st, offers)
	}
	// Steady is the first class, because it requests more.
	onDemand, anything := a.Hard[q.Classes[0].Sig], a.Hard[q.Classes[1].Sig]
	if got, want := lots(anything), "all:large/b/spot all:xlarge/a/spot"; got != want {
		t.Errorf("the lots of one class are %s, want %s", got, want)
	}
	if got, want := lots(anything, onDemand), "all:large/b/spot all:large/a/on all:xlarge/a/spot all:xlarge/a/on"; got != want {
		t.Errorf("the lots of both classes are %s, want %s", got, want)
	}
}

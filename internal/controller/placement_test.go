package controller

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	awsv1 "github.com/joiner-sh/joiner/api/aws/v1"
	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/aws/ec2"
	"github.com/joiner-sh/joiner/internal/controller/offerings"
	"github.com/joiner-sh/joiner/internal/emulator/world"
	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/model/requirements"
)

// placedRig is a rig whose class selects a placement group by its name, once it has been reconciled.
func placedRig(t *testing.T, q world.PlacementGroup, instanceTypes ...string) (*rig, *world.PlacementGroup) {
	t.Helper()
	r := newRig(t, instanceTypes...)
	q.Name = "hpc"
	var made *world.PlacementGroup
	r.Do(func(_ *world.World, now time.Time) {
		var err error
		if made, err = r.estate.Region.PlacementGroups.Create(now, q); err != nil {
			t.Fatal(err)
		}
	})
	class := r.class(t)
	class.Spec.PlacementGroupSelector = &awsv1.PlacementGroupSelector{Name: &made.Name}
	if err := r.api.Update(t.Context(), class); err != nil {
		t.Fatal(err)
	}
	r.classes(t)
	if c := r.class(t).StatusConditions(); !c.IsTrue(awsv1.ConditionPlacementGroupReady) || !c.IsReady() {
		t.Fatalf("the class is not ready: %+v", r.class(t).Status.Conditions)
	}
	return r, made
}

// alone creates n pending pods that fill an m5.large each.
func (r *rig) alone(t *testing.T, name string, n int) {
	t.Helper()
	for i := range n {
		r.pending(t, fmt.Sprintf("%s-%d", name, i), "1500m", "2Gi")
	}
}

// inZones counts the running instances by zone.
func (r *rig) inZones() map[string]int {
	out := map[string]int{}
	for _, i := range r.instances() {
		out[i.Zone]++
	}
	return out
}

// TestClusterGroupIsOneZone: all instances of a cluster group are launched in one zone at the first attempt, of types that may be in it.
// Later launches use the same zone, also after a restart.
func TestClusterGroupIsOneZone(t *testing.T) {
	t.Parallel()
	r, made := placedRig(t, world.PlacementGroup{Strategy: world.ClusterGroup}, "m5.large", "t3.large")
	r.alone(t, "web", 4)
	r.plan(t)
	r.work(t)
	zones := r.inZones()
	if len(zones) != 1 || len(r.instances()) != 4 {
		t.Fatalf("instances by zone: %v\n%s", zones, r.log)
	}
	for _, i := range r.instances() {
		if i.PlacementGroupID != made.ID || i.Type != "m5.large" {
			t.Errorf("%s runs in group %q", i.Type, i.PlacementGroupID)
		}
	}
	var asked []world.Asked
	r.Do(func(*world.World, time.Time) { asked = r.estate.Region.Launches.Asked() })
	if len(asked) != 4 {
		t.Errorf("%d launches were asked for, want 4", len(asked))
	}
	for _, c := range r.claims(t) {
		if c.Labels[awsv1.LabelPlacementGroupID] != made.ID {
			t.Errorf("claim %s is labelled with group %q", c.Name, c.Labels[awsv1.LabelPlacementGroupID])
		}
	}
	r.join(t)
	r.work(t)
	if id := r.nodes(t)[0].Labels[awsv1.LabelPlacementGroupID]; id != made.ID {
		t.Errorf("the Node is labelled with group %q, want %s", id, made.ID)
	}

	r.start(t)
	r.classes(t)
	r.alone(t, "more", 2)
	r.plan(t)
	r.work(t)
	if again := r.inZones(); len(again) != 1 || len(r.instances()) != 6 {
		t.Errorf("later, instances by zone: %v, before %v\n%s", again, zones, r.log)
	}
}

// TestClusterGroupGoesElsewhere: if the first zone has no capacity, the group starts in another one.
func TestClusterGroupGoesElsewhere(t *testing.T) {
	t.Parallel()
	r, _ := placedRig(t, world.PlacementGroup{Strategy: world.ClusterGroup}, "m5.large")
	r.Do(func(*world.World, time.Time) {
		r.estate.Region.Capacity.Limit(world.Pool{Zone: r.estate.PrivateSubnets[0].Zone.Name}, 0)
	})
	r.alone(t, "web", 3)
	for range 6 {
		r.plan(t)
		r.work(t)
	}
	if zones := r.inZones(); len(zones) != 1 || zones[r.estate.PrivateSubnets[0].Zone.Name] != 0 || len(r.instances()) != 3 {
		t.Errorf("instances by zone: %v\n%s", zones, r.log)
	}
}

// TestSpreadGroupIsSevenPerZone: pods beyond the limit of a spread group wait, without repeated launch requests. A terminated
// instance makes room.
func TestSpreadGroupIsSevenPerZone(t *testing.T) {
	t.Parallel()
	r, _ := placedRig(t, world.PlacementGroup{Strategy: world.SpreadGroup}, "m5.large")
	r.alone(t, "web", 23)
	for range 6 {
		r.plan(t)
		r.work(t)
	}
	zones := r.inZones()
	if len(r.instances()) != 21 || !slices.Equal(slices.Sorted(maps.Values(zones)), []int{7, 7, 7}) {
		t.Fatalf("instances by zone: %v\n%s", zones, r.log)
	}
	calls := func() (n int) {
		r.Do(func(*world.World, time.Time) { n = len(r.estate.Region.Launches.Asked()) })
		return n
	}
	before := calls()
	for range 3 {
		r.classes(t)
		r.plan(t)
		r.work(t)
	}
	if n := calls(); n != before {
		t.Errorf("EC2 was asked %d times more for what cannot be had", n-before)
	}

	var left world.Instance
	r.Do(func(_ *world.World, now time.Time) {
		left = r.estate.Region.Instances.All()[0]
		if _, _, err := r.estate.Region.Instances.Terminate(now, []string{left.ID}); err != nil {
			t.Error(err)
		}
	})
	r.ahead = 2 * offerings.PlacedShown
	r.classes(t)
	closed := r.Market.Placements.Closed(r.now(), left.PlacementGroupID, offerings.ZonesOf(r.class(t)))
	if slices.Contains(closed, left.Zone) || len(closed) != 2 {
		t.Errorf("when one has left %s, closed are %v", left.Zone, closed)
	}
}

// TestPartitionGroup: a claim that requires a partition is launched there, and for one that accepts all of them EC2 chooses. A claim
// that requires a missing partition is reported.
func TestPartitionGroup(t *testing.T) {
	t.Parallel()
	r, made := placedRig(t, world.PlacementGroup{Strategy: world.PartitionGroup, Partitions: 3}, "m5.large")
	r.alone(t, "web", 3)
	r.plan(t)
	claims := r.claims(t)
	if len(claims) != 3 {
		t.Fatalf("%d claims\n%s", len(claims), r.log)
	}
	asks := map[string][]string{claims[0].Name: {"2"}, claims[1].Name: {"1", "2", "3"}, claims[2].Name: {"5"}}
	for i := range claims {
		claims[i].Spec.Requirements = append(claims[i].Spec.Requirements, karpv1.Requirement{
			Key: awsv1.LabelPlacementGroupPartition, Operator: corev1.NodeSelectorOpIn, Values: asks[claims[i].Name]})
		if err := r.api.Update(t.Context(), &claims[i]); err != nil {
			t.Fatal(err)
		}
	}
	r.work(t)
	got := map[string]string{}
	for _, c := range r.claims(t) {
		for _, i := range r.instances() {
			if strings.HasSuffix(c.Status.ProviderID, i.ID) {
				got[c.Name] = fmt.Sprint(i.PlacementGroupID == made.ID, " in ", i.Partition, " labelled ", c.Labels[awsv1.LabelPlacementGroupPartition])
			}
		}
	}
	want := map[string]string{claims[0].Name: "true in 2 labelled 2", claims[1].Name: "true in 1 labelled "}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("launched (-want +got):\n%s\n%s", diff, r.log)
	}
	if told := r.events.has("NodeClaim", "placement-group-partition"); !strings.Contains(told, claims[2].Name) {
		t.Errorf("events: %q", told)
	}
	r.join(t)
	r.work(t)
	if err := r.Sweeper.Pass(t.Context(), r.now()); err != nil {
		t.Fatal(err)
	}
	for _, c := range r.claims(t) {
		if c.Name == claims[1].Name && c.Labels[awsv1.LabelPlacementGroupPartition] != "1" {
			t.Errorf("the partition that EC2 chose is not on the claim: %v", c.Labels)
		}
	}
	for _, n := range r.nodes(t) {
		if n.Labels[awsv1.LabelPlacementGroupPartition] == "" {
			t.Errorf("Node %s is labelled with no partition", n.Name)
		}
	}
}

// TestPoolsOfPartitions: pods spread over the partitions that their pool lists, and a pool limited to one partition gets it.
func TestPoolsOfPartitions(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		values  []string
		spreads bool
		want    map[int]int
	}{
		"one":    {[]string{"2"}, false, map[int]int{2: 3}},
		"spread": {[]string{"1", "2", "3"}, true, map[int]int{1: 1, 2: 1, 3: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, _ := placedRig(t, world.PlacementGroup{Strategy: world.PartitionGroup, Partitions: 3}, "m5.large")
			pool := r.pool(t)
			pool.Spec.Template.Spec.Requirements = append(pool.Spec.Template.Spec.Requirements, karpv1.Requirement{
				Key: awsv1.LabelPlacementGroupPartition, Operator: corev1.NodeSelectorOpIn, Values: c.values})
			if err := r.api.Update(t.Context(), pool); err != nil {
				t.Fatal(err)
			}
			r.classes(t)
			r.alone(t, "web", 3)
			var pods corev1.PodList
			if err := r.api.List(t.Context(), &pods); err != nil {
				t.Fatal(err)
			}
			for i := range pods.Items {
				pod := &pods.Items[i]
				pod.Labels = map[string]string{"app": "web"}
				if c.spreads {
					pod.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
						MaxSkew: 1, TopologyKey: awsv1.LabelPlacementGroupPartition, WhenUnsatisfiable: corev1.DoNotSchedule,
						LabelSelector: &metav1.LabelSelector{MatchLabels: pod.Labels}}}
				}
				if err := r.api.Update(t.Context(), pod); err != nil {
					t.Fatal(err)
				}
			}
			r.plan(t)
			r.work(t)
			got := map[int]int{}
			for _, i := range r.instances() {
				got[i.Partition]++
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("by partition (-want +got):\n%s\n%s", diff, r.log)
			}
			for _, claim := range r.claims(t) {
				if claim.Labels[awsv1.LabelPlacementGroupPartition] == "" {
					t.Errorf("claim %s has no label with its partition", claim.Name)
				}
			}
		})
	}
}

// TestPlacementGroupGoes: the class is not ready when its group is deleted, but stays ready when AWS does not answer.
func TestPlacementGroupGoes(t *testing.T) {
	t.Parallel()
	r, _ := placedRig(t, world.PlacementGroup{Strategy: world.SpreadGroup}, "m5.large")
	condition := func(want, part string) {
		t.Helper()
		if _, err := r.NodeClasses.Reconcile(t.Context(), named("default")); err != nil {
			t.Fatal(err)
		}
		got, _ := r.class(t).StatusConditions().Find(awsv1.ConditionPlacementGroupReady)
		if text := string(got.Status) + " " + got.Reason; text != want || !strings.Contains(got.Message, part) {
			t.Errorf("%s: %s, want %s with %q", text, got.Message, want, part)
		}
	}
	r.Do(func(w *world.World, _ time.Time) {
		w.Faults.Denials = []world.Denial{{Call: "ec2:DescribePlacementGroups"}}
	})
	condition("True PlacementGroupReady", "")
	r.Do(func(w *world.World, _ time.Time) {
		w.Faults.Denials = nil
		r.estate.Region.PlacementGroups.ByNameOrID("hpc").State = "deleting"
	})
	condition("False PlacementGroupNotFound", "deleting")
	r.Do(func(w *world.World, _ time.Time) {
		w.Faults.Denials = []world.Denial{{Call: "ec2:DescribePlacementGroups"}}
	})
	condition("False PlacementGroupResolutionFailed", "DescribePlacementGroups")
}

// TestPlacedReservations: launches into a cluster group use the reservations in it, and no reservations outside of it.
func TestPlacedReservations(t *testing.T) {
	t.Parallel()
	r, made := placedRig(t, world.PlacementGroup{Strategy: world.ClusterGroup}, "m5.large")
	ids := map[string]string{}
	r.Do(func(_ *world.World, now time.Time) {
		for _, group := range []string{"", made.Name} {
			c, err := r.estate.Region.CapacityReservations.Create(now, world.CapacityReservation{
				Type: "m5.large", Zone: r.estate.PrivateSubnets[1].Zone, Total: 1, Criteria: "targeted", Group: group,
				Tags: map[string]string{"team": "a"}})
			if err != nil {
				t.Fatal(err)
			}
			ids[group] = c.ID
		}
	})
	class, pool := r.class(t), r.pool(t)
	class.Spec.CapacityReservationSelectorTerms = []awsv1.CapacityReservationSelectorTerm{{Tags: map[string]string{"team": "a"}}}
	pool.Spec.Template.Spec.Requirements[0].Values = []string{karpv1.CapacityTypeReserved}
	if err := r.api.Update(t.Context(), class); err != nil {
		t.Fatal(err)
	}
	if err := r.api.Update(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	r.classes(t)
	r.alone(t, "web", 2)
	r.plan(t)
	r.work(t)
	if diff := cmp.Diff(map[string]int{"m5.large " + ids[made.Name]: 1}, r.running()); diff != "" {
		t.Errorf("(-want +got):\n%s\n%s", diff, r.log)
	}
}

// TestPlacementBook: a launched instance counts at once, and only once. The zone of a cluster group is that of its
// first launch, until that fails.
func TestPlacementBook(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	class := testClass()
	class.Spec.PlacementGroupSelector = &awsv1.PlacementGroupSelector{ID: aws.String("pg-1")}
	zones := []catalog.Zone{{Name: "a"}, {Name: "b"}}
	pickIn := func(zones ...string) []offerings.Pick {
		var out []offerings.Pick
		for _, z := range zones {
			out = append(out, offerings.Pick{Offering: catalog.Offering{Zone: z}})
		}
		return out
	}
	var b offerings.PlacementBook
	if _, ok := b.Of(class); ok {
		t.Error("a group is known before EC2 was asked")
	}
	group := ec2.PlacementGroup{ID: "pg-1", Strategy: catalog.PlaceCluster}
	if !b.Saw(now, class, group) {
		t.Error("the first answer does not count as more room")
	}
	if got := b.Settle(now, "pg-1", "launch-1", pickIn("b", "a", "b")); len(got) != 2 || got[0].Offering.Zone != "b" {
		t.Errorf("the first launch may request %+v", got)
	}
	if got := b.Settle(now, "pg-1", "launch-2", pickIn("a")); len(got) != 0 {
		t.Errorf("the second launch may request %+v", got)
	}
	if got := b.Closed(now, "pg-1", zones); !slices.Equal(got, []string{"a"}) {
		t.Errorf("closed while the first is in progress: %v", got)
	}
	b.Over("launch-1")
	if got := b.Closed(now, "pg-1", zones); len(got) != 0 {
		t.Errorf("closed when the first has failed: %v", got)
	}
	b.Take(now, ec2.Instance{ID: "i-1", Zone: "a", Placement: ec2.PlacementRef{Group: "pg-1"}})
	if got := b.Closed(now, "pg-1", zones); !slices.Equal(got, []string{"b"}) {
		t.Errorf("closed when one was launched in a: %v", got)
	}

	group.Strategy, group.Members = catalog.PlaceSpread, map[string]string{"i-1": "a"}
	for n := range 5 {
		group.Members["i-old-"+strconv.Itoa(n)] = "a"
	}
	b.Saw(now, class, group)
	if got := b.Closed(now, "pg-1", zones); len(got) != 0 {
		t.Errorf("with six, one of them launched lately, closed are %v", got)
	}
	b.Take(now, ec2.Instance{ID: "i-2", Zone: "a", Placement: ec2.PlacementRef{Group: "pg-1"}})
	if got := b.Closed(now, "pg-1", zones); !slices.Equal(got, []string{"a"}) {
		t.Errorf("with seven, closed are %v", got)
	}
	if !b.Saw(now.Add(2*offerings.PlacedShown), class, group) || len(b.Closed(now.Add(2*offerings.PlacedShown), "pg-1", zones)) != 0 {
		t.Error("an instance that EC2 does not show after two minutes still counts")
	}
	class.Spec.PlacementGroupSelector.ID = aws.String("pg-2")
	if _, ok := b.Of(class); ok {
		t.Error("a group found for another selector counts")
	}
}

// TestPlacementOf: a partition is chosen only if the claim does not accept all of them.
func TestPlacementOf(t *testing.T) {
	t.Parallel()
	parts := ec2.PlacementGroup{ID: "pg-1", Strategy: catalog.PlacePartition, Partitions: 3}
	plain := ec2.PlacementGroup{ID: "pg-2", Strategy: catalog.PlaceCluster}
	is := func(op requirements.Operator, values ...string) []requirements.Requirement {
		return []requirements.Requirement{{Key: catalog.LabelPartition, Operator: op, Values: values}}
	}
	for name, c := range map[string]struct {
		group ec2.PlacementGroup
		label string
		needs []requirements.Requirement
		want  []int32 // any of them; empty: an error
	}{
		"no requirement":                    {parts, "", nil, []int32{0}},
		"all partitions":                    {parts, "", is(requirements.In, "1", "2", "3"), []int32{0}},
		"one partition":                     {parts, "", is(requirements.In, "2"), []int32{2}},
		"two partitions":                    {parts, "", is(requirements.NotIn, "2"), []int32{1, 3}},
		"a label":                           {parts, "3", is(requirements.In, "1", "2", "3"), []int32{3}},
		"a missing partition":               {parts, "", is(requirements.In, "4"), nil},
		"no partitions":                     {plain, "", is(requirements.In, "1"), nil},
		"DoesNotExist in a partition group": {plain, "", is(requirements.DoesNotExist), []int32{0}},
		"no group":                          {ec2.PlacementGroup{}, "", nil, []int32{0}},
	} {
		accepted, wrong := requirements.All(c.needs...)
		if wrong != nil {
			t.Fatal(wrong)
		}
		for uid := range 5 {
			claim := &karpv1.NodeClaim{}
			claim.UID, claim.Labels = types.UID(strconv.Itoa(uid)), map[string]string{}
			if c.label != "" {
				claim.Labels[catalog.LabelPartition] = c.label
			}
			ref, err := offerings.PlacementOf(claim, c.group, accepted)
			if len(c.want) == 0 != (err != nil) || err == nil && (!slices.Contains(c.want, ref.Partition) || ref.Group != c.group.ID) {
				t.Errorf("%s: %+v, %v, want any of %v", name, ref, err, c.want)
			}
		}
	}
}

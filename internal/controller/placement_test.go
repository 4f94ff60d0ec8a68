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

// placedRig creates a placement group from spec, with the name hpc. It returns the group, and a rig whose class selects
// the group and is ready.
func placedRig(t *testing.T, spec world.PlacementGroup, instanceTypes ...string) (*rig, *world.PlacementGroup) {
	t.Helper()
	r := newRig(t, instanceTypes...)
	spec.Name = "hpc"
	var group *world.PlacementGroup
	r.Do(func(_ *world.World, now time.Time) {
		var err error
		if group, err = r.estate.Region.PlacementGroups.Create(now, spec); err != nil {
			t.Fatal(err)
		}
	})
	class := r.class(t)
	class.Spec.PlacementGroupSelector = &awsv1.PlacementGroupSelector{Name: &group.Name}
	if err := r.api.Update(t.Context(), class); err != nil {
		t.Fatal(err)
	}
	r.reconcileClassAndPool(t)
	if c := r.class(t).StatusConditions(); !c.IsTrue(awsv1.ConditionPlacementGroupReady) || !c.IsReady() {
		t.Fatalf("the class is not ready: %+v", r.class(t).Status.Conditions)
	}
	return r, group
}

// addLargePods creates n pending pods, each of which fills an m5.large.
func (r *rig) addLargePods(t *testing.T, name string, n int) {
	t.Helper()
	for i := range n {
		r.addPendingPod(t, fmt.Sprintf("%s-%d", name, i), "1500m", "2Gi")
	}
}

func (r *rig) countByZone() map[string]int {
	out := map[string]int{}
	for _, i := range r.instances() {
		out[i.Zone]++
	}
	return out
}

// TestClusterGroupIsOneZone: all instances of a cluster group are launched in one zone at the first attempt, with types
// that cluster groups allow. Later launches use the same zone, also after a restart.
func TestClusterGroupIsOneZone(t *testing.T) {
	t.Parallel()
	r, group := placedRig(t, world.PlacementGroup{Strategy: world.ClusterGroup}, "m5.large", "t3.large")
	r.addLargePods(t, "web", 4)
	r.plan(t)
	r.reconcileClaims(t)
	zones := r.countByZone()
	if len(zones) != 1 || len(r.instances()) != 4 {
		t.Fatalf("instances by zone: %v, want 4 in one zone\n%s", zones, r.log)
	}
	for _, i := range r.instances() {
		if i.PlacementGroupID != group.ID || i.Type != "m5.large" {
			t.Errorf("an instance of type %s runs in group %q, want m5.large in the selected group", i.Type, i.PlacementGroupID)
		}
	}
	var calls []world.FleetCall
	r.Do(func(*world.World, time.Time) { calls = r.estate.Region.Launches.FleetCalls() })
	if len(calls) != 4 {
		t.Errorf("%d launch requests, want 4", len(calls))
	}
	for _, c := range r.claims(t) {
		if c.Labels[awsv1.LabelPlacementGroupID] != group.ID {
			t.Errorf("claim %s is labelled with group %q, want the selected group", c.Name, c.Labels[awsv1.LabelPlacementGroupID])
		}
	}
	r.join(t)
	r.reconcileClaims(t)
	if id := r.nodes(t)[0].Labels[awsv1.LabelPlacementGroupID]; id != group.ID {
		t.Errorf("the Node is labelled with group %q, want %s", id, group.ID)
	}

	r.start(t)
	r.reconcileClassAndPool(t)
	r.addLargePods(t, "more", 2)
	r.plan(t)
	r.reconcileClaims(t)
	if later := r.countByZone(); len(later) != 1 || len(r.instances()) != 6 {
		t.Errorf("instances by zone after the restart: %v, before: %v; want 6 in the same zone\n%s", later, zones, r.log)
	}
}

// TestClusterGroupGoesElsewhere: if the first zone has no capacity, the group starts in another one.
func TestClusterGroupGoesElsewhere(t *testing.T) {
	t.Parallel()
	r, _ := placedRig(t, world.PlacementGroup{Strategy: world.ClusterGroup}, "m5.large")
	r.Do(func(*world.World, time.Time) {
		r.estate.Region.Capacity.Limit(world.CapacityPool{Zone: r.estate.PrivateSubnets[0].Zone.Name}, 0)
	})
	r.addLargePods(t, "web", 3)
	for range 6 {
		r.plan(t)
		r.reconcileClaims(t)
	}
	if zones := r.countByZone(); len(zones) != 1 || zones[r.estate.PrivateSubnets[0].Zone.Name] != 0 || len(r.instances()) != 3 {
		t.Errorf("instances by zone: %v, want 3 in one zone other than the first\n%s", zones, r.log)
	}
}

// TestSpreadGroupIsSevenPerZone: pods beyond the limit of a spread group wait, and no launch is requested for them.
// After an instance was terminated, its zone can be used again.
func TestSpreadGroupIsSevenPerZone(t *testing.T) {
	t.Parallel()
	r, _ := placedRig(t, world.PlacementGroup{Strategy: world.SpreadGroup}, "m5.large")
	r.addLargePods(t, "web", 23)
	for range 6 {
		r.plan(t)
		r.reconcileClaims(t)
	}
	zones := r.countByZone()
	if len(r.instances()) != 21 || !slices.Equal(slices.Sorted(maps.Values(zones)), []int{7, 7, 7}) {
		t.Fatalf("instances by zone: %v, want 7 in each of three\n%s", zones, r.log)
	}
	calls := func() (n int) {
		r.Do(func(*world.World, time.Time) { n = len(r.estate.Region.Launches.FleetCalls()) })
		return n
	}
	before := calls()
	for range 3 {
		r.reconcileClassAndPool(t)
		r.plan(t)
		r.reconcileClaims(t)
	}
	if n := calls(); n != before {
		t.Errorf("%d launch requests although the group is full, want none", n-before)
	}

	var ended world.Instance
	r.Do(func(_ *world.World, now time.Time) {
		ended = r.estate.Region.Instances.All()[0]
		if _, _, err := r.estate.Region.Instances.Terminate(now, []string{ended.ID}); err != nil {
			t.Error(err)
		}
	})
	r.ahead = 2 * offerings.MaxMemberDelay
	r.reconcileClassAndPool(t)
	closed := r.Market.Placements.Closed(r.now(), ended.PlacementGroupID, offerings.ZonesOf(r.class(t)))
	if slices.Contains(closed, ended.Zone) || len(closed) != 2 {
		t.Errorf("an instance in %s was terminated, and the zones without room are %v; want the two others", ended.Zone, closed)
	}
}

// TestPartitionGroup: a claim that requires a partition is launched in it. If a claim accepts all partitions, EC2
// chooses one. A claim that requires a missing partition gets an event.
func TestPartitionGroup(t *testing.T) {
	t.Parallel()
	r, group := placedRig(t, world.PlacementGroup{Strategy: world.PartitionGroup, Partitions: 3}, "m5.large")
	r.addLargePods(t, "web", 3)
	r.plan(t)
	claims := r.claims(t)
	if len(claims) != 3 {
		t.Fatalf("%d claims, want 3\n%s", len(claims), r.log)
	}
	partitions := map[string][]string{claims[0].Name: {"2"}, claims[1].Name: {"1", "2", "3"}, claims[2].Name: {"5"}}
	for i := range claims {
		claims[i].Spec.Requirements = append(claims[i].Spec.Requirements, karpv1.Requirement{
			Key: awsv1.LabelPlacementGroupPartition, Operator: corev1.NodeSelectorOpIn, Values: partitions[claims[i].Name]})
		if err := r.api.Update(t.Context(), &claims[i]); err != nil {
			t.Fatal(err)
		}
	}
	r.reconcileClaims(t)
	got := map[string]string{} // true if it is in the group, its partition, and the claim's label
	for _, c := range r.claims(t) {
		for _, i := range r.instances() {
			if strings.HasSuffix(c.Status.ProviderID, i.ID) {
				got[c.Name] = fmt.Sprint(i.PlacementGroupID == group.ID, " in ", i.Partition, " labelled ",
					c.Labels[awsv1.LabelPlacementGroupPartition])
			}
		}
	}
	want := map[string]string{claims[0].Name: "true in 2 labelled 2", claims[1].Name: "true in 1 labelled "}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("launched (-want +got):\n%s\n%s", diff, r.log)
	}
	if event := r.events.find("NodeClaim", "placement-group-partition"); !strings.Contains(event, claims[2].Name) {
		t.Errorf("event %q does not name %s", event, claims[2].Name)
	}
	r.join(t)
	r.reconcileClaims(t)
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
			t.Errorf("Node %s has no label with its partition", n.Name)
		}
	}
}

// TestPoolsOfPartitions: pods spread over the partitions that their pool allows. If a pool allows one partition, all of
// its instances are in this partition.
func TestPoolsOfPartitions(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		values  []string
		spreads bool
		want    map[int]int // instances by partition
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
			r.reconcileClassAndPool(t)
			r.addLargePods(t, "web", 3)
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
			r.reconcileClaims(t)
			got := map[int]int{}
			for _, i := range r.instances() {
				got[i.Partition]++
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("instances by partition (-want +got):\n%s\n%s", diff, r.log)
			}
			for _, claim := range r.claims(t) {
				if claim.Labels[awsv1.LabelPlacementGroupPartition] == "" {
					t.Errorf("claim %s has no label with its partition", claim.Name)
				}
			}
		})
	}
}

// TestPlacementGroupCondition: if EC2 denies the call, the condition stays true while the group is known. The condition
// becomes false when the group is being deleted.
func TestPlacementGroupCondition(t *testing.T) {
	t.Parallel()
	r, _ := placedRig(t, world.PlacementGroup{Strategy: world.SpreadGroup}, "m5.large")
	wantCondition := func(want, part string) {
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
	wantCondition("True PlacementGroupReady", "")
	r.Do(func(w *world.World, _ time.Time) {
		w.Faults.Denials = nil
		r.estate.Region.PlacementGroups.ByNameOrID("hpc").State = "deleting"
	})
	wantCondition("False PlacementGroupNotFound", "deleting")
	r.Do(func(w *world.World, _ time.Time) {
		w.Faults.Denials = []world.Denial{{Call: "ec2:DescribePlacementGroups"}}
	})
	wantCondition("False PlacementGroupResolutionFailed", "DescribePlacementGroups")
}

func TestPlacedReservations(t *testing.T) {
	t.Parallel()
	r, group := placedRig(t, world.PlacementGroup{Strategy: world.ClusterGroup}, "m5.large")
	ids := map[string]string{} // of the reservations, by their group
	r.Do(func(_ *world.World, now time.Time) {
		for _, name := range []string{"", group.Name} {
			c, err := r.estate.Region.CapacityReservations.Create(now, world.CapacityReservation{
				Type: "m5.large", Zone: r.estate.PrivateSubnets[1].Zone, Total: 1, Criteria: "targeted", Group: name,
				Tags: map[string]string{"team": "a"}})
			if err != nil {
				t.Fatal(err)
			}
			ids[name] = c.ID
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
	r.reconcileClassAndPool(t)
	r.addLargePods(t, "web", 2)
	r.plan(t)
	r.reconcileClaims(t)
	if diff := cmp.Diff(map[string]int{"m5.large " + ids[group.Name]: 1}, r.countByReservation()); diff != "" {
		t.Errorf("instances by type and reservation (-want +got):\n%s\n%s", diff, r.log)
	}
}

// TestPlacementBook: a launched instance counts at once, and only once. The first launch into a cluster group decides
// its zone, unless the launch fails.
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
	if !b.Update(now, class, group) {
		t.Error("the first update does not count as more room")
	}
	if got := b.Restrict(now, "pg-1", "launch-1", pickIn("b", "a", "b")); len(got) != 2 || got[0].Offering.Zone != "b" {
		t.Errorf("the first launch may request %+v, want two offerings in b", got)
	}
	if got := b.Restrict(now, "pg-1", "launch-2", pickIn("a")); len(got) != 0 {
		t.Errorf("the second launch may request %+v, want none", got)
	}
	if got := b.Closed(now, "pg-1", zones); !slices.Equal(got, []string{"a"}) {
		t.Errorf("zones that are closed while the first launch is in progress: %v, want a", got)
	}
	b.EndLaunch("launch-1")
	if got := b.Closed(now, "pg-1", zones); len(got) != 0 {
		t.Errorf("zones that are closed when the first launch has failed: %v, want none", got)
	}
	b.AddMember(now, ec2.Instance{ID: "i-1", Zone: "a", Placement: ec2.PlacementRef{Group: "pg-1"}})
	if got := b.Closed(now, "pg-1", zones); !slices.Equal(got, []string{"b"}) {
		t.Errorf("zones that are closed when an instance was launched in a: %v, want b", got)
	}

	group.Strategy, group.Members = catalog.PlaceSpread, map[string]string{"i-1": "a"}
	for n := range 5 {
		group.Members["i-old-"+strconv.Itoa(n)] = "a"
	}
	b.Update(now, class, group)
	if got := b.Closed(now, "pg-1", zones); len(got) != 0 {
		t.Errorf("zones that are closed with six instances, one of them just launched: %v, want none", got)
	}
	b.AddMember(now, ec2.Instance{ID: "i-2", Zone: "a", Placement: ec2.PlacementRef{Group: "pg-1"}})
	if got := b.Closed(now, "pg-1", zones); !slices.Equal(got, []string{"a"}) {
		t.Errorf("zones that are closed with seven instances: %v, want a", got)
	}
	if !b.Update(now.Add(2*offerings.MaxMemberDelay), class, group) || len(b.Closed(now.Add(2*offerings.MaxMemberDelay), "pg-1", zones)) != 0 {
		t.Errorf("an instance that EC2 does not return %s after its launch still counts", 2*offerings.MaxMemberDelay)
	}
	class.Spec.PlacementGroupSelector.ID = aws.String("pg-2")
	if _, ok := b.Of(class); ok {
		t.Error("the group of an earlier selector still counts")
	}
}

// TestPlacementOf: PlacementOf chooses a partition only if the claim does not accept all of them.
func TestPlacementOf(t *testing.T) {
	t.Parallel()
	partitioned := ec2.PlacementGroup{ID: "pg-1", Strategy: catalog.PlacePartition, Partitions: 3}
	plain := ec2.PlacementGroup{ID: "pg-2", Strategy: catalog.PlaceCluster}
	partition := func(op requirements.Operator, values ...string) []requirements.Requirement {
		return []requirements.Requirement{{Key: catalog.LabelPartition, Operator: op, Values: values}}
	}
	for name, c := range map[string]struct {
		group ec2.PlacementGroup
		label string // the partition that the claim already has
		needs []requirements.Requirement
		want  []int32 // the partitions that may be chosen; 0: none is chosen; empty: an error
	}{
		"no requirement":             {partitioned, "", nil, []int32{0}},
		"all partitions":             {partitioned, "", partition(requirements.In, "1", "2", "3"), []int32{0}},
		"one partition":              {partitioned, "", partition(requirements.In, "2"), []int32{2}},
		"two partitions":             {partitioned, "", partition(requirements.NotIn, "2"), []int32{1, 3}},
		"a label":                    {partitioned, "3", partition(requirements.In, "1", "2", "3"), []int32{3}},
		"a missing partition":        {partitioned, "", partition(requirements.In, "4"), nil},
		"a group without partitions": {plain, "", partition(requirements.In, "1"), nil},
		"no partition, a group without partitions": {plain, "", partition(requirements.DoesNotExist), []int32{0}},
		"no group": {ec2.PlacementGroup{}, "", nil, []int32{0}},
	} {
		accepted, invalid := requirements.All(c.needs...)
		if invalid != nil {
			t.Fatal(invalid)
		}
		for uid := range 5 { // it decides between several partitions
			claim := &karpv1.NodeClaim{}
			claim.UID, claim.Labels = types.UID(strconv.Itoa(uid)), map[string]string{}
			if c.label != "" {
				claim.Labels[catalog.LabelPartition] = c.label
			}
			ref, err := offerings.PlacementOf(claim, c.group, accepted)
			wantErr := len(c.want) == 0
			if (err != nil) != wantErr || !wantErr && (!slices.Contains(c.want, ref.Partition) || ref.Group != c.group.ID) {
				t.Errorf("%s: %+v, %v, want any of %v", name, ref, err, c.want)
			}
		}
	}
}

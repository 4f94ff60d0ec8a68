package writer

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	awsv1 "github.com/joiner-sh/joiner/api/aws/v1"
	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/kube/conversion"
	"github.com/joiner-sh/joiner/internal/kube/kubetest"
	"github.com/joiner-sh/joiner/internal/kube/snapshot"
	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/model/resources"
	"github.com/joiner-sh/joiner/internal/scheduling/packing"
)

// TestNothingIsLaunchedTwice plans for random pods, creates the claims, and plans again: with the ledger, with an empty
// ledger (as after a restart) with and without the market, and when the instances are launched. None of these later
// plans may launch anything.
func TestNothingIsLaunchedTwice(t *testing.T) {
	t.Parallel()
	table, err := catalog.Embedded()
	if err != nil {
		t.Fatal(err)
	}
	general, err := table.Catalog("us-east-1", catalog.Settings{})
	if err != nil {
		t.Fatal(err)
	}
	market := catalog.Market{"default": general}
	for seed := range uint64(4) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			c := kubetest.FakeClient(t, interceptor.Funcs{}, randomObjects(rand.New(rand.NewPCG(seed, 7)))...)
			r := &snapshot.Reader{Cache: c, Ledger: &snapshot.Ledger{}}
			w := &Writer{Client: c, Ledger: r.Ledger}
			plan := replan(t, r, market)
			if len(plan.PlannedNodes) == 0 || len(plan.Refusals) > 0 {
				t.Fatalf("the first plan launches %d instances and refuses %v, want some instances and no refusal",
					len(plan.PlannedNodes), plan.Refusals)
			}
			all := w.CreateClaims(t.Context(), plan.PlannedNodes)
			for _, created := range all {
				if created.Err != nil {
					t.Fatal(created.Err)
				}
			}
			expectNoLaunch(t, "with the ledger", replan(t, r, market))
			r.Ledger = &snapshot.Ledger{}
			expectNoLaunch(t, "after a restart", replan(t, r, market))
			expectNoLaunch(t, "after a restart, while the market is not known yet", planWithoutMarket(t, r, market))
			for _, created := range all {
				launch(t, w, created, general)
			}
			expectNoLaunch(t, "when all instances are launched", replan(t, r, market))
		})
	}
}

func replan(t *testing.T, r *snapshot.Reader, market catalog.Market) packing.Plan {
	t.Helper()
	s, err := r.Snapshot(t.Context(), kubetest.Noon, market)
	if err != nil {
		t.Fatal(err)
	}
	return packing.Solve(s, market, packing.DefaultEffort)
}

// planWithoutMarket plans with a snapshot that was taken before the market was known.
func planWithoutMarket(t *testing.T, r *snapshot.Reader, market catalog.Market) packing.Plan {
	t.Helper()
	s, err := r.Snapshot(t.Context(), kubetest.Noon, nil)
	if err != nil {
		t.Fatal(err)
	}
	return packing.Solve(s, market, packing.DefaultEffort)
}

// expectNoLaunch fails if the plan launches an instance or refuses a pod.
func expectNoLaunch(t *testing.T, when string, plan packing.Plan) {
	t.Helper()
	for _, n := range plan.PlannedNodes {
		t.Errorf("%s: a %s is launched for %v with requests %v, want no launch", when, n.Offerings[0].InstanceType, n.Pods, n.Requests)
	}
	for _, r := range plan.Refusals {
		t.Errorf("%s: refused %+v, want no refusal", when, r)
	}
}

// launch changes a claim like a launch of the cheapest offering: it sets labels, provider ID and size.
func launch(t *testing.T, w *Writer, created CreateResult, instanceTypes catalog.Catalog) {
	t.Helper()
	choice := created.Planned.Offerings[0]
	i := slices.IndexFunc(instanceTypes.Types, func(x catalog.Type) bool { return x.Name == choice.InstanceType })
	_, err := w.PatchClaim(t.Context(), created.Claim, func(c *karpv1.NodeClaim) {
		labels := maps.Clone(instanceTypes.Types[i].Labels)
		labels[catalog.LabelZone], labels[catalog.LabelCapacityType] = choice.Zone, choice.CapacityType
		maps.Copy(labels, c.Labels)
		c.Labels = labels
		c.Status.ProviderID = "aws:///" + choice.Zone + "/" + c.Name
		c.Status.Capacity = conversion.Quantities(instanceTypes.Types[i].Capacity)
		c.Status.Allocatable = conversion.Quantities(instanceTypes.Types[i].Allocatable)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// randomObjects returns a pool for many instance types, a DaemonSet for all nodes, a DaemonSet for arm64, and pods of
// random sizes with random constraints.
func randomObjects(r *rand.Rand) []client.Object {
	pool := kubetest.GeneralPool()
	pool.Spec.Template.Labels = nil
	pool.Spec.Template.Spec.Requirements = karpv1.Requirements{
		{Key: catalog.LabelOS, Operator: corev1.NodeSelectorOpIn, Values: []string{"linux"}},
		{Key: awsv1.LabelInstanceCategory, Operator: corev1.NodeSelectorOpIn, Values: []string{"c", "m", "r", "t"}},
		{Key: "team", Operator: corev1.NodeSelectorOpExists},
	}
	class := &awsv1.EC2NodeClass{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
	class.StatusConditions().Set(kubetest.Noon, metav1.Condition{Type: karpv1.ConditionReady, Status: metav1.ConditionTrue})
	out := []client.Object{pool, class, daemonFor("all", nil), daemonFor("arm", map[string]string{catalog.LabelArch: "arm64"})}
	for i := range 5 + r.IntN(60) {
		pod := kubetest.PendingPod(fmt.Sprint("p", i))
		pod.UID = types.UID(pod.Name)
		pod.Spec.NodeSelector = nil
		pod.Spec.Containers = pod.Spec.Containers[:1]
		pod.Spec.Containers[0].Resources.Requests = conversion.Quantities(resources.Amounts{
			CPU: 50 * (1 + r.Int64N(80)), Memory: (64 << 20) * (1 + r.Int64N(200)),
		})
		constrain(r, pod)
		out = append(out, pod)
	}
	return out
}

func constrain(r *rand.Rand, pod *corev1.Pod) {
	pick := func(values ...string) string { return values[r.IntN(len(values))] }
	switch r.IntN(8) {
	case 0:
		pod.Spec.NodeSelector = map[string]string{catalog.LabelArch: pick("amd64", "arm64")}
	case 1:
		pod.Spec.NodeSelector = map[string]string{catalog.LabelZone: pick("us-east-1a", "us-east-1b")}
	case 2:
		pod.Spec.NodeSelector = map[string]string{"team": pick("a", "b")}
	case 3:
		pod.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 80, HostPort: 8080}}
	case 4:
		pod.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{
				{MatchExpressions: []corev1.NodeSelectorRequirement{
					{Key: awsv1.LabelInstanceGeneration, Operator: corev1.NodeSelectorOpGt, Values: []string{"5"}},
					{Key: catalog.LabelZone, Operator: corev1.NodeSelectorOpNotIn, Values: []string{"us-east-1a"}},
				}},
				{MatchExpressions: []corev1.NodeSelectorRequirement{
					{Key: catalog.LabelCapacityType, Operator: corev1.NodeSelectorOpIn, Values: []string{"on-demand"}},
				}},
			}},
		}}
	}
}

func daemonFor(name string, selector map[string]string) *appsv1.DaemonSet {
	set := kubetest.DaemonSet(0)
	set.Name, set.UID = name, types.UID("daemon-"+name)
	set.Spec.Template.Spec.NodeSelector = selector
	set.Spec.Template.Spec.Containers[0].Name = strings.ToLower(name)
	return set
}

// laggingCache shows no claims until caughtUp is set.
type laggingCache struct {
	client.Reader
	caughtUp bool
}

func (l *laggingCache) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	if _, ok := list.(*karpv1.NodeClaimList); ok && !l.caughtUp {
		return nil
	}
	return l.Reader.List(ctx, list, opts...)
}

// TestReadYourWrites creates a claim for one of two pods. This pod then needs no node, even while the cache lags. The
// pod needs a node again if kube-scheduler has not bound it in time, or if the claim is deleted.
func TestReadYourWrites(t *testing.T) {
	t.Parallel()
	c := kubetest.FakeClient(t, interceptor.Funcs{}, kubetest.GeneralPool(), kubetest.PendingPod("first"), kubetest.PendingPod("later"))
	ledger := &snapshot.Ledger{}
	cache := &laggingCache{Reader: c}
	now := kubetest.Noon
	r := &snapshot.Reader{Cache: cache, Live: c, Ledger: ledger}
	w := &Writer{Client: c, Ledger: ledger, Now: func() time.Time { return now }}
	takeSnapshot := func() cluster.Snapshot {
		t.Helper()
		s, err := r.Snapshot(t.Context(), now, nil)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	expect := func(when string, nodes int, pods ...string) {
		t.Helper()
		s := takeSnapshot()
		var got []string
		for _, p := range s.Pods {
			got = append(got, p.Name)
		}
		if diff := cmp.Diff(pods, got); diff != "" || len(s.Nodes) != nodes {
			t.Errorf("%s: %d nodes, want %d; pods (-want +got):\n%s", when, len(s.Nodes), nodes, diff)
		}
	}

	expect("before the claim is created", 0, "first", "later")
	created := w.CreateClaims(t.Context(), []packing.PlannedNode{kubetest.PlannedNode("default/first")})
	if created[0].Err != nil {
		t.Fatal(created[0].Err)
	}
	claim := created[0].Claim
	expect("the cache lags", 1, "later")
	now = now.Add(time.Minute)
	expect("the cache lags for a minute, and the server has the claim", 1, "later")
	cache.caughtUp = true
	expect("the cache shows the claim", 1, "later")

	claim, err := w.PatchClaim(t.Context(), claim, func(c *karpv1.NodeClaim) {
		c.StatusConditions().SetTrue(now, karpv1.ConditionInitialized)
	})
	if err != nil {
		t.Fatal(err)
	}
	now = now.Add(12 * time.Second) // bindTimeout of the snapshot
	expect("the node is ready, and kube-scheduler may still bind the pod", 1, "later")
	now = now.Add(time.Second)
	expect("kube-scheduler did not bind the pod", 1, "first", "later")

	claim.Finalizers = nil
	if err := c.Update(t.Context(), claim); err != nil {
		t.Fatal(err)
	}
	if err := w.Delete(t.Context(), claim); err != nil {
		t.Fatal(err)
	}
	expect("the claim is deleted", 0, "first", "later")
	if ledger.Len() != 0 {
		t.Errorf("the ledger still holds %d claims, want 0", ledger.Len())
	}
}

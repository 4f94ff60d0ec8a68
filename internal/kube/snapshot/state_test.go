package snapshot

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	awsv1 "github.com/joiner-sh/joiner/api/aws/v1"
	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/kube/conversion"
	"github.com/joiner-sh/joiner/internal/kube/kubeclient"
	"github.com/joiner-sh/joiner/internal/kube/kubetest"
	"github.com/joiner-sh/joiner/internal/model/cluster"
)

// defaultSpread are typical default spread constraints of a cluster.
const defaultSpread = `podTopologySpread: {defaultConstraints: [
  {topologyKey: topology.kubernetes.io/zone, maxSkew: 2, whenUnsatisfiable: ScheduleAnyway},
  {topologyKey: kubernetes.io/hostname, maxSkew: 1, whenUnsatisfiable: DoNotSchedule}]}`

// TestStateIsTheSnapshotOfItsObjects sends a state random changes of all kinds of objects, in random order, and takes
// snapshots in between. Each snapshot must equal Objects.Snapshot of the current objects, and must not change later.
func TestStateIsTheSnapshotOfItsObjects(t *testing.T) {
	t.Parallel()
	defaults, err := conversion.ReadDefaultSpread(defaultSpread)
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		view := View{Live: true, IgnorePreferences: rapid.Bool().Draw(t, "ignore preferences"), RelaxMinValues: rapid.Bool().Draw(t, "relax")}
		if rapid.Bool().Draw(t, "default spread") {
			view.DefaultSpread = defaults
		}
		w := newWorld(view)
		var taken []record
		for range rapid.IntRange(0, 60).Draw(t, "objects") {
			w.event(t)
		}
		for range rapid.IntRange(1, 20).Draw(t, "snapshots") {
			for range rapid.IntRange(0, 5).Draw(t, "events") {
				w.event(t)
			}
			w.view.Now = w.view.Now.Add(time.Duration(rapid.IntRange(0, 20).Draw(t, "seconds")) * time.Second)
			w.view.Market = anyMarket(t)
			late := w.late(t)
			got, want := w.state.snapshot(w.view.Now, w.view.Market, late), w.objects(late).Snapshot(w.view)
			if !reflect.DeepEqual(got, want) {
				t.Fatalf("the snapshot of the state differs from that of its objects (-want +got):\n%s",
					snapshotDiff(want, got))
			}
			if diff := w.compareObjects(); diff != "" {
				t.Fatalf("the objects of the state differ from those that it received: %s", diff)
			}
			for _, r := range taken {
				if text := asJSON(r.snapshot); text != r.text {
					t.Fatalf("a snapshot has changed after it was taken (-then +now):\n%s", cmp.Diff(r.text, text))
				}
			}
			taken = append(taken, record{got, asJSON(got)})
		}
		w.dropAll()
		w.expectNothing(t)
	})
}

type record struct {
	snapshot cluster.Snapshot
	text     string
}

func asJSON(s cluster.Snapshot) string {
	data, err := json.MarshalIndent(s, "", " ")
	if err != nil {
		return err.Error()
	}
	return string(data)
}

// snapshotDiff returns the differences of two snapshots: of their short form (kubetest.Render) or, if that is equal, of
// their JSON.
func snapshotDiff(want, got cluster.Snapshot) string {
	if diff := cmp.Diff(kubetest.Render(want), kubetest.Render(got)); diff != "" {
		return diff
	}
	return cmp.Diff(asJSON(want), asJSON(got))
}

type stateTester struct {
	state *state
	feeds map[reflect.Type]feed    // of state, by type of object
	all   map[string]client.Object // the current objects, by keyOf
	view  View
	turn  int // number of events so far
}

func newWorld(view View) *stateTester {
	view.Now, view.Live = kubetest.Noon, true
	w := &stateTester{state: newState(view), feeds: map[reflect.Type]feed{}, all: map[string]client.Object{}, view: view}
	for _, f := range w.state.feeds() {
		w.feeds[reflect.TypeOf(f.example)] = f
	}
	return w
}

// keyOf returns the object's kind, namespace and name: "pod a/web-0".
func keyOf(o client.Object) string {
	return kubeclient.KindOf(o) + " " + o.GetNamespace() + "/" + o.GetName()
}

// event deletes (2 of 10 times), repeats (1), changes (4) or replaces (3) one object, or adds it.
func (w *stateTester) event(t *rapid.T) {
	o := anyObject(t, w.view.Now)
	f, ok := w.feeds[reflect.TypeOf(o)]
	if !ok {
		return // without default spread constraints, Services and workload controllers have no feed
	}
	w.turn++
	key := keyOf(o)
	before := w.all[key]
	switch action := rapid.IntRange(0, 9).Draw(t, "action"); {
	case action < 2 && before != nil:
		delete(w.all, key)
		f.drop(o) // a feed must accept any object with the name
	case action < 3 && before != nil:
		again := before // sends the same version again
		if rapid.Bool().Draw(t, "copy") && before.GetResourceVersion() != "" {
			again = before.DeepCopyObject().(client.Object)
		}
		w.all[key] = again
		f.put(again)
	default:
		if before != nil && action < 7 {
			o = withFieldOf(t, before, o)
		}
		o.SetResourceVersion(pick(t, "version", fmt.Sprint(w.turn), ""))
		w.all[key] = o
		f.put(o)
	}
}

// withFieldOf returns a copy of the object that has one field from the other object: most real changes are small.
func withFieldOf(t *rapid.T, object, other client.Object) client.Object {
	out := object.DeepCopyObject().(client.Object)
	to, from := reflect.ValueOf(out).Elem(), reflect.ValueOf(other).Elem()
	for to.Kind() == reflect.Struct && to.Type() != reflect.TypeFor[metav1.Time]() {
		i := rapid.IntRange(0, to.NumField()-1).Draw(t, "field")
		to, from = to.Field(i), from.Field(i)
	}
	to.Set(from)
	return out
}

// late returns claims for the snapshot's parameter late. Some of them are in the state already.
func (w *stateTester) late(t *rapid.T) []*karpv1.NodeClaim {
	var out []*karpv1.NodeClaim
	for range rapid.IntRange(0, 2).Draw(t, "late claims") {
		c := anyClaim(t, w.view.Now)
		if !slices.ContainsFunc(out, func(o *karpv1.NodeClaim) bool { return o.Name == c.Name }) {
			out = append(out, c)
		}
	}
	return out
}

// objects returns the current objects, together with those of the late claims that are not among them.
func (w *stateTester) objects(late []*karpv1.NodeClaim) Objects {
	var o Objects
	for _, object := range w.all {
		switch v := object.(type) {
		case *corev1.Pod:
			o.Pods = append(o.Pods, v)
		case *corev1.Node:
			o.Nodes = append(o.Nodes, v)
		case *appsv1.DaemonSet:
			o.DaemonSets = append(o.DaemonSets, v)
		case *karpv1.NodePool:
			o.Pools = append(o.Pools, v)
		case *karpv1.NodeClaim:
			o.Claims = append(o.Claims, v)
		case *awsv1.EC2NodeClass:
			o.Classes = append(o.Classes, v)
		case *corev1.PersistentVolumeClaim:
			o.VolumeClaims = append(o.VolumeClaims, v)
		case *corev1.PersistentVolume:
			o.Volumes = append(o.Volumes, v)
		case *storagev1.StorageClass:
			o.StorageClasses = append(o.StorageClasses, v)
		case *policyv1.PodDisruptionBudget:
			o.Budgets = append(o.Budgets, v)
		case *corev1.Namespace:
			o.Namespaces = append(o.Namespaces, v)
		case *storagev1.CSINode:
			o.CSINodes = append(o.CSINodes, v)
		case *corev1.Service:
			o.Groups.Services = append(o.Groups.Services, v)
		case *corev1.ReplicationController:
			o.Groups.Controllers = append(o.Groups.Controllers, v)
		case *appsv1.ReplicaSet:
			o.Groups.ReplicaSets = append(o.Groups.ReplicaSets, v)
		case *appsv1.StatefulSet:
			o.Groups.StatefulSets = append(o.Groups.StatefulSets, v)
		}
	}
	for _, c := range late {
		if w.all[keyOf(c)] == nil {
			o.Claims = append(o.Claims, c)
		}
	}
	return o
}

func (w *stateTester) compareObjects() string {
	got, want := withAddresses(w.state.objects()), withAddresses(w.objects(nil))
	return cmp.Diff(want, got)
}

// withAddresses lists the keys of all objects with their addresses, so that two versions of an object differ.
func withAddresses(o Objects) []string {
	var out []string
	add := func(list any) {
		v := reflect.ValueOf(list)
		for i := range v.Len() {
			object := v.Index(i).Interface().(client.Object)
			out = append(out, fmt.Sprintf("%s %p", keyOf(object), object))
		}
	}
	for _, list := range []any{o.Pods, o.Nodes, o.DaemonSets, o.Pools, o.Claims, o.Classes, o.VolumeClaims, o.Volumes, o.StorageClasses,
		o.Budgets, o.Namespaces, o.CSINodes, o.Groups.Services, o.Groups.Controllers, o.Groups.ReplicaSets, o.Groups.StatefulSets} {
		add(list)
	}
	slices.Sort(out)
	return out
}

func (w *stateTester) dropAll() {
	for key, o := range w.all {
		w.feeds[reflect.TypeOf(o)].drop(o)
		delete(w.all, key)
	}
}

// expectNothing checks that the state holds nothing after all objects were deleted. Otherwise data about deleted pods
// would fill the memory over time.
func (w *stateTester) expectNothing(t *rapid.T) {
	w.state.snapshot(w.view.Now, nil, nil)
	s := w.state
	pods, volumes, nodes := s.pods, s.volumes, s.nodes
	held := map[string]int{
		"pods": len(pods.pods), "hosts": len(pods.hosts), "users": len(pods.users), "traits": pods.traits.Size(),
		"daemon pods": len(pods.daemonPods), "newest": len(pods.newest), "waiting": len(pods.waiting.pods) + len(pods.waiting.added),
		"single": len(pods.references.Volumes.Single), "claims by volume": len(volumes.claimsByVolume), "limiting nodes": len(volumes.limitingNodes),
		"slots": len(nodes.slots), "kinds": len(nodes.kinds.byHash),
	}
	for what, n := range held {
		if n > 0 {
			t.Errorf("%d %s are left after all objects were deleted, want 0", n, what)
		}
	}
}

// TestSnapshotsShareValues: a snapshot computes only changed values again, and shares the others with the
// previous snapshot.
func TestSnapshotsShareValues(t *testing.T) {
	t.Parallel()
	w := newWorld(View{})
	w.send(uniformCluster(3, 20, 4))
	first := w.state.snapshot(kubetest.Noon, nil, nil)
	pod := first.Nodes[7].Pods[2]
	changed := w.all["pod default/"+pod.Name].DeepCopyObject().(*corev1.Pod)
	changed.Labels = map[string]string{"app": "other"}
	w.feeds[reflect.TypeOf(changed)].put(changed)
	second := w.state.snapshot(kubetest.Noon, nil, nil)
	var recomputed []string
	for i := range first.Nodes {
		if &first.Nodes[i].Pods[0] != &second.Nodes[i].Pods[0] {
			recomputed = append(recomputed, first.Nodes[i].Name)
		}
	}
	if want := []string{first.Nodes[7].Name}; !slices.Equal(recomputed, want) {
		t.Errorf("computed again: %s, want %s", strings.Join(recomputed, ", "), want)
	}
	if second.Nodes[7].Pods[2].Labels["app"] != "other" || first.Nodes[7].Pods[2].Labels["app"] != "web" {
		t.Error("the change is not in the second snapshot, or is in the first")
	}
	fresh := kubetest.PendingPod("new")
	w.feeds[reflect.TypeOf(fresh)].put(fresh)
	third := w.state.snapshot(kubetest.Noon, nil, nil)
	if &third.Nodes[0] != &second.Nodes[0] || len(third.Pods) != len(second.Pods)+1 {
		t.Error("the third snapshot does not share the list of nodes, or lacks the new pending pod")
	}
	node := w.all["node /"+second.Nodes[3].Name].DeepCopyObject().(*corev1.Node)
	node.Labels["rack"] = "9"
	w.feeds[reflect.TypeOf(node)].put(node)
	if fourth := w.state.snapshot(kubetest.Noon, nil, nil); fourth.Nodes[3].Labels["rack"] != "9" || third.Nodes[3].Labels["rack"] != "" {
		t.Error("the node's label is not in the fourth snapshot, or is in the third")
	}
}

// send sends all objects to the state, and returns them as one list.
func (w *stateTester) send(o Objects) []client.Object {
	var all []client.Object
	for _, list := range []any{o.Nodes, o.Claims, o.DaemonSets, o.Pools, o.Classes, o.VolumeClaims, o.Volumes, o.StorageClasses,
		o.Budgets, o.Namespaces, o.CSINodes, o.Pods, o.Groups.Services, o.Groups.Controllers, o.Groups.ReplicaSets, o.Groups.StatefulSets} {
		v := reflect.ValueOf(list)
		for i := range v.Len() {
			all = append(all, v.Index(i).Interface().(client.Object))
		}
	}
	for _, object := range all {
		w.all[keyOf(object)] = object
		w.feeds[reflect.TypeOf(object)].put(object)
	}
	return all
}

// uniformCluster returns a cluster of ready nodes, each with perNode pods, and of pending pods.
func uniformCluster(pending, nodes, perNode int) Objects {
	var o Objects
	for i := range 5 {
		o.DaemonSets = append(o.DaemonSets, kubetest.DaemonSet(i))
	}
	for i := range nodes {
		id := fmt.Sprintf("aws:///us-east-1a/i-%d", i)
		size := corev1.ResourceList{"cpu": resource.MustParse("16"), "memory": resource.MustParse("64Gi"), "pods": resource.MustParse("110")}
		o.Claims = append(o.Claims, &karpv1.NodeClaim{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("general-", i), UID: types.UID(fmt.Sprint("c", i))},
			Status:     karpv1.NodeClaimStatus{ProviderID: id, NodeName: fmt.Sprint("ip-", i), Capacity: size, Allocatable: size},
		})
		o.Nodes = append(o.Nodes, &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("ip-", i), Labels: map[string]string{
				"kubernetes.io/os": "linux", "kubernetes.io/hostname": fmt.Sprint("ip-", i), "karpenter.sh/nodepool": "general",
				"karpenter.sh/registered": "true", "karpenter.sh/initialized": "true",
			}},
			Spec:   corev1.NodeSpec{ProviderID: id},
			Status: corev1.NodeStatus{Capacity: size, Allocatable: size},
		})
		for p := range perNode {
			pod := kubetest.WebPod(fmt.Sprintf("bound-%d-%d", i, p))
			pod.Spec.NodeName, pod.Status.Phase = fmt.Sprint("ip-", i), corev1.PodRunning
			o.Pods = append(o.Pods, pod)
		}
	}
	for i := range pending {
		pod := kubetest.WebPod(fmt.Sprint("pending-", i))
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse,
			Reason: corev1.PodReasonUnschedulable}}
		o.Pods = append(o.Pods, pod)
	}
	return o
}

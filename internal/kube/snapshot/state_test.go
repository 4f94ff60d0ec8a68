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

// usualSpread are typical default constraints of a cluster.
const usualSpread = `podTopologySpread: {defaultConstraints: [
  {topologyKey: topology.kubernetes.io/zone, maxSkew: 2, whenUnsatisfiable: ScheduleAnyway},
  {topologyKey: kubernetes.io/hostname, maxSkew: 1, whenUnsatisfiable: DoNotSchedule}]}`

// TestStateIsTheSnapshotOfItsObjects sends a state random changes of all kinds of objects, in random order, and takes
// snapshots in between. Each must equal Objects.Snapshot of the current objects, and must not change later.
func TestStateIsTheSnapshotOfItsObjects(t *testing.T) {
	t.Parallel()
	usual, err := conversion.ReadUsualSpread(usualSpread)
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		view := View{Live: true, IgnorePreferences: rapid.Bool().Draw(t, "without wishes"), RelaxMinValues: rapid.Bool().Draw(t, "relax")}
		if rapid.Bool().Draw(t, "usual spread") {
			view.Usual = usual
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
				t.Fatalf("the state has another snapshot than its objects (-want +got):\n%s", comparison(want, got))
			}
			if diff := w.compareObjects(); diff != "" {
				t.Fatalf("the state has other objects than it received: %s", diff)
			}
			for _, r := range taken {
				if now := written(r.snapshot); now != r.text {
					t.Fatalf("a snapshot has changed after it was taken (-then +now):\n%s", cmp.Diff(r.text, now))
				}
			}
			taken = append(taken, record{got, written(got)})
		}
		w.forgetAll()
		w.expectNothing(t)
	})
}

// record is a snapshot with its text at the time it was taken.
type record struct {
	snapshot cluster.Snapshot
	text     string
}

func written(s cluster.Snapshot) string {
	data, err := json.MarshalIndent(s, "", " ")
	if err != nil {
		return err.Error()
	}
	return string(data)
}

func comparison(want, got cluster.Snapshot) string {
	if diff := cmp.Diff(kubetest.Render(want), kubetest.Render(got)); diff != "" {
		return diff
	}
	return cmp.Diff(written(want), written(got))
}

// world is a set of objects with a state that has received them.
type world struct {
	state *state
	feeds map[reflect.Type]feed
	all   map[string]client.Object // by kind, namespace and name
	view  View
	turn  int
}

func newWorld(view View) *world {
	view.Now, view.Live = kubetest.Noon, true
	w := &world{state: newState(view), feeds: map[reflect.Type]feed{}, all: map[string]client.Object{}, view: view}
	for _, f := range w.state.feeds() {
		w.feeds[reflect.TypeOf(f.example)] = f
	}
	return w
}

func keyOf(o client.Object) string {
	return kubeclient.KindOf(o) + " " + o.GetNamespace() + "/" + o.GetName()
}

// event adds, changes, repeats or deletes one object.
func (w *world) event(t *rapid.T) {
	o := anyObject(t, w.view.Now)
	f, ok := w.feeds[reflect.TypeOf(o)]
	if !ok {
		return // Services and workload controllers, without default constraints
	}
	w.turn++
	key := keyOf(o)
	before := w.all[key]
	switch action := rapid.IntRange(0, 9).Draw(t, "action"); {
	case action < 2 && before != nil:
		delete(w.all, key)
		f.drop(o) // not the same object, but one with the same name
	case action < 3 && before != nil:
		again := before
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

// withFieldOf returns the object with one field of another object with the same name: real changes are mostly small.
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

// late returns claims that are only in the ledger, and sometimes one that has arrived in the state meanwhile.
func (w *world) late(t *rapid.T) []*karpv1.NodeClaim {
	var out []*karpv1.NodeClaim
	for range rapid.IntRange(0, 2).Draw(t, "late claims") {
		c := anyClaim(t, w.view.Now)
		if !slices.ContainsFunc(out, func(o *karpv1.NodeClaim) bool { return o.Name == c.Name }) {
			out = append(out, c)
		}
	}
	return out
}

func (w *world) objects(late []*karpv1.NodeClaim) Objects {
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

// compareObjects compares the objects of the state with the last versions sent to it.
func (w *world) compareObjects() string {
	got, want := names(w.state.objects()), names(w.objects(nil))
	return cmp.Diff(want, got)
}

// names lists all objects with their addresses in memory, so that a different version is a difference.
func names(o Objects) []string {
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

// forgetAll sends a deletion of every object.
func (w *world) forgetAll() {
	for key, o := range w.all {
		w.feeds[reflect.TypeOf(o)].drop(o)
		delete(w.all, key)
	}
}

// expectNothing expects that a state without objects holds nothing: data about deleted pods would fill the memory over
// time.
func (w *world) expectNothing(t *rapid.T) {
	w.state.snapshot(w.view.Now, nil, nil)
	s := w.state
	pods, volumes, nodes := s.pods, s.volumes, s.nodes
	held := map[string]int{
		"pods": len(pods.pods), "hosts": len(pods.hosts), "users": len(pods.users), "traits": pods.traits.Size(),
		"daemon pods": len(pods.daemonPods), "newest": len(pods.newest), "waiting": len(pods.waiting.pods) + len(pods.waiting.untidy),
		"single": len(pods.around.Volumes.Single), "claims by volume": len(volumes.claimsByVolume), "limiting nodes": len(volumes.limitingNodes),
		"slots": len(nodes.slots), "kinds": len(nodes.kinds.byHash),
	}
	for what, n := range held {
		if n > 0 {
			t.Errorf("%d %s are left when all objects are gone", n, what)
		}
	}
}

// TestOnlyWhatChangedIsMadeAgain checks which values two snapshots share.
func TestOnlyWhatChangedIsMadeAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(View{})
	for _, o := range w.send(crowd(3, 20, 4)) {
		_ = o
	}
	first := w.state.snapshot(kubetest.Noon, nil, nil)
	pod := first.Nodes[7].Pods[2]
	changed := w.all["pod default/"+pod.Name].DeepCopyObject().(*corev1.Pod)
	changed.Labels = map[string]string{"app": "other"}
	w.feeds[reflect.TypeOf(changed)].put(changed)
	second := w.state.snapshot(kubetest.Noon, nil, nil)
	var remade []string
	for i := range first.Nodes {
		if &first.Nodes[i].Pods[0] != &second.Nodes[i].Pods[0] {
			remade = append(remade, first.Nodes[i].Name)
		}
	}
	if want := []string{first.Nodes[7].Name}; !slices.Equal(remade, want) {
		t.Errorf("made again: %s, want %s", strings.Join(remade, ", "), want)
	}
	if second.Nodes[7].Pods[2].Labels["app"] != "other" || first.Nodes[7].Pods[2].Labels["app"] != "web" {
		t.Error("the change is not in the second snapshot, or is in the first")
	}
	fresh := kubetest.PendingPod("new")
	w.feeds[reflect.TypeOf(fresh)].put(fresh)
	third := w.state.snapshot(kubetest.Noon, nil, nil)
	if &third.Nodes[0] != &second.Nodes[0] || len(third.Pods) != len(second.Pods)+1 {
		t.Error("a pending pod has the nodes listed again, or is not there")
	}
	node := w.all["node /"+second.Nodes[3].Name].DeepCopyObject().(*corev1.Node)
	node.Labels["rack"] = "9"
	w.feeds[reflect.TypeOf(node)].put(node)
	if fourth := w.state.snapshot(kubetest.Noon, nil, nil); fourth.Nodes[3].Labels["rack"] != "9" || third.Nodes[3].Labels["rack"] != "" {
		t.Error("the node's label is not in the fourth snapshot, or is in the third")
	}
}

// send sends all objects to the state.
func (w *world) send(o Objects) []client.Object {
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

// crowd returns a cluster of ready nodes with pods, and pending pods.
func crowd(pending, nodes, perNode int) Objects {
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

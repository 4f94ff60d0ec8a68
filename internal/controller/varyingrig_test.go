package controller

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/joiner-sh/joiner/internal/controller/disruptor"
	"github.com/joiner-sh/joiner/internal/controller/nodestate"
	"github.com/joiner-sh/joiner/internal/controller/provisioner"
	"github.com/joiner-sh/joiner/internal/kube/snapshot"
	"github.com/joiner-sh/joiner/internal/model/catalog"
)

// varyingRig is a rig in simulated time whose workloads change their replicas, minute by minute.
type varyingRig struct {
	*rig
	t          *testing.T
	random     *rand.Rand
	prices     map[string]catalog.Price // by instance type
	started    time.Time
	apps       []*varyingApp
	moves      map[string]*moveRecord   // by ID
	shapes     map[string]string        // of claims, by name; see disruptor.ShapeOf
	reconciles map[string]lastReconcile // of claims, by name
}

type lastReconcile struct {
	version string    // versions of the claim and its Node before the reconcile
	due     time.Time // of the next reconcile; zero: only after a change of the claim or its Node
}

// varyingApp is a workload: a number of replicas that varies with a wave and by chance.
type varyingApp struct {
	name        string
	cpu, memory string
	base, swing int // replicas on average, and the amplitude of the wave
	chance      int // random number; half of it is added to the replicas

	want    int         // number of replicas now
	last    int         // number of pods after the last replicate
	created int         // number of pods created so far
	changes int         // number of pods that scale added or removed so far
	evicted []time.Time // times of evictions
}

type moveRecord struct{ removed, launched []string }

const (
	roundInterval = 10 * time.Second // between rounds of all loops
	wavePeriod    = 480              // length of a wave, in minutes
)

func newVaryingRig(t *testing.T, seed uint64, apps []*varyingApp, instanceTypes ...string) *varyingRig {
	t.Helper()
	f := &varyingRig{rig: newRig(t, instanceTypes...), t: t, random: rand.New(rand.NewPCG(seed, 7)), apps: apps,
		moves: map[string]*moveRecord{}, shapes: map[string]string{}, reconciles: map[string]lastReconcile{}}
	region, err := embedded(t).Region(testRegion)
	f.check(err)
	f.prices = region.OnDemand
	f.api = &listCache{WithWatch: f.api}
	f.start(t)
	f.Moves.Now = f.now
	f.reconcileClassAndPool(t)
	f.started = f.now()
	return f
}

func (f *varyingRig) check(err error) {
	f.t.Helper()
	if err != nil {
		f.t.Fatalf("%v\n%s", err, f.log)
	}
}

// scale sets the number of replicas at the minute. It does nothing if isConstant is true.
func (f *varyingRig) scale(minute int, isConstant bool) {
	for i, a := range f.apps {
		if !isConstant {
			if f.random.IntN(40) == 0 { // every 40 minutes on average
				a.chance = f.random.IntN(2*a.swing+1) - a.swing
			}
			// The waves of the workloads begin within a third of the period.
			phase := 2 * math.Pi * float64(minute+i*wavePeriod/3/len(f.apps)) / wavePeriod
			want := max(a.base+a.chance/2+int(math.Round(float64(a.swing)*math.Sin(phase))), 1)
			a.changes += max(want-a.want, a.want-want)
			a.want = want
		}
	}
}

// runMinute simulates one minute: rounds of all loops, every roundInterval, until a round changes nothing or the minute
// is over.
func (f *varyingRig) runMinute(minute int) {
	end := f.started.Add(time.Duration(minute+1) * time.Minute)
	for before, isChanging := f.state(), true; isChanging && !f.now().Add(roundInterval).After(end); {
		f.round()
		f.ahead += roundInterval
		after := f.state()
		isChanging = after != before
		before = after
	}
	f.ahead += max(end.Sub(f.now()), 0)
}

func (f *varyingRig) round() {
	f.replicate()
	f.schedule()
	f.check(f.Emptiness.Pass(f.t.Context(), f.now()))
	f.check(f.Moves.Advance(f.t.Context()))
	f.check(f.Moves.Search(f.t.Context()))
	f.plan(f.t)
	f.recordMoves()
	f.reconcileDue()
	f.join(f.t)
	f.replicate()
	f.schedule()
}

// reconcileDue reconciles the claims that are due: after a change, or because the time of RequeueAfter has passed.
func (f *varyingRig) reconcileDue() {
	nodes := map[string]string{}
	for _, n := range f.nodes(f.t) {
		nodes[n.Spec.ProviderID] = n.ResourceVersion
	}
	for _, c := range f.claims(f.t) {
		version := c.ResourceVersion + "/" + nodes[c.Status.ProviderID]
		last := f.reconciles[c.Name]
		if last.version == version && (last.due.IsZero() || f.now().Before(last.due)) {
			continue
		}
		result, err := f.Claims.Reconcile(f.t.Context(), named(c.Name))
		f.check(err)
		last = lastReconcile{version: version}
		if result.RequeueAfter > 0 {
			last.due = f.now().Add(result.RequeueAfter)
		}
		f.reconciles[c.Name] = last
	}
}

func (f *varyingRig) state() string {
	var out strings.Builder
	for _, c := range f.claims(f.t) {
		fmt.Fprint(&out, c.Name, c.ResourceVersion, " ")
	}
	for _, n := range f.nodes(f.t) {
		fmt.Fprint(&out, n.Name, n.ResourceVersion, " ")
	}
	for _, p := range f.pods() {
		fmt.Fprint(&out, p.Name, p.ResourceVersion, " ")
	}
	return out.String()
}

func (f *varyingRig) pods() []corev1.Pod {
	var list corev1.PodList
	f.check(f.api.List(f.t.Context(), &list))
	return list.Items
}

func (f *varyingRig) recordMoves() {
	for _, c := range f.claims(f.t) {
		if shape := disruptor.ShapeOf(&c); c.Labels[corev1.LabelInstanceTypeStable] != "" {
			f.shapes[c.Name] = shape
		}
		if m, _ := nodestate.MoveOf(&c); m != nil && m.Committed {
			f.move(m.ID).removed = addOnce(f.move(m.ID).removed, c.Name)
		}
		if id := c.Annotations[nodestate.AnnotationReplaces]; id != "" {
			f.move(id).launched = addOnce(f.move(id).launched, c.Name)
		}
	}
}

func (f *varyingRig) move(id string) *moveRecord {
	if f.moves[id] == nil {
		f.moves[id] = &moveRecord{}
	}
	return f.moves[id]
}

func addOnce(names []string, name string) []string {
	if slices.Contains(names, name) {
		return names
	}
	return append(names, name)
}

// replicate creates missing pods and deletes surplus ones: first pending pods, then random ones. It records the pods
// that were evicted since its last call.
func (f *varyingRig) replicate() {
	byApp := map[string][]corev1.Pod{}
	for _, p := range f.pods() {
		byApp[p.Labels["app"]] = append(byApp[p.Labels["app"]], p)
	}
	for _, a := range f.apps {
		pods := byApp[a.name]
		for range a.last - len(pods) {
			a.evicted = append(a.evicted, f.now())
		}
		for n := len(pods); n < a.want; n++ {
			a.created++
			f.create(f.t, a.pod())
		}
		f.random.Shuffle(len(pods), func(i, k int) { pods[i], pods[k] = pods[k], pods[i] })
		slices.SortStableFunc(pods, func(x, y corev1.Pod) int {
			return cmp.Compare(min(len(x.Spec.NodeName), 1), min(len(y.Spec.NodeName), 1)) // 0: pending
		})
		for i := range len(pods) - a.want {
			f.check(f.api.Delete(f.t.Context(), &pods[i]))
		}
		a.last = a.want
	}
}

// pod returns the newest pod of the workload, as a pending pod.
func (a *varyingApp) pod() *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: fmt.Sprintf("%s-%05d", a.name, a.created), Labels: map[string]string{"app": a.name},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: a.name,
				UID: types.UID(a.name), Controller: ptr.To(true)}},
		},
		Spec: corev1.PodSpec{
			Tolerations: []corev1.Toleration{{Key: "team", Operator: corev1.TolerationOpExists}},
			Containers: []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
				corev1.ResourceCPU: resource.MustParse(a.cpu), corev1.ResourceMemory: resource.MustParse(a.memory),
			}}}},
		},
		Status: corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{{
			Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable,
		}}},
	}
}

// schedule binds each pending pod to the emptiest Node with room for it, as kube-scheduler's default scoring does.
func (f *varyingRig) schedule() {
	pods, nodes := f.pods(), f.nodes(f.t)
	type load struct{ cpu, memory int64 }
	used := map[string]load{}
	loadOf := func(l corev1.ResourceList) load { return load{l.Cpu().MilliValue(), l.Memory().Value()} }
	for i := range pods {
		request, u := loadOf(pods[i].Spec.Containers[0].Resources.Requests), used[pods[i].Spec.NodeName]
		used[pods[i].Spec.NodeName] = load{u.cpu + request.cpu, u.memory + request.memory}
	}
	for i := range pods {
		if pods[i].Spec.NodeName != "" {
			continue
		}
		request, best, score := loadOf(pods[i].Spec.Containers[0].Resources.Requests), "", -1.0
		for k := range nodes {
			n, room, u := &nodes[k], loadOf(nodes[k].Status.Allocatable), used[nodes[k].Name]
			cpu, memory := room.cpu-u.cpu-request.cpu, room.memory-u.memory-request.memory
			isClosed := !nodestate.IsReady(n) || n.DeletionTimestamp != nil ||
				slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key != "team" })
			if free := float64(cpu)/float64(room.cpu) + float64(memory)/float64(room.memory); !isClosed && cpu >= 0 && memory >= 0 && free > score {
				best, score = n.Name, free
			}
		}
		if best == "" {
			continue
		}
		u := used[best]
		used[best] = load{u.cpu + request.cpu, u.memory + request.memory}
		pods[i].Spec.NodeName, pods[i].Status = best, corev1.PodStatus{Phase: corev1.PodRunning}
		f.check(f.api.Update(f.t.Context(), &pods[i]))
	}
}

// price returns three hourly prices: of the instances, of a plan that launches new nodes for all pods, and of its lower
// bound.
func (f *varyingRig) price() (price, replanned, bound catalog.Price) {
	for _, i := range f.instances() {
		price += f.prices[i.Type]
	}
	market := f.Market.Market(f.now())
	objects, err := f.Moves.Reader.Objects(f.t.Context())
	f.check(err)
	objects.Nodes, objects.Claims = nil, nil
	for i := range objects.Pods {
		p := objects.Pods[i].DeepCopy()
		p.Spec.NodeName, p.Status = "", (&varyingApp{cpu: "1", memory: "1"}).pod().Status // the status of a pending pod
		objects.Pods[i] = p
	}
	plan := provisioner.Plan(objects.Snapshot(snapshot.View{Now: f.now(), Live: true, Market: market}), market)
	if len(plan.Refusals) > 0 {
		f.t.Fatalf("%d pods cannot be placed on new nodes: %+v", len(plan.Refusals), plan.Refusals[0])
	}
	return price, plan.Price, plan.LowerBound
}

func (f *varyingRig) countWaiting() (n int) {
	for _, p := range f.pods() {
		if p.Spec.NodeName == "" {
			n++
		}
	}
	return n
}

func (f *varyingRig) evictions() (n int) {
	for _, a := range f.apps {
		n += len(a.evicted)
	}
	return n
}

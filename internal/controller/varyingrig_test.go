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

// tide is a rig whose workloads come and go, minute by minute, and whose pods are spread as by kube-scheduler. Time is simulated.
type tide struct {
	*rig
	t      *testing.T
	random *rand.Rand
	prices map[string]catalog.Price // of instance types
	begun  time.Time
	apps   []*tideApp
	trades map[string]*trade    // moves, by ID
	shapes map[string]string    // of claims, by name
	visits map[string]tideVisit // of claims, by name
}

// tideVisit is the last reconcile of a claim: the state of it and its Node before, and when the next is due; zero: on a change.
type tideVisit struct {
	version string
	due     time.Time
}

// tideApp is a workload: a number of replicas that varies with a wave and by chance.
type tideApp struct {
	name        string
	cpu, memory string
	base, swing int // replicas, and the amplitude of the wave
	chance      int // extra or missing replicas, which changes now and then

	want    int
	last    int // pods after the last scan
	made    int
	changes int         // pods that came or went because the workload was changed
	evicted []time.Time // times of evictions
}

// trade records what a move replaced with what, as shapes of nodes.
type trade struct{ gone, come []string }

const (
	tideStep = 10 * time.Second // between rounds of all loops
	tideDay  = 480              // minutes of a wave
)

func newTide(t *testing.T, seed uint64, apps []*tideApp, instanceTypes ...string) *tide {
	t.Helper()
	f := &tide{rig: newRig(t, instanceTypes...), t: t, random: rand.New(rand.NewPCG(seed, 7)), apps: apps,
		trades: map[string]*trade{}, shapes: map[string]string{}, visits: map[string]tideVisit{}}
	region, err := embedded(t).Region(testRegion)
	f.check(err)
	f.prices = region.OnDemand
	f.api = &recall{WithWatch: f.api}
	f.start(t)
	f.Moves.Now = f.now
	f.classes(t)
	f.begun = f.now()
	return f
}

func (f *tide) check(err error) {
	f.t.Helper()
	if err != nil {
		f.t.Fatalf("%v\n%s", err, f.log)
	}
}

// scale sets the number of replicas at the minute; it does not change them where still is true.
func (f *tide) scale(minute int, still bool) {
	for i, a := range f.apps {
		if !still {
			if f.random.IntN(40) == 0 {
				a.chance = f.random.IntN(2*a.swing+1) - a.swing
			}
			phase := 2 * math.Pi * float64(minute+i*tideDay/3/len(f.apps)) / tideDay
			want := max(a.base+a.chance/2+int(math.Round(float64(a.swing)*math.Sin(phase))), 1)
			a.changes += max(want-a.want, a.want-want)
			a.want = want
		}
	}
}

// live simulates one minute: all loops run as long as anything changes, at most every ten seconds.
func (f *tide) live(minute int) {
	end := f.begun.Add(time.Duration(minute+1) * time.Minute)
	for calm, before := 0, f.state(); calm < 1 && !f.now().Add(tideStep).After(end); {
		f.round()
		f.ahead += tideStep
		after := f.state()
		if calm++; after != before {
			calm = 0
		}
		before = after
	}
	f.ahead += max(end.Sub(f.now()), 0)
}

// round runs all loops and the simulated cluster once.
func (f *tide) round() {
	f.replicate()
	f.schedule()
	f.check(f.Emptiness.Pass(f.t.Context(), f.now()))
	f.check(f.Moves.Advance(f.t.Context()))
	f.check(f.Moves.Look(f.t.Context()))
	f.plan(f.t)
	f.note()
	f.visitDue()
	f.join(f.t)
	f.replicate()
	f.schedule()
}

// visitDue reconciles the claims that are due: after a change, and at the time that they asked for.
func (f *tide) visitDue() {
	nodes := map[string]string{}
	for _, n := range f.nodes(f.t) {
		nodes[n.Spec.ProviderID] = n.ResourceVersion
	}
	for _, c := range f.claims(f.t) {
		version := c.ResourceVersion + "/" + nodes[c.Status.ProviderID]
		v := f.visits[c.Name]
		if v.version == version && (v.due.IsZero() || f.now().Before(v.due)) {
			continue
		}
		result, err := f.Claims.Reconcile(f.t.Context(), named(c.Name))
		f.check(err)
		v = tideVisit{version: version}
		if result.RequeueAfter > 0 {
			v.due = f.now().Add(result.RequeueAfter)
		}
		f.visits[c.Name] = v
	}
}

// state changes when an object does.
func (f *tide) state() string {
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

func (f *tide) pods() []corev1.Pod {
	var list corev1.PodList
	f.check(f.api.List(f.t.Context(), &list))
	return list.Items
}

// note records the shapes of the claims of moves.
func (f *tide) note() {
	for _, c := range f.claims(f.t) {
		if shape := disruptor.ShapeOf(&c); c.Labels[corev1.LabelInstanceTypeStable] != "" {
			f.shapes[c.Name] = shape
		}
		if m, _ := nodestate.MoveOf(&c); m != nil && m.Committed {
			f.trade(m.ID).gone = add(f.trade(m.ID).gone, c.Name)
		}
		if id := c.Annotations[nodestate.AnnotationReplaces]; id != "" {
			f.trade(id).come = add(f.trade(id).come, c.Name)
		}
	}
}

func (f *tide) trade(id string) *trade {
	if f.trades[id] == nil {
		f.trades[id] = &trade{}
	}
	return f.trades[id]
}

func add(names []string, name string) []string {
	if slices.Contains(names, name) {
		return names
	}
	return append(names, name)
}

// replicate creates missing pods and deletes surplus ones: pending pods first, the others at random.
func (f *tide) replicate() {
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
			a.made++
			f.create(f.t, a.pod())
		}
		f.random.Shuffle(len(pods), func(i, k int) { pods[i], pods[k] = pods[k], pods[i] })
		slices.SortStableFunc(pods, func(x, y corev1.Pod) int {
			return cmp.Compare(min(len(x.Spec.NodeName), 1), min(len(y.Spec.NodeName), 1))
		})
		for i := range len(pods) - a.want {
			f.check(f.api.Delete(f.t.Context(), &pods[i]))
		}
		a.last = a.want
	}
}

func (a *tideApp) pod() *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: fmt.Sprintf("%s-%05d", a.name, a.made), Labels: map[string]string{"app": a.name},
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
func (f *tide) schedule() {
	pods, nodes := f.pods(), f.nodes(f.t)
	type load struct{ cpu, memory int64 }
	used := map[string]load{}
	of := func(l corev1.ResourceList) load { return load{l.Cpu().MilliValue(), l.Memory().Value()} }
	for i := range pods {
		asks, u := of(pods[i].Spec.Containers[0].Resources.Requests), used[pods[i].Spec.NodeName]
		used[pods[i].Spec.NodeName] = load{u.cpu + asks.cpu, u.memory + asks.memory}
	}
	for i := range pods {
		if pods[i].Spec.NodeName != "" {
			continue
		}
		asks, best, score := of(pods[i].Spec.Containers[0].Resources.Requests), "", -1.0
		for k := range nodes {
			n, room, u := &nodes[k], of(nodes[k].Status.Allocatable), used[nodes[k].Name]
			cpu, memory := room.cpu-u.cpu-asks.cpu, room.memory-u.memory-asks.memory
			isShut := !nodestate.IsReady(n) || n.DeletionTimestamp != nil ||
				slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key != "team" })
			if free := float64(cpu)/float64(room.cpu) + float64(memory)/float64(room.memory); !isShut && cpu >= 0 && memory >= 0 && free > score {
				best, score = n.Name, free
			}
		}
		if best == "" {
			continue
		}
		u := used[best]
		used[best] = load{u.cpu + asks.cpu, u.memory + asks.memory}
		pods[i].Spec.NodeName, pods[i].Status = best, corev1.PodStatus{Phase: corev1.PodRunning}
		f.check(f.api.Update(f.t.Context(), &pods[i]))
	}
}

// price returns the hourly price of the running nodes, fresh that of a fleet launched anew for all pods, and bound their lower bound.
func (f *tide) price() (price, fresh, bound catalog.Price) {
	for _, i := range f.instances() {
		price += f.prices[i.Type]
	}
	market := f.Market.Market(f.now())
	objects, err := f.Moves.Reader.Objects(f.t.Context())
	f.check(err)
	objects.Nodes, objects.Claims = nil, nil
	for i := range objects.Pods {
		p := objects.Pods[i].DeepCopy()
		p.Spec.NodeName, p.Status = "", (&tideApp{cpu: "1", memory: "1"}).pod().Status
		objects.Pods[i] = p
	}
	plan := provisioner.Plan(objects.Snapshot(snapshot.View{Now: f.now(), Live: true, Market: market}), market)
	if len(plan.Refusals) > 0 {
		f.t.Fatalf("%d pods could not be had at any price: %+v", len(plan.Refusals), plan.Refusals[0])
	}
	return price, plan.Price, plan.LowerBound
}

// waiting counts the pods without a node.
func (f *tide) waiting() (n int) {
	for _, p := range f.pods() {
		if p.Spec.NodeName == "" {
			n++
		}
	}
	return n
}

// evictions returns how many pods were evicted so far.
func (f *tide) evictions() (n int) {
	for _, a := range f.apps {
		n += len(a.evicted)
	}
	return n
}

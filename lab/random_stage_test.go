package lab_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/controller/daemon"

	"github.com/joiner-sh/joiner/lab"
)

// stage runs random worlds one after another, on the lab's API server and scheduler, with nodes that have no instance
// and no kubelet.
type stage struct {
	*testing.T // of the current world
	lab        *lab.Lab
	pods       corelisters.PodLister
	nodes      corelisters.NodeLister
	claims     corelisters.PersistentVolumeClaimLister
	changed    chan struct{} // receives when a pod, a node or a volume claim has changed

	last map[string]*corev1.Pod // last created version of each pod, by its name in the world
	made int                    // number of created pods
}

// patience is the timeout for anything that the control plane does.
const patience = 30 * time.Second

func newStage(t *testing.T, l *lab.Lab) *stage {
	t.Helper()
	ctx := t.Context()
	s := &stage{T: t, lab: l, changed: make(chan struct{}, 1), last: map[string]*corev1.Pod{}}
	factory := informers.NewSharedInformerFactory(l.Kube, 0)
	s.pods, s.nodes = factory.Core().V1().Pods().Lister(), factory.Core().V1().Nodes().Lister()
	s.claims = factory.Core().V1().PersistentVolumeClaims().Lister()
	wake := func() {
		select {
		case s.changed <- struct{}{}:
		default:
		}
	}
	for _, informer := range []cache.SharedIndexInformer{
		factory.Core().V1().Pods().Informer(), factory.Core().V1().Nodes().Informer(), factory.Core().V1().PersistentVolumeClaims().Informer(),
	} {
		_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc: func(any) { wake() }, UpdateFunc: func(any, any) { wake() }, DeleteFunc: func(any) { wake() },
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	s.until("the nodes of the last world to be gone", func() bool { return len(s.allNodes()) == 0 })

	_, err := l.Kube.NodeV1().RuntimeClasses().Create(ctx, &nodev1.RuntimeClass{
		ObjectMeta: metav1.ObjectMeta{Name: overheadClass}, Handler: "lab",
		Overhead: &nodev1.Overhead{PodFixed: corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("120m"), corev1.ResourceMemory: resource.MustParse("160Mi"),
		}},
	}, metav1.CreateOptions{})
	s.must(err)
	priorityClass(t, l, &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: urgentClass}, Value: 1000,
		PreemptionPolicy: new(corev1.PreemptNever)})
	return s
}

func (s *stage) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// until waits until ok returns true, and checks at each change in the cluster.
func (s *stage) until(what string, ok func() bool) {
	s.Helper()
	s.untilNone(func() string {
		if ok() {
			return ""
		}
		return what
	})
}

// untilNone waits until nothing is missing, and checks at each change in the cluster.
func (s *stage) untilNone(missing func() string) {
	s.Helper()
	ctx, stop := context.WithTimeout(s.Context(), patience)
	defer stop()
	for {
		what := missing()
		if what == "" {
			return
		}
		select {
		case <-s.changed:
		case err := <-s.lab.Failed():
			s.Fatalf("while waiting for %s: %v", what, err)
		case <-ctx.Done():
			s.Fatalf("waited %s for %s\n%s", patience, what, s.lab.Evidence(context.Background()))
		}
	}
}

func (s *stage) allNodes() []*corev1.Node {
	out, err := s.nodes.List(labels.Everything())
	s.must(err)
	return out
}

func (s *stage) allPods() []*corev1.Pod {
	out, err := s.pods.List(labels.Everything())
	s.must(err)
	return out
}

// all calls a function for each item of a list, several at a time.
func all[T any](s *stage, list []T, do func(context.Context, T) error) {
	s.Helper()
	errs := make(chan error, len(list))
	var group sync.WaitGroup
	slots := make(chan struct{}, 8)
	for _, one := range list {
		slots <- struct{}{}
		group.Go(func() {
			errs <- do(s.Context(), one)
			<-slots
		})
	}
	group.Wait()
	close(errs)
	var failures []error
	for err := range errs {
		failures = append(failures, err)
	}
	s.must(errors.Join(failures...))
}

// furnish creates the existing objects of a world: namespaces, volumes, nodes with their DaemonSet pods, running pods.
func (s *stage) furnish(w *randomWorld) {
	s.Helper()
	kube := s.lab.Kube
	all(s, w.spaces, func(ctx context.Context, n *corev1.Namespace) error {
		if _, err := kube.CoreV1().Namespaces().Create(ctx, n, metav1.CreateOptions{}); err != nil {
			return err
		}
		account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}} // needed to create pods
		_, err := kube.CoreV1().ServiceAccounts(n.Name).Create(ctx, account, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			return nil
		}
		return err
	})
	all(s, w.volumes, func(ctx context.Context, v *corev1.PersistentVolume) error {
		_, err := kube.CoreV1().PersistentVolumes().Create(ctx, v, metav1.CreateOptions{})
		return err
	})
	all(s, w.claims, func(ctx context.Context, c *corev1.PersistentVolumeClaim) error {
		_, err := kube.CoreV1().PersistentVolumeClaims(c.Namespace).Create(ctx, c, metav1.CreateOptions{})
		return err
	})
	all(s, w.daemons, func(ctx context.Context, d *appsv1.DaemonSet) error {
		_, err := kube.AppsV1().DaemonSets(d.Namespace).Create(ctx, d, metav1.CreateOptions{})
		return err
	})
	s.until("volume claims to have their volumes", func() bool {
		return !slices.ContainsFunc(w.claims, func(c *corev1.PersistentVolumeClaim) bool {
			got, err := s.claims.PersistentVolumeClaims(c.Namespace).Get(c.Name)
			return err != nil || got.Status.Phase != corev1.ClaimBound
		})
	})
	s.join(w.nodes, nil)
	all(s, w.running, func(ctx context.Context, p *corev1.Pod) error {
		if _, err := kube.CoreV1().Pods(p.Namespace).Create(ctx, p, metav1.CreateOptions{}); err != nil {
			return err
		}
		if w.ending[idOf(p)] { // without a kubelet it stays in deletion
			return kube.CoreV1().Pods(p.Namespace).Delete(ctx, p.Name, metav1.DeleteOptions{GracePeriodSeconds: new(int64(3600))})
		}
		return nil
	})
}

// pinOf returns a resource that only one node has. A pod that requests it can only run there, and the other nodes still
// count for rules about pods.
func pinOf(node string) corev1.ResourceName { return corev1.ResourceName("pin.example.com/" + node) }

// join creates nodes as their kubelets would, and returns when they are ready and have their DaemonSet pods. attachable
// is the number of EBS volumes per node, 25 if unset.
func (s *stage) join(nodes []*corev1.Node, attachable map[string]int64) {
	s.Helper()
	all(s, nodes, func(ctx context.Context, n *corev1.Node) error {
		n = n.DeepCopy()
		n.Status.Capacity, n.Status.Allocatable = n.Status.Capacity.DeepCopy(), n.Status.Allocatable.DeepCopy()
		n.Status.Capacity[pinOf(n.Name)], n.Status.Allocatable[pinOf(n.Name)] = resource.MustParse("1000"), resource.MustParse("1000")
		now := metav1.Now()
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady",
			LastHeartbeatTime: now, LastTransitionTime: now}}
		count := attachable[n.Name]
		if count == 0 {
			count = 25
		}
		_, err := s.lab.Kube.StorageV1().CSINodes().Create(ctx, &storagev1.CSINode{
			ObjectMeta: metav1.ObjectMeta{Name: n.Name},
			Spec: storagev1.CSINodeSpec{Drivers: []storagev1.CSINodeDriver{{Name: ebsDriver, NodeID: n.Name,
				Allocatable: &storagev1.VolumeNodeResources{Count: new(int32(count))}}}},
		}, metav1.CreateOptions{})
		if err != nil {
			return err
		}
		_, err = s.lab.Kube.CoreV1().Nodes().Create(ctx, n, metav1.CreateOptions{})
		return err
	})
	s.until("young nodes to lose their taints", func() bool {
		for _, want := range nodes {
			n, err := s.nodes.Get(want.Name)
			if err != nil {
				return false
			}
			for _, t := range n.Spec.Taints {
				if t.Key == corev1.TaintNodeNotReady {
					return false
				}
			}
			if cordoned(n) != n.Spec.Unschedulable {
				return false
			}
		}
		return true
	})
	s.daemonsRun()
}

func cordoned(n *corev1.Node) bool {
	return slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == corev1.TaintNodeUnschedulable })
}

// daemonsRun waits until every node has its DaemonSet pods, for which Joiner has left room. The scheduler then knows
// all nodes.
func (s *stage) daemonsRun() {
	s.Helper()
	sets, err := s.lab.Kube.AppsV1().DaemonSets("").List(s.Context(), metav1.ListOptions{})
	s.must(err)
	type post struct {
		set  types.UID
		node string
	}
	want := map[post]string{}
	for _, n := range s.allNodes() {
		for i := range sets.Items {
			d := &sets.Items[i]
			if should, _ := daemon.NodeShouldRunDaemonPod(klog.Logger{}, n, d); should && d.DeletionTimestamp == nil {
				want[post{d.UID, n.Name}] = d.Name
			}
		}
	}
	s.untilNone(func() string {
		missing := maps.Clone(want)
		for _, p := range s.allPods() {
			if ref := metav1.GetControllerOfNoCopy(p); ref != nil && p.DeletionTimestamp == nil {
				delete(missing, post{ref.UID, p.Spec.NodeName})
			}
		}
		for at, set := range missing {
			return fmt.Sprintf("DaemonSets to have their pods on all nodes: %d are missing, one of %s on %s", len(missing), set, at.node)
		}
		return ""
	})
}

// tried returns why kube-scheduler found no node for the pod. It is empty if the scheduler has not tried yet or found
// one. An unknown volume does not count: volumes are created before pods, but the scheduler's watch may be late, and
// the scheduler tries again when it has seen the volume.
func tried(p *corev1.Pod) string {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable &&
			!volumeUnheardOf.MatchString(c.Message) {
			return c.Message
		}
	}
	return ""
}

// volumeUnheardOf matches kube-scheduler's message about an unknown volume or claim.
var volumeUnheardOf = regexp.MustCompile(`persistentvolume(claim)? "[^"]*" not found`)

// outcome is kube-scheduler's decision for a pod: its node, or why it has none.
type outcome struct{ node, why string }

// outcomeOf returns the outcome of the last created version of the pod, and false while there is none.
func (s *stage) outcomeOf(id string) (outcome, bool) {
	p := s.last[id]
	got, err := s.pods.Pods(p.Namespace).Get(p.Name)
	if err != nil {
		return outcome{}, false
	}
	o := outcome{got.Spec.NodeName, tried(got)}
	return o, o != outcome{}
}

// create creates the pods and waits until kube-scheduler has bound each or found no node for it. A pod gets a new name
// each time, as in a Deployment, because the scheduler may still be processing the previous one.
func (s *stage) create(pods []*corev1.Pod) {
	s.Helper()
	var fresh []*corev1.Pod
	for _, p := range pods {
		s.made++
		again := p.DeepCopy()
		again.Name = fmt.Sprintf("%s-%d", p.Name, s.made)
		s.last[idOf(p)] = again
		fresh = append(fresh, again)
	}
	all(s, fresh, func(ctx context.Context, p *corev1.Pod) error {
		_, err := s.lab.Kube.CoreV1().Pods(p.Namespace).Create(ctx, p, metav1.CreateOptions{})
		return err
	})
	s.untilNone(func() string {
		for _, p := range pods {
			if _, done := s.outcomeOf(idOf(p)); !done {
				return "kube-scheduler to look at pod " + idOf(s.last[idOf(p)])
			}
		}
		return ""
	})
}

func idOf(p *corev1.Pod) string { return p.Namespace + "/" + p.Name }

// remove deletes the last created version of each pod, if any, without a grace period.
func (s *stage) remove(pods []*corev1.Pod) {
	s.Helper()
	all(s, pods, func(ctx context.Context, asked *corev1.Pod) error {
		p := s.last[idOf(asked)]
		if p == nil {
			return nil
		}
		err := s.lab.Kube.CoreV1().Pods(p.Namespace).Delete(ctx, p.Name, metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return err
	})
}

// settle creates pods and lets kube-scheduler bind as many as it can. Its decision about the remaining pods is final,
// because each was created again after the last pod was bound. Both results are by the pods' names in the world.
func (s *stage) settle(pods []*corev1.Pod) (bound, left map[string]outcome) {
	s.Helper()
	waits := func(p *corev1.Pod) bool { o, _ := s.outcomeOf(idOf(p)); return o.node == "" }
	s.create(pods)
	waiting := slices.DeleteFunc(slices.Clone(pods), func(p *corev1.Pod) bool { return !waits(p) })
	for before := len(waiting) + 1; 0 < len(waiting) && len(waiting) < before; {
		before = len(waiting)
		for i, p := range waiting {
			if waits(p) {
				s.remove(waiting[i : i+1])
				s.create(waiting[i : i+1])
			}
		}
		waiting = slices.DeleteFunc(waiting, func(p *corev1.Pod) bool { return !waits(p) })
	}
	bound, left = map[string]outcome{}, map[string]outcome{}
	for _, p := range pods {
		o, _ := s.outcomeOf(idOf(p))
		if o.node != "" {
			bound[idOf(p)] = o
		} else {
			left[idOf(p)] = o
		}
	}
	return bound, left
}

// clear deletes the world, and waits until none of its pods and nodes is left.
func (s *stage) clear(w *randomWorld) {
	s.Helper()
	kube := s.lab.Kube
	now := metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}
	ctx := context.Background()
	everything := metav1.ListOptions{}
	for _, n := range w.spaces {
		s.must(kube.AppsV1().DaemonSets(n.Name).DeleteCollection(ctx,
			metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationOrphan)}, everything))
	}
	s.must(kube.CoreV1().Nodes().DeleteCollection(ctx, now, everything))
	s.must(kube.StorageV1().CSINodes().DeleteCollection(ctx, now, everything))
	s.until("nodes and pods to go", func() bool {
		if len(s.allNodes()) > 0 {
			return false
		}
		pods := s.allPods()
		for _, p := range pods {
			err := kube.CoreV1().Pods(p.Namespace).Delete(ctx, p.Name, now)
			if err != nil && !apierrors.IsNotFound(err) {
				s.Fatal(err)
			}
		}
		return len(pods) == 0
	})
	for _, n := range w.spaces {
		s.must(kube.CoreV1().Namespaces().Delete(ctx, n.Name, metav1.DeleteOptions{}))
	}
	s.must(kube.CoreV1().PersistentVolumes().DeleteCollection(ctx, now, everything))
}

// read reads all objects of a kind from the API server.
func read[T any, L any](s *stage, list func(context.Context, metav1.ListOptions) (L, error), items func(L) []T) []*T {
	s.Helper()
	got, err := list(s.Context(), metav1.ListOptions{})
	s.must(err)
	values := items(got)
	out := make([]*T, len(values))
	for i := range values {
		out[i] = &values[i]
	}
	return out
}

// String returns the outcome as text for messages.
func (o outcome) String() string {
	if o.node != "" {
		return "bound to " + o.node
	}
	return fmt.Sprintf("Pending (%s)", o.why)
}

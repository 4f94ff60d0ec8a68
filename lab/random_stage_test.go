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

// testbed runs random worlds one after another, on the lab's API server and kube-scheduler, with nodes that have no
// instance and no kubelet.
type testbed struct {
	*testing.T   // test of the current world
	lab          *lab.Lab
	pods         corelisters.PodLister
	nodes        corelisters.NodeLister
	volumeClaims corelisters.PersistentVolumeClaimLister
	changed      chan struct{} // receives a value when a pod, a node or a volume claim has changed

	last    map[string]*corev1.Pod // last created copy of each pod, by "namespace/name" of the pod in the world
	created int                    // number of pods created so far
}

const controlPlaneTimeout = 30 * time.Second

func newTestbed(t *testing.T, l *lab.Lab) *testbed {
	t.Helper()
	ctx := t.Context()
	s := &testbed{T: t, lab: l, changed: make(chan struct{}, 1), last: map[string]*corev1.Pod{}}
	factory := informers.NewSharedInformerFactory(l.Kube, 0)
	s.pods, s.nodes = factory.Core().V1().Pods().Lister(), factory.Core().V1().Nodes().Lister()
	s.volumeClaims = factory.Core().V1().PersistentVolumeClaims().Lister()
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
	s.until("the nodes of earlier tests to be removed", func() bool { return len(s.allNodes()) == 0 })

	_, err := l.Kube.NodeV1().RuntimeClasses().Create(ctx, &nodev1.RuntimeClass{
		ObjectMeta: metav1.ObjectMeta{Name: overheadClass}, Handler: "lab",
		Overhead: &nodev1.Overhead{PodFixed: corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("120m"), corev1.ResourceMemory: resource.MustParse("160Mi"),
		}},
	}, metav1.CreateOptions{})
	s.must(err)
	createPriorityClass(t, l, &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: urgentClass}, Value: 1000,
		PreemptionPolicy: new(corev1.PreemptNever)})
	return s
}

func (s *testbed) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// until is like untilNone, with a condition and a fixed text.
func (s *testbed) until(what string, ok func() bool) {
	s.Helper()
	s.untilNone(func() string {
		if ok() {
			return ""
		}
		return what
	})
}

// untilNone waits until missing returns no text. It calls missing after each change in the cluster. The text completes
// "waited 30s for".
func (s *testbed) untilNone(missing func() string) {
	s.Helper()
	ctx, stop := context.WithTimeout(s.Context(), controlPlaneTimeout)
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
			s.Fatalf("waited %s for %s\n%s", controlPlaneTimeout, what, s.lab.Evidence(context.Background()))
		}
	}
}

func (s *testbed) allNodes() []*corev1.Node {
	out, err := s.nodes.List(labels.Everything())
	s.must(err)
	return out
}

func (s *testbed) allPods() []*corev1.Pod {
	out, err := s.pods.List(labels.Everything())
	s.must(err)
	return out
}

// forEach calls a function for each item of a list, up to eight at a time. An error fails the test.
func forEach[T any](s *testbed, list []T, do func(context.Context, T) error) {
	s.Helper()
	errs := make(chan error, len(list))
	var group sync.WaitGroup
	slots := make(chan struct{}, 8)
	for _, item := range list {
		slots <- struct{}{}
		group.Go(func() {
			errs <- do(s.Context(), item)
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

// createExisting creates the existing objects of a world: namespaces, volumes, nodes with their DaemonSet pods, and
// running pods.
func (s *testbed) createExisting(w *randomWorld) {
	s.Helper()
	kube := s.lab.Kube
	forEach(s, w.namespaces, func(ctx context.Context, n *corev1.Namespace) error {
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
	forEach(s, w.volumes, func(ctx context.Context, v *corev1.PersistentVolume) error {
		_, err := kube.CoreV1().PersistentVolumes().Create(ctx, v, metav1.CreateOptions{})
		return err
	})
	forEach(s, w.claims, func(ctx context.Context, c *corev1.PersistentVolumeClaim) error {
		_, err := kube.CoreV1().PersistentVolumeClaims(c.Namespace).Create(ctx, c, metav1.CreateOptions{})
		return err
	})
	forEach(s, w.daemons, func(ctx context.Context, d *appsv1.DaemonSet) error {
		_, err := kube.AppsV1().DaemonSets(d.Namespace).Create(ctx, d, metav1.CreateOptions{})
		return err
	})
	s.until("volume claims to be bound", func() bool {
		return !slices.ContainsFunc(w.claims, func(c *corev1.PersistentVolumeClaim) bool {
			got, err := s.volumeClaims.PersistentVolumeClaims(c.Namespace).Get(c.Name)
			return err != nil || got.Status.Phase != corev1.ClaimBound
		})
	})
	s.join(w.nodes, nil)
	forEach(s, w.running, func(ctx context.Context, p *corev1.Pod) error {
		if _, err := kube.CoreV1().Pods(p.Namespace).Create(ctx, p, metav1.CreateOptions{}); err != nil {
			return err
		}
		if w.ending[idOf(p)] { // without a kubelet the deletion does not finish
			return kube.CoreV1().Pods(p.Namespace).Delete(ctx, p.Name, metav1.DeleteOptions{GracePeriodSeconds: new(int64(3600))})
		}
		return nil
	})
}

// pinResource returns a resource that only the given node has. A pod that requests it can only run on that node. A
// node selector would also exclude the other nodes from topology spread.
func pinResource(node string) corev1.ResourceName {
	return corev1.ResourceName("pin.example.com/" + node)
}

// join creates nodes as their kubelets would, and returns when they are ready and have their DaemonSet pods. attachable
// has the number of EBS volumes that a node can attach, by node name; the default is 25.
func (s *testbed) join(nodes []*corev1.Node, attachable map[string]int64) {
	s.Helper()
	forEach(s, nodes, func(ctx context.Context, n *corev1.Node) error {
		n = n.DeepCopy()
		n.Status.Capacity, n.Status.Allocatable = n.Status.Capacity.DeepCopy(), n.Status.Allocatable.DeepCopy()
		n.Status.Capacity[pinResource(n.Name)], n.Status.Allocatable[pinResource(n.Name)] = resource.MustParse("1000"), resource.MustParse("1000")
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
	s.until("new nodes to lose the taint not-ready", func() bool {
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
			if hasCordonTaint(n) != n.Spec.Unschedulable { // the node lifecycle controller adds this taint to cordoned nodes
				return false
			}
		}
		return true
	})
	s.awaitDaemonPods()
}

func hasCordonTaint(n *corev1.Node) bool {
	return slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == corev1.TaintNodeUnschedulable })
}

// awaitDaemonPods waits until every node has its DaemonSet pods, for which Joiner has left room. After that,
// kube-scheduler knows all nodes.
func (s *testbed) awaitDaemonPods() {
	s.Helper()
	sets, err := s.lab.Kube.AppsV1().DaemonSets("").List(s.Context(), metav1.ListOptions{})
	s.must(err)
	type daemonPod struct {
		set  types.UID
		node string
	}
	want := map[daemonPod]string{} // names of the DaemonSets
	for _, n := range s.allNodes() {
		for i := range sets.Items {
			d := &sets.Items[i]
			if should, _ := daemon.NodeShouldRunDaemonPod(klog.Logger{}, n, d); should && d.DeletionTimestamp == nil {
				want[daemonPod{d.UID, n.Name}] = d.Name
			}
		}
	}
	s.untilNone(func() string {
		missing := maps.Clone(want)
		for _, p := range s.allPods() {
			if ref := metav1.GetControllerOfNoCopy(p); ref != nil && p.DeletionTimestamp == nil {
				delete(missing, daemonPod{ref.UID, p.Spec.NodeName})
			}
		}
		for pod, set := range missing {
			return fmt.Sprintf("DaemonSets to have their pods on all nodes: %d are missing, one of %s on %s", len(missing), set, pod.node)
		}
		return ""
	})
}

// whyUnschedulable returns why kube-scheduler found no node for the pod. The text is empty if kube-scheduler has found
// a node or has not tried yet. A message about an unknown volume does not count: volumes are created before pods, but
// kube-scheduler's watch may be late, and kube-scheduler tries again when it has seen the volume.
func whyUnschedulable(p *corev1.Pod) string {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable &&
			!unknownVolume.MatchString(c.Message) {
			return c.Message
		}
	}
	return ""
}

var unknownVolume = regexp.MustCompile(`persistentvolume(claim)? "[^"]*" not found`)

// outcome is kube-scheduler's decision for a pod: its node, or why it has none.
type outcome struct{ node, why string }

// outcomeOf returns the outcome of the last created copy of a pod. The second result is false while there is none.
func (s *testbed) outcomeOf(id string) (outcome, bool) {
	p := s.last[id]
	got, err := s.pods.Pods(p.Namespace).Get(p.Name)
	if err != nil {
		return outcome{}, false
	}
	o := outcome{got.Spec.NodeName, whyUnschedulable(got)}
	return o, o != outcome{}
}

// create creates a copy of each pod, and waits until kube-scheduler has bound the copy or found no node for it. Each
// copy has a new name, as in a Deployment, because kube-scheduler may still be processing the previous copy.
func (s *testbed) create(pods []*corev1.Pod) {
	s.Helper()
	var copies []*corev1.Pod
	for _, p := range pods {
		s.created++
		renamed := p.DeepCopy()
		renamed.Name = fmt.Sprintf("%s-%d", p.Name, s.created)
		s.last[idOf(p)] = renamed
		copies = append(copies, renamed)
	}
	forEach(s, copies, func(ctx context.Context, p *corev1.Pod) error {
		_, err := s.lab.Kube.CoreV1().Pods(p.Namespace).Create(ctx, p, metav1.CreateOptions{})
		return err
	})
	s.untilNone(func() string {
		for _, p := range pods {
			if _, done := s.outcomeOf(idOf(p)); !done {
				return "kube-scheduler to try pod " + idOf(s.last[idOf(p)])
			}
		}
		return ""
	})
}

func idOf(p *corev1.Pod) string { return p.Namespace + "/" + p.Name }

// remove deletes the last created copy of each pod, if there is one, without a grace period.
func (s *testbed) remove(pods []*corev1.Pod) {
	s.Helper()
	forEach(s, pods, func(ctx context.Context, original *corev1.Pod) error {
		p := s.last[idOf(original)]
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

// settle creates pods and lets kube-scheduler bind as many as it can. left has the unbound pods. Each unbound pod was
// created again after the last pod was bound, so kube-scheduler's decision is final. Keys are the pods' names in the
// world.
func (s *testbed) settle(pods []*corev1.Pod) (bound, left map[string]outcome) {
	s.Helper()
	isUnbound := func(p *corev1.Pod) bool { o, _ := s.outcomeOf(idOf(p)); return o.node == "" }
	s.create(pods)
	waiting := slices.DeleteFunc(slices.Clone(pods), func(p *corev1.Pod) bool { return !isUnbound(p) })
	for before := len(waiting) + 1; 0 < len(waiting) && len(waiting) < before; { // until a round binds no pod
		before = len(waiting)
		for i, p := range waiting {
			if isUnbound(p) {
				s.remove(waiting[i : i+1])
				s.create(waiting[i : i+1])
			}
		}
		waiting = slices.DeleteFunc(waiting, func(p *corev1.Pod) bool { return !isUnbound(p) })
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

// clear deletes the world, and waits until all of its pods and nodes are removed.
func (s *testbed) clear(w *randomWorld) {
	s.Helper()
	kube := s.lab.Kube
	immediately := metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}
	ctx := context.Background()
	everything := metav1.ListOptions{}
	for _, n := range w.namespaces {
		s.must(kube.AppsV1().DaemonSets(n.Name).DeleteCollection(ctx,
			metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationOrphan)}, everything))
	}
	s.must(kube.CoreV1().Nodes().DeleteCollection(ctx, immediately, everything))
	s.must(kube.StorageV1().CSINodes().DeleteCollection(ctx, immediately, everything))
	s.until("nodes and pods to be removed", func() bool {
		if len(s.allNodes()) > 0 {
			return false
		}
		pods := s.allPods()
		for _, p := range pods {
			err := kube.CoreV1().Pods(p.Namespace).Delete(ctx, p.Name, immediately)
			if err != nil && !apierrors.IsNotFound(err) {
				s.Fatal(err)
			}
		}
		return len(pods) == 0
	})
	for _, n := range w.namespaces {
		s.must(kube.CoreV1().Namespaces().Delete(ctx, n.Name, metav1.DeleteOptions{}))
	}
	s.must(kube.CoreV1().PersistentVolumes().DeleteCollection(ctx, immediately, everything))
}

// read reads all objects of a kind from the API server. items returns the objects of a list.
func read[T any, L any](s *testbed, list func(context.Context, metav1.ListOptions) (L, error), items func(L) []T) []*T {
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

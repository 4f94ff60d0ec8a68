package snapshot

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/kube/conversion"
	"github.com/joiner-sh/joiner/internal/kube/kubeclient"
	"github.com/joiner-sh/joiner/internal/kube/kubetest"
	"github.com/joiner-sh/joiner/internal/model/cluster"
)

// apiServer answers the lists and watches of controller-runtime's cache. Its objects are the whole cluster.
type apiServer struct {
	objects   map[string][]client.Object // by resource: "pods"
	changes   chan watch.Event           // sent to the watch of pods
	refused   chan struct{}              // gets a value when a request for forbidden is refused
	mu        sync.Mutex                 // guards forbidden
	forbidden string                     // a resource for which all requests are refused
}

func (s *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	resource := r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:]
	s.mu.Lock()
	isRefused := resource == s.forbidden
	s.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	switch q := r.URL.Query(); {
	case isRefused:
		refuse(w, http.StatusForbidden, metav1.StatusReasonForbidden)
		select {
		case s.refused <- struct{}{}:
		default:
		}
	case q.Get("sendInitialEvents") == "true":
		// as a server answers that does not support sendInitialEvents yet
		refuse(w, http.StatusUnprocessableEntity, metav1.StatusReasonInvalid)
	case q.Get("watch") != "":
		s.watch(w, r, resource)
	default:
		list := map[string]any{"metadata": metav1.ListMeta{ResourceVersion: "1"}, "items": s.objects[resource]}
		_ = json.NewEncoder(w).Encode(list)
	}
}

func (s *apiServer) watch(w http.ResponseWriter, r *http.Request, resource string) {
	w.WriteHeader(http.StatusOK)
	w.(http.Flusher).Flush()
	var changes chan watch.Event
	if resource == "pods" {
		changes = s.changes
	}
	for {
		select {
		case <-r.Context().Done():
			return
		case e := <-changes:
			_ = json.NewEncoder(w).Encode(map[string]any{"type": e.Type, "object": e.Object})
			w.(http.Flusher).Flush()
		}
	}
}

func refuse(w http.ResponseWriter, code int, reason metav1.StatusReason) {
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status: metav1.StatusFailure, Reason: reason, Code: int32(code), Message: "not here"})
}

// startCache returns a started cache of the server, configured like a manager's.
func startCache(t *testing.T, s *apiServer) cache.Cache {
	t.Helper()
	web := httptest.NewServer(s)
	scheme, err := kubeclient.Scheme()
	if err != nil {
		t.Fatal(err)
	}
	mapper := meta.NewDefaultRESTMapper(nil)
	for gvk := range scheme.AllKnownTypes() {
		if o, err := scheme.New(gvk); err == nil {
			if object, ok := o.(client.Object); ok {
				scope := meta.RESTScope(meta.RESTScopeNamespace)
				if !kubeclient.IsNamespaced(object) {
					scope = meta.RESTScopeRoot
				}
				mapper.Add(gvk, scope)
			}
		}
	}
	options := conversion.CacheOptions()
	options.Scheme, options.Mapper = scheme, mapper
	c, err := cache.New(&rest.Config{Host: web.URL}, options)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- c.Start(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
		web.CloseClientConnections()
		web.Close()
	})
	return c
}

// TestFollowTheCache uses controller-runtime's own cache. At first, CSINodes are forbidden, and Snapshot returns an
// error. Then it returns the whole cluster, and later the changes.
func TestFollowTheCache(t *testing.T) {
	t.Parallel()
	waiting, bound := kubetest.PendingPod("waiting"), kubetest.PendingPod("bound")
	waiting.ResourceVersion, bound.ResourceVersion = "2", "3"
	bound.Spec.NodeName, bound.Status.Phase = "ip-0", corev1.PodRunning
	node, claim := uniformCluster(0, 1, 0).Nodes[0], uniformCluster(0, 1, 0).Claims[0]
	s := &apiServer{
		objects: map[string][]client.Object{"pods": {waiting, bound}, "nodes": {node}, "nodeclaims": {claim},
			"nodepools": {kubetest.GeneralPool()}},
		changes: make(chan watch.Event), refused: make(chan struct{}, 1), forbidden: "csinodes",
	}
	r := &Reader{Informers: startCache(t, s)}

	ctx, stop := context.WithCancel(t.Context())
	go func() { // so that Snapshot does not wait for listTimeout
		<-s.refused
		stop()
	}()
	if got, err := r.Snapshot(ctx, kubetest.Noon, nil); err == nil || !strings.Contains(err.Error(), "csinode") || len(got.Nodes) > 0 {
		t.Fatalf("while csinodes are forbidden: %d nodes, %v; want an error that names csinode", len(got.Nodes), err)
	}
	s.mu.Lock()
	s.forbidden = ""
	s.mu.Unlock()
	// expect waits until Snapshot returns the effect of the change.
	expect := func(change string, isSeen func(cluster.Snapshot) bool) {
		t.Helper()
		for {
			got, err := r.Snapshot(t.Context(), kubetest.Noon, nil)
			if err != nil {
				t.Fatalf("%s: %v", change, err)
			}
			if isSeen(got) {
				return
			}
			runtime.Gosched() // a cache lags behind its server
		}
	}
	if got, err := r.Snapshot(t.Context(), kubetest.Noon, nil); err != nil || len(got.Pods) != 1 || len(got.Nodes) != 1 ||
		len(got.Nodes[0].Pods) != 1 || len(got.Pools) != 1 {
		t.Fatalf("after csinodes are allowed: %s, %v; want 1 pending pod, 1 node with 1 pod, and 1 pool",
			kubetest.Render(got), err)
	}
	if o, err := r.Objects(t.Context()); err != nil || len(o.Pods) != 2 || len(o.Claims) != 1 {
		t.Errorf("%d pods, %d claims, %v; want 2 and 1", len(o.Pods), len(o.Claims), err)
	}
	scheduled := waiting.DeepCopy()
	scheduled.TypeMeta, scheduled.ResourceVersion, scheduled.Spec.NodeName = metav1.TypeMeta{Kind: "Pod", APIVersion: "v1"}, "4", "ip-0"
	s.changes <- watch.Event{Type: watch.Modified, Object: scheduled}
	expect("a pod is bound", func(c cluster.Snapshot) bool { return len(c.Pods) == 0 && len(c.Nodes[0].Pods) == 2 })
	deleted := bound.DeepCopy()
	deleted.TypeMeta, deleted.ResourceVersion = metav1.TypeMeta{Kind: "Pod", APIVersion: "v1"}, "5"
	s.changes <- watch.Event{Type: watch.Deleted, Object: deleted}
	expect("a pod is deleted", func(c cluster.Snapshot) bool { return len(c.Nodes[0].Pods) == 1 })
}

// TestFollowAddsTheLedger: a claim in the ledger is once in each snapshot, even before an informer reports it, and its
// pods need no other node.
func TestFollowAddsTheLedger(t *testing.T) {
	t.Parallel()
	created := unlaunchedClaim("created")
	created.Annotations = map[string]string{conversion.AnnotationPods: "default/waiting"}
	waiting := kubetest.PendingPod("waiting")
	s := &apiServer{objects: map[string][]client.Object{"pods": {waiting}}, refused: make(chan struct{}, 1)}
	r := &Reader{Informers: startCache(t, s), Ledger: &Ledger{}}
	if got, err := r.Snapshot(t.Context(), kubetest.Noon, nil); err != nil || len(got.Pods) != 1 || len(got.Nodes) != 0 {
		t.Fatalf("before the claim: %d pods, %d nodes, %v; want 1 and 0", len(got.Pods), len(got.Nodes), err)
	}
	r.Ledger.Record(kubetest.Noon, created)
	for range 2 {
		got, err := r.Snapshot(t.Context(), kubetest.Noon, nil)
		if err != nil || len(got.Pods) != 0 || len(got.Nodes) != 1 || len(got.Nodes[0].Pods) != 1 {
			t.Fatalf("with the claim in the ledger: %s, %v; want 1 node with the pod", kubetest.Render(got), err)
		}
	}
	r.Ledger.Forget(created.UID)
	if got, err := r.Snapshot(t.Context(), kubetest.Noon, nil); err != nil || len(got.Pods) != 1 || len(got.Nodes) != 0 {
		t.Fatalf("after Forget: %d pods, %d nodes, %v; want 1 and 0", len(got.Pods), len(got.Nodes), err)
	}
}

// TestConcurrentEvents sends events while it takes snapshots; run it with -race. Each snapshot must have every pod
// exactly once.
func TestConcurrentEvents(t *testing.T) {
	t.Parallel()
	w := newWorld(View{})
	w.send(uniformCluster(20, 5, 4))
	handlers := map[string]func(any, any){}
	for _, f := range w.state.feeds() {
		handlers[kubeclient.KindOf(f.example)] = w.state.handler(f).OnUpdate
	}
	var group sync.WaitGroup
	for worker := range 3 {
		group.Go(func() {
			for turn := range 100 {
				pod := kubetest.PendingPod(fmt.Sprint("pending-", (worker*7+turn)%20))
				pod.ResourceVersion = fmt.Sprint(worker, "-", turn)
				if turn%2 == 0 {
					pod.Spec.NodeName = fmt.Sprint("ip-", turn%5)
				}
				handlers["pod"](nil, pod)
				claim := unlaunchedClaim(fmt.Sprint("claim-", turn%3))
				claim.CreationTimestamp.Time = kubetest.Noon.Add(time.Duration(turn) * time.Second)
				handlers[kubeclient.KindOf(&karpv1.NodeClaim{})](nil, claim)
			}
		})
	}
	for range 100 {
		got := w.state.snapshot(kubetest.Noon, nil, nil)
		seen := map[string]int{}
		for i := range got.Pods {
			seen[got.Pods[i].ID()]++
		}
		for i := range got.Nodes {
			for j := range got.Nodes[i].Pods {
				seen[got.Nodes[i].Pods[j].ID()]++
			}
		}
		for id, n := range seen {
			if n != 1 {
				t.Errorf("a snapshot has pod %s %d times", id, n)
			}
		}
		if len(seen) != 40 { // 20 pending pods, and 4 on each of 5 nodes
			t.Errorf("a snapshot has %d pods, want 40", len(seen))
		}
	}
	group.Wait()
}

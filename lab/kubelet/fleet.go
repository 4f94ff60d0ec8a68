// Package kubelet emulates the kubelets of a lab's nodes.
//
// In: the settings of each kubelet, and the pods that the scheduler binds.
// Out: Nodes with leases and status, and pods that run, end and stop, written as each node's own user.
// Never: a container, or a write as any other user than the node.
package kubelet

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
)

// workers is the number of pods that are processed concurrently, over all nodes. Workers mostly wait for the API
// server. The number limits how fast a thousand nodes become ready, because a node is ready only when its DaemonSet
// pods run.
const workers = 64

// Fleet has all kubelets of one lab. The kubelets share one watch of pods and one connection to the API server, to save
// resources with a thousand nodes. Each kubelet sends requests with the token of its node.
type Fleet struct {
	config       rest.Config // address and certificate of the API server, without credentials
	transport    http.RoundTripper
	pace         Pace
	networkPod   string // see NewFleet
	kubeProxyPod string // see NewFleet
	pods         cache.Indexer
	queue        workqueue.TypedDelayingInterface[string] // "namespace/name"

	mu     sync.Mutex
	nodes  map[string]*Kubelet // by node name
	nextIP map[bool]netip.Addr // next pod address; the key is true for IPv6
	logs   map[string]string   // paths, by "namespace/name" of the pod; see SetLogFile
}

// NewFleet starts to watch pods as the administrator, and returns when the pods are listed.
//
// The network of a node is up once the node's network pod runs: the pod whose label k8s-app has the value networkPod.
// If networkPod is empty, the network is up after pace.CNI. The network pod reaches the API server through a Service.
// Therefore the network pod starts only when a pod whose label k8s-app has the value kubeProxyPod runs on the node. An
// empty kubeProxyPod removes that dependency.
func NewFleet(ctx context.Context, admin *rest.Config, pace Pace, networkPod, kubeProxyPod string) (*Fleet, error) {
	client, err := kubernetes.NewForConfig(Protobuf(admin))
	if err != nil {
		return nil, fmt.Errorf("make client: %w", err)
	}
	config := Protobuf(&rest.Config{
		Host: admin.Host, TLSClientConfig: rest.TLSClientConfig{CAData: admin.CAData}, QPS: -1,
	})
	transport, err := rest.TransportFor(config)
	if err != nil {
		return nil, fmt.Errorf("make transport: %w", err)
	}
	factory := informers.NewSharedInformerFactory(client, 0)
	pods := factory.Core().V1().Pods()
	f := &Fleet{
		config: *config, transport: transport, pace: pace, networkPod: networkPod, kubeProxyPod: kubeProxyPod,
		pods:  pods.Informer().GetIndexer(),
		queue: workqueue.NewTypedDelayingQueue[string](),
		nodes: map[string]*Kubelet{},
		nextIP: map[bool]netip.Addr{
			false: netip.MustParseAddr("100.64.0.1"), true: netip.MustParseAddr("2600:1f18:63f7:b9ff::1"),
		},
	}
	if err := pods.Informer().AddIndexers(cache.Indexers{byNode: nodeOf}); err != nil {
		return nil, fmt.Errorf("watch pods: %w", err)
	}
	if _, err := pods.Informer().AddEventHandler(f.events()); err != nil {
		return nil, fmt.Errorf("watch pods: %w", err)
	}
	factory.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), pods.Informer().HasSynced) {
		return nil, fmt.Errorf("watch pods: %w", context.Cause(ctx))
	}
	go func() {
		<-ctx.Done()
		f.queue.ShutDown()
	}()
	for range workers {
		go f.processQueue()
	}
	return f, nil
}

// Protobuf returns a copy of a client configuration that uses protobuf, which is much cheaper than JSON for client and
// server. Protobuf works for Kubernetes' own kinds only.
func Protobuf(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.ContentType = "application/vnd.kubernetes.protobuf"
	config.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	return config
}

// Start starts a kubelet, which runs until it is stopped or ctx ends.
func (f *Fleet) Start(ctx context.Context, s Settings) (*Kubelet, error) {
	client, err := corev1client.NewForConfigAndClient(&f.config, f.clientOf(s))
	if err != nil {
		return nil, fmt.Errorf("start kubelet of %s: %w", s.NodeName, err)
	}
	leases, err := leaseClient(&f.config, f.clientOf(s))
	if err != nil {
		return nil, fmt.Errorf("start kubelet of %s: %w", s.NodeName, err)
	}
	ctx, stop := context.WithCancel(ctx)
	k := &Kubelet{
		Settings: s, fleet: f, client: client, leases: leases,
		ctx: ctx, stop: stop, network: make(chan struct{}), reportNow: make(chan struct{}, 1), pods: map[types.UID]*podState{},
	}
	f.mu.Lock()
	f.nodes[s.NodeName] = k
	f.mu.Unlock()
	go k.run()
	return k, nil
}

// clientOf returns a client that uses the shared connection with the node's token. Its requests fail with the error
// that the node's own connection would have.
func (f *Fleet) clientOf(s Settings) *http.Client {
	return &http.Client{Transport: &nodeTransport{
		base: f.transport, token: s.Token, reach: s.Reach, accessErr: f.accessError(s),
	}}
}

// accessError returns the error of a node that cannot call the API server, or nil. A node cannot call the API server if
// it uses a proxy, or if its server address or certificate authority differs from the API server's.
// The error is in the wording of Go's HTTP client. accessError sends no request, because the address may belong to
// another computer.
func (f *Fleet) accessError(s Settings) error {
	want, err := url.Parse(f.config.Host)
	if err != nil {
		return fmt.Errorf("parse the API server's address: %w", err)
	}
	got, err := url.Parse(s.Server)
	switch {
	case s.Proxy != "":
		return fmt.Errorf("proxyconnect tcp: dial tcp %s: i/o timeout", s.Proxy)
	case err != nil:
		return err
	case got.Scheme != "https" || got.Hostname() == "":
		return fmt.Errorf("invalid server %q in kubeconfig", s.Server)
	case got.Host == want.Host: // the authority is compared below
	case net.ParseIP(got.Hostname()) == nil:
		return fmt.Errorf("dial tcp: lookup %s on 169.254.169.253:53: no such host", got.Hostname())
	default:
		return fmt.Errorf("dial tcp %s: connect: connection refused", got.Host)
	}
	if !bytes.Equal(bytes.TrimSpace(s.CA), bytes.TrimSpace(f.config.CAData)) {
		return errors.New("tls: failed to verify certificate: x509: certificate signed by unknown authority")
	}
	return nil
}

// ReportNow makes a node's kubelet report its status immediately. It is called after another writer has changed the
// status, which a real kubelet detects at its next check, within ten seconds. ReportNow does nothing for a node without
// a kubelet.
func (f *Fleet) ReportNow(node string) {
	if k := f.node(node); k != nil {
		select {
		case k.reportNow <- struct{}{}:
		default: // a report is already pending
		}
	}
}

// forget removes a kubelet from the fleet, unless another kubelet with the same node name has replaced it.
func (f *Fleet) forget(k *Kubelet) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.nodes[k.NodeName] == k {
		delete(f.nodes, k.NodeName)
	}
}

func (f *Fleet) node(name string) *Kubelet {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.nodes[name]
}

// podIP returns a new pod address: IPv4 from 100.64.0.0/10, the usual secondary range of a VPC, or IPv6 from the last
// block of the VPC.
func (f *Fleet) podIP(isIPv6 bool) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	ip := f.nextIP[isIPv6]
	f.nextIP[isIPv6] = ip.Next()
	return ip.String()
}

// events returns the handler of the watch. It enqueues new and changed pods that are bound to a node, and removes
// deleted pods from their node's kubelet.
func (f *Fleet) events() cache.ResourceEventHandler {
	enqueue := func(object any) {
		if pod, ok := object.(*corev1.Pod); ok && pod.Spec.NodeName != "" {
			f.queue.Add(pod.Namespace + "/" + pod.Name)
		}
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    enqueue,
		UpdateFunc: func(_, object any) { enqueue(object) },
		DeleteFunc: func(object any) {
			if deleted, ok := object.(cache.DeletedFinalStateUnknown); ok {
				object = deleted.Obj
			}
			if pod, ok := object.(*corev1.Pod); ok {
				if k := f.node(pod.Spec.NodeName); k != nil {
					k.forgetPod(pod.UID)
				}
			}
		},
	}
}

// enqueuePodsOf enqueues all pods of a node. It is called when waiting pods may be able to start.
func (f *Fleet) enqueuePodsOf(node string) {
	pods, err := f.pods.IndexKeys(byNode, node)
	if err != nil {
		return
	}
	for _, key := range pods {
		f.queue.Add(key)
	}
}

// byNode names the index of pods by the node they are bound to.
const byNode = "node"

// nodeOf returns the index value of a pod: the name of its node, or nothing for a pod that is not bound.
func nodeOf(object any) ([]string, error) {
	if pod, ok := object.(*corev1.Pod); ok && pod.Spec.NodeName != "" {
		return []string{pod.Spec.NodeName}, nil
	}
	return nil, nil
}

func (f *Fleet) processQueue() {
	for {
		key, shutdown := f.queue.Get()
		if shutdown {
			return
		}
		if delay := f.sync(key); delay > 0 {
			f.queue.AddAfter(key, delay)
		}
		f.queue.Done(key)
	}
}

// sync advances the pod with the given key, and returns the delay until the next call. Zero means that sync is called
// again only after the pod changes.
func (f *Fleet) sync(key string) time.Duration {
	object, ok, err := f.pods.GetByKey(key)
	if err != nil || !ok {
		return 0
	}
	pod := object.(*corev1.Pod)
	k := f.node(pod.Spec.NodeName)
	if k == nil || k.ctx.Err() != nil {
		return 0 // the node does not exist any more, or its kubelet is not in this fleet
	}
	return k.syncPod(pod, time.Now())
}

// nodeTransport sends the requests of one node, with the node's token. If the node cannot reach the API server,
// nodeTransport returns the error and sends nothing.
type nodeTransport struct {
	base      http.RoundTripper
	token     func() (string, error) // see Settings.Token
	reach     func() error           // see Settings.Reach
	accessErr error                  // error of every request, see Fleet.accessError; nil: none
}

// RoundTrip sends the request with the node's token.
func (t *nodeTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if t.accessErr != nil {
		return nil, t.accessErr
	}
	if t.reach != nil {
		if err := t.reach(); err != nil {
			return nil, err
		}
	}
	token, err := t.token()
	if err != nil {
		return nil, fmt.Errorf("getting credentials: exec: executable aws failed with exit code 255: %w", err)
	}
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+token)
	return t.base.RoundTrip(r)
}

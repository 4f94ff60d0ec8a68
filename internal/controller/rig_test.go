package controller

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/smithy-go/middleware"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	awsv1 "github.com/joiner-sh/joiner/api/aws/v1"
	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/aws/ami"
	"github.com/joiner-sh/joiner/internal/aws/ec2"
	"github.com/joiner-sh/joiner/internal/aws/eks"
	"github.com/joiner-sh/joiner/internal/aws/iam"
	"github.com/joiner-sh/joiner/internal/aws/pricing"
	"github.com/joiner-sh/joiner/internal/aws/ratelimit"
	"github.com/joiner-sh/joiner/internal/aws/vpc"
	"github.com/joiner-sh/joiner/internal/controller/disruptor"
	"github.com/joiner-sh/joiner/internal/controller/driftcheck"
	"github.com/joiner-sh/joiner/internal/controller/gc"
	"github.com/joiner-sh/joiner/internal/controller/loop"
	"github.com/joiner-sh/joiner/internal/controller/nodeclaim"
	"github.com/joiner-sh/joiner/internal/controller/nodeclass"
	"github.com/joiner-sh/joiner/internal/controller/nodepool"
	"github.com/joiner-sh/joiner/internal/controller/nodestate"
	"github.com/joiner-sh/joiner/internal/controller/offerings"
	"github.com/joiner-sh/joiner/internal/controller/poolhealth"
	"github.com/joiner-sh/joiner/internal/controller/provisioner"
	"github.com/joiner-sh/joiner/internal/emulator"
	"github.com/joiner-sh/joiner/internal/emulator/world"
	"github.com/joiner-sh/joiner/internal/emulator/world/identity"
	"github.com/joiner-sh/joiner/internal/kube/conversion"
	"github.com/joiner-sh/joiner/internal/kube/kubeclient"
	"github.com/joiner-sh/joiner/internal/kube/kubetest"
	"github.com/joiner-sh/joiner/internal/kube/snapshot"
	"github.com/joiner-sh/joiner/internal/kube/writer"
	"github.com/joiner-sh/joiner/internal/metrics"
	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/node/bootstrap"
	"github.com/joiner-sh/joiner/internal/node/lifecycle"
)

const (
	testRegion  = "us-east-1"
	testCluster = "prod"
	testUID     = "uid-of-kube-system"

	testClusterARN = "arn:aws:eks:us-east-1:" + emulator.DefaultAccount + ":cluster/" + testCluster
)

// rig is a simulated AWS and API server for one test, and the controller's loops, which use both. A loop runs only when
// the test calls its method.
type rig struct {
	*emulator.Server
	Controllers
	api         client.WithWatch
	estate      world.ClusterResources // the resources of the cluster in the simulated AWS
	events      *events
	log         *bytes.Buffer
	uid         string             // UID of the cluster
	url         string             // URL of the simulated AWS
	transport   http.RoundTripper  // to AWS; nil: over the network to url
	limiter     *ratelimit.Limiter // of calls to EC2; nil: unlimited
	fuse        *fuse              // counts the writes of the current process, and can end it at one of them
	ahead       time.Duration      // how far the clock of AWS, and of loops with a field Now, is ahead of the real clock
	serverAhead time.Duration      // how far the API server's clock is ahead of that of AWS
}

// newRig returns a rig whose region has the named instance types, with a node class and a pool, and without pods.
func newRig(t testing.TB, instanceTypes ...string) *rig {
	t.Helper()
	r := makeRig(t, instanceTypes)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		body, err := io.ReadAll(request.Body)
		request.Body = io.NopCloser(bytes.NewReader(body))
		serve := func() error {
			r.ServeHTTP(w, request)
			return nil
		}
		name, isWrite := r.nameOf(request, body)
		switch {
		case err != nil:
		case isWrite:
			err = r.fuse.write(name, serve)
		default:
			err = serve()
		}
		if err != nil {
			panic(http.ErrAbortHandler) // breaks the connection, as if the process had ended
		}
	}))
	t.Cleanup(srv.Close)
	r.url = srv.URL
	r.start(t)
	return r
}

// makeRig is newRig without loops and without an HTTP server for AWS.
func makeRig(t testing.TB, instanceTypes []string) *rig {
	t.Helper()
	r := &rig{uid: testUID, events: &events{}, log: &bytes.Buffer{}, fuse: &fuse{}}
	r.createWorld(t, instanceTypes)
	r.serveKubernetes(t)
	return r
}

func (r *rig) now() time.Time { return time.Now().Add(r.ahead) }

// table reads the embedded table of instance types, once for all tests.
var table = sync.OnceValues(catalog.Embedded)

// embedded returns the table. The first call must not be within a synctest bubble.
func embedded(t testing.TB) catalog.Table {
	t.Helper()
	all, err := table()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func (r *rig) createWorld(t testing.TB, instanceTypes []string) {
	t.Helper()
	table := embedded(t)
	prices, err := table.Region(testRegion)
	if err != nil {
		t.Fatal(err)
	}
	setup := world.Setup{Account: emulator.DefaultAccount, Region: testRegion, Cluster: testCluster}
	for _, name := range instanceTypes {
		facts, ok := table.Facts(name)
		if !ok {
			t.Fatalf("the embedded table lacks %s", name)
		}
		setup.Stock = append(setup.Stock, world.OfferedType{Facts: facts, OnDemand: prices.OnDemand[name]})
	}
	w, estate, err := world.New(time.Now(), setup)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Account(emulator.DefaultAccount).CreateRole(time.Now(), identity.Role{Name: "node"}); err != nil {
		t.Fatal(err)
	}
	r.estate = estate
	r.Server = &emulator.Server{World: w, Now: r.now, UnknownKeyRole: controllerRole}
	r.attachControllerPolicies(t, w)
}

func (r *rig) serveKubernetes(t testing.TB) {
	t.Helper()
	r.api = kubetest.FakeClient(t, r.serverDefaults(), testClass(), testPool())
}

func (r *rig) serverDefaults() interceptor.Funcs {
	created := 0
	var mu sync.Mutex
	return interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			mu.Lock()
			defer mu.Unlock()
			created++
			o.SetUID(types.UID(fmt.Sprintf("uid-%d", created)))
			o.SetCreationTimestamp(metav1.NewTime(r.now().Add(r.serverAhead).Truncate(time.Second)))
			return c.Create(ctx, o, opts...)
		},
	}
}

func (r *rig) cfg() aws.Config {
	cfg := aws.Config{Region: testRegion, BaseEndpoint: aws.String(r.url), RetryMaxAttempts: 1,
		Credentials: credentials.NewStaticCredentialsProvider(emulator.DefaultAccount, "secret", "")}
	if r.limiter != nil {
		cfg.APIOptions = []func(*middleware.Stack) error{r.limiter.AddTo}
	}
	if r.transport != nil {
		cfg.HTTPClient = &http.Client{Transport: r.transport}
	}
	return cfg
}

// start creates new loops without memory, as a new process does.
func (r *rig) start(t testing.TB) {
	t.Helper()
	cfg := r.cfg()
	awsClient, err := ec2.New(cfg, ec2.Cluster{Name: testCluster, UID: r.uid})
	if err != nil {
		t.Fatal(err)
	}
	table := embedded(t)
	m, err := metrics.New(prometheus.NewRegistry(), "test", "")
	if err != nil {
		t.Fatal(err)
	}
	r.createLoops(m, awsClient, iam.New(cfg, iam.Cluster{Name: testCluster, UID: r.uid}),
		pricing.New(pricing.Config{AWS: cfg, Table: table, Isolated: true}), vpc.New(cfg), ami.New(cfg), table)
	offered, err := awsClient.Market(t.Context()) // as Market.Start would
	if err != nil {
		t.Fatal(err)
	}
	r.Market.Offered, r.Market.Version = offered, 1
}

func (r *rig) createLoops(m *metrics.Metrics, awsClient *ec2.Client, profiles *iam.Client, prices *pricing.Client,
	networks *vpc.Client, images *ami.Client, table catalog.Table) {
	ledger, api := &snapshot.Ledger{}, r.fuse.guard(r.api)
	reader := &snapshot.Reader{Cache: r.api, Live: r.api, Ledger: ledger}
	writer := &writer.Writer{Client: api, Ledger: ledger, ClusterUID: r.uid}
	batch := loop.NewBatch(time.Second, 10*time.Second)
	launchBackoff, podBackoff, evictions, registrations := &poolhealth.LaunchBackoff{}, &poolhealth.PodBackoff{},
		&nodestate.PlannedEvictions{}, &poolhealth.Registrations{}
	shortages, lock := &ec2.Shortages{}, &nodestate.DisruptionLock{}
	pods := &nodestate.PodWatch{Batch: batch, Metrics: m}
	log := slog.New(slog.NewJSONHandler(r.log, nil))
	market := &offerings.Catalogs{Region: testRegion, EC2: awsClient, Prices: prices, Table: table, Cache: r.api, Shortages: shortages,
		Options: offerings.MarketOptions{MemoryOverhead: 0.075}, Batch: batch, Metrics: m, Log: log}
	market.Measured = &offerings.Measured{Store: kubeclient.MeasuredStore{Live: r.api, Writer: api,
		Namespace: "kube-system"}, Cache: r.api, Batch: batch, Log: log}
	pauses := &loop.Pauses{Switch: kubeclient.PauseSwitch{Live: r.api, Writer: api, Namespace: "kube-system"}, Log: log}
	disruptable := &disruptor.DisruptableConditionWriter{Objects: writer, Events: r.events, Metrics: m}
	requests := &offerings.RequestBuilder{Market: market, Shortages: shortages, Cluster: bootstrap.Cluster{
		Name: testCluster, Endpoint: "https://api.example", CA: "Y2E=", ServiceCIDR: "10.100.0.0/16"}}
	drift := &driftcheck.Reconciler{Cache: r.api, Fleet: awsClient, Market: market, Objects: writer, Authority: "Y2E=",
		ComparesReservations: true, Events: r.events, Metrics: m, Log: log, Now: r.now}
	r.Controllers = Controllers{
		Market: market, Pods: pods,
		Provisioner: &provisioner.Provisioner{Batch: batch, Cluster: reader, Market: market, Solve: provisioner.Plan,
			Claims: writer, Ledger: ledger, LaunchBackoff: launchBackoff, PodBackoff: podBackoff,
			PlannedEvictions: evictions, Stopwatch: &provisioner.Stopwatch{Metrics: m}, Events: loop.NewRateLimitedRecorder(r.events),
			Metrics: m, Log: log, Now: r.now},
		Drift: drift,
		Claims: &nodeclaim.Reconciler{Cache: r.api, Drift: drift, Authority: "Y2E=", Cluster: reader, Objects: writer,
			Evictor: writer, Binder: writer, Pods: pods, Launcher: awsClient, Instances: awsClient, Offers: requests,
			Ledger: ledger, Batch: batch, LaunchBackoff: launchBackoff, PodBackoff: podBackoff, Registrations: registrations,
			Events: r.events, Metrics: m, Log: log, Now: r.now,
			Replacements: &nodeclaim.Replacements{Cache: r.api, Cluster: reader, PlannedEvictions: evictions, Ledger: ledger, Batch: batch}},
		Orphans: &nodeclaim.OrphanReconciler{Cache: r.api, Finder: reader, Cluster: reader, Objects: writer, Evictor: writer,
			Instances: awsClient, Events: r.events, Metrics: m, Log: log},
		NodeClasses: &nodeclass.Reconciler{Cache: r.api, Objects: writer, Networks: networks, Images: images, Profiles: profiles,
			Templates: awsClient, Versions: fixedVersion("1.33"), Reservations: awsClient, Placements: awsClient, Offers: requests,
			Refresh: time.Minute, Batch: batch, Events: r.events, Metrics: m, Log: log},
		Pools: &nodepool.Reconciler{Cache: r.api, Cluster: reader, Objects: writer, LaunchBackoff: launchBackoff, Market: market,
			Registrations: registrations, Pauses: pauses, Batch: batch, Metrics: m, Log: log},
		Emptiness: &disruptor.Emptiness{Cluster: reader, Reader: reader, Live: reader, Market: market,
			Solve: provisioner.Plan, Objects: writer, Pods: pods,
			Pauses: pauses, Stays: disruptable, Lock: lock, Ledger: ledger, Events: r.events, Metrics: m, Log: log},
		Moves: &disruptor.Disruptor{Cluster: reader, Reader: reader, Market: market, Types: market, Solve: provisioner.Plan,
			Claims: writer, Ledger: ledger, LaunchBackoff: launchBackoff, Objects: writer,
			Pods: pods, Pauses: pauses, Lock: lock, Events: r.events, Metrics: m, Log: log, Now: r.now,
			Stays: disruptable, History: &disruptor.MoveHistory{Store: kubeclient.MoveStore{Live: r.api, Writer: api,
				Namespace: "kube-system"}, Log: log}},
		Sweeper: &gc.Collector{Cache: r.api, Live: r.api, Cluster: reader, Fleet: awsClient, Instances: awsClient,
			Objects: writer, Batch: batch, LaunchBackoff: launchBackoff, Drift: drift, Market: market, Events: r.events, Metrics: m, Log: log},
		Shifts: &offerings.ZonalShifts{Client: eks.NewZonalShifts(r.cfg(), testClusterARN), Cache: r.api, Market: market,
			Batch: batch, Events: r.events, Metrics: m, Log: log},
	}
}

type fixedVersion string

func (v fixedVersion) Version(context.Context) (string, error) { return string(v), nil }

type events struct {
	mu      sync.Mutex
	emitted []string // "NodeClaim/InsufficientCapacityError: …"
}

func (e *events) Emit(about client.Object, reason kubeclient.Reason, message string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	kind := fmt.Sprintf("%T", about)
	e.emitted = append(e.emitted, kind[strings.LastIndex(kind, ".")+1:]+"/"+string(reason)+": "+message)
}

// find returns the first event that contains all of the texts; empty if there is none.
func (e *events) find(texts ...string) string {
	e.mu.Lock()
	defer e.mu.Unlock()
next:
	for _, event := range e.emitted {
		for _, text := range texts {
			if !strings.Contains(event, text) {
				continue next
			}
		}
		return event
	}
	return ""
}

func testClass() *awsv1.EC2NodeClass {
	family := "AL2023"
	return &awsv1.EC2NodeClass{
		ObjectMeta: metav1.ObjectMeta{Name: "default", UID: "uid-class", Generation: 1},
		Spec: awsv1.EC2NodeClassSpec{
			AMIFamily: &family, Role: "node",
			AMISelectorTerms:           []awsv1.AMISelectorTerm{{Alias: "al2023@latest"}},
			SubnetSelectorTerms:        []awsv1.SubnetSelectorTerm{{Tags: map[string]string{"karpenter.sh/discovery": testCluster}}},
			SecurityGroupSelectorTerms: []awsv1.SecurityGroupSelectorTerm{{Tags: map[string]string{"karpenter.sh/discovery": testCluster}}},
		},
	}
}

func testPool() *karpv1.NodePool {
	return &karpv1.NodePool{
		ObjectMeta: metav1.ObjectMeta{Name: "apps", UID: "uid-pool", Generation: 1},
		Spec: karpv1.NodePoolSpec{
			Template: karpv1.NodeClaimTemplate{
				ObjectMeta: karpv1.ObjectMeta{Labels: map[string]string{"team": "a"}},
				Spec: karpv1.NodeClaimTemplateSpec{
					NodeClassRef: &karpv1.NodeClassReference{Group: awsv1.Group, Kind: awsv1.Kind, Name: "default"},
					Requirements: karpv1.Requirements{{
						Key: karpv1.LabelCapacityType, Operator: corev1.NodeSelectorOpIn, Values: []string{karpv1.CapacityTypeOnDemand},
					}},
					Taints:      []corev1.Taint{{Key: "team", Value: "a", Effect: corev1.TaintEffectNoSchedule}},
					ExpireAfter: karpv1.After(720 * time.Hour),
				},
			},
			Disruption: karpv1.Disruption{ConsolidateAfter: karpv1.After(0), Budgets: []karpv1.Budget{{Nodes: "100%"}}},
		},
	}
}

func (r *rig) addPendingPod(t *testing.T, name, cpu, memory string) {
	t.Helper()
	r.create(t, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name},
		Spec: corev1.PodSpec{
			Tolerations: []corev1.Toleration{{Key: "team", Operator: corev1.TolerationOpExists}},
			Containers: []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
				corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory),
			}}}},
		},
		Status: corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{{
			Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable,
		}}},
	})
}

func (r *rig) create(t *testing.T, o client.Object) {
	t.Helper()
	if err := r.api.Create(t.Context(), o); err != nil {
		t.Fatal(err)
	}
}

func (r *rig) plan(t *testing.T) {
	t.Helper()
	r.Provisioner.Pass(t.Context(), loop.Window{First: r.now(), Closed: r.now(), Size: 1})
}

func (r *rig) reconcileClassAndPool(t *testing.T) {
	t.Helper()
	if _, err := r.NodeClasses.Reconcile(t.Context(), named("default")); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Pools.Reconcile(t.Context(), named("apps")); err != nil {
		t.Fatal(err)
	}
}

// reconcileClaims reconciles each claim once. It returns the longest time until a claim is due again, at most half a
// minute.
func (r *rig) reconcileClaims(t *testing.T) time.Duration {
	t.Helper()
	var longest time.Duration
	for _, c := range r.claims(t) {
		result := r.reconcileUntilOpen(t, c)
		longest = max(longest, min(result.RequeueAfter, 30*time.Second))
	}
	return longest
}

// reconcileUntilOpen reconciles the claim. It reconciles the claim again when the claim's turn to open its Node comes,
// and when the Node has been opened, because in the controller the change of the Node triggers a reconcile.
func (r *rig) reconcileUntilOpen(t *testing.T, c karpv1.NodeClaim) reconcile.Result {
	t.Helper()
	for {
		before, _ := r.ownNode(t, c)
		result, err := r.Claims.Reconcile(t.Context(), named(c.Name))
		if err != nil {
			t.Fatal(err)
		}
		version, isHeld := r.ownNode(t, c)
		// A claim whose turn to open its Node comes soon is due again in less than half of the maximum wait.
		isTurnNext := isHeld && result.RequeueAfter > 0 && result.RequeueAfter < lifecycle.MaxNominationWait/2
		if isTurnNext {
			r.ahead += result.RequeueAfter
		} else if version == before || isHeld {
			return result
		}
	}
}

// ownNode returns the resource version of the claim's Node, and whether the taint for nominations keeps pods off it.
func (r *rig) ownNode(t *testing.T, c karpv1.NodeClaim) (version string, isHeld bool) {
	t.Helper()
	nodes, err := r.Claims.Cluster.NodesOf(t.Context(), c.Status.ProviderID)
	if err != nil {
		t.Fatal(err)
	}
	if len(nodes) > 1 { // only one of them is registered
		claim := r.claim(t, c.Name)
		nodes = slices.DeleteFunc(slices.Clone(nodes), func(n *corev1.Node) bool { return n.Name != claim.Status.NodeName })
	}
	if len(nodes) != 1 {
		return "", false
	}
	return nodes[0].ResourceVersion, nodeclaim.HasTaint(nodes[0], conversion.TaintNominations) && !nodes[0].Spec.Unschedulable
}

func named(name string) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Name: name}}
}

func (r *rig) claims(t *testing.T) []karpv1.NodeClaim {
	t.Helper()
	var list karpv1.NodeClaimList
	if err := r.api.List(t.Context(), &list); err != nil {
		t.Fatal(err)
	}
	return list.Items
}

func (r *rig) nodes(t *testing.T) []corev1.Node {
	t.Helper()
	var list corev1.NodeList
	if err := r.api.List(t.Context(), &list); err != nil {
		t.Fatal(err)
	}
	return list.Items
}

func (r *rig) instances() []world.Instance {
	var out []world.Instance
	r.Do(func(*world.World, time.Time) {
		for _, i := range r.estate.Region.Instances.All() {
			if i.State == world.Pending || i.State == world.Running {
				out = append(out, i)
			}
		}
	})
	return out
}

// join creates the missing Nodes of claims with an instance, as kubelets do. It skips deleted claims.
func (r *rig) join(t *testing.T) {
	t.Helper()
	known := map[string]bool{}
	for _, n := range r.nodes(t) {
		known[n.Spec.ProviderID] = true
	}
	for _, c := range r.claims(t) {
		if c.Status.ProviderID == "" || known[c.Status.ProviderID] || c.DeletionTimestamp != nil {
			continue
		}
		r.create(t, r.nodeOf(t, c))
	}
}

func namedNode(c karpv1.NodeClaim, name string) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"kubernetes.io/hostname": name}},
		Spec:       corev1.NodeSpec{ProviderID: c.Status.ProviderID, Taints: []corev1.Taint{karpv1.UnregisteredTaint()}},
		Status: corev1.NodeStatus{
			Capacity: c.Status.Capacity, Allocatable: c.Status.Allocatable,
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
		},
	}
}

// nodeOf returns the Node that the kubelet on the claim's instance creates.
func (r *rig) nodeOf(t testing.TB, c karpv1.NodeClaim) *corev1.Node {
	t.Helper()
	id := c.Status.ProviderID[strings.LastIndexByte(c.Status.ProviderID, '/')+1:]
	var node *corev1.Node
	r.Do(func(w *world.World, _ time.Time) {
		i, ok := w.Instance(id)
		if !ok {
			t.Fatalf("there is no instance %s", id)
		}
		node = namedNode(c, i.PrivateDNSName)
		node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: i.PrivateIP}}
	})
	return node
}

// nodeNamedByID is nodeOf for a kubelet that uses the instance ID as the name of its Node.
func (r *rig) nodeNamedByID(t testing.TB, c karpv1.NodeClaim) *corev1.Node {
	t.Helper()
	node := r.nodeOf(t, c)
	node.Name = c.Status.ProviderID[strings.LastIndexByte(c.Status.ProviderID, '/')+1:]
	return node
}

// bind binds all pods to the first Node, without regard to its room.
func (r *rig) bind(t *testing.T) {
	t.Helper()
	nodes := r.nodes(t)
	if len(nodes) == 0 {
		t.Fatal("there is no Node to bind to")
	}
	var pods corev1.PodList
	if err := r.api.List(t.Context(), &pods); err != nil {
		t.Fatal(err)
	}
	for i := range pods.Items {
		pod := &pods.Items[i]
		pod.Spec.NodeName, pod.Status = nodes[0].Name, corev1.PodStatus{Phase: corev1.PodRunning}
		if err := r.api.Update(t.Context(), pod); err != nil {
			t.Fatal(err)
		}
	}
}

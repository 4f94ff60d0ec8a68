package lab_test

import (
	"bufio"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"sigs.k8s.io/controller-runtime/pkg/client"

	awsv1 "github.com/joiner-sh/joiner/api/aws/v1"
	karpenterv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/emulator/world"
	"github.com/joiner-sh/joiner/lab"
)

// joinerBuild is the joiner program that all tests run.
var joinerBuild struct {
	once sync.Once
	dir  string // folder of the build; TestMain removes it
	path string
	err  error
}

func program(t *testing.T) string {
	t.Helper()
	joinerBuild.once.Do(func() {
		if joinerBuild.dir, joinerBuild.err = os.MkdirTemp("", "joiner-"); joinerBuild.err == nil {
			joinerBuild.path, joinerBuild.err = lab.BuildJoiner(context.Background(), joinerBuild.dir)
		}
	})
	if joinerBuild.err != nil {
		t.Fatal(joinerBuild.err)
	}
	return joinerBuild.path
}

// controllers has the controller that was started last in each lab.
var controllers struct {
	sync.Mutex
	byLab map[*lab.Lab]*lab.Controller
}

// runningController returns the controller that was started last in the lab, or nil.
func runningController(l *lab.Lab) *lab.Controller {
	controllers.Lock()
	defer controllers.Unlock()
	return controllers.byLab[l]
}

func killController(l *lab.Lab) {
	if c := runningController(l); c != nil {
		c.Kill()
	}
}

// ensureController returns the lab's running controller. It starts a controller if none runs.
func ensureController(t *testing.T, l *lab.Lab) *lab.Controller {
	t.Helper()
	if c := runningController(l); c != nil && c.Err() == nil {
		return c
	}
	return restartController(t, l)
}

func restartController(t *testing.T, l *lab.Lab, settings ...string) *lab.Controller {
	t.Helper()
	killController(l)
	c, err := l.RunController(t.Context(), program(t), append([]string{"DISABLE_LEADER_ELECTION=true"}, settings...)...)
	if err != nil {
		t.Fatal(err)
	}
	controllers.Lock()
	defer controllers.Unlock()
	if controllers.byLab == nil {
		controllers.byLab = map[*lab.Lab]*lab.Controller{}
	}
	controllers.byLab[l] = c
	return c
}

// class returns the manifest of an EC2NodeClass. specLines select the AMIs, and can be any further lines of the spec.
func class(l *lab.Lab, name, specLines string) string {
	return fmt.Sprintf(`
apiVersion: karpenter.k8s.aws/v1
kind: EC2NodeClass
metadata: {name: %s}
spec:
  role: %s
  %s
  subnetSelectorTerms: [{tags: {karpenter.sh/discovery: %s}}]
  securityGroupSelectorTerms: [{tags: {karpenter.sh/discovery: %s}}]
---
`, name, lab.NodeRole, specLines, l.Cluster, l.Cluster)
}

// pool returns the manifest of a NodePool that sets the label "test" of its nodes to the pool's name. more are further
// lines of the spec.
func pool(name, more string, requirements ...string) string {
	return fmt.Sprintf(`
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: %s}
spec:
  template:
    metadata: {labels: {test: %s}}
    spec:
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: %s}
      requirements:
      - {key: kubernetes.io/os, operator: In, values: [linux]}
      - {key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}
      - %s
  disruption: {consolidationPolicy: WhenEmpty, consolidateAfter: 1s, budgets: [{nodes: 100%%}]}
  %s
---
`, name, name, name, strings.Join(requirements, "\n      - "), more)
}

// deployment returns the manifest of a Deployment. selector has the pods' node selector as YAML: "test: web".
func deployment(namespace, name string, replicas int, cpu, memory, selector string) string {
	return fmt.Sprintf(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: %s, namespace: %s}
spec:
  replicas: %d
  selector: {matchLabels: {app: %s}}
  template:
    metadata: {labels: {app: %s}}
    spec:
      terminationGracePeriodSeconds: 1
      nodeSelector: {%s}
      containers:
      - name: main
        image: pause
        resources: {requests: {cpu: %q, memory: %q}}
---
`, name, namespace, replicas, name, name, selector, cpu, memory)
}

func apply(t *testing.T, l *lab.Lab, manifests ...string) {
	t.Helper()
	if err := l.Apply(t.Context(), strings.Join(manifests, "")); err != nil {
		t.Fatal(err)
	}
}

func newTestNamespace(t *testing.T, l *lab.Lab) string {
	t.Helper()
	name := strings.ToLower(nameOf(t))
	err := l.Client.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	if err != nil {
		t.Fatal(err)
	}
	return name
}

// awaitRunning waits until the namespace has exactly want pods and all of them run. It uses a watch, because repeated
// lists of 500 pods would slow down the measured controller.
func awaitRunning(t *testing.T, l *lab.Lab, namespace string, want int, limit time.Duration) {
	t.Helper()
	began := time.Now()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	factory := informers.NewSharedInformerFactoryWithOptions(l.Kube, 0, informers.WithNamespace(namespace))
	informer := factory.Core().V1().Pods().Informer()
	pods := factory.Core().V1().Pods().Lister()
	factory.Start(ctx.Done())
	within(t, l, limit, fmt.Sprintf("%d pods to run", want), func(context.Context) (bool, error) {
		all, err := pods.List(labels.Everything())
		running := 0
		for _, p := range all {
			if p.Status.Phase == corev1.PodRunning && p.DeletionTimestamp == nil {
				running++
			}
		}
		return informer.HasSynced() && running == want && len(all) == want, err
	})
	t.Logf("%d pods run after %.1f s", want, time.Since(began).Seconds())
}

// cleanUp deletes the test's namespace with its workloads, and then the pools as deletePools does. If no pools are
// given, it deletes the pool with the name of the namespace.
func cleanUp(t *testing.T, l *lab.Lab, name string, pools ...string) {
	t.Helper()
	deleteNamespace(t, l, name)
	if len(pools) == 0 {
		pools = []string{name}
	}
	deletePools(t, l, pools...)
}

func deleteNamespace(t *testing.T, l *lab.Lab, name string) {
	t.Helper()
	if err := l.Client.Delete(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
		t.Fatal(err)
	}
}

// deletePools waits until the pools have no nodes; the caller must have deleted their workloads. Then it deletes the
// pools and the classes with the same names, and waits until the classes' AWS resources are deleted.
func deletePools(t *testing.T, l *lab.Lab, pools ...string) {
	t.Helper()
	ctx := t.Context()
	began := time.Now()
	for _, pool := range pools {
		within(t, l, 90*time.Second, "the nodes to be deleted", func(ctx context.Context) (bool, error) {
			left, err := nodeObjects(ctx, l, pool)
			if err == nil && len(left) > 0 {
				err = fmt.Errorf("%d objects and instances still exist: %v", len(left), left[:min(5, len(left))])
			}
			return len(left) == 0, err
		})
	}
	t.Logf("all nodes were deleted after %.1f s", time.Since(began).Seconds())
	for _, pool := range pools {
		for _, object := range []client.Object{
			&karpenterv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: pool}}, &awsv1.EC2NodeClass{ObjectMeta: metav1.ObjectMeta{Name: pool}},
		} {
			if err := l.Client.Delete(ctx, object); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, pool := range pools {
		within(t, l, 90*time.Second, "launch templates and profiles to be deleted with class "+pool, func(context.Context) (bool, error) {
			left := classResources(l, pool)
			if len(left) > 0 {
				return false, fmt.Errorf("these still exist: %v", left)
			}
			return true, nil
		})
	}
}

// nodeObjects lists the NodeClaims, Nodes, and pending or running instances of a pool.
func nodeObjects(ctx context.Context, l *lab.Lab, pool string) ([]string, error) {
	var left []string
	var claims karpenterv1.NodeClaimList
	var nodes corev1.NodeList
	for _, list := range []client.ObjectList{&claims, &nodes} {
		if err := l.Client.List(ctx, list, client.MatchingLabels{karpenterv1.LabelNodePool: pool}); err != nil {
			return nil, err
		}
	}
	for _, c := range claims.Items {
		left = append(left, "NodeClaim "+c.Name)
	}
	for _, n := range nodes.Items {
		left = append(left, "Node "+n.Name)
	}
	for _, i := range instancesOf(l, pool) {
		if i.Alive() {
			left = append(left, "instance "+i.ID)
		}
	}
	return left, nil
}

// instancesOf lists every instance that was ever launched for a pool.
func instancesOf(l *lab.Lab, pool string) []world.Instance {
	return slices.DeleteFunc(l.Instances(), func(i world.Instance) bool { return i.Tags[karpenterv1.LabelNodePool] != pool })
}

func classResources(l *lab.Lab, class string) []string {
	const tag = "karpenter.k8s.aws/ec2nodeclass"
	var left []string
	l.Emulator.Do(func(w *world.World, _ time.Time) {
		for _, template := range w.Region(l.Account, l.Region).LaunchTemplates.All() {
			if template.Tags[tag] == class {
				left = append(left, "launch template "+template.Name)
			}
		}
		for _, profile := range w.Account(l.Account).Profiles("/") {
			if profile.Tags[tag] == class {
				left = append(left, "instance profile "+profile.Name)
			}
		}
	})
	return left
}

// TestCaseOne reproduces the user report case-1 with a correct role mapping.
func TestCaseOne(t *testing.T) {
	l := sharedLab(t)
	ensureController(t, l)
	name := newTestNamespace(t, l)
	apply(t, l,
		class(l, name, "amiFamily: AL2\n  amiSelectorTerms: [{id: "+l.AL2Image+"}]"),
		strings.ReplaceAll(pool(name, "limits: {cpu: 4}",
			"{key: node.kubernetes.io/instance-type, operator: In, values: [t2.small, t2.medium]}",
			"{key: kubernetes.io/arch, operator: In, values: [amd64]}"), "labels: {", "labels: {nodegroup: karpenter, "),
		deployment(name, "inflate", 3, "500m", "256Mi", "nodegroup: karpenter"),
	)
	awaitRunning(t, l, name, 3, time.Minute)
	for _, i := range instancesOf(l, name) {
		if i.Type != "t2.small" && i.Type != "t2.medium" {
			t.Errorf("instance %s has type %s, want t2.small or t2.medium", i.ID, i.Type)
		}
	}
	cleanUp(t, l, name)
}

// TestBothArchitectures runs 100 pods on AL2023, half of them on each architecture, and scales to zero.
func TestBothArchitectures(t *testing.T) {
	l := sharedLab(t)
	ensureController(t, l)
	name := newTestNamespace(t, l)
	apply(t, l,
		class(l, name, "amiSelectorTerms: [{alias: al2023@latest}]"),
		pool(name, "", "{key: karpenter.k8s.aws/instance-category, operator: In, values: [c, m, r]}",
			"{key: kubernetes.io/arch, operator: In, values: [amd64, arm64]}"),
		deployment(name, "intel", 50, "500m", "1Gi", "test: "+name+", kubernetes.io/arch: amd64"),
		deployment(name, "arm", 50, "500m", "1Gi", "test: "+name+", kubernetes.io/arch: arm64"),
	)
	awaitRunning(t, l, name, 100, 2*time.Minute)
	seen := map[string]bool{}
	for _, i := range instancesOf(l, name) {
		seen[i.Architecture] = true
	}
	if !seen["x86_64"] || !seen["arm64"] {
		t.Errorf("instances were launched only with the architectures %v, want x86_64 and arm64", slices.Sorted(maps.Keys(seen)))
	}
	cleanUp(t, l, name)
}

// TestKilledController kills the controller with SIGKILL ten times, at random moments, while the controller launches a
// hundred nodes.
func TestKilledController(t *testing.T) {
	l := parallelLab(t, lab.Options{})
	seed := uint64(time.Now().UnixNano())
	if text := os.Getenv("LAB_SEED"); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("to repeat the same random numbers: LAB_SEED=%d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	// Short batch windows make it likely that a kill hits a launch.
	restartController(t, l, "BATCH_IDLE_DURATION=200ms", "BATCH_MAX_DURATION=1s")
	name := newTestNamespace(t, l)
	apply(t, l,
		class(l, name, "amiSelectorTerms: [{alias: al2023@latest}]"),
		pool(name, "", "{key: node.kubernetes.io/instance-type, operator: In, values: [m5.large]}"),
		deployment(name, "one-per-node", 0, "1200m", "1Gi", "test: "+name),
	)
	for kill := 1; kill <= 10; kill++ {
		scale(t, l, name, "one-per-node", 10*kill)
		calls := 1 + random.IntN(70)
		waited := awaitCalls(t, l, calls)
		killController(l)
		claims, providerIDs := claimsOf(t, l, name)
		t.Logf("kill %2d: %4d ms after adding 10 pods, waited for %2d AWS calls; %3d NodeClaims, %3d with an instance; %3d instances",
			kill, waited.Milliseconds(), calls, len(claims), len(providerIDs), len(instancesOf(l, name)))
		restartController(t, l, "BATCH_IDLE_DURATION=200ms", "BATCH_MAX_DURATION=1s")
	}
	awaitRunning(t, l, name, 100, 3*time.Minute)
	claims, providerIDs := claimsOf(t, l, name)
	all := instancesOf(l, name)
	for _, i := range all {
		if id := "aws:///" + i.Zone + "/" + i.ID; !providerIDs[id] {
			t.Errorf("instance %s (%s) has no NodeClaim, want one", i.ID, i.State)
		}
	}
	if len(all) != 100 || len(claims) != 100 {
		t.Errorf("%d instances were launched for %d claims, want 100 for 100", len(all), len(claims))
	}
	cleanUp(t, l, name)
}

// awaitCalls waits until the controller has made this number of calls to AWS, but at most four seconds. It returns the
// time that it waited. The caller can then kill the controller between two calls.
func awaitCalls(t *testing.T, l *lab.Lab, calls int) time.Duration {
	t.Helper()
	began := time.Now()
	first, _ := l.AWSCalls()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for time.Since(began) < 4*time.Second {
		if made, _ := l.AWSCalls(); made-first >= calls {
			break
		}
		select {
		case <-tick.C:
		case <-runningController(l).Done():
			t.Fatalf("the controller ended, want it to run: %v", runningController(l).Err())
		}
	}
	return time.Since(began)
}

func claimsOf(t *testing.T, l *lab.Lab, pool string) (claims []karpenterv1.NodeClaim, providerIDs map[string]bool) {
	t.Helper()
	var list karpenterv1.NodeClaimList
	if err := l.Client.List(t.Context(), &list, client.MatchingLabels{karpenterv1.LabelNodePool: pool}); err != nil {
		t.Fatal(err)
	}
	providerIDs = map[string]bool{}
	for _, c := range list.Items {
		if c.Status.ProviderID != "" {
			providerIDs[c.Status.ProviderID] = true
		}
	}
	return list.Items, providerIDs
}

func scale(t *testing.T, l *lab.Lab, namespace, name string, replicas int) {
	t.Helper()
	patch := fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas)
	_, err := l.Kube.AppsV1().Deployments(namespace).Patch(t.Context(), name, types.MergePatchType, patch, metav1.PatchOptions{}, "scale")
	if err != nil {
		t.Fatal(err)
	}
}

// timedVariable is the environment variable with which TestFiveHundredPods fails if the controller is slow. `make
// bench` sets it. Without it, the test only logs the times, because they depend on the load of the host.
const timedVariable = "LAB_TIMED"

// TestFiveHundredPods creates 500 pods as fast as possible. It measures the controller's memory, and the time from the
// end of a batch until the controller requests each instance of the batch from EC2.
func TestFiveHundredPods(t *testing.T) {
	l := sharedLab(t)
	name := newTestNamespace(t, l)
	apply(t, l,
		class(l, name, "amiSelectorTerms: [{alias: al2023@latest}]"),
		pool(name, "", "{key: karpenter.k8s.aws/instance-category, operator: In, values: [c, m, r]}",
			"{key: kubernetes.io/arch, operator: In, values: [amd64, arm64]}"),
	)
	c := restartController(t, l) // a new controller, whose metrics contain only this test
	awaitPoolReady(t, l, name)
	makePods(t, l, name, 500)
	adoptPods(t, l, name, 500)
	awaitRunning(t, l, name, 500, 3*time.Minute)
	// beyond is the time from the end of the batch window until the request to EC2.
	for _, stage := range []string{"batch", "plan", "claim", "launch", "beyond"} {
		t.Logf("stage %-6s %s", stage, readHistogram(t, c.Metrics, "joiner_stage_duration_seconds", `stage="`+stage+`"`))
	}
	peak := peakMemory(t, c.PID())
	t.Logf("peak memory of the controller: %d MiB", peak>>20)
	if peak > 300<<20 {
		t.Errorf("the controller used %d MiB of memory, want at most 300 MiB", peak>>20)
	}
	beyond := readHistogram(t, c.Metrics, "joiner_stage_duration_seconds", `stage="beyond"`)
	switch {
	case beyond.count == 0:
		t.Error("no launch was measured, want at least one")
	case beyond.cumulative["0.3"] < beyond.count && os.Getenv(timedVariable) != "":
		t.Errorf("launches after the end of the batch window: %s; want all under 0.3 s", beyond)
	}
	cleanUp(t, l, name)
}

func awaitPoolReady(t *testing.T, l *lab.Lab, name string) {
	t.Helper()
	within(t, l, 30*time.Second, "the pool to be ready", func(ctx context.Context) (bool, error) {
		var p karpenterv1.NodePool
		err := l.Client.Get(ctx, client.ObjectKey{Name: name}, &p)
		return slices.ContainsFunc(p.Status.Conditions, func(c metav1.Condition) bool {
			return c.Type == karpenterv1.ConditionReady && c.Status == metav1.ConditionTrue
		}), err
	})
}

// podSizes returns the CPU and memory requests of the pods of makePods.
func podSizes() [][2]string {
	return [][2]string{{"100m", "128Mi"}, {"250m", "512Mi"}, {"1", "2Gi"}, {"500m", "4Gi"}, {"2", "2Gi"}}
}

// sizedPodTemplate returns a pod template with the i-th of podSizes. Its pods run only on the nodes of the test.
func sizedPodTemplate(test string, i int) corev1.PodTemplateSpec {
	size, grace := podSizes()[i], int64(1)
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"size": strconv.Itoa(i)}},
		Spec: corev1.PodSpec{
			TerminationGracePeriodSeconds: &grace,
			NodeSelector:                  map[string]string{"test": test},
			Containers: []corev1.Container{{Name: "main", Image: "pause", Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{
					corev1.ResourceCPU: resource.MustParse(size[0]), corev1.ResourceMemory: resource.MustParse(size[1]),
				},
			}}},
		},
	}
}

// adoptPods creates ReplicaSets, one for each size, that adopt the pods of makePods. If kube-scheduler preempts one of
// these pods for a critical DaemonSet pod, its ReplicaSet replaces it.
func adoptPods(t *testing.T, l *lab.Lab, name string, n int) {
	t.Helper()
	for i := range podSizes() {
		replicas, template := int32(n/len(podSizes())), sizedPodTemplate(name, i)
		_, err := l.Kube.AppsV1().ReplicaSets(name).Create(t.Context(), &appsv1.ReplicaSet{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("size-%d", i)},
			Spec: appsv1.ReplicaSetSpec{
				Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: template.Labels}, Template: template,
			},
		}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
	}
}

func makePods(t *testing.T, l *lab.Lab, name string, n int) {
	t.Helper()
	todo := make(chan int, n)
	for i := range n {
		todo <- i
	}
	close(todo)
	began := time.Now()
	var workers sync.WaitGroup
	for range 32 {
		workers.Go(func() {
			for i := range todo {
				pod := sizedPodTemplate(name, i%len(podSizes()))
				pod.Name = fmt.Sprintf("pod-%03d", i)
				_, err := l.Kube.CoreV1().Pods(name).Create(t.Context(), &corev1.Pod{ObjectMeta: pod.ObjectMeta, Spec: pod.Spec},
					metav1.CreateOptions{})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	workers.Wait()
	t.Logf("%d pods were created in %.1f s", n, time.Since(began).Seconds())
}

type histogram struct {
	count      int
	sum        float64
	cumulative map[string]int // cumulative count by the upper bound of the bucket, in seconds
}

// String returns the count, the mean, and the upper bound of the slowest observation.
func (h histogram) String() string {
	if h.count == 0 {
		return "never"
	}
	lowest := "+Inf" // bound of a bucket that contains all observations
	for bound, c := range h.cumulative {
		lowestSeconds, err := strconv.ParseFloat(lowest, 64)
		seconds, err2 := strconv.ParseFloat(bound, 64)
		if err == nil && err2 == nil && c == h.count && seconds < lowestSeconds {
			lowest = bound
		}
	}
	return fmt.Sprintf("%d times, mean %.0f ms, all under %s s", h.count, 1000*h.sum/float64(h.count), lowest)
}

// readHistogram reads a histogram from the metrics page at url. It reads only the series that have the label.
func readHistogram(t *testing.T, url, name, label string) histogram {
	t.Helper()
	response, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	h := histogram{cumulative: map[string]int{}}
	lines := bufio.NewScanner(response.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line := lines.Text()
		if !strings.HasPrefix(line, name) || !strings.Contains(line, label) {
			continue
		}
		value, err := strconv.ParseFloat(line[strings.LastIndexByte(line, ' ')+1:], 64)
		if err != nil {
			t.Fatalf("read metric %q: %v", line, err)
		}
		switch {
		case strings.HasPrefix(line, name+"_sum"):
			h.sum = value
		case strings.HasPrefix(line, name+"_count"):
			h.count = int(value)
		case strings.HasPrefix(line, name+"_bucket"):
			_, bound, _ := strings.Cut(line, `le="`)
			bound, _, _ = strings.Cut(bound, `"`)
			h.cumulative[bound] = int(value)
		}
	}
	return h
}

// peakMemory returns the maximum resident memory of a process, in bytes.
func peakMemory(t *testing.T, pid int) int64 {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "status"))
	if err != nil {
		t.Skipf("needs /proc: %v", err)
	}
	for line := range strings.Lines(string(data)) {
		if f := strings.Fields(line); len(f) == 3 && f[0] == "VmHWM:" {
			kib, _ := strconv.ParseInt(f[1], 10, 64)
			return kib << 10
		}
	}
	t.Fatal("/proc/PID/status has no VmHWM")
	return 0
}

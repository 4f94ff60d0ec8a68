package controller

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	awsv1 "github.com/joiner-sh/joiner/api/aws/v1"
	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/aws/ami"
	"github.com/joiner-sh/joiner/internal/aws/ec2"
	"github.com/joiner-sh/joiner/internal/aws/eks"
	"github.com/joiner-sh/joiner/internal/aws/iam"
	"github.com/joiner-sh/joiner/internal/aws/ratelimit"
	"github.com/joiner-sh/joiner/internal/aws/vpc"
	"github.com/joiner-sh/joiner/internal/controller/diagnoser"
	"github.com/joiner-sh/joiner/internal/controller/nodeclass"
	"github.com/joiner-sh/joiner/internal/controller/provisioner"
	"github.com/joiner-sh/joiner/internal/doctor/collector"
	"github.com/joiner-sh/joiner/internal/emulator"
	"github.com/joiner-sh/joiner/internal/emulator/world"
	"github.com/joiner-sh/joiner/internal/emulator/world/ekscluster"
	"github.com/joiner-sh/joiner/internal/kube/evidence"
	"github.com/joiner-sh/joiner/internal/kube/kubeclient"
	"github.com/joiner-sh/joiner/internal/metrics"
	"github.com/joiner-sh/joiner/internal/node/lifecycle"
)

// lateRig is a rig in fake time with the loop Diagnoses. The cluster maps no IAM role, so that no node can join.
type lateRig struct {
	*rig
	calls    *callRecorder
	registry *prometheus.Registry // of the metrics of Diagnoses
}

// failures returns how many claims the metric joiner_join_failures_total counts.
func (l *lateRig) failures(t *testing.T) (sum float64) {
	t.Helper()
	families, err := l.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == "joiner_join_failures_total" {
				sum += m.GetCounter().GetValue()
			}
		}
	}
	return sum
}

type callRecorder struct {
	http.RoundTripper
	mu sync.Mutex
	at []time.Time
}

func (c *callRecorder) RoundTrip(q *http.Request) (*http.Response, error) {
	c.mu.Lock()
	c.at = append(c.at, time.Now())
	c.mu.Unlock()
	return c.RoundTripper.RoundTrip(q)
}

// reset forgets the recorded calls. It returns their number, and the largest number within one second.
func (c *callRecorder) reset() (calls, peak int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range c.at {
		n := 0
		for _, at := range c.at[i:] {
			if at.Sub(c.at[i]) < time.Second {
				n++
			}
		}
		peak = max(peak, n)
	}
	calls, c.at = len(c.at), nil
	return calls, peak
}

// newLateRig returns a rig whose node class has the given preflight mode. Without types the region offers m5.large. The
// caller is in a synctest bubble.
func newLateRig(t *testing.T, mode string, types ...string) *lateRig {
	t.Helper()
	if len(types) == 0 {
		types = []string{"m5.large"}
	}
	r := makeRig(t, types)
	r.url, r.transport = "http://aws.example", fusedTransport{rig: r, fuse: r.fuse}
	r.Do(func(w *world.World, now time.Time) {
		_, err := r.estate.Region.EKS.CreateCluster(now,
			ekscluster.Cluster{Name: testCluster, Version: "1.33", Endpoint: "https://api.example", CA: "Y2E=",
				AuthMode: ekscluster.AuthAPI, VPCID: r.estate.VPC.ID, ClusterGroupID: r.estate.ClusterSG.ID})
		if err != nil {
			t.Fatal(err)
		}
	})
	class := r.class(t)
	class.Annotations = map[string]string{awsv1.AnnotationPreflight: mode}
	if err := r.api.Update(t.Context(), class); err != nil {
		t.Fatal(err)
	}
	r.Do(func(w *world.World, _ time.Time) {
		for _, policy := range []string{"AmazonEKSWorkerNodePolicy", "AmazonEC2ContainerRegistryPullOnly"} {
			if err := w.Account(emulator.DefaultAccount).AttachPolicy("node", "arn:aws:iam::aws:policy/"+policy); err != nil {
				t.Error(err)
			}
		}
	})
	l := &lateRig{rig: r, calls: &callRecorder{RoundTripper: r.transport}}
	l.restart(t)
	return l
}

// restart starts a process with an empty memory, and with the loop Diagnoses.
func (l *lateRig) restart(t *testing.T) {
	t.Helper()
	l.start(t)
	cfg := l.cfg()
	cfg.HTTPClient = &http.Client{Transport: l.calls}
	cfg.APIOptions = append(cfg.APIOptions, ratelimit.NewShared(ratelimit.DiagnosisRate(), nil).AddTo)
	eksClient, err := eks.New(cfg, testCluster)
	if err != nil {
		t.Fatal(err)
	}
	ec2Client, err := ec2.New(cfg, ec2.Cluster{Name: testCluster, UID: l.uid})
	if err != nil {
		t.Fatal(err)
	}
	l.registry = prometheus.NewRegistry()
	m, err := metrics.New(l.registry, "test", "")
	if err != nil {
		t.Fatal(err)
	}
	d := &diagnoser.Diagnoser{
		Clients: collector.Clients{Kube: evidence.NewCacheReader(l.api, l.api), EKS: eksClient,
			IAM: iam.New(cfg, iam.Cluster{Name: testCluster, UID: l.uid}), EC2: ec2Client, Images: ami.New(cfg), Network: vpc.New(cfg),
			Cluster: testCluster, Region: testRegion, ItemTimeout: diagnoser.QueryTimeout},
		Cache: l.api, Cluster: l.Claims.Cluster, LaunchBackoff: l.Claims.LaunchBackoff, Batch: l.Claims.Batch, After: 90 * time.Second,
		Events: l.events, Metrics: m, Log: l.Claims.Log,
	}
	l.Claims.LaunchBackoff.Cache = l.api
	l.Diagnoses, l.Claims.Diagnoses, l.Moves.Diagnoses, l.NodeClasses.Diagnoses = d, d, d, d
}

// diagnose runs the loop Diagnoses once, and reconciles the claims for which the loop requests it.
func (l *lateRig) diagnose(t *testing.T) {
	t.Helper()
	if err := l.Diagnoses.Pass(t.Context()); err != nil {
		t.Fatal(err)
	}
	for {
		select {
		case e := <-l.Diagnoses.Channel(&l.Diagnoses.ClaimsToReconcile):
			if _, err := l.Claims.Reconcile(t.Context(), named(e.Object.GetName())); err != nil {
				t.Fatal(err)
			}
		default:
			return
		}
	}
}

func (l *lateRig) mapRole(t *testing.T) {
	t.Helper()
	l.Do(func(_ *world.World, now time.Time) {
		_, err := l.estate.Region.EKS.CreateAccessEntry(now, testCluster, ekscluster.AccessEntry{
			Principal: "arn:aws:iam::" + emulator.DefaultAccount + ":role/node", Kind: ekscluster.EntryEC2Linux})
		if err != nil {
			t.Error(err)
		}
	})
}

func (l *lateRig) poolHealth(t *testing.T) metav1.Condition {
	t.Helper()
	return l.poolCondition(t, karpv1.ConditionNodeRegistrationHealthy)
}

func (l *lateRig) poolCondition(t *testing.T, condition string) metav1.Condition {
	t.Helper()
	if _, err := l.Pools.Reconcile(t.Context(), named("apps")); err != nil {
		t.Fatal(err)
	}
	pool := &karpv1.NodePool{}
	if err := l.api.Get(t.Context(), named("apps").NamespacedName, pool); err != nil {
		t.Fatal(err)
	}
	c, _ := pool.StatusConditions().Find(condition)
	return c
}

// launchPods creates the pods web-FROM to web-(FROM+n-1), and launches an instance for each.
func (l *lateRig) launchPods(t *testing.T, from, n int) {
	t.Helper()
	for i := range n {
		l.addPendingPod(t, fmt.Sprint("web-", from+i), "1500m", "1Gi")
	}
	l.plan(t)
	l.launchAll(t)
}

const unmapped = "node role node is not mapped"

// TestThousandLate: a thousand instances do not join for one cause. Each claim reports the cause after 90 s, but there
// is only one diagnosis, with at most five calls to AWS per second. Nothing more is launched.
func TestThousandLate(t *testing.T) {
	t.Parallel()
	embedded(t) // must be outside the bubble
	synctest.Test(t, func(t *testing.T) {
		l := newLateRig(t, awsv1.PreflightWarn)
		l.reconcileClassAndPool(t)
		l.launchPods(t, 0, 1000)
		for _, wait := range []time.Duration{15 * time.Second, 70 * time.Second} {
			time.Sleep(wait)
			l.diagnose(t) // checks the class; no claim is late yet
			if calls, peak := l.calls.reset(); calls == 0 || calls > 22 || peak > 5 {
				t.Errorf("%d calls before a claim is late, up to %d per second; want 1 to 22, and at most 5", calls, peak)
			}
		}
		if event := l.events.find("NodeClaim/" + string(kubeclient.ReasonNotJoining)); event != "" {
			t.Errorf("reported before 90 s: %s", event)
		}
		time.Sleep(6 * time.Second) // 91 s after the launch
		l.diagnose(t)
		if calls, _ := l.calls.reset(); calls != 0 {
			t.Errorf("%d calls although the last diagnosis was still valid, want none", calls)
		}
		conditions := map[string]int{}
		for _, claim := range l.claims(t) {
			c, _ := claim.StatusConditions().Find(karpv1.ConditionRegistered)
			conditions[string(c.Status)+" "+c.Reason]++
			if !strings.Contains(c.Message, unmapped) || !strings.Contains(c.Message, "Fix: aws eks create-access-entry") {
				t.Fatalf("the condition of %s is %s, want the unmapped role and a fix", claim.Name, c.Message)
			}
		}
		if conditions["Unknown AUTH_2"] != 1000 {
			t.Errorf("the conditions of the claims are %v, want AUTH_2 for all 1000", conditions)
		}
		if n := l.failures(t); n != 1000 {
			t.Errorf("%v failures are counted, want 1000", n)
		}
		if n := strings.Count(l.log.String(), "instances have not joined the cluster in time"); n != 1 {
			t.Errorf("the cause is logged %d times, want once:\n%s", n, l.log)
		}
		for _, kind := range []string{"NodeClaim", "NodePool", "Pod"} {
			if l.events.find(kind+"/"+string(kubeclient.ReasonNotJoining), unmapped) == "" {
				t.Errorf("no event on the %s", kind)
			}
		}
		before := len(l.events.emitted)
		l.launchPods(t, 1000, 1)
		if n := len(l.claims(t)); n != 1000 {
			t.Errorf("%d claims, want 1000: a claim was created although the pool is held", n)
		}
		time.Sleep(diagnoser.IntervalWithFindings)
		start := time.Now()
		l.diagnose(t) // another diagnosis, which also reads the console output of late instances
		if calls, peak := l.calls.reset(); calls == 0 || calls > 30 || peak > 5 || time.Since(start) > 10*time.Second {
			t.Errorf("%d calls for 1,000 claims, up to %d per second, in %s; want 1 to 30, at most 5, at most 10 s",
				calls, peak, time.Since(start))
		}
		if again := strings.Join(l.events.emitted[before:], "\n"); strings.Contains(again, string(kubeclient.ReasonNotJoining)) {
			t.Errorf("the same cause is reported again: %s", again)
		}
	})
}

// TestCanariesOfAKnownCause: while instances do not join for a known cause, only one canary is launched after each
// pause, and each pause is longer, also after a restart. When the cause is fixed, all pending pods get nodes.
func TestCanariesOfAKnownCause(t *testing.T) {
	t.Parallel()
	embedded(t) // must be outside the bubble
	synctest.Test(t, func(t *testing.T) {
		l := newLateRig(t, awsv1.PreflightOff)
		l.reconcileClassAndPool(t)
		l.launchPods(t, 0, 2)
		launched := 2
		var last time.Time
		for round, want := range []time.Duration{5 * time.Minute, 10 * time.Minute, 20 * time.Minute} {
			created := l.newestClaimTime(t)
			l.passTime(t, 3*time.Minute)
			c := l.poolHealth(t)
			if c.Reason != "AUTH_2" || c.Status != metav1.ConditionFalse || !strings.Contains(c.Message, unmapped) ||
				!strings.Contains(c.Message, "the next try is at ") {
				t.Fatalf("round %d: the pool's condition is %s %s: %s, want False AUTH_2", round, c.Status, c.Reason, c.Message)
			}
			l.restart(t)
			l.reconcileClassAndPool(t)
			last = l.untilLaunched(t, launched)
			if pause := last.Sub(created.Add(lifecycle.RegistrationTimeout)); pause < want || pause > want+time.Minute {
				t.Errorf("round %d: an instance was launched %s after the previous one was terminated, want %s to a minute more",
					round, pause, want)
			}
			if launched++; len(l.instances()) != 1 {
				t.Fatalf("round %d: %d instances, want one canary", round, len(l.instances()))
			}
		}
		l.passTime(t, 2*time.Minute)
		l.mapRole(t)
		l.passTime(t, 30*time.Second)
		if n := len(l.claims(t)); n != 2 {
			t.Errorf("%d claims half a minute after the fix, want 2:\n%s", n, l.log)
		}
		if c := l.poolHealth(t); strings.Contains(c.Message, unmapped) {
			t.Errorf("the pool still has the condition %s", c.Message)
		}
	})
}

// TestFixedClassIsTried: an instance that was launched before its node class was changed does not hold the pool,
// although the instance is diagnosed again after the change or after a restart. The next instance is launched at once.
func TestFixedClassIsTried(t *testing.T) {
	t.Parallel()
	embedded(t) // must be outside the bubble
	for _, restarts := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			l := newLateRig(t, awsv1.PreflightOff)
			l.mapRole(t)
			l.reconcileClassAndPool(t)
			l.launchPods(t, 0, 1)
			l.Do(func(w *world.World, _ time.Time) {
				for _, i := range l.estate.Region.Instances.All() {
					w.AppendConsole(i.ID, "/opt/agent: cannot execute binary file: Exec format error\n")
				}
			})
			l.passTime(t, 3*time.Minute)
			if c := l.poolHealth(t); c.Reason != "ARCH_3" || !strings.Contains(c.Message, "the next try is at ") {
				t.Fatalf("the condition of the pool is %s: %s, want ARCH_3 and the next try", c.Reason, c.Message)
			}
			class := l.class(t)
			userData := "#!/bin/bash\necho fixed"
			class.Spec.UserData = &userData
			class.Generation++
			if err := l.api.Update(t.Context(), class); err != nil {
				t.Fatal(err)
			}
			l.reconcileClassAndPool(t)
			l.passTime(t, 10*time.Second) // the earlier instance is still there, and still late
			if restarts {
				l.restart(t)
				l.reconcileClassAndPool(t)
				l.passTime(t, 10*time.Second)
			}
			if c := l.poolHealth(t); strings.Contains(c.Message, "the next try is at ") {
				t.Errorf("the class was changed, but the pool waits: %s: %s", c.Reason, c.Message)
			}
			claim := l.claims(t)[0]
			if err := l.api.Delete(t.Context(), &claim); err != nil {
				t.Fatal(err)
			}
			deleted := time.Now()
			if launched := l.untilLaunched(t, 1); launched.Sub(deleted) > 30*time.Second {
				t.Errorf("the next instance was launched after %s, want at most 30s:\n%s", launched.Sub(deleted), l.log)
			}
		})
	}
}

func (l *lateRig) newestClaimTime(t *testing.T) time.Time {
	t.Helper()
	var out time.Time
	for _, c := range l.claims(t) {
		if c.CreationTimestamp.After(out) {
			out = c.CreationTimestamp.Time
		}
	}
	return out
}

// passTime runs all loops every five seconds, for the given time.
func (l *lateRig) passTime(t *testing.T, d time.Duration) {
	t.Helper()
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(5 * time.Second) {
		l.runLoops(t)
	}
}

func (l *lateRig) runLoops(t *testing.T) {
	t.Helper()
	l.diagnose(t)
	l.poolHealth(t)
	l.plan(t)
	l.reconcileClaims(t)
}

// untilLaunched runs all loops until the number of launched instances exceeds before, and returns the time.
func (l *lateRig) untilLaunched(t *testing.T, before int) time.Time {
	t.Helper()
	for range 2000 {
		l.runLoops(t)
		if len(l.instances()) > 0 && l.launchedSoFar() > before {
			return time.Now()
		}
		time.Sleep(5 * time.Second)
	}
	t.Fatal("no further instance is launched")
	return time.Time{}
}

// launchedSoFar returns how many instances have been launched in all, according to the log.
func (l *lateRig) launchedSoFar() int {
	n := 0
	l.Do(func(*world.World, time.Time) { n = strings.Count(l.log.String(), `"msg":"launched NodeClaim"`) })
	return n
}

// TestFindingsBeforeLaunches: findings that certainly prevent nodes from joining are reported before any launch, and
// launches wait for a fix. Launches do not wait in warn mode, or if a permission to read is missing.
func TestFindingsBeforeLaunches(t *testing.T) {
	t.Parallel()
	embedded(t) // must be outside the bubble
	for name, c := range map[string]struct {
		mode   string
		denied string
		ready  metav1.ConditionStatus // of the class, after a diagnosis
		reason string                 // of the class's condition PreflightPassed; its type if it is True
	}{
		"enforced": {awsv1.PreflightEnforce, "", metav1.ConditionFalse, "AUTH_2"},
		"warned":   {awsv1.PreflightWarn, "", metav1.ConditionTrue, "AUTH_2"},
		"off":      {awsv1.PreflightOff, "", metav1.ConditionTrue, ""},
		"denied":   {awsv1.PreflightEnforce, "eks:ListAccessEntries", metav1.ConditionTrue, awsv1.ConditionPreflightPassed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				l := newLateRig(t, c.mode)
				if c.denied != "" {
					l.Do(func(w *world.World, _ time.Time) { w.Faults.Denials = []world.Denial{{Call: c.denied}} })
				}
				l.reconcileClassAndPool(t)
				if ready, _ := l.class(t).StatusConditions().Find(karpv1.ConditionReady); (ready.Status == metav1.ConditionTrue) == (c.mode == awsv1.PreflightEnforce) {
					t.Errorf("before the first pass, Ready of the class is %s: %s; want True except in mode enforce",
						ready.Status, ready.Message)
				}
				l.diagnose(t)
				l.reconcileClassAndPool(t)
				conditions := l.class(t).StatusConditions()
				ready, _ := conditions.Find(karpv1.ConditionReady)
				passed, _ := conditions.Find(awsv1.ConditionPreflightPassed)
				if ready.Status != c.ready || passed.Reason != c.reason {
					t.Errorf("Ready is %s, want %s: %s; PreflightPassed is %s, want %s: %s",
						ready.Status, c.ready, ready.Message, passed.Reason, c.reason, passed.Message)
				}
				l.launchPods(t, 0, 1)
				if held := len(l.instances()) == 0; held != (c.ready == metav1.ConditionFalse) {
					t.Errorf("%d instances were launched, although Ready of the class should be %s", len(l.instances()), c.ready)
				}
				if c.ready == metav1.ConditionTrue {
					return
				}
				ofPool := l.poolClassReady(t)
				if !strings.Contains(ofPool.Message, unmapped) || !strings.Contains(l.refusalText(t), unmapped) {
					t.Errorf("the cause is missing in the condition of the pool: %s, or in the event of the pod: %s", ofPool.Message, l.refusalText(t))
				}
				l.mapRole(t)
				time.Sleep(diagnoser.IntervalWithFindings)
				l.diagnose(t)
				l.reconcileClassAndPool(t)
				l.plan(t)
				l.reconcileClaims(t)
				if n := len(l.instances()); n != 1 {
					t.Errorf("%d instances after the fix, want 1: %s", n, l.log)
				}
			})
		})
	}
}

// refusalText returns the text of the event on the first pod that a plan refuses; empty if it refuses none.
func (l *lateRig) refusalText(t *testing.T) string {
	t.Helper()
	snapshot, err := l.Provisioner.Cluster.Snapshot(t.Context(), time.Now(), l.Market.Market(time.Now()))
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range provisioner.Plan(snapshot, l.Market.Market(time.Now())).Refusals {
		return provisioner.Explain(r)
	}
	return ""
}

func (l *lateRig) poolClassReady(t *testing.T) metav1.Condition {
	t.Helper()
	return l.poolCondition(t, karpv1.ConditionNodeClassReady)
}

// TestReadyNodeDisprovesFinding: a finding makes its class unready. If a node of the class is still ready
// DisprovedAfter later, the class becomes ready. When the node stops being ready, the class does too.
func TestReadyNodeDisprovesFinding(t *testing.T) {
	t.Parallel()
	embedded(t) // must be outside the bubble
	synctest.Test(t, func(t *testing.T) {
		l := newLateRig(t, awsv1.PreflightWarn)
		l.reconcileClassAndPool(t)
		l.launchPods(t, 0, 1)
		l.join(t)
		l.reconcileClaims(t)
		class := l.class(t)
		class.Annotations = nil // the default mode, enforce
		if err := l.api.Update(t.Context(), class); err != nil {
			t.Fatal(err)
		}
		isReady := func() bool {
			l.diagnose(t)
			l.reconcileClassAndPool(t)
			return l.class(t).StatusConditions().IsReady()
		}
		time.Sleep(time.Minute)
		if isReady() {
			t.Error("the class is ready although DisprovedAfter has not passed since the finding")
		}
		time.Sleep(nodeclass.DisprovedAfter + time.Second)
		if !isReady() {
			t.Errorf("the class is not ready although a node has been ready all the time: %+v", l.class(t).Status.Conditions)
		}
		var nodes corev1.NodeList
		if err := l.api.List(t.Context(), &nodes); err != nil || len(nodes.Items) != 1 {
			t.Fatal(nodes.Items, err)
		}
		nodes.Items[0].Status.Conditions[0].Status = corev1.ConditionFalse
		if err := l.api.Status().Update(t.Context(), &nodes.Items[0]); err != nil {
			t.Fatal(err)
		}
		if isReady() {
			t.Error("the class is ready although its node is no longer ready")
		}
	})
}

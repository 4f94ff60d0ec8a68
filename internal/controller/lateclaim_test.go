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

// lateRig is a rig in fake time, in whose cluster no role is mapped, with Diagnoses running.
type lateRig struct {
	*rig
	counts   *counting
	registry *prometheus.Registry // of the metrics of Diagnoses
}

// failures returns how many claims are counted as late.
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

// counting is a connection to AWS that records when each call was made.
type counting struct {
	http.RoundTripper
	mu sync.Mutex
	at []time.Time
}

func (c *counting) RoundTrip(q *http.Request) (*http.Response, error) {
	c.mu.Lock()
	c.at = append(c.at, time.Now())
	c.mu.Unlock()
	return c.RoundTripper.RoundTrip(q)
}

// reset forgets the recorded calls, and returns how many there were and the most in one second.
func (c *counting) reset() (calls, most int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range c.at {
		n := 0
		for _, at := range c.at[i:] {
			if at.Sub(c.at[i]) < time.Second {
				n++
			}
		}
		most = max(most, n)
	}
	calls, c.at = len(c.at), nil
	return calls, most
}

// newLateRig must be called within a synctest bubble. AWS refuses the controller the denied permissions. Without types the
// region offers m5.large.
func newLateRig(t *testing.T, mode string, types ...string) *lateRig {
	t.Helper()
	if len(types) == 0 {
		types = []string{"m5.large"}
	}
	r := makeRig(t, types)
	r.url, r.wire = "http://aws.example", line{rig: r, fuse: r.fuse}
	r.Do(func(w *world.World, now time.Time) {
		_, err := r.estate.Region.EKS.CreateCluster(now,
			ekscluster.Cluster{Name: testCluster, Version: "1.33", Endpoint: "https://api.example", CA: "Y2E=",
				AuthMode: ekscluster.AuthAPI, VPCID: r.estate.VPC.ID, GroupID: r.estate.ClusterGroup.ID})
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
	l := &lateRig{rig: r, counts: &counting{RoundTripper: r.wire}}
	l.restart(t)
	return l
}

// restart starts new loops, including Diagnoses.
func (l *lateRig) restart(t *testing.T) {
	t.Helper()
	l.start(t)
	cfg := l.cfg()
	cfg.HTTPClient = &http.Client{Transport: l.counts}
	cfg.APIOptions = append(cfg.APIOptions, ratelimit.NewOne(ratelimit.Diagnosis(), nil).Keep)
	k, err := eks.New(cfg, testCluster)
	if err != nil {
		t.Fatal(err)
	}
	e, err := ec2.New(cfg, ec2.Cluster{Name: testCluster, UID: l.uid})
	if err != nil {
		t.Fatal(err)
	}
	l.registry = prometheus.NewRegistry()
	numbers, err := metrics.New(l.registry, "test", "")
	if err != nil {
		t.Fatal(err)
	}
	d := &diagnoser.Diagnoser{
		Clients: collector.Clients{Kube: evidence.NewInsider(l.api, l.api), EKS: k,
			IAM: iam.New(cfg, iam.Cluster{Name: testCluster, UID: l.uid}), EC2: e, Images: ami.New(cfg), Network: vpc.New(cfg),
			Cluster: testCluster, Region: testRegion, Patience: diagnoser.DiagnosisPatience},
		Cache: l.api, Cluster: l.Claims.Cluster, Holds: l.Claims.Holds, Batch: l.Claims.Batch, After: 90 * time.Second,
		Events: l.events, Metrics: numbers, Log: l.Claims.Log,
	}
	l.Claims.Holds.Cache = l.api
	l.Diagnoses, l.Claims.Diagnoses, l.Moves.Diagnoses, l.NodeClasses.Diagnoses = d, d, d, d
}

// look runs Diagnoses once, and reconciles the claims that it wakes.
func (l *lateRig) look(t *testing.T) {
	t.Helper()
	if err := l.Diagnoses.Pass(t.Context()); err != nil {
		t.Fatal(err)
	}
	for {
		select {
		case e := <-l.Diagnoses.Channel(&l.Diagnoses.Late):
			if _, err := l.Claims.Reconcile(t.Context(), named(e.Object.GetName())); err != nil {
				t.Fatal(err)
			}
		default:
			return
		}
	}
}

// mapRole maps the node role, so that nodes can join.
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

// pool reconciles the NodePool, and returns its condition about launches.
func (l *lateRig) pool(t *testing.T) metav1.Condition {
	t.Helper()
	return l.poolSays(t, karpv1.ConditionNodeRegistrationHealthy)
}

// poolSays reconciles the NodePool, and returns one of its conditions.
func (l *lateRig) poolSays(t *testing.T, condition string) metav1.Condition {
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

// launch plans n pods, each of which needs an instance of its own, and launches the planned nodes.
func (l *lateRig) launch(t *testing.T, from, n int) {
	t.Helper()
	for i := range n {
		l.pending(t, fmt.Sprint("web-", from+i), "1500m", "1Gi")
	}
	l.plan(t)
	l.launchAll(t)
}

const unmapped = "node role node is not mapped"

// TestThousandLate: a thousand claims that are late for one cause report it for the cost of one diagnosis, at five calls a
// second at most, and nothing more is launched.
func TestThousandLate(t *testing.T) {
	t.Parallel()
	embedded(t)
	synctest.Test(t, func(t *testing.T) {
		l := newLateRig(t, awsv1.PreflightWarn)
		l.classes(t)
		l.launch(t, 0, 1000)
		for _, wait := range []time.Duration{15 * time.Second, 70 * time.Second} {
			time.Sleep(wait)
			l.look(t) // the class is checked, and no claim is late
			if calls, most := l.counts.reset(); calls == 0 || calls > 22 || most > 5 {
				t.Errorf("%d calls before a claim is late, %d in one second", calls, most)
			}
		}
		if told := l.events.has("NodeClaim/" + string(kubeclient.ReasonNotJoining)); told != "" {
			t.Errorf("told before 90 s: %s", told)
		}
		time.Sleep(6 * time.Second)
		l.look(t)
		if calls, _ := l.counts.reset(); calls != 0 {
			t.Errorf("%d calls although the report was still valid", calls)
		}
		told := map[string]int{}
		for _, claim := range l.claims(t) {
			c, _ := claim.StatusConditions().Find(karpv1.ConditionRegistered)
			told[string(c.Status)+" "+c.Reason]++
			if !strings.Contains(c.Message, unmapped) || !strings.Contains(c.Message, "Fix: aws eks create-access-entry") {
				t.Fatalf("%s says %s", claim.Name, c.Message)
			}
		}
		if told["Unknown AUTH_2"] != 1000 {
			t.Errorf("the conditions: %v", told)
		}
		if n := l.failures(t); n != 1000 {
			t.Errorf("%v failures are counted", n)
		}
		if n := strings.Count(l.log.String(), "instances have not joined the cluster in time"); n != 1 {
			t.Errorf("logged %d times:\n%s", n, l.log)
		}
		for _, kind := range []string{"NodeClaim", "NodePool", "Pod"} {
			if l.events.has(kind+"/"+string(kubeclient.ReasonNotJoining), unmapped) == "" {
				t.Errorf("no event on the %s", kind)
			}
		}
		many := len(l.events.told)
		l.launch(t, 1000, 1)
		if n := len(l.claims(t)); n != 1000 {
			t.Errorf("%d claims: more was launched", n)
		}
		time.Sleep(diagnoser.AgainSick)
		began := time.Now()
		l.look(t) // another report, with the consoles of the late instances
		if calls, most := l.counts.reset(); calls == 0 || calls > 30 || most > 5 || time.Since(began) > 10*time.Second {
			t.Errorf("%d calls for a thousand claims, %d in one second, %s in all", calls, most, time.Since(began))
		}
		if again := strings.Join(l.events.told[many:], "\n"); strings.Contains(again, string(kubeclient.ReasonNotJoining)) {
			t.Errorf("reported again: %s", again)
		}
	})
}

// TestLaunchLoop: when the cause is known, only one canary is launched after each pause, and each pause is longer. The same
// applies to a process that has just started. When the cause is gone, everything is launched at once.
func TestLaunchLoop(t *testing.T) {
	t.Parallel()
	embedded(t)
	synctest.Test(t, func(t *testing.T) {
		l := newLateRig(t, awsv1.PreflightOff)
		l.classes(t)
		l.launch(t, 0, 2)
		bought := 2
		var last time.Time
		for round, want := range []time.Duration{5 * time.Minute, 10 * time.Minute, 20 * time.Minute} {
			began := l.newestClaim(t)
			l.passTime(t, 3*time.Minute)
			c := l.pool(t)
			if c.Reason != "AUTH_2" || c.Status != metav1.ConditionFalse || !strings.Contains(c.Message, unmapped) ||
				!strings.Contains(c.Message, "the next try is at ") {
				t.Fatalf("round %d: the pool says %s %s: %s", round, c.Status, c.Reason, c.Message)
			}
			l.restart(t)
			l.classes(t)
			last = l.untilBought(t, bought)
			if pause := last.Sub(began.Add(lifecycle.RegistrationTimeout)); pause < want || pause > want+time.Minute {
				t.Errorf("round %d: launched again %s after the last was terminated, want %s", round, pause, want)
			}
			if bought++; len(l.instances()) != 1 {
				t.Fatalf("round %d: %d instances, one canary is right", round, len(l.instances()))
			}
		}
		l.passTime(t, 2*time.Minute)
		l.mapRole(t)
		l.passTime(t, 30*time.Second)
		if n := len(l.claims(t)); n != 2 {
			t.Errorf("%d claims half a minute after the fix, want 2:\n%s", n, l.log)
		}
		if c := l.pool(t); strings.Contains(c.Message, unmapped) {
			t.Errorf("the pool still has the condition %s", c.Message)
		}
	})
}

// TestMendedIsTried: an instance launched before its node class was changed says nothing about the present class, even if it
// is judged after the change, or after a restart: the next instance is launched at once.
func TestMendedIsTried(t *testing.T) {
	t.Parallel()
	embedded(t)
	for _, restarts := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			l := newLateRig(t, awsv1.PreflightOff)
			l.mapRole(t)
			l.classes(t)
			l.launch(t, 0, 1)
			l.Do(func(w *world.World, _ time.Time) {
				for _, i := range l.estate.Region.Instances.All() {
					w.AppendConsole(i.ID, "/opt/agent: cannot execute binary file: Exec format error\n")
				}
			})
			l.passTime(t, 3*time.Minute)
			if c := l.pool(t); c.Reason != "ARCH_3" || !strings.Contains(c.Message, "the next try is at ") {
				t.Fatalf("condition of the pool: %s: %s", c.Reason, c.Message)
			}
			class := l.class(t)
			data := "#!/bin/bash\necho mended"
			class.Spec.UserData = &data
			class.Generation++
			if err := l.api.Update(t.Context(), class); err != nil {
				t.Fatal(err)
			}
			l.classes(t)
			l.passTime(t, 10*time.Second) // the earlier instance is still there, and still late
			if restarts {
				l.restart(t)
				l.classes(t)
				l.passTime(t, 10*time.Second)
			}
			if c := l.pool(t); strings.Contains(c.Message, "the next try is at ") {
				t.Errorf("fixed, condition of the pool: %s: %s", c.Reason, c.Message)
			}
			claim := l.claims(t)[0]
			if err := l.api.Delete(t.Context(), &claim); err != nil {
				t.Fatal(err)
			}
			deleted := time.Now()
			if bought := l.untilBought(t, 1); bought.Sub(deleted) > 30*time.Second {
				t.Errorf("launched again after %s:\n%s", bought.Sub(deleted), l.log)
			}
		})
	}
}

func (l *lateRig) newestClaim(t *testing.T) time.Time {
	t.Helper()
	var out time.Time
	for _, c := range l.claims(t) {
		if c.CreationTimestamp.After(out) {
			out = c.CreationTimestamp.Time
		}
	}
	return out
}

// passTime runs all loops for a while, each second.
func (l *lateRig) passTime(t *testing.T, d time.Duration) {
	t.Helper()
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(5 * time.Second) {
		l.turn(t)
	}
}

func (l *lateRig) turn(t *testing.T) {
	t.Helper()
	l.look(t)
	l.pool(t)
	l.plan(t)
	l.work(t)
}

// untilBought runs all loops until one more instance has been launched than before, and returns when.
func (l *lateRig) untilBought(t *testing.T, before int) time.Time {
	t.Helper()
	for range 2000 {
		l.turn(t)
		if len(l.instances()) > 0 && l.everBought() > before {
			return time.Now()
		}
		time.Sleep(5 * time.Second)
	}
	t.Fatal("nothing is ever launched again")
	return time.Time{}
}

// everBought returns how many instances have been launched.
func (l *lateRig) everBought() int {
	n := 0
	l.Do(func(*world.World, time.Time) { n = strings.Count(l.log.String(), `"msg":"launched NodeClaim"`) })
	return n
}

// TestAheadOfLaunches: findings that certainly keep nodes from joining are reported before anything is launched, and
// launches wait for a fix. In warn mode launches do not wait, and missing read permissions block nothing.
func TestAheadOfLaunches(t *testing.T) {
	t.Parallel()
	embedded(t)
	for name, c := range map[string]struct {
		mode   string
		denied string
		ready  metav1.ConditionStatus
		told   string // reason of PreflightPassed
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
				l.classes(t)
				if ready, _ := l.class(t).StatusConditions().Find(karpv1.ConditionReady); (ready.Status == metav1.ConditionTrue) != (c.mode != awsv1.PreflightEnforce) {
					t.Errorf("before the first pass it is %s: %s", ready.Status, ready.Message)
				}
				l.look(t)
				l.classes(t)
				conditions := l.class(t).StatusConditions()
				ready, _ := conditions.Find(karpv1.ConditionReady)
				passed, _ := conditions.Find(awsv1.ConditionPreflightPassed)
				if ready.Status != c.ready || passed.Reason != c.told {
					t.Errorf("Ready is %s, %s; PreflightPassed is %s: %s", ready.Status, ready.Message, passed.Reason, passed.Message)
				}
				l.launch(t, 0, 1)
				if held := len(l.instances()) == 0; held != (c.ready == metav1.ConditionFalse) {
					t.Errorf("%d instances", len(l.instances()))
				}
				if c.ready == metav1.ConditionTrue {
					return
				}
				ofPool := l.poolReady(t)
				if !strings.Contains(ofPool.Message, unmapped) || !strings.Contains(l.refusal(t), unmapped) {
					t.Errorf("condition of the pool: %s, the pod is told %s", ofPool.Message, l.refusal(t))
				}
				l.mapRole(t)
				time.Sleep(diagnoser.AgainSick)
				l.look(t)
				l.classes(t)
				l.plan(t)
				l.work(t)
				if n := len(l.instances()); n != 1 {
					t.Errorf("%d instances after the fix: %s", n, l.log)
				}
			})
		})
	}
}

// refusal returns the event on the first pod that cannot be scheduled.
func (l *lateRig) refusal(t *testing.T) string {
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

func (l *lateRig) poolReady(t *testing.T) metav1.Condition {
	t.Helper()
	return l.poolSays(t, karpv1.ConditionNodeClassReady)
}

// TestDisproved: nodes that join or stay ready overrule the findings.
func TestDisproved(t *testing.T) {
	t.Parallel()
	embedded(t)
	synctest.Test(t, func(t *testing.T) {
		l := newLateRig(t, awsv1.PreflightWarn)
		l.classes(t)
		l.launch(t, 0, 1)
		l.join(t)
		l.work(t)
		class := l.class(t)
		class.Annotations = nil
		if err := l.api.Update(t.Context(), class); err != nil {
			t.Fatal(err)
		}
		isReady := func() bool {
			l.look(t)
			l.classes(t)
			return l.class(t).StatusConditions().IsReady()
		}
		time.Sleep(time.Minute)
		if isReady() {
			t.Error("the finding is ignored while it is young")
		}
		time.Sleep(nodeclass.ProvenAfter + time.Second)
		if !isReady() {
			t.Errorf("a node is ready all the time, and the class is not: %+v", l.class(t).Status.Conditions)
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
			t.Error("the node is ready no more, and the finding is ignored")
		}
	})
}

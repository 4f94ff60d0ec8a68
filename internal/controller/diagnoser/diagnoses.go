package diagnoser

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	awsv1 "github.com/joiner-sh/joiner/api/aws/v1"
	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/controller/loop"
	"github.com/joiner-sh/joiner/internal/controller/nodestate"
	"github.com/joiner-sh/joiner/internal/controller/poolhealth"
	"github.com/joiner-sh/joiner/internal/diagnosis"
	"github.com/joiner-sh/joiner/internal/diagnosis/checks"
	"github.com/joiner-sh/joiner/internal/doctor/collector"
	"github.com/joiner-sh/joiner/internal/metrics"
	"github.com/joiner-sh/joiner/internal/node/lifecycle"
)

// Diagnoser finds out why nodes do not join: for EC2NodeClasses before the first launch, and for claims that are late.
// All classes and claims share one report, so that a thousand late claims need as many AWS calls as one late
// claim. The methods may be called concurrently. On a nil receiver, Verdict, WillNotJoin and FixedAt find nothing.
type Diagnoser struct {
	Clients       collector.Clients         // read the evidence, with a rate limit of their own; collect sets Late and Now
	Cache         client.Reader             // reads objects from the informers
	Cluster       loop.NodeReader           // reads cluster state from the informers
	LaunchBackoff *poolhealth.LaunchBackoff // pools whose launches are on hold
	Batch         *loop.Batch               // gets a request for a plan when a cause is fixed
	After         time.Duration             // a claim is late if it still has no Node this long after its launch
	Events        loop.EventRecorder        // emits events
	LimitedEvents *loop.RateLimitedRecorder // emits events on pods and claims at a limited rate; nil: Events emits them
	Metrics       *metrics.Metrics          // the metrics of this process
	Log           *slog.Logger              // the log of this process
	Now           loop.Clock                // the clock; nil uses time.Now

	mu       sync.Mutex
	report   report                  // the latest report
	Verdicts map[types.UID]Verdict   // latest verdict by UID of the late claim
	cured    map[types.UID]time.Time // by UID of the late claim: when the cause that kept it from joining was found to be gone
	waiting  map[string]time.Time    // by UID and generation of the class: since when the class waits for its first report

	ClassesToReconcile chan event.GenericEvent // EC2NodeClasses whose findings have changed
	ClaimsToReconcile  chan event.GenericEvent // late claims whose verdict has changed
}

// Intervals between two collections of evidence. While there are findings, they are shorter, to detect a fix soon.
const (
	intervalAfterChange  = 5 * time.Second  // during fixingPeriod after a change of the findings
	fixingPeriod         = time.Minute      // how long after such a change the user may still be fixing the cause
	IntervalWithFindings = 20 * time.Second // while there are late claims, findings, or held launches with a known cause
	intervalHealthy      = 10 * time.Minute // otherwise
	minInterval          = 2 * time.Second  // shortest interval in all cases
	scanInterval         = time.Second      // interval of the scans for late claims
)

// maxWoken is the capacity of ClassesToReconcile and ClaimsToReconcile.
const maxWoken = 4096

type report struct {
	at       time.Time           // when the collection started; zero: there is no report yet
	evidence diagnosis.Evidence  // the collected evidence
	findings []diagnosis.Finding // the findings of all checks
	classes  map[string]string   // by name: fingerprints of the classes that the report covers

	// preflight has, by class, the findings that are certain before an instance exists. since is when preflight last
	// changed.
	preflight map[string][]diagnosis.Finding
	since     time.Time
}

// lateClaim is a claim whose instance has no Node, although Diagnoser.After has passed since its launch.
type lateClaim struct {
	claim      *karpv1.NodeClaim
	pool       string    // name of its NodePool
	class      string    // name of its EC2NodeClass
	id         string    // ID of its instance
	launchedAt time.Time // when the instance was launched
}

type lateScan struct {
	late    []lateClaim
	classes map[string]string           // by name: fingerprints of the classes whose subnets, security groups and images are known
	pools   map[string]*karpv1.NodePool // by name
}

// Start scans for late claims until ctx ends.
func (d *Diagnoser) Start(ctx context.Context) error {
	ticker := time.NewTicker(scanInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		if err := d.Pass(ctx); err != nil && ctx.Err() == nil {
			d.Log.Error("cannot check for nodes that do not join", "error", err.Error())
		}
	}
}

// Pass scans once, and reports the verdicts.
func (d *Diagnoser) Pass(ctx context.Context) error {
	defer loop.Working(ctx, loop.LoopDiagnoses, "").End()
	// 1. read
	if err := d.LaunchBackoff.Recall(ctx); err != nil {
		return err
	}
	seen, err := d.scan(ctx)
	if err != nil {
		return err
	}
	if now := d.Now.Now(); d.isDue(now, seen) {
		d.collect(ctx, now, seen)
	}
	// 2. decide
	verdicts := d.verdictsOf(seen)
	// 3. act
	d.hold(seen, verdicts)
	// 4. report
	d.publish(ctx, seen, verdicts)
	return nil
}

// scan finds the late claims, and the classes that the checks can judge.
func (d *Diagnoser) scan(ctx context.Context) (lateScan, error) {
	out := lateScan{classes: map[string]string{}, pools: map[string]*karpv1.NodePool{}}
	var classes awsv1.EC2NodeClassList
	if err := d.Cache.List(ctx, &classes, client.UnsafeDisableDeepCopy); err != nil {
		return out, fmt.Errorf("list ec2nodeclasses: %w", err)
	}
	for i := range classes.Items {
		if c := &classes.Items[i]; c.DeletionTimestamp == nil && isResolved(c) {
			out.classes[c.Name] = fingerprint(c)
		}
	}
	var pools karpv1.NodePoolList
	if err := d.Cache.List(ctx, &pools, client.UnsafeDisableDeepCopy); err != nil {
		return out, fmt.Errorf("list nodepools: %w", err)
	}
	for i := range pools.Items {
		out.pools[pools.Items[i].Name] = &pools.Items[i]
	}
	var claims karpv1.NodeClaimList
	if err := d.Cache.List(ctx, &claims, client.UnsafeDisableDeepCopy); err != nil {
		return out, fmt.Errorf("list nodeclaims: %w", err)
	}
	now := d.Now.Now()
	for i := range claims.Items {
		l, isLate := d.lateClaimOf(&claims.Items[i], now)
		if !isLate {
			continue
		}
		nodes, err := d.Cluster.NodesOf(ctx, l.claim.Status.ProviderID)
		if err != nil {
			return out, err
		}
		// With the reason WaitIdentity, a Node has this provider ID but belongs to another instance. So the Node of
		// this instance is missing.
		registered, _ := l.claim.StatusConditions().Find(karpv1.ConditionRegistered)
		if len(nodes) == 0 || registered.Reason == lifecycle.WaitIdentity {
			out.late = append(out.late, l)
		}
	}
	return out, nil
}

// lateClaimOf returns the claim as a late claim, and whether its instance should have joined by now. It checks only the
// claim, not its Nodes.
func (d *Diagnoser) lateClaimOf(claim *karpv1.NodeClaim, now time.Time) (_ lateClaim, isLate bool) {
	seen := nodestate.LifecycleClaimOf(claim)
	if !seen.Launched || seen.Registered || claim.DeletionTimestamp != nil || !nodestate.IsServed(claim.Spec.NodeClassRef) {
		return lateClaim{}, false
	}
	launchedAt := seen.LaunchedAt
	if launchedAt.IsZero() {
		launchedAt = seen.Created
	}
	id := claim.Status.ProviderID
	instance := id[strings.LastIndexByte(id, '/')+1:]
	return lateClaim{claim, claim.Labels[karpv1.LabelNodePool], claim.Spec.NodeClassRef.Name, instance, launchedAt},
		!now.Before(launchedAt.Add(d.After))
}

func isResolved(c *awsv1.EC2NodeClass) bool {
	return len(c.Status.Subnets) > 0 && len(c.Status.SecurityGroups) > 0 && len(c.Status.AMIs) > 0
}

// fingerprint returns the fields of the class that affect joining, as one text.
func fingerprint(c *awsv1.EC2NodeClass) string {
	parts := []string{string(c.UID), c.Spec.Role, c.Status.InstanceProfile, c.Spec.ResolvedAMIFamily()}
	if public := c.Spec.AssociatePublicIPAddress; public != nil {
		parts = append(parts, fmt.Sprint("public ", *public))
	}
	for _, s := range c.Status.Subnets {
		parts = append(parts, s.ID)
	}
	for _, g := range c.Status.SecurityGroups {
		parts = append(parts, g.ID)
	}
	for _, a := range c.Status.AMIs {
		parts = append(parts, a.ID)
	}
	return strings.Join(parts, " ")
}

func (d *Diagnoser) isDue(now time.Time, seen lateScan) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(seen.classes) == 0 && len(seen.late) == 0 {
		return false
	}
	age := now.Sub(d.report.at)
	switch {
	case d.report.at.IsZero():
		return true
	case age < minInterval:
		return false
	case !maps.Equal(seen.classes, d.report.classes):
		return true
	case age >= intervalHealthy:
		return true
	case age >= intervalAfterChange && len(d.report.preflight) > 0 && now.Sub(d.report.since) < fixingPeriod:
		return true
	case age >= IntervalWithFindings:
		return len(seen.late) > 0 || len(d.report.preflight) > 0 || d.LaunchBackoff.HasPreflightCause()
	}
	// A claim became late after the last report, and no known finding explains it.
	return slices.ContainsFunc(seen.late, func(l lateClaim) bool {
		return l.launchedAt.Add(d.After).After(d.report.at) && len(d.report.about(l)) == 0
	})
}

// collect collects evidence, runs the checks, and stores the report. It wakes the classes that
// are new or have changed, and those whose findings have changed.
func (d *Diagnoser) collect(ctx context.Context, now time.Time, seen lateScan) {
	clients := d.Clients
	clients.Now, clients.Late = d.Now.Now, map[string]bool{}
	for _, l := range seen.late {
		clients.Late[l.id] = true
	}
	d.Metrics.Diagnoses.Inc()
	found := collector.Collect(ctx, clients)
	if ctx.Err() != nil {
		return // the process is stopping, so answers may be missing
	}
	r := report{at: now, evidence: found, findings: checks.Diagnose(found), preflight: checks.Preflight(found), classes: seen.classes}
	d.mu.Lock()
	before := d.report
	r.since = r.at
	if maps.EqualFunc(before.preflight, r.preflight, func(a, b []diagnosis.Finding) bool { return findingsText(a) == findingsText(b) }) {
		r.since = before.since
	}
	d.report = r
	clear(d.waiting)
	d.mu.Unlock()
	for name, current := range seen.classes {
		if before.classes[name] != current || findingsText(before.preflight[name]) != findingsText(r.preflight[name]) {
			d.wake(&d.ClassesToReconcile, &awsv1.EC2NodeClass{}, name)
		}
	}
}

// about returns the findings that concern a late claim, the root cause first.
func (r report) about(l lateClaim) []diagnosis.Finding {
	scope := diagnosis.Scope{Class: l.class, Instance: l.id}
	for _, i := range r.evidence.Instances.Value {
		if i.ID == l.id {
			scope.Subnet = i.Subnet
		}
	}
	return diagnosis.JoinBlockers(r.findings, scope)
}

// wake makes the object's loop reconcile the object now. If the channel is full, wake does nothing; the loop reconciles
// the object later anyway.
func (d *Diagnoser) wake(to *chan event.GenericEvent, object client.Object, name string) {
	object.SetName(name)
	select {
	case d.Channel(to) <- event.GenericEvent{Object: object}:
	default:
	}
}

// Channel returns the channel *c. It creates the channel on first use.
func (d *Diagnoser) Channel(c *chan event.GenericEvent) chan event.GenericEvent {
	d.mu.Lock()
	defer d.mu.Unlock()
	if *c == nil {
		*c = make(chan event.GenericEvent, maxWoken)
	}
	return *c
}

// pendingPods returns the first maxPodEvents pods that are not bound to a node. An id is "namespace/name".
func (d *Diagnoser) pendingPods(ctx context.Context, ids []string) []*corev1.Pod {
	var out []*corev1.Pod
	for _, id := range ids {
		namespace, name, _ := strings.Cut(id, "/")
		pod := &corev1.Pod{}
		if err := d.Cache.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, pod); err == nil && pod.Spec.NodeName == "" {
			out = append(out, pod)
		}
		if len(out) == maxPodEvents {
			break
		}
	}
	return out
}

// QueryTimeout is how long one query for a report may take, including its delay by the client's rate limit.
const QueryTimeout = 2 * time.Minute

// MaxPreflightWait is how long a new class waits for its first report. After that the class is used without a report,
// so that slow checks do not keep pods pending.
const MaxPreflightWait = 15 * time.Second

// PreflightFindings returns the findings that certainly keep nodes of the class from joining. isCovered is true if the
// last report covers the class in its present state. mayUse is true if the class need not wait for a report: the last
// report covers it, or it has waited for MaxPreflightWait.
func (d *Diagnoser) PreflightFindings(class *awsv1.EC2NodeClass, now time.Time) (findings []diagnosis.Finding, isCovered, mayUse bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	reported, ok := d.report.classes[class.Name]
	if ok && reported == fingerprint(class) {
		return d.report.preflight[class.Name], true, true
	}
	key := fmt.Sprint(class.UID, " ", class.Generation)
	since, isWaiting := d.waiting[key]
	if !isWaiting {
		if d.waiting == nil {
			d.waiting = map[string]time.Time{}
		}
		since = now
		d.waiting[key] = now
	}
	return nil, false, !now.Before(since.Add(MaxPreflightWait))
}

package provisioner

import (
	"context"
	"log/slog"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joiner-sh/joiner/internal/controller/loop"
	"github.com/joiner-sh/joiner/internal/controller/nodestate"
	"github.com/joiner-sh/joiner/internal/controller/poolhealth"
	"github.com/joiner-sh/joiner/internal/kube/kubeclient"
	"github.com/joiner-sh/joiner/internal/kube/writer"
	"github.com/joiner-sh/joiner/internal/metrics"
	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/scheduling/fairness"
	"github.com/joiner-sh/joiner/internal/scheduling/packing"
)

type claimMaker interface {
	CreateClaims(ctx context.Context, planned []packing.PlannedNode) []writer.CreateResult
}

// ledger counts the NodeClaims that are not initialized yet. While there are any, plans are repeated.
type ledger interface{ Len() int }

// Provisioner plans pending pods and creates the NodeClaims that they need.
type Provisioner struct {
	Batch         *loop.Batch               // collects pending pods for one plan
	Cluster       nodestate.Snapshots       // reads cluster state from the informers
	Market        nodestate.Markets         // offerings of EC2
	Solve         nodestate.Solver          // computes plans
	Claims        claimMaker                // creates NodeClaims
	Ledger        ledger                    // claims created by this process that are not initialized yet
	LaunchBackoff *poolhealth.LaunchBackoff // pools whose launches are on hold
	PodBackoff    *poolhealth.PodBackoff    // back-off of pods that new nodes did not make schedulable; shared with nodeclaim.Reconciler
	Stopwatch     *Stopwatch                // measures the time from batch to launch
	Events        *loop.RateLimitedRecorder // emits events
	Metrics       *metrics.Metrics          // the metrics of this process
	Log           *slog.Logger              // the log of this process
	Now           loop.Clock                // the clock; nil uses time.Now

	// PlannedEvictions records the leaving nodes whose pods were in a plan; nil disables this.
	PlannedEvictions *nodestate.PlannedEvictions

	lastLogged string     // the refusals, or the cause for not planning, that were last logged
	postponed  int        // number of consecutive plans of which a part waited for nodes that joined during planning
	omittedPod string     // the first pod whose preferences the last plan omitted
	Costly     costlyPods // pods with costly scheduling rules, and their slices
}

// Start runs the loop until ctx ends.
func (p *Provisioner) Start(ctx context.Context) error {
	// The first snapshot starts the informers of kinds that no other code watches, which takes half a second. Its error
	// can be ignored, because the first pass returns the error again.
	_, _ = p.Cluster.Snapshot(ctx, time.Now(), nil)
	p.Costly.init()
	var nextPass, nextSlice time.Time // when the next Pass and Slice are due without a request; zero: never
	for {
		window, ok := p.Batch.Wait(ctx, untilFirst(time.Now(), nextPass, nextSlice), p.Costly.Ended)
		if !ok {
			return nil
		}
		p.Collect(ctx)
		// A plan was requested, or the next one is due without a request.
		if now := time.Now(); window.Size > 0 || !nextPass.IsZero() && !now.Before(nextPass) {
			nextPass = time.Time{}
			if pause := p.Pass(ctx, window); pause > 0 {
				nextPass = time.Now().Add(pause)
			}
		}
		nextSlice = p.Slice(ctx)
	}
}

// untilFirst returns the time until the earliest time that is not zero; 0 if all times are zero.
func untilFirst(now time.Time, times ...time.Time) time.Duration {
	var out time.Duration
	for _, t := range times {
		if left := max(t.Sub(now), time.Millisecond); !t.IsZero() && (out == 0 || left < out) {
			out = left
		}
	}
	return out
}

type planInput struct {
	snapshot cluster.Snapshot // its pods are all pods that need a node
	market   catalog.Market   // the available offerings
}

// readInput reads the input of a plan. The second result is false if no plan can be made now.
func (p *Provisioner) readInput(ctx context.Context, now time.Time) (planInput, bool) {
	if err := p.LaunchBackoff.Recall(ctx); err != nil {
		p.Log.Error("cannot read which pools have launches on hold", "error", err, "hint", kubeclient.Hint(err))
		return planInput{}, false
	}
	market := p.Market.Market(now)
	if market == nil {
		p.logOnce("the offerings of EC2 are not known yet")
		return planInput{}, false
	}
	snapshot, err := p.readSnapshot(ctx, now, market)
	return planInput{snapshot: snapshot, market: market}, err == nil
}

// readSnapshot returns the current state of the cluster, in which pools whose launches are on hold are marked as unusable.
func (p *Provisioner) readSnapshot(ctx context.Context, now time.Time, market catalog.Market) (cluster.Snapshot, error) {
	snapshot, err := p.Cluster.Snapshot(ctx, now, market)
	if err != nil {
		p.Log.Error("cannot read the state of the cluster", "error", err, "hint", kubeclient.Hint(err))
		p.Metrics.Failures.WithLabelValues("provisioner", string(kubeclient.Classify(err))).Inc()
		return snapshot, err
	}
	snapshot.Pools = p.LaunchBackoff.MarkHeld(snapshot.Pools, now)
	return snapshot, nil
}

// Pass makes one plan and carries it out. It returns the pause after which the next plan is made even if none is
// requested; 0: the next plan waits for a request.
func (p *Provisioner) Pass(ctx context.Context, window loop.Window) time.Duration {
	work := loop.Working(ctx, loop.LoopProvisioner, "a snapshot of the cluster")
	defer work.End()
	// 1. read
	started := p.Now.Now()
	number := p.PlannedEvictions.BeginPlan()
	seen, ok := p.readInput(ctx, started)
	if !ok {
		return loop.Recheck
	}
	all := seen.snapshot.Pods
	p.Metrics.Nodes.Count.Set(float64(len(seen.snapshot.Nodes)))
	p.Costly.forget(all)
	if len(all) == 0 {
		p.PlannedEvictions.EndPlan(number, seen.snapshot)
		p.resetReports()
		if p.Ledger.Len() > 0 {
			return loop.Recheck // pods count as placed until kube-scheduler has had time to bind them, so check again later
		}
		return 0
	}

	// 2. decide
	p.Metrics.QueueDepth.WithLabelValues("provisioner").Set(float64(len(all)))
	due, held := p.PodBackoff.Split(all, seen.snapshot.Nodes, started)
	division := p.Costly.divide(due, started)
	p.recordWaiting(division)
	work.NextStep("a plan for " + loop.Count(len(division.Now), "pod"))
	m := planning{snapshot: p.Costly.snapshotFor(seen.snapshot, due, division.Now), market: seen.market}
	m.compute(p.Solve)
	p.Costly.share = p.Costly.share.AfterPlan(division.NowCost, m.took)
	plannedAt := p.Now.Now()
	p.Metrics.Scheduling.Duration.WithLabelValues("provisioner").Observe(plannedAt.Sub(started).Seconds())

	// 3. act
	work.NextStep("the NodeClaims of a plan")
	plan, created, isWhole := p.carryOut(ctx, m)
	// Pods of leaving nodes that still wait for their first slice are in no plan yet.
	if isWhole && !p.Costly.hasUnserved(except(due, division.Now)) {
		p.PlannedEvictions.EndPlan(number, seen.snapshot)
	}
	p.Costly.recordPlacements(plan, m.snapshot)

	// 4. report
	p.reportWaiting(held)
	p.report(window, plannedAt, seen.snapshot.Pods, plan, created)
	return loop.Recheck
}

type planning struct {
	snapshot cluster.Snapshot // the cluster, with the pods to plan
	market   catalog.Market   // the available offerings
	plan     packing.Plan     // the result of compute
	took     time.Duration    // duration of compute
}

func (m *planning) compute(solve nodestate.Solver) {
	started := time.Now()
	if len(m.snapshot.Pods) > 0 {
		m.plan = solve(m.snapshot, m.market)
	}
	m.took = time.Since(started)
}

// lateAfter is the planning time above which a plan is late: nodes that joined meanwhile may have room for its pods.
const lateAfter = time.Second

// carryOut creates the NodeClaims of a plan that are still valid in the current state of the cluster. It returns the
// valid part of the plan, the result for each NodeClaim, and whether the whole plan was carried out.
func (p *Provisioner) carryOut(ctx context.Context, m planning) (packing.Plan, []writer.CreateResult, bool) {
	plan, isWhole := m.plan, true
	p.logOmissions(plan.Omissions)
	if len(plan.PlannedNodes) > 0 {
		newest, err := p.readSnapshot(ctx, p.Now.Now(), m.market)
		if err != nil {
			plan.PlannedNodes = nil
			return plan, nil, false
		}
		r := Review{Before: m.snapshot, Now: newest, market: m.market, IsLate: m.took > lateAfter && p.postponed < maxPostponed}
		var stale StaleParts
		plan, stale = r.Revalidate(plan)
		p.reportStale(stale, m)
		isWhole = !stale.mustReplan
	}
	started := p.Now.Now()
	plan.PlannedNodes = p.LaunchBackoff.Launchable(started, plan.PlannedNodes)
	created := p.Claims.CreateClaims(ctx, plan.PlannedNodes)
	return plan, created, isWhole && !slices.ContainsFunc(created, func(c writer.CreateResult) bool { return c.Err != nil })
}

// logOmissions logs that a plan omitted preferences of pods, unless the first of these pods is the same as in the
// previous plan.
func (p *Provisioner) logOmissions(omissions []packing.Omission) {
	firstPod, preferences := "", 0
	for _, o := range omissions {
		preferences += o.Preferences
	}
	if len(omissions) > 0 {
		firstPod = omissions[0].Pod
	}
	if firstPod != "" && firstPod != p.omittedPod {
		p.Log.Warn("planned pods without some of their preferred affinity: the rules of all pods exceed the limit of one plan",
			"pods", len(omissions), "preferences", preferences, "firstPod", firstPod)
	}
	p.omittedPod = firstPod
}

// maxPostponed is how many consecutive plans may wait for nodes that joined during planning.
const maxPostponed = 3

// reportStale counts and logs the part of a plan that is no longer valid, and requests another plan if the pods of that
// part still need nodes.
func (p *Provisioner) reportStale(stale StaleParts, m planning) {
	p.postponed++
	if stale.Claims[StaleRoom] == 0 {
		p.postponed = 0
	}
	if len(stale.Claims) == 0 {
		return
	}
	for cause, n := range stale.Claims {
		p.Metrics.StaleClaims.WithLabelValues(staleLabels[cause]).Add(float64(n))
	}
	p.Log.Info("did not create a part of a plan: the cluster changed while the plan was made", "notCreated", stale.String(),
		"podsGone", stale.pods, "seconds", m.took.Seconds())
	if stale.mustReplan {
		p.Batch.AskNow("stale plan")
	}
}

func (p *Provisioner) logOnce(cause string) {
	if p.lastLogged != cause {
		p.lastLogged = cause
		p.Log.Info("not planning yet", "cause", cause)
	}
}

func (p *Provisioner) report(
	window loop.Window, plannedAt time.Time, pods []cluster.Pod, plan packing.Plan, created []writer.CreateResult,
) {
	p.measure(window, plannedAt, created)
	p.measureRefusals(slices.Concat(plan.Refusals, p.Costly.Refusals(pods)))
	failed := p.reportResults(pods, plan, created)
	if len(created) == 0 && len(plan.Refusals) == 0 {
		return
	}
	if summary := RefusalSummary(plan.Refusals); len(created) > 0 || summary != p.lastLogged {
		p.lastLogged = summary
		p.Log.Info("planned", "pods", plan.Pods, "classes", plan.Classes, "nodeClaims", len(created)-failed,
			"onNodes", len(plan.Placements), "refused", len(plan.Refusals), "reasons", summary,
			"pricePerHour", plan.Price.String(), "lowerBoundPerHour", plan.LowerBound.String(),
			"seconds", plannedAt.Sub(window.Closed).Seconds(), "batchSeconds", batchSeconds(window))
	}
}

// reportResults emits the events of a plan for its pods. It returns how many NodeClaims could not be created.
func (p *Provisioner) reportResults(all []cluster.Pod, plan packing.Plan, created []writer.CreateResult) int {
	pods := make(map[string]*corev1.Pod, len(all))
	for _, pod := range all {
		pods[pod.ID()] = podObject(pod)
	}
	p.emitRefusals(plan.Refusals, pods)
	p.emitPlacements(plan.Placements, pods)
	return p.reportClaims(created, pods)
}

func (p *Provisioner) measure(window loop.Window, plannedAt time.Time, created []writer.CreateResult) {
	if len(created) > 0 {
		p.Metrics.Stage.WithLabelValues(metrics.StageBatch).Observe(batchSeconds(window))
		p.Metrics.Stage.WithLabelValues(metrics.StagePlan).Observe(plannedAt.Sub(window.Closed).Seconds())
	}
	for _, c := range created {
		if c.Claim != nil {
			p.Stopwatch.NoteCreated(c.Claim.Name, window.Closed, c.At)
			p.Metrics.Stage.WithLabelValues(metrics.StageClaim).Observe(c.At.Sub(plannedAt).Seconds())
		}
	}
}

func (p *Provisioner) measureRefusals(refusals []packing.Refusal) {
	p.Metrics.Unschedulable.WithLabelValues("provisioner").Set(float64(len(refusals)))
	p.Metrics.Refused.Reset()
	ignored := 0
	for _, r := range refusals {
		if len(r.Reasons) == 0 {
			continue
		}
		p.Metrics.Refused.WithLabelValues(string(r.Reasons[0].Code)).Inc()
		if r.Reasons[0].Code == packing.Unplannable {
			ignored++
		}
	}
	p.Metrics.Ignored.Set(float64(ignored))
}

// reportClaims logs the results of creating NodeClaims, and emits events for their pods. It returns how many NodeClaims
// could not be created.
func (p *Provisioner) reportClaims(created []writer.CreateResult, pods map[string]*corev1.Pod) (failed int) {
	for _, c := range created {
		if c.Err != nil {
			failed++
			p.Log.Error("cannot create NodeClaim", "nodePool", c.Planned.Pool, "error", c.Err, "hint", kubeclient.Hint(c.Err))
			p.Metrics.Failures.WithLabelValues("provisioner", string(kubeclient.Classify(c.Err))).Inc()
			continue
		}
		p.Metrics.Claims.Created.WithLabelValues("provisioned", c.Planned.Pool, strconv.FormatBool(len(c.Planned.Relaxed) > 0)).Inc()
		cheapest := c.Planned.Offerings[0]
		p.Log.Info("created NodeClaim", "NodeClaim", c.Claim.Name, "nodePool", c.Planned.Pool, "pods", len(c.Planned.Pods),
			"requests", c.Planned.Requests.String(), "instanceTypes", nodestate.InstanceTypesOf(c.Planned, 5), "offerings", len(c.Planned.Offerings),
			"cheapest", cheapest.InstanceType+" "+cheapest.Zone+" "+cheapest.CapacityType, "pricePerHour", cheapest.Price.String())
		for _, id := range c.Planned.Pods {
			if pod := pods[id]; pod != nil {
				p.Events.EmitLater(pod, kubeclient.ReasonNominated, "Pod should schedule on: nodeclaim/"+c.Claim.Name)
			}
		}
	}
	return failed
}

func (p *Provisioner) emitPlacements(placements []packing.Placement, pods map[string]*corev1.Pod) {
	for _, placement := range placements {
		if pod := pods[placement.Pod]; pod != nil {
			p.Events.EmitLater(pod, kubeclient.ReasonNominated, "Pod should schedule on: node/"+placement.Node)
		}
	}
}

func (p *Provisioner) reportWaiting(held []poolhealth.WaitingPod) {
	for _, w := range held {
		if w.IsNew {
			p.Events.EmitLater(podObject(w.Pod), kubeclient.ReasonFailedScheduling, w.Message())
			p.Log.Warn("nodes launched for a pod did not make it schedulable", "Pod", w.Pod.ID(), "nodes", w.Times,
				"nextTry", w.Until.UTC().Format(time.RFC3339))
		}
	}
}

func (p *Provisioner) emitRefusals(refusals []packing.Refusal, pods map[string]*corev1.Pod) {
	for _, r := range refusals {
		if pod := pods[r.Pod]; pod != nil {
			p.Events.EmitLater(pod, kubeclient.ReasonFailedScheduling, Explain(r))
		}
	}
}

// resetReports resets the metrics and lastLogged, when no pod needs a node any more.
func (p *Provisioner) resetReports() {
	p.lastLogged = ""
	p.Metrics.QueueDepth.WithLabelValues("provisioner").Set(0)
	p.Metrics.Unschedulable.WithLabelValues("provisioner").Set(0)
	p.Metrics.Refused.Reset()
	p.Metrics.Ignored.Set(0)
	p.recordWaiting(fairness.Division{})
}

func batchSeconds(w loop.Window) float64 {
	if w.First.IsZero() {
		return 0
	}
	return w.Closed.Sub(w.First).Seconds()
}

func podObject(p cluster.Pod) *corev1.Pod {
	return &corev1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name, UID: loop.UID(p.UID)},
	}
}

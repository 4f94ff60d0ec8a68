package diagnoser

import (
	"context"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/controller/loop"
	"github.com/joiner-sh/joiner/internal/controller/nodestate"
	"github.com/joiner-sh/joiner/internal/controller/poolhealth"
	"github.com/joiner-sh/joiner/internal/diagnosis"
	"github.com/joiner-sh/joiner/internal/diagnosis/fix"
	"github.com/joiner-sh/joiner/internal/kube/conversion"
	"github.com/joiner-sh/joiner/internal/kube/kubeclient"
	"github.com/joiner-sh/joiner/internal/node/lifecycle"
)

// maxPodEvents is the maximum number of pods that get an event because of one late claim.
const maxPodEvents = 20

// Verdict is the reason why a claim is late, as the claim's condition Registered shows it.
type Verdict struct {
	Check   string // ID of the check that found the cause, such as "AUTH-5"; empty: no cause was found
	Message string // text for conditions and events
	Certain bool   // the cause is certain, so other instances of the pool will not join either

	// isPreflight is true if the check finds the cause without an instance.
	isPreflight bool
}

// reason returns the reason of the condition Registered, or WaitNode if no cause was found. The reason is the check's
// ID with an underscore for the hyphen, because reasons must not contain hyphens.
func (v Verdict) reason() string {
	if v.Check == "" {
		return lifecycle.WaitNode
	}
	return poolhealth.ReasonOfCheck(v.Check)
}

// findingsText returns a text that differs if the findings differ.
func findingsText(findings []diagnosis.Finding) string {
	var b strings.Builder
	for _, f := range findings {
		b.WriteString(f.Check + f.Cause + f.Fix.String())
	}
	return b.String()
}

// verdictsOf returns for each late claim, by UID, why it is late. The result is empty before the first report.
func (d *Diagnoser) verdictsOf(seen lateScan) map[types.UID]Verdict {
	d.mu.Lock()
	defer d.mu.Unlock()
	out := make(map[types.UID]Verdict, len(seen.late))
	for _, l := range seen.late {
		if d.report.at.IsZero() {
			continue
		}
		out[l.claim.UID] = d.report.verdict(l, d.After)
	}
	return out
}

// verdict returns why claim l is late. after is Diagnoser.After.
func (r report) verdict(l lateClaim, after time.Duration) Verdict {
	about := r.about(l)
	if len(about) == 0 {
		console := fix.New("", fix.Call("ec2", "get-console-output", fix.P("--region", fix.Region(r.evidence.Region)),
			fix.P("--latest"), fix.P("--output", fix.Text("text")),
			fix.P("--instance-id", fix.Instance(l.id))))
		text := "the instance has not joined the cluster within " + after.String() + ", and no check of joiner doctor finds a cause. " +
			"docs/checks/READY-3.md explains how to read its console output: " + console.String()
		if gaps := diagnosis.MissingPermissions(r.evidence); len(gaps) > 0 {
			text = "the instance has not joined the cluster within " + after.String() +
				", and the cause is not known: to find it, allow the controller " + strings.Join(gaps, ", ")
		}
		return Verdict{Message: text}
	}
	first := about[0]
	v := Verdict{Check: first.Check, Message: loop.FindingText(first),
		Certain: first.Verdict == diagnosis.Broken && first.Certainty != diagnosis.Possible}
	for _, f := range r.preflight[l.class] {
		v.isPreflight = v.isPreflight || f.Check == first.Check
	}
	return v
}

// Verdict returns reason and message for the condition Registered of a claim that waits for its Node. After a restart
// it returns the verdict of the previous process, until there is a new report. ok is false if there is no verdict.
func (d *Diagnoser) Verdict(claim *karpv1.NodeClaim) (reason, message string, ok bool) {
	if d == nil {
		return "", "", false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if v, known := d.Verdicts[claim.UID]; known {
		return v.reason(), v.Message, true
	}
	c, _ := claim.StatusConditions().Find(karpv1.ConditionRegistered)
	return c.Reason, c.Message, d.report.at.IsZero() && poolhealth.IsOfCheck(c)
}

// WillNotJoin returns why the claim's instance will not join the cluster. isCertain is false if no cause is certain.
func (d *Diagnoser) WillNotJoin(claim *karpv1.NodeClaim) (why string, isCertain bool) {
	if d == nil {
		return "", false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	v := d.Verdicts[claim.UID]
	return v.Message, v.Certain
}

// hold stops the launches of pools whose instances certainly do not join, and resumes launches when the cause is gone.
func (d *Diagnoser) hold(seen lateScan, verdicts map[types.UID]Verdict) {
	now := d.Now.Now()
	for _, l := range seen.late {
		if v := verdicts[l.claim.UID]; v.Certain && l.pool != "" {
			d.LaunchBackoff.RecordCause(now, l.pool, poolhealth.KnownCause{Check: v.Check, Cause: v.Message, Preflight: v.isPreflight,
				LaunchedAt: l.launchedAt, EndsAt: l.launchedAt.Add(lifecycle.RegistrationTimeout)})
		}
	}
	d.mu.Lock()
	r := d.report
	d.mu.Unlock()
	for pool, check := range d.LaunchBackoff.PreflightCauses() {
		p := seen.pools[pool]
		if p == nil || r.at.IsZero() {
			continue
		}
		if ref := p.Spec.Template.Spec.NodeClassRef; !nodestate.IsServed(ref) || !r.clears(ref.Name, check) {
			continue
		}
		d.LaunchBackoff.Reset(pool)
		d.Log.Info("the cause that kept nodes from joining is gone", "nodePool", pool, "check", check)
		if d.Batch != nil {
			d.Batch.AskNow("fixed " + pool)
		}
	}
}

// clears reports whether the check has run and no longer has a finding about the class. It returns false if the check
// could not decide about the class.
func (r report) clears(class, check string) bool {
	hasRun := false
	for _, f := range r.findings {
		if f.Check != check {
			continue
		}
		hasRun = true
		concernsClass := f.Subject == "" || f.Subject == "EC2NodeClass "+class
		if f.Verdict == diagnosis.Unknown && concernsClass {
			return false
		}
	}
	for _, f := range r.preflight[class] {
		if f.Check == check {
			return false
		}
	}
	return hasRun
}

// publish stores the verdicts and reports new ones: on conditions of the claims, in events for claims, pools and pods,
// in the log, and in metrics.
func (d *Diagnoser) publish(ctx context.Context, seen lateScan, verdicts map[types.UID]Verdict) {
	d.mu.Lock()
	before := d.Verdicts
	d.Verdicts = verdicts
	d.noteFixed(seen.late, before)
	d.mu.Unlock()
	counts := map[string]int{} // number of claims by pool, check and message
	for _, l := range seen.late {
		v, isJudged := verdicts[l.claim.UID]
		if !isJudged {
			continue
		}
		c, _ := l.claim.StatusConditions().Find(karpv1.ConditionRegistered)
		if c.Reason != v.reason() || c.Message != v.Message {
			d.wake(&d.ClaimsToReconcile, &karpv1.NodeClaim{}, l.claim.Name)
		}
		old, wasJudged := before[l.claim.UID]
		isReported := wasJudged && old.Check == v.Check
		isReportedEarlier := !wasJudged && c.Reason == v.reason() && poolhealth.IsOfCheck(c) // by a previous process
		if isReported || isReportedEarlier {
			continue
		}
		d.Metrics.JoinFailures.WithLabelValues(orUnknown(v.Check), l.pool).Inc()
		counts[l.pool+"\n"+v.Check+"\n"+v.Message]++
		d.publishOne(ctx, seen, l, v)
	}
	for key, n := range counts {
		parts := strings.SplitN(key, "\n", 3)
		d.Log.Warn("instances have not joined the cluster in time", "nodePool", parts[0], "nodeClaims", n, "check", parts[1],
			"cause", parts[2])
	}
}

// noteFixed records the late claims whose cause is gone: the earlier verdict was certain, and the present one is not.
// The earlier verdict is in before, or in a condition that a previous process wrote. Claims with the same fix get the
// same time, so that their instances are replaced together; see nodeclaim.Reconciler.outdatedAt. The caller must hold
// the lock.
func (d *Diagnoser) noteFixed(late []lateClaim, before map[types.UID]Verdict) {
	cured, now := map[types.UID]time.Time{}, d.Now.Now()
	for _, l := range late {
		id := l.claim.UID
		v, isJudged := d.Verdicts[id]
		old, wasJudged := before[id]
		registered, _ := l.claim.StatusConditions().Find(karpv1.ConditionRegistered)
		switch since, isCured := d.cured[id]; {
		case !isJudged || v.Certain: // the cause still exists, or may exist
		case isCured:
			cured[id] = since
		case old.Certain || !wasJudged && poolhealth.IsOfCheck(registered):
			cured[id] = now
		}
	}
	d.cured = cured
}

// FixedAt returns when the cause that kept a late claim from joining was found to be gone. The time is zero if no cause
// was certain, or if the cause still exists. isCertain reports whether a cause is certain now.
func (d *Diagnoser) FixedAt(claim *karpv1.NodeClaim) (since time.Time, isCertain bool) {
	if d == nil {
		return time.Time{}, false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.cured[claim.UID], d.Verdicts[claim.UID].Certain
}

func (d *Diagnoser) publishOne(ctx context.Context, seen lateScan, l lateClaim, v Verdict) {
	emit := d.Events.Emit
	if d.LimitedEvents != nil {
		emit = d.LimitedEvents.EmitLater
	}
	emit(l.claim, kubeclient.ReasonNotJoining, v.Message)
	if pool := seen.pools[l.pool]; pool != nil {
		d.Events.Emit(pool, kubeclient.ReasonNotJoining, "Instances do not join the cluster: "+v.Message)
	}
	for _, pod := range d.pendingPods(ctx, conversion.PodsOf(l.claim)) {
		emit(pod, kubeclient.ReasonNotJoining, "The node that was launched for the pod does not join the cluster: "+v.Message)
	}
}

func orUnknown(check string) string {
	if check == "" {
		return "unknown"
	}
	return check
}

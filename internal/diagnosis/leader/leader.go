// Package leader checks whether a controller is active in the cluster: it reads the Lease, and the NodeClaims and
// conditions that only a controller writes.
//
// In: an index.Index.
// Out: findings of the checks RUN.
// Never: a network call, a reading of the clock, or a verdict without evidence.
package leader

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/joiner-sh/joiner/internal/diagnosis"
	"github.com/joiner-sh/joiner/internal/diagnosis/fix"
	"github.com/joiner-sh/joiner/internal/diagnosis/index"
)

// takeover is how long another controller may need to become active after the Lease ends: its pod must be created, its
// image must be pulled, and clocks differ.
const takeover = 2 * time.Minute

// Checks returns the checks RUN.
func Checks() []index.Check {
	return []index.Check{{ID: "RUN-1", Title: "a controller is active", Layer: diagnosis.LayerController, Judge: judgeLeader}}
}

// judgeLeader reports that no controller is active. A killed controller leaves an expired Lease and unfinished work. If
// the Lease ended less than takeover ago, the verdict is Unknown, because another controller may be starting.
func judgeLeader(ix *index.Index) []diagnosis.Finding {
	found := judgeLease(ix)
	l := ix.Evidence.Lease.Value
	ago := ix.Evidence.At.Sub(l.End())
	if len(found) == 0 || !ix.Evidence.Lease.Known() || ago >= takeover {
		return found
	}
	ended := fmt.Sprintf("ended %d s ago", int(ago.Seconds()))
	if l.Holder == "" {
		ended = fmt.Sprintf("was released %d s ago", int(ix.Evidence.At.Sub(l.Renewed).Seconds()))
	}
	return []diagnosis.Finding{{
		Verdict:   diagnosis.Unknown,
		Certainty: diagnosis.Certain,
		Subject:   found[0].Subject,
		Evidence:  found[0].Evidence,
		Cause:     "the lease of the controller " + ended + "; another may be about to take over"}}
}

// judgeLease returns the findings about a Lease that has ended or never existed, even if it ended just now.
func judgeLease(ix *index.Index) []diagnosis.Finding {
	if ix.Evidence.Lease.Is(diagnosis.Missing) {
		return judgeNeverActive(ix)
	}
	if gap, ok := ix.Evidence.Lease.Gap("the controller's lease"); ok {
		return []diagnosis.Finding{gap}
	}
	l, c := ix.Evidence.Lease.Value, ix.Evidence.Controller.Value
	readyIndex := slices.IndexFunc(c.Pods, func(p diagnosis.ControllerPod) bool { return p.Ready })
	if !isLeaderless(ix, l) || readyIndex >= 0 && c.SkipsLeaderElection() {
		return nil
	}
	work := unfinishedWork(ix)
	subject := "Lease " + l.Namespace + "/" + l.Name
	leaseState := fmt.Sprintf("%s held the lease until %s and did not release it: the holder was killed, or its node is gone", l.Holder,
		diagnosis.Stamp(l.End()))
	if l.Holder == "" {
		leaseState = "the lease was released at " + diagnosis.Stamp(l.Renewed) + ", and no replica has acquired it again"
	}
	switch {
	case readyIndex >= 0 && (l.Holder != "" || len(work) > 0):
		return []diagnosis.Finding{diagnosis.ReportSuspicious(subject, diagnosis.Possible,
			"the controller's pod %s runs, but does not renew the lease, and a controller without the lease does nothing",
			c.Pods[readyIndex].Name).
			With(ix.Evidence.Lease.Source + ": " +
				leaseState).With(work...).FixedBy(fix.Logs(fix.Pod(c.Namespace,
			c.Pods[readyIndex].Name)).With("shows whether and why the pod cannot acquire the lease"))}
	case readyIndex >= 0:
		return nil // the Lease was released, and there is no work
	case len(work) > 0 && (ix.Evidence.Controller.Known() || ix.Evidence.Controller.Is(diagnosis.Missing)):
		return []diagnosis.Finding{diagnosis.ReportBroken(subject, diagnosis.Likely,
			"no controller has been active since %s: pods get no nodes, and started work is not finished", diagnosis.Stamp(l.End())).
			With(ix.Evidence.Lease.Source + ": " + leaseState).With(work...).With(podState(ix)...).FixedBy(startController(ix))}
	case len(work) > 0 || l.Holder != "":
		return []diagnosis.Finding{diagnosis.ReportSuspicious(subject, diagnosis.Likely,
			"no controller seems to have been active since %s: new pods get no nodes", diagnosis.Stamp(l.End())).
			With(ix.Evidence.Lease.Source + ": " + leaseState).With(work...).With(podState(ix)...).FixedBy(startController(ix))}
	}
	return nil // no pod is ready, the Lease was released, and there is no work: the controller was stopped
}

// isLeaderless reports whether no controller is active although NodePools or NodeClaims exist: the Lease has ended, and
// no controller has written anything since then.
func isLeaderless(ix *index.Index, l diagnosis.Lease) bool {
	hasObjects := len(ix.Evidence.Pools.Value)+len(ix.Evidence.Claims.Value) > 0
	return hasObjects && !l.Renewed.IsZero() && !ix.Evidence.At.Before(l.End()) && !lastActivity(ix).After(l.End())
}

// LeaderlessSince returns when the Lease ended, if no controller has been active since then. The time is zero if a
// controller is active or may be active. A controller without leader election has no Lease, so it may be active. If the
// controller's installation could not be read, its Lease is not known, so it may be active too.
func LeaderlessSince(e diagnosis.Evidence) time.Time {
	ix := index.New(e)
	isKnown := e.Lease.Known() && e.Claims.Known() && (e.Controller.Known() || e.Controller.Is(diagnosis.Missing))
	if !isKnown || e.Controller.Value.SkipsLeaderElection() || !isLeaderless(ix, e.Lease.Value) {
		return time.Time{}
	}
	return e.Lease.Value.End()
}

// judgeNeverActive returns a finding if there are NodePools and waiting pods, but no NodeClaim and no condition, which
// only a controller writes.
func judgeNeverActive(ix *index.Index) []diagnosis.Finding {
	switch work := unfinishedWork(ix); {
	case len(ix.Evidence.Pools.Value) == 0 || len(work) == 0 || len(ix.Evidence.Claims.Value) > 0 ||
		!ix.Evidence.Claims.Known() || !ix.Evidence.Classes.Known():
		return nil
	case slices.ContainsFunc(ix.Evidence.Pools.Value, func(p diagnosis.Pool) bool { return len(p.Conditions) > 0 }),
		slices.ContainsFunc(ix.Evidence.Classes.Value, func(c diagnosis.Class) bool { return len(c.Conditions) > 0 }):
		return nil
	default:
		return []diagnosis.Finding{diagnosis.ReportSuspicious("", diagnosis.Possible, "there are NodePools, and no controller has ever processed them: no controller is installed, or it does not run").
			With(ix.Evidence.Lease.Source + ": not found").With(work...).With(podState(ix)...).FixedBy(startController(ix))}
	}
}

// lastActivity returns the newest time in NodeClaims and in conditions, which only a controller writes.
func lastActivity(ix *index.Index) time.Time {
	var last time.Time
	include := func(at time.Time) {
		if at.After(last) {
			last = at
		}
	}
	for _, c := range ix.Evidence.Claims.Value {
		include(c.Created)
		for _, condition := range c.Conditions {
			include(condition.Since)
		}
	}
	for _, p := range ix.Evidence.Pools.Value {
		for _, condition := range p.Conditions {
			include(condition.Since)
		}
	}
	for _, c := range ix.Evidence.Classes.Value {
		for _, condition := range c.Conditions {
			include(condition.Since)
		}
	}
	return last
}

// unfinishedWork returns, as lines of evidence, the work that the controller has not finished; nil if there is none.
func unfinishedWork(ix *index.Index) []string {
	var unlaunched, ending, pods []string
	for _, c := range ix.Evidence.Claims.Value {
		switch {
		case c.Deleting:
			ending = append(ending, c.Name)
		case c.ProviderID == "":
			unlaunched = append(unlaunched, c.Name)
		}
	}
	for _, p := range ix.Evidence.Pods.Value {
		// Pods of controllers are no work. A pod younger than takeover may wait for another controller that takes over.
		isIgnored := slices.ContainsFunc(ix.Evidence.Controller.Value.Pods, func(o diagnosis.ControllerPod) bool {
			return o.Name == p.Name && ix.Evidence.Controller.Value.Namespace == p.Namespace
		}) || slices.Contains(ix.Evidence.Controller.Value.Others, p.Namespace+"/"+strings.TrimPrefix(p.Owner, "Deployment/"))
		if p.Node == "" && !isIgnored && !p.IsOfDaemonSet() && ix.Evidence.At.Sub(p.Created) >= takeover &&
			len(ix.Evidence.Pools.Value) > 0 {
			pods = append(pods, p.String())
		}
	}
	var out []string
	if len(unlaunched) > 0 {
		out = append(out, fmt.Sprintf("NodeClaims without an instance: %s", firstNames(unlaunched)))
	}
	if len(ending) > 0 {
		out = append(out,
			fmt.Sprintf("NodeClaims that are being deleted, whose instances run until a controller terminates them: %s", firstNames(ending)))
	}
	if len(pods) > 0 {
		out = append(out, fmt.Sprintf("pods without a node: %s", firstNames(pods)))
	}
	return out
}

// firstNames returns the first three names and the number of the others as text.
func firstNames(names []string) string {
	const most = 3
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}

// podState returns one line of evidence about a controller that has no ready pod: the state of a pod, or that there are
// no pods. It is nil if nothing is known about the pods.
func podState(ix *index.Index) []string {
	c := ix.Evidence.Controller.Value
	var out []string
	for _, p := range ix.WaitingPods() {
		out = append(out, strings.TrimSpace("pod "+c.Namespace+"/"+p.Name+" is "+p.Phase+" "+
			diagnosis.OrElse(strings.Join(p.Messages[:min(1, len(p.Messages))], ""), "and not ready")))
	}
	switch {
	case len(out) > 0:
		return out[:1]
	case ix.Evidence.Controller.Is(diagnosis.Missing):
		return []string{"the cluster has no Deployment or ServiceAccount of the controller"}
	case ix.Evidence.Controller.Known() && c.Deployment != "":
		return []string{"deployment " + c.Namespace + "/" + c.Deployment + " has no pods"}
	}
	return nil
}

// startController is the step that makes a controller active again, or that shows why it is not active.
func startController(ix *index.Index) fix.Step {
	c := ix.Evidence.Controller.Value
	switch waiting := ix.WaitingPods(); {
	case len(waiting) > 0:
		return fix.Show("describe", fix.Pod(c.Namespace, waiting[0].Name)).With("shows why the pod does not run")
	case c.Deployment != "" && len(c.Others) > 0: // only the user knows which controller should be active
		return fix.Show("get", fix.Deployment(c.Namespace,
			c.Deployment)).With("and %s: exactly one of them must run", strings.Join(c.Others, ", "))
	case c.Deployment != "":
		return fix.Scale(fix.Deployment(c.Namespace, c.Deployment), 2) // the chart's default
	}
	return fix.Controller(fix.ClusterName(ix.Evidence.Name).OrPlaceholder("NAME"), fix.Region(ix.Evidence.Region).OrPlaceholder("REGION")).
		With("on the host where it ran before, with its other settings; or install the chart: docs/installation.md")
}

package driftcheck

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/controller/nodestate"
	"github.com/joiner-sh/joiner/internal/disruption/drift"
	"github.com/joiner-sh/joiner/internal/kube/kubeclient"
)

// write stores the results on the pool and its claims: first why no node is replaced, then which nodes drift.
func (d *Reconciler) write(ctx context.Context, p poolDrift, now time.Time) error {
	if err := d.recordStuck(ctx, p, now); err != nil {
		return err
	}
	if err := d.writePool(ctx, p, now); err != nil {
		return err
	}
	var group errgroup.Group
	group.SetLimit(nodestate.ParallelClaims)
	for _, n := range p.nodes {
		group.Go(func() error { return d.writeClaim(ctx, p, n, now) })
	}
	return group.Wait()
}

// holdCondition returns the reason and message of the pool's condition DriftHeld, which explains why drifted nodes are
// not replaced. Both are empty if the nodes may be replaced.
func (p poolDrift) holdCondition() (reason, message string) {
	if p.isHeld {
		otherApproval := ""
		if p.settings.allowed != "" {
			otherApproval = fmt.Sprintf(" (%s=%s approves another change)", nodestate.AnnotationDriftAllow, p.settings.allowed)
		}
		return karpv1.ReasonMassDriftHeld, fmt.Sprintf("%s. No node is replaced because of it. If the change is intended: kubectl annotate nodepool %s %s=%s --overwrite%s; "+
			"if not, undo the change in AWS, or select by id", p.massDrift.Message, p.pool.Name, nodestate.AnnotationDriftAllow,
			p.massDrift.Token, otherApproval)
	}
	if p.unresolvedHold != "" {
		return karpv1.ReasonMassDriftHeld, p.unresolvedHold
	}
	if len(p.setbacks) > 0 {
		return karpv1.ReasonImageFailed, SetbackText(p.setbacks, p.class.Name)
	}
	for _, n := range p.nodes {
		f, failed := p.failed[n.target]
		if _, drifts := drift.First(n.verdicts); drifts && failed && !p.proven[n.target] {
			return karpv1.ReasonCanaryFailed, fmt.Sprintf("nodes made from the present NodePool %s and EC2NodeClass %s did not become fit for pods, so no more nodes are replaced: %s. "+
				"Fix the NodePool or EC2NodeClass; to try again without a change: kubectl annotate nodepool %s %s-", p.pool.Name,
				p.class.Name, f.Why, p.pool.Name, kubeclient.AnnotationFailed)
		}
	}
	return "", ""
}

// heldState returns the state of AWS that the user must approve; empty if no mass drift waits for approval.
func (p poolDrift) heldState() string {
	if p.isHeld {
		return p.state
	}
	return ""
}

// SetbackText returns a message about images that are not used because their nodes failed, and how to try them again.
func SetbackText(setbacks []drift.ReplacedImage, class string) string {
	var out []string
	for _, s := range setbacks {
		out = append(out, s.String())
	}
	return strings.Join(out, "; ") + ". A newer image, or a change of the EC2NodeClass, is tried automatically; to try the same image again: kubectl annotate ec2nodeclass " +
		class + " " + kubeclient.AnnotationImages + "-"
}

func (d *Reconciler) writePool(ctx context.Context, p poolDrift, now time.Time) error {
	reason, message := p.holdCondition()
	before, wasHeld := p.pool.StatusConditions().Find(karpv1.ConditionDriftHeld)
	failures := FailuresOf(p.pool)
	maps.DeleteFunc(failures, func(target string, f drift.Failure) bool {
		_, isCurrent := p.failed[target]
		return !isCurrent && now.Sub(f.At) > maxFailureAge
	})
	_, err := d.Objects.PatchPool(ctx, p.pool, func(pool *karpv1.NodePool) {
		if len(failures) < len(FailuresOf(pool)) {
			storeFailures(pool, failures)
		}
		if p.unresolvedHold == "" {
			Annotate(pool, nodestate.AnnotationDriftState, p.heldState())
		}
		c := pool.StatusConditions()
		if reason == "" {
			c.Remove(karpv1.ConditionDriftHeld)
			return
		}
		c.Set(now, metav1.Condition{Type: karpv1.ConditionDriftHeld, Status: metav1.ConditionTrue, Reason: reason, Message: message})
	})
	if err != nil {
		return err
	}
	if reason != "" {
		d.Events.Emit(p.pool, kubeclient.ReasonDriftHeld, message)
	}
	if reason != "" && (!wasHeld || before.Reason != reason) {
		d.Log.Warn("drifted nodes are not replaced", "nodePool", p.pool.Name, "reason", reason, "cause", message)
	}
	return nil
}

// maxFailureAge is how long the failure of a target is stored when the target is no longer in use. The target may come
// into use again.
const maxFailureAge = 24 * time.Hour

// writeClaim updates the condition Drifted of a claim. If it cannot be decided now whether the claim still drifts,
// the condition stays: its removal would undo the moves that were started because of the drift.
func (d *Reconciler) writeClaim(ctx context.Context, p poolDrift, n nodeDrift, now time.Time) error {
	v, drifts := drift.First(n.verdicts)
	before, wasDrifted := n.claim.StatusConditions().Find(karpv1.ConditionDrifted)
	if !drifts && wasDrifted && slices.Contains(n.undecided, drift.Reason(before.Reason)) {
		return nil
	}
	if isWritten(n.claim, p.settings.ObserveDrift, v, drifts) {
		return nil
	}
	condition, other := karpv1.ConditionDrifted, karpv1.ConditionDriftObserved
	if p.settings.ObserveDrift {
		condition, other = other, condition
	}
	claim, err := d.Objects.PatchClaim(ctx, n.claim, func(claim *karpv1.NodeClaim) {
		c := claim.StatusConditions()
		c.Remove(other)
		if !drifts {
			c.Remove(condition)
			return
		}
		c.Set(now, metav1.Condition{Type: condition, Status: metav1.ConditionTrue, Reason: string(v.Reason), Message: v.Message})
	})
	if err != nil && (kubeclient.Classify(err) == kubeclient.Gone || kubeclient.Classify(err) == kubeclient.Reread) {
		return nil // the next pass reads the claim again
	}
	if err != nil {
		return err
	}
	if old, _ := n.claim.StatusConditions().Find(condition); drifts && old.Reason != string(v.Reason) {
		d.Events.Emit(claim, kubeclient.ReasonDrifted, string(v.Reason)+": "+v.Message)
		d.Log.Info("NodeClaim drifts", "NodeClaim", claim.Name, "nodePool", p.pool.Name, "reason", string(v.Reason),
			"cause", v.Message, "observed", p.settings.ObserveDrift)
	}
	return nil
}

// isWritten reports whether the claim's conditions are up to date. v is valid if drifts is true. With observe, the
// condition is DriftObserved, else Drifted.
func isWritten(claim *karpv1.NodeClaim, observe bool, v drift.Verdict, drifts bool) bool {
	drifted, isDrifted := claim.StatusConditions().Find(karpv1.ConditionDrifted)
	observed, isObserved := claim.StatusConditions().Find(karpv1.ConditionDriftObserved)
	if isDrifted != (drifts && !observe) || isObserved != (drifts && observe) {
		return false
	}
	current := drifted
	if observe {
		current = observed
	}
	return !drifts || current.Reason == string(v.Reason) && current.Message == v.Message && current.ObservedGeneration == claim.Generation
}

func (d *Reconciler) setMetrics(pools map[string]poolDrift) {
	d.Metrics.Drifted.Reset()
	d.Metrics.DriftHeld.Reset()
	for name, p := range pools {
		if reason, _ := p.holdCondition(); reason != "" {
			d.Metrics.DriftHeld.WithLabelValues(name, reason).Set(1)
		}
		state := "drifted"
		if p.settings.ObserveDrift {
			state = "observed"
		}
		for _, n := range p.nodes {
			for _, v := range n.verdicts {
				if v.Ignored {
					d.Metrics.Drifted.WithLabelValues(name, string(v.Reason), "ignored").Inc()
				}
			}
			if v, drifts := drift.First(n.verdicts); drifts {
				d.Metrics.Drifted.WithLabelValues(name, string(v.Reason), state).Inc()
			}
		}
	}
}

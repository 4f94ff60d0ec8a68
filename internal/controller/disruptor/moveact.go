package disruptor

import (
	"context"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/controller/loop"
	"github.com/joiner-sh/joiner/internal/controller/nodestate"
	"github.com/joiner-sh/joiner/internal/disruption/replacement"
	"github.com/joiner-sh/joiner/internal/kube/kubeclient"
	"github.com/joiner-sh/joiner/internal/scheduling/packing"
)

// startMove starts a move. It writes the mark to the claims, creates the replacements with create, and taints the
// nodes, in this order. So a plan that sees the tainted nodes also sees the replacements for their pods. If a step
// fails, the next call of Advance undoes the move.
func (m *Disruptor) startMove(ctx context.Context, mark nodestate.MoveMark, leaving []*karpv1.NodeClaim,
	nodes []*corev1.Node, create func(annotations map[string]string) error, now time.Time) error {
	err := m.patchClaims(ctx, leaving, func(c *karpv1.NodeClaim) { mark.Put(c, now) })
	for _, c := range leaving {
		m.Lock.NoteStart(c.UID, m.Now.Now()) // starting the moves before this one may have taken a while
	}
	if err != nil {
		return err
	}
	m.Metrics.Moves.Started.WithLabelValues(string(mark.Reason)).Inc()
	mark.CountStarted(m.Metrics, leaving)
	m.Log.Info("started to move pods", "move", mark.ID, "reason", string(mark.Reason), "nodes", mark.Nodes,
		"newNodes", mark.Claims, "pods", mark.Pods,
		"savingPerHour", mark.Saving, "Nodes", nodeNames(nodes))
	if err := create(map[string]string{nodestate.AnnotationReplaces: mark.ID}); err != nil {
		return err
	}
	return patchNodes(ctx, m.Objects, nodes, nodestate.CloseNode)
}

func (m *Disruptor) createReplacements(ctx context.Context, planned []packing.PlannedNode, annotations map[string]string) error {
	for _, created := range m.Claims.CreateReplacements(ctx, planned, annotations) {
		if created.Err != nil {
			return created.Err
		}
		m.Metrics.Claims.Created.WithLabelValues("disrupted", created.Planned.Pool, "false").Inc()
		m.Log.Info("created NodeClaim", "NodeClaim", created.Claim.Name, "nodePool", created.Planned.Pool,
			"move", annotations[nodestate.AnnotationReplaces],
			"pods", len(created.Planned.Pods), "instanceTypes", nodestate.InstanceTypesOf(created.Planned, 5),
			"pricePerHour", created.Planned.Price().String())
	}
	return nil
}

func (m *Disruptor) act(ctx context.Context, f *InFlightMove, step replacement.Step, now time.Time) error {
	switch step.Action {
	case replacement.Wait:
		m.recordWait(f, step)
		return nil
	case replacement.Close:
		return patchNodes(ctx, m.Objects, f.openNodes(), nodestate.CloseNode)
	case replacement.Commit:
		if err := m.commit(ctx, f, now); err != nil {
			return err
		}
		return m.deleteClaims(ctx, f, now)
	case replacement.Delete:
		return m.deleteClaims(ctx, f, now)
	case replacement.Undo:
		return m.undo(ctx, f, step, now)
	case replacement.Done:
	}
	return nil
}

func (f *InFlightMove) openNodes() []*corev1.Node {
	var out []*corev1.Node
	for _, n := range f.nodes {
		if nodestate.IsOpen(n) && n.DeletionTimestamp == nil {
			out = append(out, n)
		}
	}
	return out
}

// commit marks the move as committed on its claims. A committed move is never undone.
func (m *Disruptor) commit(ctx context.Context, f *InFlightMove, now time.Time) error {
	mark := f.Mark
	mark.Committed = true
	var uncommitted []*karpv1.NodeClaim
	for _, c := range f.Leaving {
		if current, _ := nodestate.MoveOf(c); !current.Committed && c.DeletionTimestamp == nil {
			uncommitted = append(uncommitted, c)
		}
	}
	if err := m.patchClaims(ctx, uncommitted, func(c *karpv1.NodeClaim) { mark.Put(c, now) }); err != nil {
		return err
	}
	m.History.RecordMove(now, mark.Reason, uncommitted, f.Pods)
	for i, c := range f.Leaving {
		f.Leaving[i] = m.newest.Of(c) // deleteClaims needs the version with the new mark
	}
	return nil
}

func (m *Disruptor) deleteClaims(ctx context.Context, f *InFlightMove, now time.Time) error {
	var group errgroup.Group
	group.SetLimit(nodestate.ParallelClaims)
	for _, c := range f.Leaving {
		if c.DeletionTimestamp != nil {
			continue
		}
		m.Lock.NoteStart(c.UID, now)
		group.Go(func() error { return m.Objects.Delete(ctx, c) })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	m.recordDone(f, now)
	return nil
}

// undo removes the taint from the nodes of a move, deletes the replacements that are not needed, and removes the
// condition and then the annotation from the claims. So a controller that restarts in between finds the annotation and
// undoes the rest.
func (m *Disruptor) undo(ctx context.Context, f *InFlightMove, step replacement.Step, now time.Time) error {
	if err := patchNodes(ctx, m.Objects, f.closedNodes(), nodestate.OpenNode); err != nil {
		return err
	}
	if err := m.deleteReplacements(ctx, f, step, now); err != nil {
		return err
	}
	remaining := slices.DeleteFunc(slices.Clone(f.Leaving), func(c *karpv1.NodeClaim) bool { return c.DeletionTimestamp != nil })
	if err := m.patchClaims(ctx, remaining, nodestate.DropReason); err != nil {
		return err
	}
	for i, c := range remaining {
		remaining[i] = m.newest.Of(c) // the version without the condition
	}
	if err := m.patchClaims(ctx, remaining, nodestate.DropMove); err != nil {
		return err
	}
	for _, c := range f.Leaving {
		m.Lock.Forget(c.UID)
	}
	m.hold(f, step.Reason, now)
	m.recordUndone(f, step.Reason)
	return nil
}

// deleteReplacements deletes the replacements that the step does not keep, and that run no pods of users. For a
// replacement that joined but was not initialized in time, it first records the failure: the cause cannot be read after
// the claim is deleted.
func (m *Disruptor) deleteReplacements(ctx context.Context, f *InFlightMove, step replacement.Step, now time.Time) error {
	for _, c := range f.replacements {
		if c.DeletionTimestamp != nil || slices.Contains(step.Keep, c.Name) || f.isUsed(c, now) {
			continue
		}
		if slices.Contains(step.NotInitialized, c.Name) {
			if err := m.Drift.RecordFailure(ctx, c, step.Reason, now); err != nil {
				return err
			}
		}
		if err := m.Objects.Delete(ctx, c); err != nil {
			return err
		}
		m.Ledger.Forget(c.UID)
	}
	return nil
}

// isUsed reports whether pods other than DaemonSet pods run on the node of replacement c.
func (f *InFlightMove) isUsed(c *karpv1.NodeClaim, now time.Time) bool {
	return c.Status.NodeName != "" && slices.ContainsFunc(f.Pods[c.Status.NodeName], func(pod *corev1.Pod) bool {
		p := nodestate.DrainPodOf(pod)
		return p.MustLeave(now) && !p.Daemon
	})
}

// closedNodes returns the leaving Nodes that have the disrupted taint only because of the move.
func (f *InFlightMove) closedNodes() []*corev1.Node {
	var out []*corev1.Node
	for _, c := range f.Leaving {
		hasOtherCause := c.Annotations[nodestate.AnnotationInterrupted] != "" || !nodestate.ReplacingSince(c).IsZero()
		if c.DeletionTimestamp != nil || hasOtherCause {
			continue
		}
		if n := f.nodes[c.Name]; n != nil && n.DeletionTimestamp == nil && !nodestate.IsOpen(n) {
			out = append(out, n)
		}
	}
	return out
}

// patchClaims patches claims in parallel. A claim that no longer exists is not an error.
func (m *Disruptor) patchClaims(ctx context.Context, claims []*karpv1.NodeClaim, change func(*karpv1.NodeClaim)) error {
	var group errgroup.Group
	group.SetLimit(nodestate.ParallelClaims)
	for _, c := range claims {
		group.Go(func() error {
			written, err := m.Objects.PatchClaim(ctx, c, change)
			if kubeclient.Classify(err) == kubeclient.Gone {
				return nil
			}
			if err == nil {
				m.newest.Note(written)
			}
			return err
		})
	}
	return group.Wait()
}

func patchNodes(ctx context.Context, objects loop.ObjectWriter, nodes []*corev1.Node, change func(*corev1.Node)) error {
	var group errgroup.Group
	group.SetLimit(nodestate.ParallelClaims)
	for _, n := range nodes {
		group.Go(func() error {
			_, err := objects.PatchNode(ctx, n, change)
			if kubeclient.Classify(err) == kubeclient.Gone {
				return nil
			}
			return err
		})
	}
	return group.Wait()
}

func nodeNames(nodes []*corev1.Node) []string {
	var out []string
	for _, n := range nodes {
		out = append(out, n.Name)
	}
	slices.Sort(out)
	return out
}

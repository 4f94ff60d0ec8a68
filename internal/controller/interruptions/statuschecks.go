package interruptions

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/aws/awserr"
	"github.com/joiner-sh/joiner/internal/aws/ec2"
	"github.com/joiner-sh/joiner/internal/aws/interruption"
	"github.com/joiner-sh/joiner/internal/controller/loop"
	"github.com/joiner-sh/joiner/internal/kube/kubeclient"
	"github.com/joiner-sh/joiner/internal/node/lifecycle"
)

// StatusChecks returns failed status checks and scheduled events of instances.
type StatusChecks interface {
	Troubles(ctx context.Context) ([]ec2.Trouble, error)
}

// EC2's status checks are read every examineEvery, or every examineDenied while the permission is missing. A claim is
// marked when a status check of its instance has failed for FailsFor.
const (
	examineEvery  = time.Minute
	examineDenied = 30 * time.Minute
	FailsFor      = 2 * time.Minute
)

// examineAll checks the instances' status until ctx ends. It needs no queue.
func (i *Handler) examineAll(ctx context.Context) {
	for ctx.Err() == nil {
		pause := examineEvery
		if err := i.Examine(ctx); err == nil {
			i.failures.Clear("troubles")
		} else {
			i.logError(ctx, "troubles", "cannot read status checks and scheduled events from EC2", err)
			if awserr.Is(err, awserr.Denied) {
				pause = examineDenied // Karpenter's older policies lack the permission
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

// impairment is a failed status check or scheduled event of a claim's instance.
type impairment struct {
	claim   *karpv1.NodeClaim
	kind    interruption.Kind
	trouble ec2.Trouble
}

// Examine reads the status checks once, and marks the claims whose instances fail a check or have a scheduled event.
func (i *Handler) Examine(ctx context.Context) error {
	defer loop.Working(ctx, loop.LoopInterruption, "status checks").End()
	// 1. read
	found, err := i.Troubles.Troubles(ctx)
	if err != nil || len(found) == 0 {
		return err
	}
	index, err := i.readIndex(ctx)
	if err != nil {
		return err
	}
	// 2. decide
	now := i.Now.Now()
	impaired, broken := worstImpairments(found, index.byInstance, now)
	mayGo := lifecycle.MayRepair(broken, len(index.byInstance))
	// 3. act, 4. report
	var group errgroup.Group
	group.SetLimit(parallelNotices)
	for _, one := range impaired {
		group.Go(func() error {
			if one.kind.IsBroken() && !mayGo {
				i.reportBlocked(one, broken, len(index.byInstance))
				return nil
			}
			return i.markImpaired(ctx, one, now)
		})
	}
	return group.Wait()
}

// worstImpairments returns the worst problem of each claim that needs a replacement: a status check that has failed for
// FailsFor, or a scheduled event. broken is the number of instances that fail a check now, for however short a time.
func worstImpairments(found []ec2.Trouble, claims map[string]*karpv1.NodeClaim, now time.Time) (impaired []impairment, broken int) {
	kinds := map[ec2.TroubleKind]interruption.Kind{
		ec2.InstanceTrouble: interruption.InstanceImpaired, ec2.SystemTrouble: interruption.SystemImpaired,
		ec2.EventTrouble: interruption.EventScheduled,
	}
	worst := map[string]impairment{}
	fails := map[string]bool{}
	var order []string
	for _, t := range found {
		claim, kind := claims[t.ID], kinds[t.Kind]
		if claim == nil || kind == "" {
			continue
		}
		if kind.IsBroken() {
			fails[t.ID] = true
			if now.Sub(t.Since) < FailsFor {
				continue
			}
		}
		known, ok := worst[t.ID]
		if !ok {
			order = append(order, t.ID)
		}
		if !ok || kind.Outranks(known.kind) {
			worst[t.ID] = impairment{claim, kind, t}
		}
	}
	for _, id := range order {
		impaired = append(impaired, worst[id])
	}
	return impaired, len(fails)
}

// markImpaired marks the claim as interrupted, unless it is already marked for an equal or worse problem.
func (i *Handler) markImpaired(ctx context.Context, one impairment, now time.Time) error {
	claim := i.newest.Of(one.claim)
	known, _ := MarkOf(claim)
	if claim.DeletionTimestamp != nil || !one.kind.Outranks(known) {
		return nil
	}
	notice := interruption.Notice{Kind: one.kind, Instances: []string{one.trouble.ID}, At: one.trouble.Since}
	if err := i.announce(ctx, claim, notice); err != nil {
		return fmt.Errorf("mark nodeclaim %s as interrupted: %w", claim.Name, err)
	}
	if err := i.mark(ctx, claim, notice, now); err != nil {
		return fmt.Errorf("mark nodeclaim %s as interrupted: %w", claim.Name, err)
	}
	i.Metrics.Failing.WithLabelValues(string(one.kind)).Inc()
	i.Log.Warn("EC2 reports a problem with an instance", "NodeClaim", claim.Name, "instance", one.trouble.ID, "category", string(one.kind),
		"since", one.trouble.Since, "detail", one.trouble.Detail)
	return nil
}

// reportBlocked emits an event that a failing instance is not replaced, because too many instances fail.
func (i *Handler) reportBlocked(one impairment, broken, total int) {
	i.Events.Emit(one.claim, kubeclient.ReasonRepairBlocked, fmt.Sprintf(
		"The instance is not replaced although its %s check fails: the checks of %d of %s fail, more than a fifth, so the cause is probably not the instances",
		one.trouble.Kind, broken, loop.Count(total, "instance")))
}

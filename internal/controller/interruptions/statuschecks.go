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
	StatusProblems(ctx context.Context) ([]ec2.StatusProblem, error)
}

// EC2's status checks are read every statusInterval, or every deniedStatusInterval while the permission is missing. A
// claim is marked when a status check of its instance has failed for FailsFor.
const (
	statusInterval       = time.Minute
	deniedStatusInterval = 30 * time.Minute
	FailsFor             = 2 * time.Minute
)

// checkStatusLoop calls CheckStatus until ctx ends. It needs no queue.
func (i *Handler) checkStatusLoop(ctx context.Context) {
	for ctx.Err() == nil {
		pause := statusInterval
		if err := i.CheckStatus(ctx); err == nil {
			i.failures.Clear("status checks")
		} else {
			i.logError(ctx, "status checks", "cannot read status checks and scheduled events from EC2", err)
			if awserr.Is(err, awserr.Denied) {
				pause = deniedStatusInterval // Karpenter's older policies lack the permission
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
	claim    *karpv1.NodeClaim
	kind     interruption.Kind
	reported ec2.StatusProblem // as EC2 reports it
}

// CheckStatus reads the status checks once, and marks the claims whose instances fail a check or have a scheduled event.
func (i *Handler) CheckStatus(ctx context.Context) error {
	defer loop.Working(ctx, loop.LoopInterruption, "status checks").End()
	// 1. read
	found, err := i.StatusChecks.StatusProblems(ctx)
	if err != nil || len(found) == 0 {
		return err
	}
	index, err := i.readIndex(ctx)
	if err != nil {
		return err
	}
	// 2. decide
	now := i.Now.Now()
	impaired, failing := worstImpairments(found, index.byInstance, now)
	mayReplace := lifecycle.MayRepair(failing, len(index.byInstance))
	// 3. act, 4. report
	var group errgroup.Group
	group.SetLimit(maxParallelClaims)
	for _, problem := range impaired {
		group.Go(func() error {
			if problem.kind.IsFailed() && !mayReplace {
				i.reportBlocked(problem, failing, len(index.byInstance))
				return nil
			}
			return i.markImpaired(ctx, problem, now)
		})
	}
	return group.Wait()
}

// worstImpairments returns the claims that need a replacement, each with its worst problem: a status check that has failed
// for FailsFor, or a scheduled event. failing is the number of instances that fail a check now, even if only for less than
// FailsFor.
func worstImpairments(found []ec2.StatusProblem, claims map[string]*karpv1.NodeClaim, now time.Time) (impaired []impairment, failing int) {
	kinds := map[ec2.StatusProblemKind]interruption.Kind{
		ec2.InstanceCheckFailed: interruption.InstanceImpaired, ec2.SystemCheckFailed: interruption.SystemImpaired,
		ec2.EventScheduled: interruption.EventScheduled,
	}
	worst := map[string]impairment{}
	fails := map[string]bool{}
	var order []string
	for _, p := range found {
		claim, kind := claims[p.ID], kinds[p.Kind]
		if claim == nil || kind == "" {
			continue
		}
		if kind.IsFailed() {
			fails[p.ID] = true
			if now.Sub(p.Since) < FailsFor {
				continue
			}
		}
		known, ok := worst[p.ID]
		if !ok {
			order = append(order, p.ID)
		}
		if !ok || kind.Outranks(known.kind) {
			worst[p.ID] = impairment{claim, kind, p}
		}
	}
	for _, id := range order {
		impaired = append(impaired, worst[id])
	}
	return impaired, len(fails)
}

// markImpaired marks the claim as interrupted, unless it is already marked for an equal or worse problem.
func (i *Handler) markImpaired(ctx context.Context, problem impairment, now time.Time) error {
	claim := i.newest.Of(problem.claim)
	known, _ := MarkOf(claim)
	if claim.DeletionTimestamp != nil || !problem.kind.Outranks(known) {
		return nil
	}
	parsed := interruption.ParsedMessage{Kind: problem.kind, Instances: []string{problem.reported.ID}, At: problem.reported.Since}
	if err := i.announce(ctx, claim, parsed); err != nil {
		return fmt.Errorf("mark nodeclaim %s as interrupted: %w", claim.Name, err)
	}
	if err := i.mark(ctx, claim, parsed, now); err != nil {
		return fmt.Errorf("mark nodeclaim %s as interrupted: %w", claim.Name, err)
	}
	i.Metrics.Failing.WithLabelValues(string(problem.kind)).Inc()
	i.Log.Warn("EC2 reports a problem with an instance", "NodeClaim", claim.Name, "instance", problem.reported.ID,
		"category", string(problem.kind),
		"since", problem.reported.Since, "detail", problem.reported.Detail)
	return nil
}

func (i *Handler) reportBlocked(problem impairment, failing, total int) {
	i.Events.Emit(problem.claim, kubeclient.ReasonRepairBlocked, fmt.Sprintf(
		"The instance is not replaced although its %s check fails: the checks of %d of %s fail, more than a fifth, so the cause is probably not the instances",
		problem.reported.Kind, failing, loop.Count(total, "instance")))
}

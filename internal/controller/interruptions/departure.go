package interruptions

import (
	"context"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/aws/interruption"
	"github.com/joiner-sh/joiner/internal/controller/loop"
	"github.com/joiner-sh/joiner/internal/controller/nodeclaim"
	"github.com/joiner-sh/joiner/internal/controller/nodestate"
	"github.com/joiner-sh/joiner/internal/kube/kubeclient"
)

// Mark marks the claim as interrupted, with the annotation nodestate.AnnotationInterrupted.
func Mark(claim *karpv1.NodeClaim, kind interruption.Kind, now time.Time) {
	if claim.Annotations == nil {
		claim.Annotations = map[string]string{}
	}
	claim.Annotations[nodestate.AnnotationInterrupted] = string(kind) + " " + now.UTC().Format(time.RFC3339)
}

// MarkOf returns the kind and the time of the mark. The kind is empty if the claim is not marked. The time is zero if it
// cannot be parsed; such a claim is handled as if it was marked long ago.
func MarkOf(claim *karpv1.NodeClaim) (interruption.Kind, time.Time) {
	kind, at, _ := strings.Cut(claim.Annotations[nodestate.AnnotationInterrupted], " ")
	since, err := time.Parse(time.RFC3339, at)
	if err != nil {
		since = time.Time{}
	}
	return interruption.Kind(kind), since
}

// drainState is the state of the passes over marked claims.
type drainState struct {
	lastAsked time.Time          // when a plan was last requested
	removed   map[types.UID]bool // deleted claims that the cache may still show for a moment
}

// Intervals of the passes over marked claims.
const (
	drainInterval     = 100 * time.Millisecond // while claims wait, and for busyAfterMark after a claim was marked
	idleDrainInterval = 30 * time.Second       // otherwise
	busyAfterMark     = 5 * time.Second
)

// MaxPlanWait is how long an interrupted node waits for a plan for its pods. A spot instance ends after two minutes, and
// its pods need most of that time to terminate.
const MaxPlanWait = 10 * time.Second

// DrainMarked drains and deletes marked claims until ctx ends.
func (i *Handler) DrainMarked(ctx context.Context) {
	var lastMark time.Time
	for ctx.Err() == nil {
		waiting, err := i.DrainPass(ctx)
		i.backOff(ctx, "departures", "cannot remove interrupted nodes", err)
		wait := idleDrainInterval
		if waiting > 0 || err != nil || time.Since(lastMark) < busyAfterMark {
			wait = drainInterval
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
		case <-i.Wake:
			lastMark = time.Now()
		case <-timer.C:
		}
		timer.Stop()
	}
}

// DrainPass carries out the next step for each marked claim. The first step cordons and taints the claim's node, so
// that the next plan counts the node's pods as pending. A later step, after that plan, deletes the claim, and the node
// drains. DrainPass returns how many claims are not deleted yet.
func (i *Handler) DrainPass(ctx context.Context) (int, error) {
	defer loop.Working(ctx, loop.LoopInterruption, "interrupted nodes").End()
	// 1. read
	now := i.Now.Now()
	claims, err := i.markedClaims(ctx)
	if err != nil || len(claims) == 0 {
		return 0, err
	}
	steps := make([]drainStep, len(claims))
	var group errgroup.Group
	group.SetLimit(maxParallelClaims)
	for n, claim := range claims {
		if until, _, _ := i.failures.Held(time.Now(), "claim "+claim.Name); !until.IsZero() {
			continue // an error was recent; the claim waits
		}
		group.Go(func() error {
			var err error
			// 2. decide
			steps[n], err = i.decideDrainStep(ctx, claim, now)
			// 3. act, 4. report
			if err == nil {
				err = i.carryOut(ctx, steps[n], now)
			}
			if err != nil {
				i.logError(ctx, "claim "+claim.Name, "cannot remove interrupted NodeClaim "+claim.Name, err)
				return nil // the error does not stop the other claims
			}
			i.failures.Clear("claim " + claim.Name)
			steps[n].isGone = steps[n].action == deleteClaim
			return nil
		})
	}
	_ = group.Wait() // errors are logged above
	waiting, needsPlan := 0, false
	for n, s := range steps {
		if s.isGone {
			i.drain.removed[claims[n].UID] = true
			continue
		}
		waiting++
		needsPlan = needsPlan || s.action == askForPlan
	}
	if needsPlan && now.Sub(i.drain.lastAsked) >= nodestate.MinPlanNowInterval {
		i.drain.lastAsked = now
		i.Batch.AskNow(nodestate.AnnotationInterrupted) // one request for all marked claims
	}
	return waiting, nil
}

func (i *Handler) markedClaims(ctx context.Context) ([]*karpv1.NodeClaim, error) {
	var list karpv1.NodeClaimList
	if err := i.Cache.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, err
	}
	var out []*karpv1.NodeClaim
	removed := map[types.UID]bool{}
	for n := range list.Items {
		c := &list.Items[n]
		if c.Annotations[nodestate.AnnotationInterrupted] == "" || c.DeletionTimestamp != nil || !i.isOurs(c) {
			continue
		}
		if i.drain.removed[c.UID] {
			removed[c.UID] = true
			continue
		}
		out = append(out, c)
	}
	i.drain.removed = removed
	return out, nil
}

type drainAction int

const (
	taintNodes  drainAction = iota // cordon and taint its Nodes
	askForPlan                     // request a plan and wait for it
	deleteClaim                    // delete the claim
)

type drainStep struct {
	claim  *karpv1.NodeClaim
	kind   interruption.Kind // why the claim is marked
	nodes  []*corev1.Node
	action drainAction
	isGone bool // the claim was deleted
}

// decideDrainStep reads the Nodes of a marked claim and decides its next step. A claim that need not or cannot wait for
// a plan is deleted at once.
func (i *Handler) decideDrainStep(ctx context.Context, claim *karpv1.NodeClaim, now time.Time) (drainStep, error) {
	d := drainStep{claim: claim}
	var since time.Time
	d.kind, since = MarkOf(claim)
	nodes, err := nodestate.NodesOf(ctx, i.Cluster, claim)
	if err != nil {
		return d, err
	}
	d.nodes = nodes
	switch {
	case d.kind.IsEnd(), d.kind.IsFailed(), len(nodes) == 0, now.Sub(since) >= MaxPlanWait:
		d.action = deleteClaim
	case slices.ContainsFunc(nodes, nodestate.IsOpen):
		d.action = taintNodes
	case i.PlannedEvictions.HasPlannedPods(claim.Name):
		d.action = deleteClaim
	default:
		d.action = askForPlan
	}
	return d, nil
}

func (i *Handler) carryOut(ctx context.Context, d drainStep, now time.Time) error {
	switch d.action {
	case deleteClaim:
		return i.remove(ctx, d, now)
	case taintNodes:
		for _, node := range d.nodes {
			if !nodestate.IsOpen(node) {
				continue
			}
			if _, err := i.Objects.PatchNode(ctx, node, nodestate.Cordon); err != nil {
				return err
			}
		}
	case askForPlan:
	}
	return nil
}

// isStaleState reports whether the error means that an object has changed since the controller read it. Such an error
// need not be logged, because the next pass reads the object again.
func isStaleState(err error) bool {
	next := kubeclient.Classify(err)
	return next == kubeclient.Gone || next == kubeclient.Reread
}

// remove deletes the claim, so that its node drains.
func (i *Handler) remove(ctx context.Context, d drainStep, now time.Time) error {
	claim, err := i.Objects.PatchClaim(ctx, d.claim, func(c *karpv1.NodeClaim) {
		if d.kind.IsFailed() {
			nodestate.SetDeadline(c, now)
		}
		reason, _ := eventOf(interruption.ParsedMessage{Kind: d.kind})
		if reason == "" {
			reason = kubeclient.ReasonTerminatingOnInterruption
		}
		c.StatusConditions().Set(now, metav1.Condition{
			Type: karpv1.ConditionDisruptionReason, Status: metav1.ConditionTrue, Reason: string(reason),
		})
	})
	if err == nil {
		err = i.Objects.Delete(ctx, claim)
	}
	if err != nil {
		return err
	}
	if len(d.nodes) == 0 {
		i.Ledger.Forget(claim.UID) // the claim's pods no longer have a planned node
	}
	// In these cases, decideDrainStep has requested no plan for the claim's pods.
	if d.kind.IsEnd() || d.kind.IsFailed() || len(d.nodes) == 0 {
		i.Batch.AskNow(string(claim.UID))
	}
	pool := claim.Labels[karpv1.LabelNodePool]
	nodestate.PodLoss{Claim: claim, Reason: string(d.kind), Pods: nodestate.DisplacedPods(ctx, i.Cluster, claim, now)}.Count(i.Metrics)
	message := "Interrupted: " + string(d.kind)
	i.Events.Emit(claim, kubeclient.ReasonTerminatingOnInterruption, message)
	if d.kind == interruption.InstanceTerminated {
		nodeclaim.FindExternalTermination(ctx, i.Instances, claim).Report(i.Events, i.Metrics, i.Log)
	}
	for _, node := range d.nodes {
		i.Events.Emit(node, kubeclient.ReasonTerminatingOnInterruption, message)
	}
	i.Log.Info("deleted NodeClaim", "NodeClaim", claim.Name, "nodePool", pool, "reason", string(d.kind), "Node", claim.Status.NodeName,
		"providerID", claim.Status.ProviderID, "replacementAskedFor", i.PlannedEvictions.HasPlannedPods(claim.Name))
	return nil
}

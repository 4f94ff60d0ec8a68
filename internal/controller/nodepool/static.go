package nodepool

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/controller/loop"
	"github.com/joiner-sh/joiner/internal/controller/nodestate"
	"github.com/joiner-sh/joiner/internal/controller/poolhealth"
	"github.com/joiner-sh/joiner/internal/disruption"
	"github.com/joiner-sh/joiner/internal/kube/kubeclient"
	"github.com/joiner-sh/joiner/internal/kube/snapshot"
	"github.com/joiner-sh/joiner/internal/metrics"
)

type staticMaker interface {
	CreateStatic(ctx context.Context, pool string) (*karpv1.NodeClaim, error)
}

// StaticReconciler keeps NodePools with spec.replicas at that number of nodes.
type StaticReconciler struct {
	Cache         client.Reader             // reads objects from the informers
	Cluster       loop.NodeReader           // reads cluster state from the informers
	Claims        staticMaker               // creates claims of static pools
	Objects       loop.ObjectWriter         // writes objects to the API server
	Ledger        *snapshot.Ledger          // claims created by this process that the cache may not show yet
	LaunchBackoff *poolhealth.LaunchBackoff // pools whose launches are on hold
	Events        loop.EventRecorder        // emits events
	Metrics       *metrics.Metrics          // the metrics of this process
	Log           *slog.Logger              // the log of this process
	Now           loop.Clock                // the clock; nil uses time.Now

	failures loop.Backoff // back-off by name of the pool
}

// Intervals between two counts of a static pool's claims, if no object of the pool changes in between.
const (
	staticEvery   = time.Minute      // in all cases not listed below
	LimitedEvery  = 30 * time.Second // while limits.nodes keeps the pool below spec.replicas
	NotReadyEvery = 10 * time.Second // while the pool is not ready or its launches are on hold
)

// Reconcile creates or deletes claims of one pool to match spec.replicas.
func (s *StaticReconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	until, err := s.visit(ctx, request.Name)
	return loop.ResultOf(loop.Outcome{
		Loop: "static", Kind: "NodePool", Name: request.Name, Until: until, Err: err,
		Failures: &s.failures, Metrics: s.Metrics, Log: s.Log, Now: s.Now,
	})
}

// visit returns when to count again.
func (s *StaticReconciler) visit(ctx context.Context, name string) (time.Time, error) {
	// 1. read
	pool := &karpv1.NodePool{}
	err := s.Cache.Get(ctx, client.ObjectKey{Name: name}, pool)
	if apierrors.IsNotFound(err) || err == nil && !nodestate.MaintainsReplicas(pool) {
		return time.Time{}, nil
	}
	if err != nil {
		return time.Time{}, err
	}
	now := s.Now.Now()
	active, all, err := s.replicaClaims(ctx, name)
	if err != nil {
		return time.Time{}, err
	}
	// 2. decide
	replicas := int(*pool.Spec.Replicas)
	missing, isLimited := disruption.Missing(replicas, len(active), all, nodestate.NodeLimit(pool))
	if len(active) > replicas {
		members, err := s.members(ctx, active, now)
		if err != nil {
			return time.Time{}, err
		}
		// 3. act, 4. report
		return now.Add(staticEvery), s.deleteSurplus(ctx, active, disruption.Surplus(members, replicas), now)
	}
	if err := s.LaunchBackoff.Recall(ctx); err != nil {
		return time.Time{}, err
	}
	if until, _ := s.LaunchBackoff.Held(now, name); missing > 0 && (!until.IsZero() || !pool.StatusConditions().IsReady()) {
		return now.Add(NotReadyEvery), nil
	}
	if err := s.createClaims(ctx, name, s.recordLaunch(now, name, missing)); err != nil {
		return time.Time{}, err
	}
	if isLimited {
		return now.Add(LimitedEvery), nil
	}
	return now.Add(staticEvery), nil
}

// recordLaunch records a launch for the pool, and returns the number of nodes to launch: missing, or 1 if a canary
// launch is due.
func (s *StaticReconciler) recordLaunch(now time.Time, pool string, missing int) int {
	if missing > 1 && s.LaunchBackoff.IsCanaryDue(now, pool) {
		missing = 1
	}
	if missing > 0 {
		s.LaunchBackoff.NoteLaunch(now, pool)
	}
	return missing
}

// replicaClaims returns the claims of a pool that count as its replicas (active), and the number of all its claims. A
// claim that is being replaced, because it expired or is part of a move, is not active. So its replacement is created
// or kept.
func (s *StaticReconciler) replicaClaims(ctx context.Context, pool string) (active []*karpv1.NodeClaim, all int, err error) {
	var list karpv1.NodeClaimList
	if err := s.Cache.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, 0, fmt.Errorf("list nodeclaims: %w", err)
	}
	claims := make([]*karpv1.NodeClaim, 0, len(list.Items))
	isCached := map[string]bool{}
	for i := range list.Items {
		claims = append(claims, &list.Items[i])
		isCached[string(list.Items[i].UID)] = true
	}
	started := map[string]bool{} // IDs of the moves whose mark the cache shows
	for _, c := range claims {
		if mark, _ := nodestate.MoveOf(c); mark != nil {
			started[mark.ID] = true
		}
	}
	for _, c := range s.Ledger.Claims() {
		switch moveID := c.Annotations[nodestate.AnnotationReplaces]; {
		case isCached[string(c.UID)]:
		case moveID != "" && !started[moveID] && c.Labels[karpv1.LabelNodePool] == pool:
			all++ // the cache does not show the move yet: if its replacement were active, it would be surplus
		default:
			claims = append(claims, c) // the cache does not show the claim yet
		}
	}
	moves := nodestate.MovesWithReplacement(claims)
	for _, c := range claims {
		if c.Labels[karpv1.LabelNodePool] != pool {
			continue
		}
		all++
		if c.DeletionTimestamp == nil && !nodestate.IsReplaced(c, moves) {
			active = append(active, c)
		}
	}
	return active, all, nil
}

// members returns for each claim the properties that decide which claims are deleted first.
func (s *StaticReconciler) members(ctx context.Context, claims []*karpv1.NodeClaim, now time.Time) (out []disruption.Member, err error) {
	out = make([]disruption.Member, 0, len(claims))
	for _, c := range claims {
		m := disruption.Member{Name: c.Name, Launched: c.Status.ProviderID != "", Joined: c.Status.NodeName != "", LifeLeft: lifeLeft(c, now)}
		if c.Status.NodeName != "" {
			if m.Protected, err = s.hasDoNotDisrupt(ctx, c); err != nil {
				return nil, err
			}
			pods, err := s.Cluster.PodsOn(ctx, c.Status.NodeName)
			if err != nil {
				return nil, err
			}
			for _, pod := range pods {
				p := nodestate.DrainPodOf(pod)
				m.Protected = m.Protected || p.Protected(now) && !p.Finished
				if p.MustLeave(now) && !p.Daemon {
					m.Pods++
				}
			}
		}
		out = append(out, m)
	}
	return out, nil
}

func (s *StaticReconciler) hasDoNotDisrupt(ctx context.Context, c *karpv1.NodeClaim) (bool, error) {
	var node corev1.Node
	if err := s.Cache.Get(ctx, client.ObjectKey{Name: c.Status.NodeName}, &node); err != nil && !apierrors.IsNotFound(err) {
		return false, fmt.Errorf("read node %s: %w", c.Status.NodeName, err)
	}
	return c.Annotations[karpv1.AnnotationDoNotDisrupt] == "true" || node.Annotations[karpv1.AnnotationDoNotDisrupt] == "true", nil
}

// lifeLeft returns the share of the claim's lifetime that is left, from 0 to 1; 1 for a claim that never expires.
func lifeLeft(claim *karpv1.NodeClaim, now time.Time) float64 {
	life := claim.Spec.ExpireAfter.Duration
	if life == nil || *life <= 0 {
		return 1
	}
	left := claim.CreationTimestamp.Add(*life).Sub(now)
	return min(max(left.Seconds()/life.Seconds(), 0), 1)
}

func (s *StaticReconciler) createClaims(ctx context.Context, pool string, count int) error {
	var group errgroup.Group
	group.SetLimit(nodestate.ParallelClaims)
	for range count {
		group.Go(func() error {
			claim, err := s.Claims.CreateStatic(ctx, pool)
			if err != nil {
				return err
			}
			s.Metrics.Claims.Created.WithLabelValues("provisioned", pool, "false").Inc()
			s.Log.Info("created NodeClaim", "NodeClaim", claim.Name, "nodePool", pool, "cause", "spec.replicas")
			return nil
		})
	}
	return group.Wait()
}

// deleteSurplus deletes the named claims. Disruption budgets do not apply, because the user has set the number of
// nodes.
func (s *StaticReconciler) deleteSurplus(ctx context.Context, claims []*karpv1.NodeClaim, names []string, now time.Time) error {
	isSurplus := map[string]bool{}
	for _, name := range names {
		isSurplus[name] = true
	}
	var errs []error
	for _, c := range claims {
		if !isSurplus[c.Name] {
			continue
		}
		if err := s.Objects.Delete(ctx, c); err != nil {
			errs = append(errs, err)
			continue
		}
		s.Ledger.Forget(c.UID)
		pool := c.Labels[karpv1.LabelNodePool]
		nodestate.PodLoss{Claim: c, Reason: reasonSurplus, Pods: nodestate.DisplacedPods(ctx, s.Cluster, c, now)}.Count(s.Metrics)
		s.Events.Emit(c, kubeclient.ReasonDisruptionTerminating, "NodePool "+pool+" has more nodes than its spec.replicas")
		s.Log.Info("deleted NodeClaim", "NodeClaim", c.Name, "nodePool", pool, "reason", reasonSurplus, "Node", c.Status.NodeName,
			"providerID", c.Status.ProviderID, "ageSeconds", now.Sub(c.CreationTimestamp.Time).Seconds())
	}
	return errors.Join(errs...)
}

// reasonSurplus is the metric label for surplus nodes of a static pool.
const reasonSurplus = "surplus"

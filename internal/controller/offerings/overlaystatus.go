package offerings

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	karpv1alpha1 "github.com/joiner-sh/joiner/api/karpenter/v1alpha1"
	"github.com/joiner-sh/joiner/internal/controller/loop"
	"github.com/joiner-sh/joiner/internal/metrics"
)

type overlayWriter interface {
	PatchOverlay(ctx context.Context, overlay *karpv1alpha1.NodeOverlay,
		change func(*karpv1alpha1.NodeOverlay)) (*karpv1alpha1.NodeOverlay, error)
}

// OverlayReconciler writes to the status of each NodeOverlay whether it is applied. Catalogs applies the overlays.
type OverlayReconciler struct {
	Cache   client.Reader    // reads objects from the informers
	Objects overlayWriter    // writes objects to the API server
	Market  *Catalogs        // offerings of EC2
	Batch   *loop.Batch      // gets a request for a plan when the readiness of an overlay changes
	Metrics *metrics.Metrics // the metrics of this process
	Log     *slog.Logger     // the log of this process

	failures loop.Backoff
}

// AllOverlays is the name in the loop's only request. Each reconcile evaluates all overlays, because a change of one
// overlay may resolve the conflict of another.
const AllOverlays = "all"

// overlayRefresh is the interval at which overlays are evaluated without a change.
const overlayRefresh = 5 * time.Minute

// Reconcile brings the status of all overlays up to date.
func (o *OverlayReconciler) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	until, err := o.visit(ctx)
	return loop.ResultOf(loop.Outcome{
		Loop: "nodeoverlay", Kind: "NodeOverlay", Name: AllOverlays, Until: until, Err: err,
		Failures: &o.failures, Metrics: o.Metrics, Log: o.Log,
	})
}

func (o *OverlayReconciler) visit(ctx context.Context) (time.Time, error) {
	// 1. read
	var list karpv1alpha1.NodeOverlayList
	if err := o.Cache.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return time.Time{}, fmt.Errorf("list nodeoverlays: %w", err)
	}
	// 2. decide
	now := time.Now()
	verdicts := o.Market.verdicts(now)
	if verdicts == nil {
		return now.Add(loop.Recheck), nil // EC2 has not returned the instance types yet
	}
	// 3. act
	hasChange := false
	for i := range list.Items {
		overlay := &list.Items[i]
		verdict, ok := verdicts[overlay.Name]
		if !ok || overlay.DeletionTimestamp != nil {
			continue
		}
		wasReady := overlay.StatusConditions().IsReady()
		written, err := o.Objects.PatchOverlay(ctx, overlay, func(overlay *karpv1alpha1.NodeOverlay) { verdict.write(overlay, now) })
		if err != nil {
			return time.Time{}, err
		}
		// 4. report
		isReady := written.StatusConditions().IsReady()
		hasChange = hasChange || isReady != wasReady
		if isReady != wasReady {
			o.Log.Info("NodeOverlay readiness changed", "NodeOverlay", overlay.Name, "ready", isReady, "cause", verdict.message)
		}
	}
	if hasChange {
		o.Batch.Ask("nodeoverlay")
	}
	return now.Add(overlayRefresh), nil
}

func (v overlayVerdict) write(overlay *karpv1alpha1.NodeOverlay, now time.Time) {
	c := overlay.StatusConditions()
	c.Start(now)
	if v.reason == "" {
		c.SetTrue(now, karpv1.ConditionValidationSucceeded)
		return
	}
	c.SetFalse(now, karpv1.ConditionValidationSucceeded, v.reason, v.message)
}

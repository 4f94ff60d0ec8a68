package fleetprice

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/controller/loop"
	"github.com/joiner-sh/joiner/internal/controller/nodestate"
	"github.com/joiner-sh/joiner/internal/kube/snapshot"
	"github.com/joiner-sh/joiner/internal/metrics"
	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/scheduling/packing"
)

const (
	// Interval is the shortest time between two comparisons.
	Interval = 15 * time.Second
	// The pause after a comparison is pauseFactor times as long as the comparison: the loop works at most 1 % of the time.
	pauseFactor = 100
	// logInterval is the shortest time between two log lines.
	logInterval = 5 * time.Minute
)

type objectReader interface {
	Objects(ctx context.Context) (snapshot.Objects, error)
}

// Reporter sets the metrics of the comparison, and logs it when the price of the nodes has changed.
type Reporter struct {
	Cluster nodestate.Snapshots  // reads cluster state from the informers
	Reader  objectReader         // reads the objects behind the snapshot
	Market  nodestate.Markets    // offerings of EC2
	Types   nodestate.TypeMarket // prices of the running instances
	Solve   nodestate.Solver     // computes plans
	Metrics *metrics.Metrics     // the metrics of this process
	Log     *slog.Logger         // the log of this process

	logged   catalog.Price // the price of the nodes in the last log line
	loggedAt time.Time     // zero: there was no log line yet
}

// Start runs the loop until ctx ends.
func (r *Reporter) Start(ctx context.Context) error {
	timer := time.NewTimer(Interval)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
		}
		started := time.Now()
		if err := r.Pass(ctx, started); err != nil && ctx.Err() == nil {
			next, hint := loop.ClassifyError(err)
			r.Metrics.Failures.WithLabelValues(loop.LoopFleetPrice, string(next)).Inc()
			r.Log.Error("cannot compare the price of the nodes with a plan", "error", err.Error(), "hint", hint)
		}
		timer.Reset(max(Interval, pauseFactor*time.Since(started)))
	}
}

// Pass makes one comparison. The metrics keep their values while the offerings of EC2 are not known, and when Compare
// returns false.
func (r *Reporter) Pass(ctx context.Context, now time.Time) error {
	defer loop.Working(ctx, loop.LoopFleetPrice, "").End()
	// 1. read
	market := r.Market.Market(now)
	if market == nil {
		return nil
	}
	objects, err := r.Reader.Objects(ctx)
	if err != nil {
		return err
	}
	state, err := r.Cluster.Snapshot(ctx, now, market)
	if err != nil {
		return err
	}
	// 2. decide
	compared, ok := Compare(state, func(s cluster.Snapshot) packing.Plan { return r.Solve(s, market) })
	if !ok {
		return nil
	}
	price := r.priceOf(compared.Claims, objects.Claims)
	// 4. report
	r.Metrics.Fleet.Price.Set(price.Dollars())
	r.Metrics.Fleet.Plan.Set(compared.Plan.Dollars())
	r.Metrics.Fleet.Bound.Set(compared.Bound.Dollars())
	r.log(compared, price, now)
	return nil
}

// priceOf returns the price per hour of the instances of the named claims.
func (r *Reporter) priceOf(names []string, claims []*karpv1.NodeClaim) catalog.Price {
	isCompared := loop.SetOf(names)
	sums := map[string]*nodestate.CostSum{} // by pool
	var total catalog.Price
	for _, claim := range claims {
		if !isCompared[claim.Name] {
			continue
		}
		pool := claim.Labels[karpv1.LabelNodePool]
		if sums[pool] == nil {
			sums[pool] = &nodestate.CostSum{Market: r.Types, Pool: pool}
		}
		sums[pool].Add(claim)
	}
	for _, sum := range sums {
		total += sum.Sum
	}
	return total
}

// log logs the comparison if the price of the nodes has changed, at most once per logInterval.
func (r *Reporter) log(c Comparison, price catalog.Price, now time.Time) {
	if price == r.logged || !r.loggedAt.IsZero() && now.Sub(r.loggedAt) < logInterval {
		return
	}
	r.logged, r.loggedAt = price, now
	percent := "unknown"
	if c.Bound > 0 {
		percent = fmt.Sprintf("%.1f", 100*(price.Dollars()/c.Bound.Dollars()-1))
	}
	r.Log.Info("compared the price of the nodes with a plan for the same pods", "nodes", len(c.Claims), "pods", c.Pods,
		"pricePerHour", price.String(), "planPricePerHour", c.Plan.String(), "lowerBoundPerHour", c.Bound.String(),
		"percentOverBound", percent)
}

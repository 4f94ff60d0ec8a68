package offerings

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	awsv1 "github.com/joiner-sh/joiner/api/aws/v1"
	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/aws/awserr"
	"github.com/joiner-sh/joiner/internal/aws/eks"
	"github.com/joiner-sh/joiner/internal/controller/loop"
	"github.com/joiner-sh/joiner/internal/controller/nodestate"
	"github.com/joiner-sh/joiner/internal/kube/kubeclient"
	"github.com/joiner-sh/joiner/internal/metrics"
	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/model/requirements"
)

type shifts interface {
	Shifts(ctx context.Context, now time.Time) ([]eks.Shift, error)
}

const shiftInterval = 30 * time.Second

// ZonalShifts prevents launches in zones from which ARC (Application Recovery Controller) shifts the cluster's traffic
// away. Nodes in these zones stay, because a shift does not mean that they are broken.
type ZonalShifts struct {
	Client  shifts             // reads zonal shifts
	Cache   client.Reader      // reads objects from the informers
	Market  *Catalogs          // offerings of EC2
	Batch   *loop.Batch        // gets a request for a plan when a zone may be used again
	Events  loop.EventRecorder // emits events
	Metrics *metrics.Metrics   // the metrics of this process
	Log     *slog.Logger       // the log of this process

	failures loop.Backoff         // keeps the loop from logging the same error twice in a row
	known    map[string]time.Time // by zone ID: the ends of the shifts that were last reported
}

// Start follows zonal shifts until ctx ends.
func (z *ZonalShifts) Start(ctx context.Context) error {
	ticker := time.NewTicker(shiftInterval)
	defer ticker.Stop()
	for {
		err := z.Pass(ctx, time.Now())
		if err == nil {
			z.failures.Clear("shift")
		} else if ctx.Err() == nil {
			next, hint := loop.ClassifyError(err)
			z.Metrics.Failures.WithLabelValues("shift", string(next)).Inc()
			if _, isNews := z.failures.Fail(time.Now(), "shift", awserr.StableText(err)); isNews {
				z.Log.Error("cannot read zonal shifts", "error", err.Error(), "hint", hint)
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// Pass reads the shifts once. If ARC does not answer, each shift of ARC's last answer stays valid until the shift ends.
func (z *ZonalShifts) Pass(ctx context.Context, now time.Time) error {
	defer loop.Working(ctx, loop.LoopShifts, "").End()
	// 1. read
	found, err := z.Client.Shifts(ctx, now)
	// 2. decide, 3. act
	if err == nil {
		z.Market.Shifted.Set(found)
	}
	active := z.Market.Shifted.active(now)
	// 4. report
	return errors.Join(err, z.report(ctx, active))
}

// report emits events about new, changed and ended shifts for the pools that can use the zone.
func (z *ZonalShifts) report(ctx context.Context, active map[string]time.Time) error {
	if maps.Equal(active, z.known) {
		return nil
	}
	pools, err := z.poolsByZone(ctx)
	if err != nil {
		return err
	}
	var changed, ended []string
	for _, zone := range slices.Sorted(maps.Keys(active)) {
		if until, ok := z.known[zone]; !ok || !until.Equal(active[zone]) {
			changed = append(changed, zone)
		}
	}
	for _, zone := range slices.Sorted(maps.Keys(z.known)) {
		if _, ok := active[zone]; !ok {
			ended = append(ended, zone)
		}
	}
	for _, zone := range changed {
		text := "The cluster's traffic is shifted away from " + zone + untilText(active[zone]) + ": no node is launched there"
		z.Log.Warn("zonal shift", "zoneID", zone, "until", active[zone])
		for _, pool := range pools[zone] {
			z.Events.Emit(pool, kubeclient.ReasonZonalShiftActive, text)
		}
	}
	for _, zone := range ended {
		z.Log.Info("a zonal shift has ended", "zoneID", zone)
		for _, pool := range pools[zone] {
			z.Events.Emit(pool, kubeclient.ReasonZonalShiftCleared, "The cluster's traffic is not shifted away from "+zone+" any more")
		}
	}
	if len(ended) > 0 {
		z.Batch.Ask("shift") // pods may have waited for the zone
	}
	z.known = active
	return nil
}

// untilText returns the end of a shift for a message. A shift without an end was started by AWS.
func untilText(at time.Time) string {
	if at.IsZero() {
		return " by AWS"
	}
	return " until " + at.UTC().Format(time.RFC3339)
}

// poolsByZone returns the pools that can launch in each zone, by zone ID.
func (z *ZonalShifts) poolsByZone(ctx context.Context) (map[string][]*karpv1.NodePool, error) {
	var pools karpv1.NodePoolList
	if err := z.Cache.List(ctx, &pools, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list nodepools: %w", err)
	}
	var classes awsv1.EC2NodeClassList
	if err := z.Cache.List(ctx, &classes, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list node classes: %w", err)
	}
	zonesByClass := map[string][]catalog.Zone{}
	for i := range classes.Items {
		zonesByClass[classes.Items[i].Name] = ZonesOf(&classes.Items[i])
	}
	out := map[string][]*karpv1.NodePool{}
	for i := range pools.Items {
		pool := &pools.Items[i]
		ref := pool.Spec.Template.Spec.NodeClassRef
		if !nodestate.IsServed(ref) {
			continue
		}
		for _, zone := range zonesByClass[ref.Name] {
			if acceptsZone(pool, zone) {
				out[zone.ID] = append(out[zone.ID], pool)
			}
		}
	}
	return out, nil
}

func acceptsZone(pool *karpv1.NodePool, zone catalog.Zone) bool {
	claim := &karpv1.NodeClaim{}
	claim.Spec.Requirements = pool.Spec.Template.Spec.Requirements
	accepted, wrong := requirements.All(RequirementsOf(claim)...)
	if wrong != nil {
		return false
	}
	for key, value := range map[string]string{catalog.LabelZone: zone.Name, catalog.LabelZoneID: zone.ID} {
		if values, ok := accepted[key]; ok && !values.Accepts(value) {
			return false
		}
	}
	return true
}

// shiftBook holds the shifts of ARC's last answer. The zero value is empty. Its methods are safe for concurrent use.
type shiftBook struct {
	mu    sync.Mutex
	until map[string]time.Time // ends of the shifts by zone ID; zero: no end
}

// Set replaces the shifts.
func (b *shiftBook) Set(found []eks.Shift) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.until = make(map[string]time.Time, len(found))
	for _, s := range found {
		b.until[s.ZoneID] = s.Until
	}
}

// active returns the ends of the shifts that are active at now, by zone ID.
func (b *shiftBook) active(now time.Time) map[string]time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	out := map[string]time.Time{}
	for zone, until := range b.until {
		if until.IsZero() || now.Before(until) {
			out[zone] = until
		}
	}
	return out
}

// Closed returns the names of the zones with an active shift at now.
func (b *shiftBook) Closed(now time.Time, zones []catalog.Zone) []string {
	active := b.active(now)
	var out []string
	for _, z := range zones {
		if _, ok := active[z.ID]; ok && z.ID != "" {
			out = append(out, z.Name)
		}
	}
	return out
}

// ShiftedZones returns the IDs of the zones with an active shift at now.
func (m *Catalogs) ShiftedZones(now time.Time) map[string]bool {
	if m == nil {
		return nil
	}
	out := map[string]bool{}
	for zone := range m.Shifted.active(now) {
		out[zone] = true
	}
	return out
}

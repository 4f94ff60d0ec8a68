package live

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	awsv1 "github.com/joiner-sh/joiner/api/aws/v1"
	"github.com/joiner-sh/joiner/internal/emulator/world"
)

// scriptPhase is one phase of a script: an action, and how long the result is measured.
type scriptPhase struct {
	Name  string
	Share float64                                 // share of the workloads' full scale after the action; 0: unchanged
	Hold  time.Duration                           // how long the result is measured
	do    func(r *run, ctx context.Context) error // the action; nil: only scale to Share
}

// scripts returns the load scripts by name. Each begins with a scale-up from zero.
func scripts() map[string][]scriptPhase {
	up := scriptPhase{Name: "up", Share: 1, Hold: time.Minute}
	return map[string][]scriptPhase{
		"scale": {up, {Name: "half", Share: 0.5, Hold: 5 * time.Minute}, {Name: "again", Share: 1, Hold: time.Minute}},
		"roll":  {up, {Name: "roll", Hold: 5 * time.Minute, do: (*run).roll}},
		"waves": {
			up,
			{Name: "wave 1", Share: 0.4, Hold: time.Minute}, {Name: "wave 2", Share: 1, Hold: time.Minute},
			{Name: "wave 3", Share: 0.4, Hold: time.Minute}, {Name: "wave 4", Share: 1, Hold: time.Minute},
			{Name: "ebb", Share: 0.4, Hold: 5 * time.Minute},
		},
		"slow":    {{Name: "slow", Share: 1, Hold: time.Minute, do: (*run).slowly}},
		"reclaim": {up, {Name: "reclaim", Hold: 5 * time.Minute, do: (*run).reclaim}},
		"price":   {up, {Name: "price", Hold: 5 * time.Minute, do: (*run).raisePrice}},
		"drift":   {up, {Name: "drift", Hold: 5 * time.Minute, do: (*run).drift}},
	}
}

// scale sets all replicas. The first call creates the workloads.
func (r *run) scale(ctx context.Context, share float64) error {
	for _, w := range r.loads {
		if err := r.apply(ctx, w, share); err != nil {
			return err
		}
	}
	r.share = share
	return nil
}

func (r *run) apply(ctx context.Context, w workload, share float64) error {
	//nolint:staticcheck // the variant with a typed configuration needs generated code
	err := r.lab.Client.Patch(ctx, w.deployment(share, r.version), client.Apply, client.FieldOwner("load"), client.ForceOwnership)
	if err != nil {
		return fmt.Errorf("apply deployment %s: %w", w.name, err)
	}
	return nil
}

func (r *run) roll(ctx context.Context) error {
	r.version++
	r.expected += pods(r.loads, r.share)
	return r.scale(ctx, r.share)
}

// slowly adds one pod every two seconds, to one Deployment after the other: at most four pods each.
func (r *run) slowly(ctx context.Context) error {
	for i := range r.loads {
		r.loads[i].replicas = min(r.loads[i].replicas, 4)
	}
	r.expected = pods(r.loads, 1)
	for i := range r.loads {
		for n := 1; n <= r.loads[i].replicas; n++ {
			w := r.loads[i]
			w.replicas = n
			if err := r.apply(ctx, w, 1); err != nil {
				return err
			}
			if err := pause(ctx, 2*time.Second); err != nil {
				return err
			}
		}
	}
	r.share = 1
	return nil
}

// reclaim interrupts a fifth of the spot instances, rounded up. The seed selects the instances.
func (r *run) reclaim(context.Context) error {
	interrupted := 0
	r.lab.Emulator.Do(func(w *world.World, now time.Time) {
		var ids []string
		for _, i := range w.Region(r.lab.Account, r.lab.Region).Instances.All() {
			if i.Spot && i.State == world.Running {
				ids = append(ids, i.ID)
			}
		}
		slices.Sort(ids)
		rand.New(rand.NewPCG(r.Seed, 1)).Shuffle(len(ids), func(i, k int) { ids[i], ids[k] = ids[k], ids[i] })
		for _, id := range ids[:(len(ids)+4)/5] {
			if w.Interrupt(now, id) {
				interrupted++
			}
		}
	})
	if interrupted == 0 {
		return fmt.Errorf("reclaim: no spot instance is running")
	}
	return nil
}

// raisePrice doubles the spot price of each instance type and zone with a spot instance.
func (r *run) raisePrice(context.Context) error {
	r.lab.Emulator.Do(func(w *world.World, now time.Time) {
		market, isDone := w.Market(r.lab.Region), map[string]bool{}
		for _, i := range w.Region(r.lab.Account, r.lab.Region).Instances.All() {
			key := i.Type + " " + i.Zone
			if prices := market.SpotPrices(i.Type, i.Zone, now, now); i.Alive() && i.Spot && !isDone[key] && len(prices) > 0 {
				isDone[key] = true
				market.SetSpotPrice(now, i.Type, i.Zone, 2*prices[len(prices)-1].Price)
			}
		}
	})
	return nil
}

// drift changes the EC2NodeClass, so that all nodes drift.
func (r *run) drift(ctx context.Context) error {
	class := &awsv1.EC2NodeClass{}
	class.Name = "default"
	patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"tags":{"generation":"2"}}}`))
	if err := r.lab.Client.Patch(ctx, class, patch); err != nil {
		return fmt.Errorf("change ec2nodeclass default: %w", err)
	}
	return nil
}

// pause waits for d. It returns an error if the context ends first.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

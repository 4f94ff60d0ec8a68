package controller

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/disruption"
	"github.com/joiner-sh/joiner/internal/model/catalog"
)

// TestNothingOscillates simulates a thousand minutes of workloads that grow and shrink, with all loops of the
// controller. It checks:
//   - not many more pods are moved than workloads create and delete
//   - no workload is moved more often than allowed
//   - no node is replaced by an equal one
//   - the price stays near that of a new fleet for the same pods
//   - while workloads do not change, no pod is moved twice
//
// A workload that was moved often is not moved for an hour or longer, so a move may come late. Names and timing differ
// between runs, and the assertions hold for each run.
func TestNothingOscillates(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("a thousand minutes")
	}
	f := newVaryingRig(t, 11, []*varyingApp{
		{name: "api", cpu: "450m", memory: "700Mi", base: 8, swing: 4},
		{name: "cache", cpu: "250m", memory: "3Gi", base: 3, swing: 1},
		{name: "jobs", cpu: "1700m", memory: "1500Mi", base: 3, swing: 2},
		{name: "web", cpu: "900m", memory: "1200Mi", base: 6, swing: 4},
	}, "m5.large", "m5.xlarge", "m5.2xlarge", "c5.large", "c5.xlarge", "r5.large", "r5.xlarge")

	// In each period of stillEvery minutes, the workloads do not change in the last stillFor minutes. After cheapAfter of
	// these minutes, the fleet must be cheap. After settled minutes, no pod may be moved twice: workloads may be held for
	// an hour, and moves may follow then.
	const minutes, stillEvery, stillFor, cheapAfter, settled = 1000, 500, 120, 60, 80
	var paidSum, freshSum, boundSum catalog.Price // of all measurements
	evictionsBefore := 0                          // evictions until minute settled of the period
	for minute := range minutes {
		still := minute%stillEvery - (stillEvery - stillFor) // for how many minutes workloads have not changed; negative: they change
		f.scale(minute, still >= 0)
		f.runMinute(minute)
		if still == settled {
			evictionsBefore = f.evictions()
		}
		if n := f.evictions() - evictionsBefore; still > settled && n > len(f.pods()) {
			t.Fatalf("no workload has changed for %d minutes, but in the last %d of them %d pods were moved, some of them twice\n%s",
				still, still-settled, n, f.log)
		}
		if minute%20 == 19 {
			price, fresh, bound := f.price()
			paidSum, freshSum, boundSum = paidSum+price, freshSum+fresh, boundSum+bound
			if still > cheapAfter && float64(price) > 1.35*float64(fresh) {
				t.Errorf("minute %d: an hour after the last change, the nodes cost %s, want at most 1.35 times the price of a new fleet, %s: %s",
					minute, price, fresh, f.stayReasons())
			}
		}
	}
	f.checkMoves(t, minutes)
	if n := f.countWaiting(); n > 0 {
		t.Errorf("%d pods wait at the end, want none", n)
	}
	t.Logf("%d moves of %d pods, while workloads created or deleted %d; the average price was %.1f %% above that of a new fleet, "+
		"%.1f %% above the lower bound",
		len(f.moves), f.evictions(), f.changes(), 100*(float64(paidSum)/float64(freshSum)-1), 100*(float64(paidSum)/float64(boundSum)-1))
	if float64(paidSum) > 1.25*float64(freshSum) {
		t.Errorf("the prices add up to %s, those of new fleets to %s; want at most 1.25 times as much", paidSum, freshSum)
	}
}

func (f *varyingRig) shapesOf(claims []string) (out []string) {
	for _, name := range claims {
		out = append(out, f.shapes[name])
	}
	slices.Sort(out)
	return out
}

func (f *varyingRig) priceOf(shapes []string) (sum catalog.Price) {
	for _, shape := range shapes {
		sum += f.prices[strings.Split(shape, "/")[1]] // the instance type
	}
	return sum
}

// stayReasons returns why each node is not disrupted.
func (f *varyingRig) stayReasons() (out []string) {
	for _, c := range f.claims(f.t) {
		d, _ := c.StatusConditions().Find(karpv1.ConditionDisruptable)
		var pods []string
		for _, p := range f.pods() {
			if p.Spec.NodeName == c.Status.NodeName {
				pods = append(pods, p.Labels["app"])
			}
		}
		slices.Sort(pods)
		out = append(out, c.Labels[corev1.LabelInstanceTypeStable]+" with "+strings.Join(pods, " ")+": "+d.Message)
	}
	slices.Sort(out)
	return out
}

// changes counts the pods that were created or deleted because a workload was changed.
func (f *varyingRig) changes() (n int) {
	for _, a := range f.apps {
		n += a.changes
	}
	return n
}

// drainLag is the longest time between the count of a move and the evictions of its pods.
const drainLag = 5 * time.Minute

// checkMoves checks the number of moves and moved pods, the moves of each workload within an hour, and that each move
// replaced nodes by cheaper ones.
func (f *varyingRig) checkMoves(t *testing.T, minutes int) {
	t.Helper()
	// In five runs, 0.75 to 1.05 pods were moved, in 0.25 to 0.3 moves, for each pod that a workload created or deleted.
	// With oscillation there would be no limit.
	if moved, changed := f.evictions(), f.changes(); 2*moved > 3*changed || 2*len(f.moves) > changed || changed < minutes/10 {
		t.Errorf("%d moves of %d pods for %d changed pods; want at most half as many moves, 1.5 times as many pods, and at least %d changed",
			len(f.moves), moved, changed, minutes/10)
	}
	for _, a := range f.apps {
		// The limit per pod, times the largest number of pods.
		most := (a.base + a.swing + a.swing/2) * disruption.DefaultMovesPerHour
		for i, at := range a.evicted {
			n := 0
			for _, other := range a.evicted[i:] {
				if other.Sub(at) < time.Hour-drainLag {
					n++
				}
			}
			if n > most {
				t.Errorf("%s: %d pods were moved within the hour from %s, at most %d are allowed", a.name, n, at.Sub(f.started), most)
				break
			}
		}
	}
	for id, move := range f.moves {
		if len(move.removed) == 0 {
			continue // the move was undone
		}
		removed, launched := f.shapesOf(move.removed), f.shapesOf(move.launched)
		if slices.Equal(removed, launched) || f.priceOf(launched) >= f.priceOf(removed) {
			t.Errorf("move %s replaced %v by %v, want other and cheaper nodes", id, removed, launched)
		}
	}
}

package consolidation

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/joiner-sh/joiner/bench/fleet"
	"github.com/joiner-sh/joiner/bench/workload"
	"github.com/joiner-sh/joiner/internal/model/catalog"
)

// TestExplain: the report states how far a fleet was above the lower bound while its pods came and went, and which
// nodes caused this. The line of a side covers only the time in which the side ran.
func TestExplain(t *testing.T) {
	t.Parallel()
	const cent = catalog.Dollar / 100
	row := Row{
		Fleet:  workload.WastefulFleet{Name: "some", ChurnTime: time.Hour},
		Bounds: []fleet.Step{{From: 0, Price: 100 * cent}, {From: 30 * time.Minute, Price: 300 * cent}},
		Ours: Outcome{
			Ran: 2 * time.Hour, Price: 105 * cent, Bound: 100 * cent, // at the end: only of the pods that stayed
			Bill: []fleet.Step{
				{From: 0, Price: 150 * cent, Joining: 40 * cent}, {From: 30 * time.Minute, Price: 350 * cent, Leaving: 20 * cent},
				{From: time.Hour, Price: 105 * cent, Leaving: 70 * cent},
			},
		},
		Theirs: Outcome{Ran: 30 * time.Minute, Bill: []fleet.Step{{From: 0, Price: 150 * cent}}},
	}
	var b strings.Builder
	row.explain(&b)
	// While pods came and went, joiner paid (150+350)/2 cents per hour, and the bound was (100+300)/2 cents.
	const want = "\n* `some`, joiner: while pods came and went (1h0m0s), the price was 25.0 % above the bound: 10.0 % for nodes that had not joined yet, " +
		"5.0 % for nodes that were being removed, and 10.0 % for all other nodes.\n" +
		"* `some`, upstream: while pods came and went (30m0s), the price was 50.0 % above the bound: 0.0 % for nodes that had not joined yet, " +
		"0.0 % for nodes that were being removed, and 50.0 % for all other nodes.\n"
	if b.String() != want {
		t.Errorf("got %q, want %q", b.String(), want)
	}
	if got := fmt.Sprintf("%.3f", row.Ours.gap()); got != "5.000" {
		t.Errorf("the final price is %s %% above the bound, want 5.000", got)
	}
}

// TestLongerPodsCloserToBound: if the pods of a fleet run sixteen times as long, less is paid for nodes that are
// launching or terminating, and the gap is smaller. The time that nodes need to launch and terminate stays the same.
func TestLongerPodsCloserToBound(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("simulates a fleet for half an hour")
	}
	const short, long = 45 * time.Second, 12 * time.Minute                      // how long pods run
	transition, gap := map[time.Duration]float64{}, map[time.Duration]float64{} // in percent of the bound
	for _, stay := range []time.Duration{short, long} {
		const churnTime = 30 * time.Minute
		build := func() (*fleet.Fleet, error) { return churningFleet(stay, churnTime) }
		w := workload.WastefulFleet{Name: "crowd", ChurnTime: churnTime, Build: build}
		f, err := w.Build()
		if err != nil {
			t.Fatal(err)
		}
		row := Row{Fleet: w, Bounds: boundOverTime(f, churnTime)}
		if f, err = w.Build(); err != nil {
			t.Fatal(err)
		}
		if row.Ours, err = (Options{Horizon: time.Hour, Real: 10 * time.Minute}).runJoiner(w, f); err != nil {
			t.Fatal(err)
		}
		joining, leaving := fleet.SpentInTransition(row.Ours.Bill, churnTime)
		least := fleet.Spent(row.Bounds, churnTime)
		transition[stay], gap[stay] = 100*(joining+leaving)/least, 100*(fleet.Spent(row.Ours.Bill, churnTime)/least-1)
		t.Logf("pods run for %s: %.1f %% above the bound, of which %.1f for launching and terminating nodes",
			stay, gap[stay], transition[stay])
	}
	lessTransition := transition[long] > 0 && transition[long] <= 0.8*transition[short] // less by a fifth
	smallerGap := gap[long] > transition[long] && gap[long] <= gap[short]
	if !lessTransition || !smallerGap {
		t.Errorf("percent above the bound: %v, of which for launching and terminating nodes: %v; want both lower if pods run longer, "+
			"and the second by a fifth", gap, transition)
	}
}

// churningFleet returns a cluster without nodes, in which about forty pods of five sizes exist at a time, until
// churnTime. A pod exists for stay on average.
func churningFleet(stay, churnTime time.Duration) (*fleet.Fleet, error) {
	template, err := workload.WastefulFleets("")[0].Build()
	if err != nil {
		return nil, err
	}
	f, random := fleet.New(template.Pools, template.Market), rand.New(rand.NewPCG(3, 4))
	const atOnce = 40
	for i, at := 0, time.Duration(0); at < churnTime; i++ {
		if i >= atOnce { // the first pods are added at the start
			at += time.Duration(random.ExpFloat64() * float64(stay) / atOnce)
		}
		cpu := []int64{1, 2, 4, 8, 12}[random.IntN(5)]
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "default", Name: fmt.Sprintf("pod-%04d", i), UID: types.UID(fmt.Sprintf("uid-%04d", i)),
				CreationTimestamp: metav1.NewTime(fleet.Start.Add(at)),
			},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
				corev1.ResourceCPU:    *resource.NewQuantity(cpu, resource.DecimalSI),
				corev1.ResourceMemory: *resource.NewQuantity(cpu<<31, resource.BinarySI), // 2 GiB per core
			}}}}},
		}
		f.At(fleet.Start.Add(at), func() { f.Add(pod) })
		f.At(fleet.Start.Add(at+time.Duration(random.ExpFloat64()*float64(stay))), func() { f.Delete(pod.Name) })
	}
	return f, nil
}

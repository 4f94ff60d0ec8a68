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

// TestMeanwhile: the report states how far a fleet was above the lower bound while its pods came and went, and which
// nodes caused this. It covers the time in which the side was run.
func TestMeanwhile(t *testing.T) {
	t.Parallel()
	const cent = catalog.Dollar / 100
	row := Row{
		Waste: workload.Waste{Name: "some", Lasts: time.Hour},
		Least: []fleet.Step{{From: 0, Price: 100 * cent}, {From: 30 * time.Minute, Price: 300 * cent}},
		Ours: Outcome{
			Ran: 2 * time.Hour, Price: 105 * cent, Bound: 100 * cent, // of the pods that stayed
			Bill: []fleet.Step{
				{From: 0, Price: 150 * cent, Joining: 40 * cent}, {From: 30 * time.Minute, Price: 350 * cent, Leaving: 20 * cent},
				{From: time.Hour, Price: 105 * cent, Leaving: 70 * cent},
			},
		},
		Theirs: Outcome{Ran: 30 * time.Minute, Bill: []fleet.Step{{From: 0, Price: 150 * cent}}},
	}
	var b strings.Builder
	row.explain(&b)
	const want = "\n* `some`, joiner: in the 1h0m0s in which pods came and went 25.0 % above the bound; of these, 10.0 are nodes that had not joined yet, " +
		"5.0 nodes that were being removed, and 10.0 all other nodes.\n" +
		"* `some`, upstream: in the 30m0s in which pods came and went 50.0 % above the bound; of these, 0.0 are nodes that had not joined yet, " +
		"0.0 nodes that were being removed, and 50.0 all other nodes.\n"
	if b.String() != want {
		t.Errorf("got %q, want %q", b.String(), want)
	}
	if got := fmt.Sprintf("%.3f", row.Ours.gap()); got != "5.000" {
		t.Errorf("the final price is %s %% above the bound, want 5.000", got)
	}
}

// TestPace: the gap of a fleet whose pods come and go depends on how long pods run, relative to how long nodes need to
// launch and terminate. If pods run sixteen times as long, the cost of nodes without pods is lower, and so is the
// total.
func TestPace(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("simulates a fleet for half an hour")
	}
	const hurried, calm = 45 * time.Second, 12 * time.Minute
	idle, gap := map[time.Duration]float64{}, map[time.Duration]float64{}
	for _, stay := range []time.Duration{hurried, calm} {
		const lasts = 30 * time.Minute
		w := workload.Waste{Name: "crowd", Lasts: lasts, Build: func() (*fleet.Fleet, error) { return crowd(stay, lasts) }}
		f, err := w.Build()
		if err != nil {
			t.Fatal(err)
		}
		row := Row{Waste: w, Least: leastOf(f, lasts)}
		if f, err = w.Build(); err != nil {
			t.Fatal(err)
		}
		if row.Ours, err = (Patience{Horizon: time.Hour, Real: 10 * time.Minute}).ours(w, f); err != nil {
			t.Fatal(err)
		}
		joining, leaving := fleet.Idle(row.Ours.Bill, lasts)
		least := fleet.Spent(row.Least, lasts)
		idle[stay], gap[stay] = 100*(joining+leaving)/least, 100*(fleet.Spent(row.Ours.Bill, lasts)/least-1)
		t.Logf("pods run for %s: %.1f %% above the bound, %.1f %% for nodes without pods", stay, gap[stay], idle[stay])
	}
	if idle[calm] <= 0 || idle[calm] > 0.8*idle[hurried] || gap[calm] <= idle[calm] || gap[calm] > gap[hurried] {
		t.Errorf("percent above the bound: %v, percent for nodes without pods: %v", gap, idle)
	}
}

// crowd returns an empty cluster with about forty pods of few sizes. Each runs for about the given time, and others are
// created one by one.
func crowd(stay, lasts time.Duration) (*fleet.Fleet, error) {
	like, err := workload.Wastes("")[0].Build()
	if err != nil {
		return nil, err
	}
	f, random := fleet.New(like.Pools, like.Market), rand.New(rand.NewPCG(3, 4))
	const atOnce = 40
	for i, at := 0, time.Duration(0); at < lasts; i++ {
		if i >= atOnce {
			at += time.Duration(random.ExpFloat64() * float64(stay) / atOnce)
		}
		cpu := []int64{1, 2, 4, 8, 12}[random.IntN(5)]
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "default", Name: fmt.Sprintf("pod-%04d", i), UID: types.UID(fmt.Sprintf("uid-%04d", i)),
				CreationTimestamp: metav1.NewTime(fleet.Start.Add(at)),
			},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
				corev1.ResourceCPU: *resource.NewQuantity(cpu,
					resource.DecimalSI), corev1.ResourceMemory: *resource.NewQuantity(cpu<<31, resource.BinarySI),
			}}}}},
		}
		f.At(fleet.Start.Add(at), func() { f.Add(pod) })
		f.At(fleet.Start.Add(at+time.Duration(random.ExpFloat64()*float64(stay))), func() { f.Delete(pod.Name) })
	}
	return f, nil
}

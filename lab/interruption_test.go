package lab_test

import (
	"cmp"
	"context"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpenterv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/emulator/world"
	"github.com/joiner-sh/joiner/lab"
)

// TestSpotInterruption interrupts a spot node. The NodeClaim of its replacement exists before the old NodeClaim is
// deleted, and no pod is evicted before this deletion. Finally all pods run on a node of another offering.
//
// SQS delivers each message twice, even if it was deleted in between, and the newest first. Nevertheless each step
// happens only once.
func TestSpotInterruption(t *testing.T) {
	l := parallelLab(t, lab.Options{})
	name := newTestNamespace(t, l)
	queue := name
	l.Emulator.Do(func(w *world.World, now time.Time) {
		region := w.Region(l.Account, l.Region)
		if _, err := region.SQS.CreateQueue(now, queue, map[string]string{"MessageRetentionPeriod": "300"}); err != nil {
			t.Fatal(err)
		}
		region.EventQueues = []string{queue}
		w.Faults.Redeliver, w.Faults.Reorder = 1, true
	})
	t.Cleanup(func() {
		l.Emulator.Do(func(w *world.World, _ time.Time) {
			w.Region(l.Account, l.Region).EventQueues = nil
			w.Faults.Redeliver, w.Faults.Reorder = 0, false
		})
		killController(l) // its settings are for this test only
	})
	c := restartController(t, l, "INTERRUPTION_QUEUE="+queue)
	apply(t, l,
		class(l, name, "amiSelectorTerms: [{alias: al2023@latest}]"),
		strings.ReplaceAll(pool(name, "",
			"{key: node.kubernetes.io/instance-type, operator: In, values: [m5.large, m5a.large]}"), "[on-demand]", "[spot]"),
		deployment(name, "web", 3, "250m", "256Mi", "test: "+name),
	)
	awaitRunning(t, l, name, 3, time.Minute)
	claims, _ := claimsOf(t, l, name)
	if len(claims) != 1 {
		t.Fatalf("%d claims for three small pods, want 1", len(claims))
	}
	old := instancesOf(l, name)[0]

	history := watchHistory(t, l, name, claims[0])
	began := time.Now()
	l.Emulator.Do(func(w *world.World, now time.Time) {
		if !w.RecommendRebalance(now, old.ID) || !w.Interrupt(now, old.ID) {
			t.Fatalf("%+v is not a spot instance", old)
		}
	})
	within(t, l, time.Minute, "the instance to be terminated", func(context.Context) (bool, error) {
		return !slices.ContainsFunc(instancesOf(l, name), func(i world.Instance) bool { return i.ID == old.ID && i.Alive() }), nil
	})
	t.Logf("the instance was terminated %.1f s after the interruption message; EC2 would terminate it after 120 s",
		time.Since(began).Seconds())
	awaitRunning(t, l, name, 3, time.Minute)

	want := []string{"claim added", "old claim deleted", "pod deleted", "pod deleted", "pod deleted"}
	if happened := history(); !slices.Equal(happened, want) {
		t.Errorf("events: %v\nwant:   %v", happened, want)
	}
	all := instancesOf(l, name)
	if len(all) != 2 || all[1].Type == old.Type && all[1].Zone == old.Zone {
		t.Errorf("%d instances were launched, want 2, the second of another offering: %v", len(all), all)
	}
	if n := metricSum(t, c.Metrics, "karpenter_nodeclaims_disrupted_total", `nodepool="`+name+`"`); n != 1 {
		t.Errorf("%v claims were disrupted, want 1", n)
	}
	if n := metricSum(t, c.Metrics, "karpenter_interruption_received_messages_total", `message_type="spot_interrupted"`); n != 2 {
		t.Errorf("the interruption message was received %v times, want 2", n)
	}
	within(t, l, 45*time.Second, "the queue to be empty", func(context.Context) (bool, error) {
		var visible, hidden int
		l.Emulator.Do(func(w *world.World, now time.Time) {
			if q, err := w.Region(l.Account, l.Region).SQS.Queue(queue); err == nil {
				visible, hidden = q.Count(now)
			}
		})
		return visible+hidden == 0, nil
	})
	cleanUp(t, l, name)
}

// metricSum returns the sum of the values of a metric's series with a label, from the metrics page at url.
func metricSum(t *testing.T, url, name, label string) float64 {
	t.Helper()
	response, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	page, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	sum := 0.0
	for line := range strings.Lines(string(page)) {
		if !strings.HasPrefix(line, name+"{") || !strings.Contains(line, label) {
			continue
		}
		value, err := strconv.ParseFloat(strings.TrimSpace(line[strings.LastIndexByte(line, ' '):]), 64)
		if err != nil {
			t.Fatalf("read metric %q: %v", line, err)
		}
		sum += value
	}
	return sum
}

// watchHistory starts to watch the claims of a pool and the pods of the namespace with the same name. The returned
// function stops the watches, and returns the changes as texts, in the order of the API server's revisions. old is the
// claim that exists at the start.
func watchHistory(t *testing.T, l *lab.Lab, name string, old karpenterv1.NodeClaim) func() []string {
	t.Helper()
	type entry struct {
		revision uint64
		change   string
	}
	var mu sync.Mutex
	var entries []entry
	seen := map[string]bool{old.Name: true}
	record := func(e watch.Event) {
		o, ok := e.Object.(client.Object)
		if !ok || e.Type == watch.Deleted {
			return
		}
		_, isClaim := o.(*karpenterv1.NodeClaim)
		change := ""
		switch {
		case isClaim && !seen[o.GetName()]:
			change = "claim added"
			seen[o.GetName()] = true
		case o.GetDeletionTimestamp() == nil || seen["deleted "+o.GetName()]: // no new deletion
		case o.GetName() == old.Name:
			change = "old claim deleted"
		case !isClaim:
			change = "pod deleted"
		}
		if o.GetDeletionTimestamp() != nil {
			seen["deleted "+o.GetName()] = true
		}
		if revision, err := strconv.ParseUint(o.GetResourceVersion(), 10, 64); err == nil && change != "" {
			entries = append(entries, entry{revision, change})
		}
	}
	var done sync.WaitGroup
	var stops []func()
	for _, w := range []struct {
		list   client.ObjectList
		filter client.ListOption
	}{
		{&karpenterv1.NodeClaimList{}, client.MatchingLabels{karpenterv1.LabelNodePool: name}}, {&corev1.PodList{}, client.InNamespace(name)},
	} {
		watching, err := l.Client.Watch(t.Context(), w.list, w.filter)
		if err != nil {
			t.Fatal(err)
		}
		stops = append(stops, watching.Stop)
		done.Go(func() {
			for e := range watching.ResultChan() {
				mu.Lock()
				record(e)
				mu.Unlock()
			}
		})
	}
	return func() []string {
		for _, stop := range stops {
			stop()
		}
		done.Wait()
		slices.SortFunc(entries, func(a, b entry) int { return cmp.Compare(a.revision, b.revision) })
		var out []string
		for _, e := range entries {
			out = append(out, e.change)
		}
		return out
	}
}

package controller

import (
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/joiner-sh/joiner/internal/aws/interruption"
	"github.com/joiner-sh/joiner/internal/controller/interruptions"
	"github.com/joiner-sh/joiner/internal/controller/nodestate"
	"github.com/joiner-sh/joiner/internal/emulator"
	"github.com/joiner-sh/joiner/internal/emulator/world"
)

const testQueue = "prod-interruptions"

// withQueue creates a queue for EC2's interruption messages, and the loop that processes them.
func (r *rig) withQueue(t testing.TB) {
	t.Helper()
	r.Do(func(_ *world.World, now time.Time) { // after a restart, CreateQueue returns the existing queue
		if _, err := r.estate.Region.SQS.CreateQueue(now, testQueue, map[string]string{"MessageRetentionPeriod": "300"}); err != nil {
			t.Fatal(err)
		}
	})
	evictions := &nodestate.PlannedEvictions{}
	r.Provisioner.PlannedEvictions = evictions
	r.Interruption = &interruptions.Handler{
		Queue: interruption.New(r.cfg(), testQueue), Cache: r.api, Cluster: r.Claims.Cluster, Objects: r.Claims.Objects,
		Instances: r.Claims.Instances, StatusChecks: r.statusChecks(t), Shortages: r.Market.Shortages, PlannedEvictions: evictions,
		Ledger: r.Claims.Ledger, Batch: r.Claims.Batch, ClusterUID: r.uid, Account: emulator.DefaultAccount, Region: testRegion,
		Events: r.events, Metrics: r.Claims.Metrics, Log: r.Claims.Log, Now: r.now,
	}
}

func (r *rig) statusChecks(t testing.TB) interruptions.StatusChecks {
	t.Helper()
	awsClient, ok := r.Claims.Instances.(interruptions.StatusChecks)
	if !ok {
		t.Fatal("the rig's EC2 client does not read status checks")
	}
	return awsClient
}

// connectEventBridge makes EventBridge send EC2's events to the queue from now on.
func (r *rig) connectEventBridge() {
	r.Do(func(*world.World, time.Time) { r.estate.Region.EventQueues = []string{testQueue} })
}

func (r *rig) send(t testing.TB, body string) {
	t.Helper()
	r.Do(func(_ *world.World, now time.Time) {
		if _, err := r.estate.Region.SQS.SendMessage(now, testQueue, body); err != nil {
			t.Fatal(err)
		}
	})
}

// queueLength returns the number of messages in the queue, including hidden ones.
func (r *rig) queueLength(t testing.TB) int {
	t.Helper()
	n := 0
	r.Do(func(_ *world.World, now time.Time) {
		q, err := r.estate.Region.SQS.Queue(testQueue)
		if err != nil {
			t.Fatal(err)
		}
		visible, hidden := q.Count(now)
		n = visible + hidden
	})
	return n
}

// processQueue processes all visible messages, and returns their number.
func (r *rig) processQueue(t testing.TB) int {
	t.Helper()
	processed := 0
	for {
		messages, err := r.Interruption.Queue.Receive(t.Context(), 0)
		if err != nil {
			t.Fatal(err)
		}
		if len(messages) == 0 {
			return processed
		}
		processed += len(messages)
		if err := r.Interruption.Pass(t.Context(), messages); err != nil {
			t.Fatal(err)
		}
	}
}

// drainPass does the next steps for interrupted nodes, and returns how many of them wait for a further step.
func (r *rig) drainPass(t testing.TB) int {
	t.Helper()
	waiting, err := r.Interruption.DrainPass(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return waiting
}

func metricCount(t testing.TB, c prometheus.Collector, labels ...string) int {
	t.Helper()
	return int(metricSum(t, c, labels...))
}

// metricSum sums the metrics of a collector that have all of the label values: the values of counters and gauges, and
// the numbers of samples of histograms.
func metricSum(t testing.TB, c prometheus.Collector, labels ...string) float64 {
	t.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(c)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	sum := 0.0
	for _, f := range families {
		for _, m := range f.GetMetric() {
			values := []string{}
			for _, l := range m.GetLabel() {
				values = append(values, l.GetValue())
			}
			lacksLabel := slices.ContainsFunc(labels, func(l string) bool { return !slices.Contains(values, l) })
			if !lacksLabel {
				sum += m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
			}
		}
	}
	return sum
}

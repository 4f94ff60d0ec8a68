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
	r.Do(func(_ *world.World, now time.Time) { // after a restart it finds the existing queue
		if _, err := r.estate.Region.SQS.CreateQueue(now, testQueue, map[string]string{"MessageRetentionPeriod": "300"}); err != nil {
			t.Fatal(err)
		}
	})
	departures := &nodestate.PlannedEvictions{}
	r.Provisioner.Departures = departures
	r.Interruption = &interruptions.Handler{
		Queue: interruption.New(r.cfg(), testQueue), Cache: r.api, Cluster: r.Claims.Cluster, Objects: r.Claims.Objects,
		Machines: r.Claims.Machines, Troubles: r.troubles(t), Shortages: r.Market.Shortages, Departures: departures, Ledger: r.Claims.Ledger,
		Batch: r.Claims.Batch, ClusterUID: r.uid, Account: emulator.DefaultAccount, Region: testRegion, Events: r.events,
		Metrics: r.Claims.Metrics, Log: r.Claims.Log, Now: r.now,
	}
}

// troubles is the EC2 client for instance status checks.
func (r *rig) troubles(t testing.TB) interruptions.StatusChecks {
	t.Helper()
	awsClient, ok := r.Claims.Machines.(interruptions.StatusChecks)
	if !ok {
		t.Fatal("the rig's clients have changed")
	}
	return awsClient
}

// announced makes EventBridge send to the queue from now on.
func (r *rig) announced() {
	r.Do(func(*world.World, time.Time) { r.estate.Region.EventQueues = []string{testQueue} })
}

// post sends a message to the queue.
func (r *rig) post(t testing.TB, body string) {
	t.Helper()
	r.Do(func(_ *world.World, now time.Time) {
		if _, err := r.estate.Region.SQS.SendMessage(now, testQueue, body); err != nil {
			t.Fatal(err)
		}
	})
}

// inQueue returns how many messages the queue holds, including hidden ones.
func (r *rig) inQueue(t testing.TB) int {
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

// read processes the available messages, and returns their number.
func (r *rig) read(t testing.TB) int {
	t.Helper()
	all := 0
	for {
		messages, err := r.Interruption.Queue.Receive(t.Context(), 0)
		if err != nil {
			t.Fatal(err)
		}
		if len(messages) == 0 {
			return all
		}
		all += len(messages)
		if err := r.Interruption.Pass(t.Context(), messages); err != nil {
			t.Fatal(err)
		}
	}
}

// depart does the next steps for interrupted nodes, and returns how many still wait.
func (r *rig) depart(t testing.TB) int {
	t.Helper()
	left, err := r.Interruption.DepartPass(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return left
}

// counted sums the counters of a collector that have all of these label values.
func counted(t testing.TB, c prometheus.Collector, labels ...string) int {
	t.Helper()
	return int(summed(t, c, labels...))
}

// summed is counted for sums that are not integers.
func summed(t testing.TB, c prometheus.Collector, labels ...string) float64 {
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
			if !slices.ContainsFunc(labels, func(l string) bool { return !slices.Contains(values, l) }) {
				sum += m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
			}
		}
	}
	return sum
}

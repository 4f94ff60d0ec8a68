package dashboards_test

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"

	"github.com/joiner-sh/joiner/internal/metrics"
)

// scrapedData is the data in Prometheus about a controller after an hour of scrapes.
type scrapedData struct {
	series memory
	engine *promql.Engine // runs queries
	at     time.Time      // time of the queries
}

const (
	scrapes     = 61 // an hour with both ends
	scrapeEvery = time.Minute
)

// newHealthyController returns the data about a healthy controller at work.
func newHealthyController(t *testing.T) scrapedData {
	t.Helper()
	return scrapeHour(t, func(m *metrics.Metrics, n float64) {
		recordMinute(m, n)
		m.PricesAt.WithLabelValues("on-demand").Set(float64(scrapedAt(0).Unix()))
		m.PricesAt.WithLabelValues("spot").Set(0) // never received from AWS
	})
}

// newFailingController returns the data about a controller for which every alert fires, except JoinerIsAbsent.
// Durations are in seconds.
func newFailingController(t *testing.T) scrapedData {
	t.Helper()
	return scrapeHour(t, func(m *metrics.Metrics, n float64) {
		recordMinute(m, n)
		m.Disrupted.WithLabelValues("registration_timeout", "general", "spot", "", "graceful").Add(1)
		m.Join.WithLabelValues("initialized", "general").Observe(590)
		m.JoinFailures.WithLabelValues("AUTH-2", "general").Add(1)
		m.Unschedulable.WithLabelValues("provisioner").Set(40)
		m.LaunchFailures.WithLabelValues("us-east-1a", "on-demand", "VcpuLimitExceeded").Add(3)
		m.Shortages.Set(200)
		m.Usage.WithLabelValues("cpu", "general").Set(98)
		m.CallsThrottled.WithLabelValues("CreateFleet").Add(5)
		for range 50 {
			m.CallWait.WithLabelValues("CreateFleet").Observe(50)
			m.Scheduling.Duration.WithLabelValues("provisioner").Observe(50)
		}
		m.Failures.WithLabelValues("nodeclaim", "Tell").Add(2)
		m.TerminateErrors.Add(2)
		m.BreakerOpen.WithLabelValues("instance").Set(1)
		m.SameName.Set(3)
		m.ForeignTerminations.WithLabelValues("general", "call").Add(0.2)
		m.Proven.WithLabelValues("issuer").Set(0)
		m.Proven.WithLabelValues("authority").Set(0)
		m.PricesAt.WithLabelValues("on-demand").Set(float64(scrapedAt(0).Unix() - 5*86400)) // five days old
		m.Dropped.WithLabelValues("unreadable").Add(2)
		m.LoopStalled.WithLabelValues("provisioner").Set(1)
	})
}

// newAbsent returns the data in Prometheus if no controller exists.
func newAbsent() scrapedData { return scrapedData{series: memory{}, engine: newEngine(), at: end()} }

// scrapedAt returns the time of scrape n. The first scrape is number 0.
func scrapedAt(n int) time.Time {
	return time.Unix(1_800_000_000, 0).Add(time.Duration(n) * scrapeEvery)
}

func end() time.Time { return scrapedAt(scrapes - 1) }

func newEngine() *promql.Engine {
	return promql.NewEngine(promql.EngineOpts{MaxSamples: 1_000_000, Timeout: time.Minute, Parser: parser.NewParser(parser.Options{})})
}

// recordMinute updates the metrics as a controller does in one minute, n minutes after its start. Fractions stand for
// events that are rarer than one per minute.
func recordMinute(m *metrics.Metrics, n float64) {
	m.Scheduling.Duration.WithLabelValues("provisioner").Observe(0.1)
	m.Unschedulable.WithLabelValues("provisioner").Set(0)
	m.Claims.Created.WithLabelValues("provisioned", "general", "false").Add(2)
	m.Claims.Terminated.WithLabelValues("general", "spot", "us-east-1a").Inc()
	m.Disrupted.WithLabelValues("empty", "general", "spot", "WhenEmpty", "graceful").Inc()
	m.Nodes.Created.WithLabelValues("general").Add(2)
	m.Count.Set(10 + n)
	m.Bound.Observe(40)
	m.Evictions.WithLabelValues("200").Add(3)
	for resource, amount := range map[string]float64{"cpu": 60, "memory": 200e9, "nodes": 10} {
		m.Usage.WithLabelValues(resource, "general").Set(amount)
	}
	m.Limit.WithLabelValues("cpu", "general").Set(100)
	m.Cost.WithLabelValues("general").Set(2.5)
	for _, status := range []string{"200", "503"} {
		m.Requests.WithLabelValues("EC2", "CreateFleet", status).Inc()
	}
	m.AWS.Duration.WithLabelValues("EC2", "CreateFleet").Observe(0.4)
	m.LaunchFailures.WithLabelValues("us-east-1a", "spot", "InsufficientInstanceCapacity").Inc()
	m.Received.WithLabelValues("spot_interrupted").Inc()
	m.Dropped.WithLabelValues("unreadable").Add(0.01)
	m.Stage.WithLabelValues(metrics.StageAfterBatch).Observe(0.2)
	m.Join.WithLabelValues("registered", "general").Observe(35)
	m.Join.WithLabelValues("initialized", "general").Observe(50)
	m.Refused.WithLabelValues("too_small").Set(0)
	m.Shortages.Set(4)
	m.Swept.WithLabelValues("launch_template").Add(0.1)
	m.BreakerOpen.WithLabelValues("instance").Set(0)
	m.Proven.WithLabelValues("issuer").Set(1)
	m.Proven.WithLabelValues("region").Set(1)
	m.Failures.WithLabelValues("nodeclaim", "retry").Inc()
	m.CallWait.WithLabelValues("CreateFleet").Observe(0.01)
	m.CallsThrottled.WithLabelValues("CreateFleet").Add(0.1)
	m.Moves.Ended.WithLabelValues("Underutilized", "done").Add(0.1)
	m.Moves.Saving.WithLabelValues("promised").Add(0.01)
	m.Staying.WithLabelValues("WorthItsPrice").Set(9)
	m.Evaluation.WithLabelValues("underutilized", "multi").Observe(0.3)
	m.Weighed.WithLabelValues("approved", "general", "WhenEmptyOrUnderutilized").Add(0.1)
	m.Invalid.WithLabelValues("multi").Add(0.01)
	m.ByCapacityType.WithLabelValues("general", "spot").Set(4)
	m.ByCapacityType.WithLabelValues("general", "on-demand").Set(6)
	m.Drifted.WithLabelValues("general", "AMIDrift", "drifted").Set(2)
	m.DriftHeld.WithLabelValues("general", "AMIDrift").Set(0)
	m.Deadlocks.WithLabelValues("alone").Set(0)
	m.JoinFailures.WithLabelValues("AUTH-2", "general").Add(0)
	m.LoopStalled.WithLabelValues("provisioner").Set(0)
	m.Disrupted.WithLabelValues("registration_timeout", "general", "spot", "", "graceful").Add(0)
}

// scrapeHour calls eachMinute once per minute of an hour, scrapes the metrics as text after each call, and returns the
// scraped data. n is the number of minutes since the start.
func scrapeHour(t *testing.T, eachMinute func(m *metrics.Metrics, n float64)) scrapedData {
	t.Helper()
	registry := prometheus.NewRegistry()
	m, err := metrics.New(registry, "v1.2.3", "abc")
	if err != nil {
		t.Fatal(err)
	}
	registry.MustRegister(collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	series := memory{}
	for n := range scrapes {
		eachMinute(m, float64(n))
		series.scrape(t, page(t, registry), scrapedAt(n))
	}
	return scrapedData{series: series, engine: newEngine(), at: end()}
}

func page(t *testing.T, registry *prometheus.Registry) string {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	for _, f := range families {
		if _, err := expfmt.MetricFamilyToText(&text, f); err != nil {
			t.Fatal(err)
		}
	}
	return text.String()
}

// ask runs a query at the time c.at, and drops results that are not a number.
func (c scrapedData) ask(t *testing.T, text string) promql.Vector {
	t.Helper()
	q, err := c.engine.NewInstantQuery(t.Context(), c.series.queryable(), nil, text, c.at)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	defer q.Close()
	vector, err := q.Exec(t.Context()).Vector()
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	out := make(promql.Vector, 0, len(vector))
	for _, s := range vector {
		if !math.IsNaN(s.F) {
			out = append(out, s)
		}
	}
	return out
}

// knownLabels returns the label names of each metric of package metrics, and of two metrics of the process.
func knownLabels(t *testing.T) map[string][]string {
	t.Helper()
	registry := &recorder{Registry: prometheus.NewRegistry(), labels: map[string][]string{
		"process_resident_memory_bytes": {"instance"}, "process_cpu_seconds_total": {"instance"},
	}}
	if _, err := metrics.New(registry, "v1", "abc"); err != nil {
		t.Fatal(err)
	}
	if len(registry.labels) < 30 {
		t.Fatalf("%d metrics, want at least 30", len(registry.labels))
	}
	return registry.labels
}

type recorder struct {
	*prometheus.Registry
	labels map[string][]string // label names by metric
}

// Register records the names and labels of a collector. A Desc exposes them only in its method String.
func (r *recorder) Register(c prometheus.Collector) error {
	descs := make(chan *prometheus.Desc, 10)
	c.Describe(descs)
	close(descs)
	for d := range descs {
		var name, variable string
		text := d.String()
		if _, rest, ok := strings.Cut(text, `fqName: "`); ok {
			name, _, _ = strings.Cut(rest, `"`)
		}
		if _, rest, ok := strings.Cut(text, "variableLabels: {"); ok {
			variable, _, _ = strings.Cut(rest, "}")
		}
		labels := strings.FieldsFunc(variable, func(r rune) bool { return r == ',' || r == ' ' })
		r.labels[name] = labels
		if strings.Contains(fmt.Sprintf("%T", c), "istogram") { // types histogram and HistogramVec
			r.labels[name+"_bucket"] = append([]string{"le"}, labels...)
		}
	}
	return r.Registry.Register(c)
}

// TestQueriesFindSeriesOfLab runs the queries on two scrapes of a controller in the lab: while pods ran on its nodes,
// and after the pods were removed. testdata/lab-running.txt has the queried metrics of the first scrape, and
// lab-ended.txt has the series that are new in the second one. The test repeats each scrape for half an hour, so rates
// are 0; but every panel must find its series.
func TestQueriesFindSeriesOfLab(t *testing.T) {
	t.Parallel()
	running, errRunning := os.ReadFile("testdata/lab-running.txt")
	ended, errEnded := os.ReadFile("testdata/lab-ended.txt")
	if err := errors.Join(errRunning, errEnded); err != nil {
		t.Fatal(err)
	}
	c := scrapedData{series: memory{}, engine: newEngine(), at: end()}
	for n := range scrapes {
		c.series.scrape(t, string(running), scrapedAt(n))
		if n > scrapes/2 {
			c.series.scrape(t, string(ended), scrapedAt(n))
		}
	}
	whileRunning := c
	whileRunning.at = scrapedAt(scrapes / 2)
	for _, q := range queries(t) {
		mayBeEmpty := slices.ContainsFunc(emptyInLab, func(part string) bool { return strings.Contains(q.text, part) })
		if !q.isAlert && !mayBeEmpty && len(c.ask(t, q.text)) == 0 && len(whileRunning.ask(t, q.text)) == 0 {
			t.Errorf("%s has no result in the lab: %s", q.where, q.text)
		}
	}
}

// emptyInLab has parts of queries without a result in an ordinary run of the lab: metrics of rare events, and
// quantiles, which are NaN without data.
var emptyInLab = []string{
	"joiner_ec2_calls_refused_total", "joiner_interruption", "karpenter_interruption", "launch_failures",
	"status_code!~", "joiner_loop_failures", "joiner_refused_pods", "histogram_quantile",
	"joiner_sweep_breaker_open", "eviction_requests", "joiner_moves_", "joiner_nodes_staying", "consolidation_moves", "failed_validations",
	"joiner_join_failures", "_timeout|", "joiner_drift", "joiner_disruption_deadlocks", "joiner_nodes{",
}

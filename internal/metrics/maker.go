package metrics

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"
)

// maker creates and registers metrics. The methods with names in the plural create metrics with labels.
type maker struct {
	registry prometheus.Registerer
	err      error // errors of all registrations, joined
}

func (r *maker) register(m prometheus.Collector) {
	r.err = errors.Join(r.err, r.registry.Register(m))
}

func (r *maker) counter(name, help string) prometheus.Counter {
	m := prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	r.register(m)
	return m
}

func (r *maker) counters(name, help string, labels ...string) *prometheus.CounterVec {
	m := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	r.register(m)
	return m
}

func (r *maker) gauge(name, help string) prometheus.Gauge {
	m := prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: help})
	r.register(m)
	return m
}

func (r *maker) gauges(name, help string, labels ...string) *prometheus.GaugeVec {
	m := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels)
	r.register(m)
	return m
}

func (r *maker) histogram(name, help string, buckets []float64) prometheus.Histogram {
	m := prometheus.NewHistogram(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets})
	r.register(m)
	return m
}

func (r *maker) histograms(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	m := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, labels)
	r.register(m)
	return m
}

func (r *maker) summary(name, help string) prometheus.Summary {
	m := prometheus.NewSummary(prometheus.SummaryOpts{Name: name, Help: help, Objectives: objectives()})
	r.register(m)
	return m
}

func (r *maker) summaries(name, help string, labels ...string) *prometheus.SummaryVec {
	m := prometheus.NewSummaryVec(prometheus.SummaryOpts{Name: name, Help: help, Objectives: objectives()}, labels)
	r.register(m)
	return m
}

// objectives returns the quantiles of summaries, each with its tolerated error.
func objectives() map[float64]float64 {
	return map[float64]float64{0: 0.01, 0.5: 0.01, 0.9: 0.01, 0.99: 0.01, 1: 0.01}
}

// durations returns buckets in seconds, from fast calls of an API to nodes that join slowly.
func durations() []float64 {
	return []float64{
		0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 1.5, 2, 3, 5, 7.5, 10, 15, 20, 30, 45, 60,
		90, 120, 180, 300, 450, 600,
	}
}

// stages returns buckets in seconds for the stages before CreateFleet. The objective is 0.3 s.
func stages() []float64 {
	return []float64{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 1, 2, 5, 10, 30}
}

// scores returns buckets for the score of a move. The consolidation policy Balanced requires 0.5, others 0.02.
func scores() []float64 { return []float64{0.02, 0.05, 0.1, 0.25, 0.33, 0.5, 1, 2, 5, 10} }

func powers(maximum float64) []float64 {
	var out []float64
	for b := 1.0; b <= maximum; b *= 2 {
		out = append(out, b)
	}
	return out
}

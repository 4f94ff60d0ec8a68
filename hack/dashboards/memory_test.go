package dashboards_test

import (
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/util/annotations"
)

// memory contains the scraped series by their text. Queries see all of it; the engine selects the series.
type memory map[string]*scraped

type scraped struct {
	labels labels.Labels
	points []chunks.Sample
}

// scrape adds a page of metrics at a time, with the labels that Prometheus adds.
func (m memory) scrape(t *testing.T, page string, at time.Time) {
	t.Helper()
	p := expfmt.NewTextParser(model.UTF8Validation)
	families, err := p.TextToMetricFamilies(strings.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	list := make([]*dto.MetricFamily, 0, len(families))
	for _, f := range families {
		list = append(list, f)
	}
	vector, err := expfmt.ExtractSamples(&expfmt.DecodeOptions{}, list...)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range vector {
		names := map[string]string{"job": "joiner", "instance": "10.0.0.1:8080"}
		for name, value := range s.Metric {
			names[string(name)] = string(value)
		}
		all := labels.FromMap(names)
		if m[all.String()] == nil {
			m[all.String()] = &scraped{labels: all}
		}
		m[all.String()].points = append(m[all.String()].points, point{at.UnixMilli(), float64(s.Value)})
	}
}

// queryable returns the memory as the engine's storage.
func (m memory) queryable() storage.Queryable {
	return &storage.MockQueryable{MockQuerier: &storage.MockQuerier{SelectMockFunction: func(_ bool,
		_ *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
		found := &set{at: -1}
		for _, s := range m {
			fits := true
			for _, matcher := range matchers {
				fits = fits && matcher.Matches(s.labels.Get(matcher.Name))
			}
			if fits {
				found.series = append(found.series, storage.NewListSeries(s.labels, s.points))
			}
		}
		return found
	}}}
}

// set is a list of series.
type set struct {
	series []storage.Series
	at     int
}

func (s *set) Next() bool                      { s.at++; return s.at < len(s.series) }
func (s *set) At() storage.Series              { return s.series[s.at] }
func (*set) Err() error                        { return nil }
func (*set) Warnings() annotations.Annotations { return nil }

// point is a value at a time, in milliseconds since 1970.
type point struct {
	t int64
	v float64
}

func (p point) T() int64                    { return p.t }
func (point) ST() int64                     { return 0 }
func (p point) F() float64                  { return p.v }
func (point) H() *histogram.Histogram       { return nil }
func (point) FH() *histogram.FloatHistogram { return nil }
func (point) Type() chunkenc.ValueType      { return chunkenc.ValFloat }
func (p point) Copy() chunks.Sample         { return p }

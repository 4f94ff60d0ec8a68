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

// memory contains the scraped series by the text of their labels. A query gets the samples of all times; the engine
// selects those of the queried time.
type memory map[string]*scraped

type scraped struct {
	labels labels.Labels
	points []chunks.Sample
}

// scrape adds the samples of a page of metrics, scraped at the given time, with the labels that Prometheus adds.
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
		byName := map[string]string{"job": "joiner", "instance": "10.0.0.1:8080"}
		for name, value := range s.Metric {
			byName[string(name)] = string(value)
		}
		set := labels.FromMap(byName)
		if m[set.String()] == nil {
			m[set.String()] = &scraped{labels: set}
		}
		m[set.String()].points = append(m[set.String()].points, point{at.UnixMilli(), float64(s.Value)})
	}
}

// queryable returns the memory as the engine's storage.
func (m memory) queryable() storage.Queryable {
	return &storage.MockQueryable{MockQuerier: &storage.MockQuerier{SelectMockFunction: func(_ bool,
		_ *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
		found := &seriesSet{at: -1}
		for _, s := range m {
			isSelected := true
			for _, matcher := range matchers {
				isSelected = isSelected && matcher.Matches(s.labels.Get(matcher.Name))
			}
			if isSelected {
				found.series = append(found.series, storage.NewListSeries(s.labels, s.points))
			}
		}
		return found
	}}}
}

type seriesSet struct {
	series []storage.Series
	at     int // index of the current series; -1 before the first call of Next
}

func (s *seriesSet) Next() bool                      { s.at++; return s.at < len(s.series) }
func (s *seriesSet) At() storage.Series              { return s.series[s.at] }
func (*seriesSet) Err() error                        { return nil }
func (*seriesSet) Warnings() annotations.Annotations { return nil }

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

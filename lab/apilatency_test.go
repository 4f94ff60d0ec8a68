package lab_test

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/joiner-sh/joiner/lab"
)

// requestTimes has the requests that an API server has answered, without watches: the cumulative count by the upper
// bound of the duration in seconds. The bound of the last bucket is infinite.
type requestTimes map[float64]int

func readRequestTimes(t *testing.T, l *lab.Lab) requestTimes {
	t.Helper()
	text, err := l.Kube.Discovery().RESTClient().Get().AbsPath("/metrics").DoRaw(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	out := requestTimes{}
	for line := range strings.Lines(string(text)) {
		if !strings.HasPrefix(line, "apiserver_request_duration_seconds_bucket{") || strings.Contains(line, `verb="WATCH"`) {
			continue
		}
		_, bound, _ := strings.Cut(line, `le="`)
		bound, _, _ = strings.Cut(bound, `"`)
		seconds, err := strconv.ParseFloat(bound, 64)
		fields := strings.Fields(line)
		n, err2 := strconv.Atoi(fields[len(fields)-1])
		if err != nil || err2 != nil {
			t.Fatalf("read metric %q: %v, %v", line, err, err2)
		}
		out[seconds] += n
	}
	return out
}

// since returns the requests that were answered after before was read.
func (r requestTimes) since(before requestTimes) requestTimes {
	out := requestTimes{}
	for bound, n := range r {
		out[bound] = n - before[bound]
	}
	return out
}

// quantile returns the duration in seconds within which the share of the requests was answered, interpolated within a
// bucket as Prometheus does.
func (r requestTimes) quantile(share float64) float64 {
	bounds := slices.Sorted(maps.Keys(r))
	wanted, lowest, counted := share*float64(r.count()), 0.0, 0
	for i, bound := range bounds {
		if n := r[bound]; float64(n) >= wanted {
			if i == len(bounds)-1 {
				return lowest // the last bucket has no upper bound
			}
			return lowest + (bound-lowest)*(wanted-float64(counted))/float64(max(1, n-counted))
		}
		lowest, counted = bound, r[bound]
	}
	return lowest
}

func (r requestTimes) count() int {
	if len(r) == 0 {
		return 0
	}
	return slices.Max(slices.Collect(maps.Values(r)))
}

func TestQuantileOfRequestTimes(t *testing.T) {
	t.Parallel()
	r := requestTimes{0.1: 90, 0.2: 100, 0.4: 100}
	for share, want := range map[float64]float64{0.45: 0.05, 0.9: 0.1, 0.95: 0.15, 1: 0.2} {
		if got := r.quantile(share); got < want-1e-9 || got > want+1e-9 {
			t.Errorf("the quantile %v is %v, want %v", share, got, want)
		}
	}
	if got := (requestTimes{}).quantile(0.99); got != 0 {
		t.Errorf("the quantile of no requests is %v, want 0", got)
	}
}

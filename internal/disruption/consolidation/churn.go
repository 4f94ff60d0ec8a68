package consolidation

import (
	"encoding/binary"
	"hash/fnv"
	"slices"
	"time"

	"github.com/joiner-sh/joiner/internal/model/cluster"
)

const (
	minQuiet       = 5 * time.Minute // shortest quiet period, also before there are any intervals
	maxQuiet       = time.Hour       // longest quiet period
	quietFactor    = 4               // times the median interval; of random intervals, one in sixteen is longer
	rememberedGaps = 8               // number of intervals; with fewer, the changes may be single events
)

// ChurnDetector measures how long the set of running pods stays the same. The zero value has no observations.
type ChurnDetector struct {
	podsHash uint64    // hash of the running pods
	since    time.Time // when podsHash was first observed

	changed bool            // whether since is the time of a change, not of the first observation
	gaps    []time.Duration // intervals between the last changes
}

// Observe records the pods of the snapshot. While pods are in transit, nothing is recorded.
func (s *ChurnDetector) Observe(of cluster.Snapshot, now time.Time) {
	if len(of.Pods) > 0 || slices.ContainsFunc(of.Nodes, func(n cluster.Node) bool { return n.Leaving && len(n.Pods) > 0 }) {
		return
	}
	mark := uint64(0)
	for i := range of.Nodes {
		for k := range of.Nodes[i].Pods {
			mark += kindOf(&of.Nodes[i].Pods[k]) // a sum, because the pods' nodes do not matter
		}
	}
	if !s.since.IsZero() && mark == s.podsHash {
		return
	}
	if s.changed {
		s.gaps = append(s.gaps[max(len(s.gaps)+1-rememberedGaps, 0):], now.Sub(s.since))
	}
	s.podsHash, s.since, s.changed = mark, now, !s.since.IsZero()
}

// IsLow reports whether no pod has come or gone for a quiet period: five minutes, or with regular changes four times
// their median interval, at most one hour.
func (s *ChurnDetector) IsLow(now time.Time) bool {
	return !s.since.IsZero() && now.Sub(s.since) >= s.quietPeriod()
}

// IsHigh reports whether pods come and go all the time: there were as many changes as the detector remembers, and churn
// is not low.
func (s *ChurnDetector) IsHigh(now time.Time) bool {
	return len(s.gaps) == rememberedGaps && !s.IsLow(now)
}

// quietPeriod returns how long no pod may have come or gone for churn to be low.
func (s *ChurnDetector) quietPeriod() time.Duration {
	if len(s.gaps) == 0 {
		return minQuiet
	}
	gaps := slices.Sorted(slices.Values(s.gaps))
	return min(max(quietFactor*gaps[len(gaps)/2], minQuiet), maxQuiet)
}

// kindOf returns a hash that is equal for pods of one workload with equal requests.
func kindOf(p *cluster.Pod) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(p.Namespace + "\x00" + p.Owner + "\x00" + p.Requests.String()))
	return binary.LittleEndian.Uint64(h.Sum(nil))
}

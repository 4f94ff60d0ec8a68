package consolidation

import (
	"encoding/binary"
	"hash/fnv"
	"slices"
	"time"

	"github.com/joiner-sh/joiner/internal/model/cluster"
)

const (
	minQuiet       = 5 * time.Minute // shortest quiet period, and the quiet period before there are any intervals
	maxQuiet       = time.Hour       // longest quiet period
	quietFactor    = 4               // quiet period in median intervals; of random intervals, one in sixteen is longer
	rememberedGaps = 8               // number of intervals that are kept; fewer changes may be single events
)

// ChurnDetector measures how long the set of running pods stays the same. The zero value has no observations.
type ChurnDetector struct {
	podsHash uint64    // hash of the running pods
	since    time.Time // when podsHash was first observed

	changed bool            // since is the time of a change, not of the first observation
	gaps    []time.Duration // intervals between the last changes
}

// Observe records the pods of the snapshot. While a pod is pending or on a terminating node, it records nothing.
func (s *ChurnDetector) Observe(snapshot cluster.Snapshot, now time.Time) {
	if len(snapshot.Pods) > 0 || slices.ContainsFunc(snapshot.Nodes, func(n cluster.Node) bool { return n.Leaving && len(n.Pods) > 0 }) {
		return
	}
	hash := uint64(0)
	for i := range snapshot.Nodes {
		for k := range snapshot.Nodes[i].Pods {
			hash += workloadHash(&snapshot.Nodes[i].Pods[k]) // a sum, because the pods' nodes do not matter
		}
	}
	if !s.since.IsZero() && hash == s.podsHash {
		return
	}
	if s.changed {
		s.gaps = append(s.gaps[max(len(s.gaps)+1-rememberedGaps, 0):], now.Sub(s.since))
	}
	s.podsHash, s.since, s.changed = hash, now, !s.since.IsZero()
}

// IsLow reports whether no pod has come or gone for a quiet period. The quiet period is four times the median interval
// of the last changes, at least five minutes and at most one hour; without such intervals, five minutes.
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

// workloadHash returns a hash that is equal for pods of one workload with equal requests.
func workloadHash(p *cluster.Pod) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(p.Namespace + "\x00" + p.Owner + "\x00" + p.Requests.String()))
	return binary.LittleEndian.Uint64(h.Sum(nil))
}

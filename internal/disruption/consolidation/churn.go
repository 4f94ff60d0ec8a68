package consolidation

import (
	"encoding/binary"
	"hash/fnv"
	"slices"
	"time"

	"github.com/joiner-sh/joiner/internal/model/cluster"
)

const (
	minQuiet       = time.Minute // shortest quiet period, also before there are any intervals
	maxQuiet       = time.Hour   // longest quiet period
	quietFactor    = 4           // times the median interval; of random intervals, one in sixteen is longer
	rememberedGaps = 8           // number of intervals; with fewer, the changes may be single events
	minGaps        = 4           // number of intervals from which the usual interval is known

	// Changes that follow each other within burstGap, for up to burstLength, count as one: a scaled or updated workload
	// is one event, however many pods it has.
	burstGap    = 15 * time.Second
	burstLength = time.Minute
)

// ChurnDetector measures how long the set of running pods stays the same. The zero value has no observations.
type ChurnDetector struct {
	podsHash uint64    // hash of the running pods
	since    time.Time // when podsHash was first observed
	burst    time.Time // when the last burst of changes began

	changed bool            // whether since is the time of a change, not of the first observation
	gaps    []time.Duration // intervals between the starts of the last bursts
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
	isNewBurst := now.Sub(s.since) > burstGap || now.Sub(s.burst) > burstLength
	if s.changed && isNewBurst {
		s.gaps = append(s.gaps[max(len(s.gaps)+1-rememberedGaps, 0):], now.Sub(s.burst))
	}
	if isNewBurst {
		s.burst = now
	}
	s.podsHash, s.since, s.changed = hash, now, !s.since.IsZero()
}

// IsLow reports whether no pod has come or gone for a quiet period: a minute, or with regular changes four times
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
	if len(s.gaps) < minGaps {
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

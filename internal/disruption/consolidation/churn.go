package consolidation

import (
	"encoding/binary"
	"hash/fnv"
	"slices"
	"time"

	"github.com/joiner-sh/joiner/internal/model/cluster"
)

const (
	minQuiet     = time.Minute // shortest quiet period; also the period with fewer than minIntervals intervals
	maxQuiet     = time.Hour   // longest quiet period
	quietFactor  = 4           // quiet period / median interval; fifteen of sixteen random intervals are shorter
	maxIntervals = 8           // maximum number of remembered intervals; churn is high only with this number
	minIntervals = 4           // minimum number of intervals for which the median counts

	// Changes that follow each other within burstGap, for up to burstLength, count as one: a scaled or updated workload
	// is one event, however many pods it has.
	burstGap    = 15 * time.Second
	burstLength = time.Minute
)

// ChurnDetector measures how long the set of running pods stays the same. The zero value has no observations.
type ChurnDetector struct {
	podsHash uint64    // hash of the running pods
	since    time.Time // when podsHash was first observed
	burstAt  time.Time // when the last burst of changes began

	changed   bool            // whether since is the time of a change, not of the first observation
	intervals []time.Duration // intervals between the starts of the last bursts
}

// Observe records the pods of the snapshot. While a pod is pending or on a terminating node, Observe records nothing.
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
	isNewBurst := now.Sub(s.since) > burstGap || now.Sub(s.burstAt) > burstLength
	if s.changed && isNewBurst {
		first := max(len(s.intervals)+1-maxIntervals, 0)
		s.intervals = append(s.intervals[first:], now.Sub(s.burstAt))
	}
	if isNewBurst {
		s.burstAt = now
	}
	s.podsHash, s.since, s.changed = hash, now, !s.since.IsZero()
}

// IsLow reports whether no pod has come or gone for a quiet period. The quiet period is one minute. With regular
// changes, it is four times their median interval, from one minute to one hour.
func (s *ChurnDetector) IsLow(now time.Time) bool {
	return !s.since.IsZero() && now.Sub(s.since) >= s.quietPeriod()
}

// IsHigh reports whether pods come and go all the time: the detector remembers maxIntervals intervals between changes,
// and churn is not low.
func (s *ChurnDetector) IsHigh(now time.Time) bool {
	return len(s.intervals) == maxIntervals && !s.IsLow(now)
}

func (s *ChurnDetector) quietPeriod() time.Duration {
	if len(s.intervals) < minIntervals {
		return minQuiet
	}
	intervals := slices.Sorted(slices.Values(s.intervals))
	return min(max(quietFactor*intervals[len(intervals)/2], minQuiet), maxQuiet)
}

// workloadHash returns a hash that is equal for pods of one workload with equal requests.
func workloadHash(p *cluster.Pod) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(p.Namespace + "\x00" + p.Owner + "\x00" + p.Requests.String()))
	return binary.LittleEndian.Uint64(h.Sum(nil))
}

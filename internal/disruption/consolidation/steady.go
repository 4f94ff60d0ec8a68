package consolidation

import (
	"encoding/binary"
	"hash/fnv"
	"slices"
	"time"

	"github.com/joiner-sh/joiner/internal/model/cluster"
)

// How long nobody must have come or gone until a closer look is worth it: who comes next takes the room, and who goes leaves some, for which the pods
// of such moves would be moved once more.
const (
	minQuiet       = 5 * time.Minute // at least
	maxQuiet       = time.Hour       // and at most
	quietFactor    = 4               // times as long as half of the last times between two who came or went; as they come by chance, one in sixteen is longer
	rememberedGaps = 8               // that are known, and until then who comes and goes may be a few who do so once
)

// Steady knows since when as many pods run that ask for the same, and how long that usually lasts. The zero value has seen nothing.
type ChurnDetector struct {
	podsHash uint64
	since    time.Time

	changed bool            // since is when somebody came or went, not when it was looked first
	gaps    []time.Duration // between the last of those who came or went
}

// Look notes what runs. While pods are on the way it is not known, and nothing is noted.
func (s *ChurnDetector) Observe(of cluster.Snapshot, now time.Time) {
	if len(of.Pods) > 0 || slices.ContainsFunc(of.Nodes, func(n cluster.Node) bool { return n.Leaving && len(n.Pods) > 0 }) {
		return
	}
	mark := uint64(0)
	for i := range of.Nodes {
		for k := range of.Nodes[i].Pods {
			mark += kindOf(&of.Nodes[i].Pods[k]) // a sum, as it does not matter who is where
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

// Is reports whether nobody has come or gone for a while: for five minutes, and where some do now and then, for longer than they usually leave between
// them, up to an hour.
func (s *ChurnDetector) IsLow(now time.Time) bool {
	return !s.since.IsZero() && now.Sub(s.since) >= s.quietPeriod()
}

// Restless reports whether pods come and go all the time: as many as are remembered have, and it is not steady again.
func (s *ChurnDetector) IsHigh(now time.Time) bool {
	return len(s.gaps) == rememberedGaps && !s.IsLow(now)
}

// lasts is how long nobody must have come or gone.
func (s *ChurnDetector) quietPeriod() time.Duration {
	if len(s.gaps) == 0 {
		return minQuiet
	}
	gaps := slices.Sorted(slices.Values(s.gaps))
	return min(max(quietFactor*gaps[len(gaps)/2], minQuiet), maxQuiet)
}

// kindOf is the same for pods of one workload that ask for the same.
func kindOf(p *cluster.Pod) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(p.Namespace + "\x00" + p.Owner + "\x00" + p.Requests.String()))
	return binary.LittleEndian.Uint64(h.Sum(nil))
}

package consolidation

import (
	"encoding/binary"
	"hash/fnv"
	"slices"
	"time"

	"github.com/joiner-sh/joiner/cluster"
)

// steadyFor is how long nobody must have come or gone until a closer look is worth it: who comes next takes the room, and who goes leaves some, for
// which the pods of such moves would be moved once more.
const steadyFor = 5 * time.Minute

// Steady knows since when as many pods run that ask for the same. The zero value has seen nothing.
type Steady struct {
	mark  uint64
	since time.Time
}

// Look notes what runs. While pods are on the way it is not known, and nothing is noted.
func (s *Steady) Look(of cluster.Snapshot, now time.Time) {
	if len(of.Pods) > 0 || slices.ContainsFunc(of.Nodes, func(n cluster.Node) bool { return n.Leaving && len(n.Pods) > 0 }) {
		return
	}
	mark := uint64(0)
	for i := range of.Nodes {
		for k := range of.Nodes[i].Pods {
			mark += kindOf(&of.Nodes[i].Pods[k]) // a sum, as it does not matter who is where
		}
	}
	if s.since.IsZero() || mark != s.mark {
		s.mark, s.since = mark, now
	}
}

// Is reports whether nobody has come or gone for a while.
func (s *Steady) Is(now time.Time) bool { return !s.since.IsZero() && now.Sub(s.since) >= steadyFor }

// kindOf is the same for pods of one workload that ask for the same.
func kindOf(p *cluster.Pod) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(p.Namespace + "\x00" + p.Owner + "\x00" + p.Requests.String()))
	return binary.LittleEndian.Uint64(h.Sum(nil))
}

package consolidation

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/model/resources"
	"github.com/joiner-sh/joiner/internal/scheduling/packing"
)

// problem is the input of a search, prepared. It does not change during the search.
type problem struct {
	in         Input
	candidates []candidate    // sorted by name
	pods       []candidatePod // of all candidates, sorted by ID
	pools      map[string]int
	byNode     map[string]int // into candidates
	byPod      map[string]int // into candidates

	price catalog.Price // of all candidates
	cost  float64

	pendingPlan packing.Plan // for the pods that wait, if nobody goes
}

// search is the state of one search.
type search struct {
	p *problem

	target catalog.Price // of the machines that would be bought if all candidates went
	scarce bool          // room is scarce: see isScarce

	bestTypes []string // instance types of these machines

	plans       int     // plans
	plansBefore int     // of these, before the bar was what it is
	threshold   float64 // what a move must be worth at least: see bars

	prefixes map[int]attempt // by how many of the order go: see search
	bundled  *attempt        // see fill

	declined map[string]Move // by first node: what saves too little, see decline
	order    evictionOrder   // in which order pods are thought to come

	// What the last snapshot was made in; the next one is made there too, as nobody has use for two.
	scratchNodes []cluster.Node
	scratchPods  []cluster.Pod
}

// candidate is a node that may go.
type candidate struct {
	Candidate
	at      int // into Snapshot.Nodes
	node    *cluster.Node
	drained cluster.Node // as it would be
}

// resident is a pod of a candidate.
type candidatePod struct {
	pod       cluster.Pod // as it would be: in need of a place
	candidate int         // into candidates
}

func newSearch(in Input) *search {
	s := &search{p: &problem{in: in, pools: map[string]int{}, byNode: map[string]int{}, byPod: map[string]int{}}, declined: map[string]Move{}, prefixes: map[int]attempt{}}
	for i := range in.Snapshot.Pools {
		s.p.pools[in.Snapshot.Pools[i].Name] = i
	}
	for i := range in.Snapshot.Nodes {
		n := &in.Snapshot.Nodes[i]
		c, ok := in.Nodes[n.Name]
		if !ok || n.Leaving || n.Claim == "" || !n.Initialized {
			continue
		}
		c.Cost, c.Price = max(c.Cost, 0), max(c.Price, 0)
		s.p.candidates = append(s.p.candidates, candidate{Candidate: c, at: i, node: n, drained: withoutPods(n)})
	}
	slices.SortFunc(s.p.candidates, func(a, b candidate) int { return cmp.Compare(a.node.Name, b.node.Name) })
	for i := range s.p.candidates {
		c := &s.p.candidates[i]
		s.p.byNode[c.node.Name] = i
		s.p.price += c.Price
		s.p.cost += c.Cost
		for _, p := range c.node.Pods {
			p.Node = c.node.Name
			s.p.pods = append(s.p.pods, candidatePod{p, i})
			s.p.byPod[p.ID()] = i
		}
	}
	slices.SortFunc(s.p.pods, func(a, b candidatePod) int { return byID(a.pod, b.pod) })
	s.p.pendingPlan = s.solve(in.Snapshot)
	return s
}

func byID(a, b cluster.Pod) int {
	return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
}

// solve counts the plans that are made.
func (s *search) solve(snapshot cluster.Snapshot) packing.Plan {
	s.plans++
	return packing.Solve(snapshot, s.p.in.Market, packing.Usual)
}

// leaving returns the node as it is when its pods are to go elsewhere.
func withoutPods(n *cluster.Node) cluster.Node {
	out := *n
	out.Leaving, out.Pods = true, nil
	out.Residents = slices.Clone(n.Residents)
	for i := range n.Pods {
		p := &n.Pods[i]
		out.Requested = out.Requested.Sub(p.Requests)
		at := slices.IndexFunc(out.Residents, func(r cluster.Resident) bool { return r.Count > 0 && isOfKind(r.Kind, p) })
		if at >= 0 {
			out.Residents[at].Count--
		}
	}
	out.Residents = slices.DeleteFunc(out.Residents, func(r cluster.Resident) bool { return r.Count <= 0 })
	return out
}

// isOne reports whether the pod is of the kind.
func isOfKind(k *cluster.Kind, p *cluster.Pod) bool {
	if k.Ending || k.Namespace != p.Namespace || !maps.Equal(k.Labels, p.Labels) {
		return false
	}
	avoids := 0
	for i := range p.AntiAffinity {
		if p.AntiAffinity[i].Weight == 0 {
			avoids++
		}
	}
	return avoids == len(k.Avoids)
}

// release takes the candidate out of what its pool has.
func (p *problem) removeFromPool(in *cluster.Snapshot, c *candidate) {
	if at, ok := p.pools[c.node.Pool]; ok {
		pool := &in.Pools[at]
		pool.Usage, pool.Nodes = pool.Usage.Sub(c.node.Capacity).Max(resources.Amounts{}), max(pool.Nodes-1, 0)
	}
}

// without returns the snapshot as it would be if those candidates were leaving; gone has one entry for each candidate. It is
// good until the next one is made.
func (s *search) snapshotWithout(gone []bool) cluster.Snapshot {
	out := s.scratch(s.p.in.Snapshot)
	for i, is := range gone {
		if !is {
			continue
		}
		c := &s.p.candidates[i]
		out.Nodes[c.at] = c.drained
		s.p.removeFromPool(&out, c)
	}
	pods, waiting := s.scratchPods[:0], out.Pods
	for i := range s.p.pods {
		r := &s.p.pods[i]
		if !gone[r.candidate] {
			continue
		}
		for len(waiting) > 0 && byID(waiting[0], r.pod) < 0 {
			pods, waiting = append(pods, waiting[0]), waiting[1:]
		}
		pods = append(pods, r.pod)
	}
	s.scratchPods = append(pods, waiting...)
	out.Pods = s.scratchPods
	return out
}

// draft returns the snapshot with nodes and pools that may be altered. It is good until the next one is made.
func (s *search) scratch(of cluster.Snapshot) cluster.Snapshot {
	s.scratchNodes = append(s.scratchNodes[:0], of.Nodes...)
	of.Nodes, of.Pools = s.scratchNodes, slices.Clone(of.Pools)
	return of
}

package nomination

import (
	"cmp"
	"slices"

	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/model/requirements"
	"github.com/joiner-sh/joiner/internal/model/resources"
)

// Input is what Decide needs to know about one Node that opens.
type Input struct {
	Zone   string               // of the Node
	Zones  []string             // all zones with nodes, the Node's zone included
	Labels requirements.Labels  // of the Node
	Taints []requirements.Taint // of the Node, without the taint that keeps it closed
	Node   Node                 // the Node that opens
	OnNode []cluster.Pod        // pods that are bound to the Node
	Later  []Node               // nodes of the same NodePool and zone that open later
	// Bound has the pods of all nodes, and the pods that are nominated to open nodes, in the namespaces of the Node's pods
	// with a spread over zones.
	Bound []Bound
	// Indirect has the IDs of pods that only kube-scheduler can bind: for example those with volumes or devices.
	Indirect map[string]bool
}

// Node is a launched node with the pods that were planned for it.
type Node struct {
	Claim string            // name of its NodeClaim
	Pods  []cluster.Pod     // planned pods that are not bound yet
	Free  resources.Amounts // room beside the planned pods and the DaemonSet pods
	Room  resources.Amounts // room for the planned pods; only of the Node that opens
}

// Bound is a pod that topology spread constraints count.
type Bound struct {
	Namespace string
	Labels    map[string]string
	Zone      string // of its node
}

// Exchange moves a pod from the Node that opens to a later node, and other pods from there to the Node.
type Exchange struct {
	Claim string   // NodeClaim of the later node
	Out   string   // ID of the pod that leaves the Node
	In    []string // IDs of the pods that take its room
}

// Exchanges returns the exchanges that keep the room of the Node for pods that kube-scheduler can bind now. When a Node
// opens, kube-scheduler tries its pods. A pod whose spread over zones does not allow the Node's zone yet fails, because
// the nodes of other zones are not open. It loses its nomination, and any pod takes its room; then no room for the pod may
// be left in this zone. So such a pod exchanges its place with pods without rules that are planned for a later node of
// the zone. A pod without such an exchange stays.
func Exchanges(in Input) []Exchange {
	blocked := blockedPods(in)
	slices.SortStableFunc(blocked, func(a, b *cluster.Pod) int { return cmp.Compare(b.Requests.Bulk(), a.Requests.Bulk()) })
	later := slices.Clone(in.Later)
	for i := range later {
		later[i].Pods = slices.DeleteFunc(slices.Clone(later[i].Pods), hasRules)
		slices.SortStableFunc(later[i].Pods, func(a, b cluster.Pod) int { return cmp.Compare(b.Requests.Bulk(), a.Requests.Bulk()) })
	}
	free := in.Node.Free
	var out []Exchange
	for _, p := range blocked {
		for i := range later {
			n := &later[i]
			room := free.Add(p.Requests)
			taken, amount := n.podsFor(p, room)
			if taken == nil {
				continue
			}
			e := Exchange{Claim: n.Claim, Out: p.ID()}
			for _, at := range taken {
				e.In = append(e.In, n.Pods[at].ID())
			}
			for _, at := range slices.Backward(taken) {
				n.Pods = slices.Delete(n.Pods, at, at+1)
			}
			n.Free = n.Free.Add(amount).Sub(p.Requests)
			free = room.Sub(amount)
			out = append(out, e)
			break
		}
	}
	return out
}

// podsFor returns the indices of pods of the node, in ascending order, and their total requests: without them p fits on
// the node, and they fit into room. It returns nil if there are none.
func (n *Node) podsFor(p *cluster.Pod, room resources.Amounts) (indices []int, total resources.Amounts) {
	indices = []int{}
	for i := range n.Pods {
		if p.Requests.Fits(n.Free.Add(total)) {
			break
		}
		if sum := total.Add(n.Pods[i].Requests); sum.Fits(room) {
			indices, total = append(indices, i), sum
		}
	}
	if !p.Requests.Fits(n.Free.Add(total)) {
		return nil, resources.Amounts{}
	}
	return indices, total
}

// hasRules reports whether the pod has requirements on its node besides room, or a spread.
func hasRules(p cluster.Pod) bool {
	return len(p.Required) > 0 || len(p.HostPorts) > 0 || len(p.Volumes) > 0 || len(p.Affinity) > 0 || len(p.AntiAffinity) > 0 ||
		len(p.Spread) > 0 || p.Unplannable != ""
}

// blockedPods returns the pods of the Node whose spread over zones kube-scheduler cannot satisfy now, in any order of the
// Node's pods.
func blockedPods(in Input) []*cluster.Pod {
	z := zoneCounts{in: in, counts: map[spreadKey]map[string]int{}}
	var waiting []*cluster.Pod
	for i := range in.Node.Pods {
		p := &in.Node.Pods[i]
		if !HasZoneSpread(*p) {
			z.placed = append(z.placed, p)
			continue
		}
		waiting = append(waiting, p)
	}
	for {
		before := len(waiting)
		waiting = slices.DeleteFunc(waiting, func(p *cluster.Pod) bool {
			if !z.allows(p) {
				return false
			}
			z.place(p)
			return true
		})
		if len(waiting) == before {
			return waiting
		}
	}
}

// HasZoneSpread reports whether the pod has a required spread over zones.
func HasZoneSpread(p cluster.Pod) bool { return slices.ContainsFunc(p.Spread, isRequiredZoneSpread) }

func isRequiredZoneSpread(s cluster.Spread) bool { return !s.Soft && s.Key == catalog.LabelZone }

// zoneCounts counts the pods of each zone for the spreads of the Node's pods.
type zoneCounts struct {
	in     Input
	placed []*cluster.Pod               // pods of the Node that can be bound
	counts map[spreadKey]map[string]int // cache: matching pods by zone
	owners map[spreadKey]*cluster.Pod   // a pod with the spread
}

// spreadKey identifies a spread of all pods of an owner.
type spreadKey struct {
	namespace, owner string
	index            int // into cluster.Pod.Spread
}

// allows reports whether the pod's spreads allow the Node's zone.
func (z *zoneCounts) allows(p *cluster.Pod) bool {
	for i := range p.Spread {
		s := &p.Spread[i]
		if !isRequiredZoneSpread(*s) {
			continue
		}
		counts := z.countsOf(p, i)
		self, fewest := 0, -1
		if s.Selector.Matches(p.Labels) {
			self = 1
		}
		for _, zone := range z.in.Zones {
			if n := counts[zone]; fewest < 0 || n < fewest {
				fewest = n
			}
		}
		if len(z.in.Zones) < s.MinDomains {
			fewest = 0
		}
		if counts[z.in.Zone]+self-max(fewest, 0) > s.MaxSkew {
			return false
		}
	}
	return true
}

func (z *zoneCounts) countsOf(p *cluster.Pod, index int) map[string]int {
	key := spreadKey{p.Namespace, p.Owner, index}
	if p.Owner == "" {
		key.owner = "Pod/" + p.Name
	}
	counts := z.counts[key]
	if counts != nil {
		return counts
	}
	counts = map[string]int{}
	for _, b := range z.in.Bound {
		if b.Namespace == p.Namespace && p.Spread[index].Selector.Matches(b.Labels) {
			counts[b.Zone]++
		}
	}
	for _, other := range z.placed {
		if other.Namespace == p.Namespace && p.Spread[index].Selector.Matches(other.Labels) {
			counts[z.in.Zone]++
		}
	}
	z.counts[key] = counts
	if z.owners == nil {
		z.owners = map[spreadKey]*cluster.Pod{}
	}
	z.owners[key] = p
	return counts
}

// place counts the pod in the Node's zone.
func (z *zoneCounts) place(p *cluster.Pod) {
	z.placed = append(z.placed, p)
	for key, counts := range z.counts {
		if owner := z.owners[key]; owner.Namespace == p.Namespace && owner.Spread[key.index].Selector.Matches(p.Labels) {
			counts[z.in.Zone]++
		}
	}
}

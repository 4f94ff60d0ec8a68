package offering

import (
	"cmp"
	"slices"
	"strings"

	"github.com/joiner-sh/joiner/internal/model/bitset"
	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/model/requirements"
	"github.com/joiner-sh/joiner/internal/model/resources"
	"github.com/joiner-sh/joiner/internal/scheduling/podgroup"
)

// Shape is the room of a node of an offering after its DaemonSet pods. Offerings of one model differ in shape only if
// a DaemonSet runs in only some zones or with only some capacity types.
type Shape struct {
	Room       resources.Vector   // room for other pods, over Stock.Dims
	Daemons    resources.Amounts  // requests of the DaemonSet pods
	Ports      []cluster.HostPort // host ports of the DaemonSet pods that are also host ports of pods in the queue
	PortList   int                // number of the list Ports in podgroup.Queue.Ports
	IsTooSmall bool               // the DaemonSet pods alone do not fit

	Kinds []*cluster.PodKind // kinds of the DaemonSet pods, without those whose labels are unknown
}

// hasRoom reports whether a node of the shape has room for ask, and its DaemonSet pods use no host port that conflicts
// with the lists. lists are numbers in podgroup.Queue.Ports.
func (st *Stock) hasRoom(s *Shape, ask resources.Vector, lists []int) bool {
	return !s.IsTooSmall && ask.Fits(s.Room) && !st.ports.ConflictAny(s.PortList, lists)
}

// volumesOfEBS is the resource that counts volumes attached by the EBS CSI driver.
const volumesOfEBS = resources.AttachableVolumes + "ebs.csi.aws.com"

// computeShapes computes the shape of every offer, from the DaemonSets whose pods would run on its node.
func (st *Stock) computeShapes(daemons []cluster.Daemon) {
	running := make([]bitset.Set, len(daemons)) // by DaemonSet, as in sorted: the offers on whose nodes its pods run
	sorted := sortedDaemons(daemons)
	g := daemonSets{list: sorted, ports: make([][]cluster.HostPort, len(daemons)), usage: map[string]*daemonUsage{}}
	for d, daemon := range sorted {
		g.ports[d] = st.ports.Relevant(daemon.HostPorts)
		running[d] = st.Labels.SatisfyingOne(daemon.Required)
		running[d].And(st.Tolerated(daemon.Tolerations))
	}
	for i := range st.Models {
		st.setShapes(&st.Models[i], &g, running)
	}
	for i, p := range st.Pools {
		if !st.areAllTooSmall(p) {
			continue
		}
		g.areAllTooSmall = true
		for k := range st.Models {
			if m := &st.Models[k]; st.Variants[m.Variant].Pool == i {
				st.setShapes(m, &g, running)
			}
		}
		g.areAllTooSmall = false
	}
}

// areAllTooSmall reports whether the pool has offers, but none with room for the pods of all its DaemonSets. Some
// DaemonSet pods then stay pending on every node. They must not prevent nodes for other pods: any user who may create
// DaemonSets in one namespace can request more than an instance has.
func (st *Stock) areAllTooSmall(p *Pool) bool {
	for o := p.from; o < p.to; o++ {
		if !st.ShapeOf(o).IsTooSmall {
			return false
		}
	}
	return p.to > p.from
}

// setShapes computes the shapes of a model's offers. running has, by DaemonSet, the offers on whose nodes its pods run.
func (st *Stock) setShapes(m *Model, g *daemonSets, running []bitset.Set) {
	onOffer := bitset.New(len(running)) // the DaemonSets whose pods run on nodes of the offer
	first := len(st.Shapes)
	var sets []bitset.Set // by shape of this model: its DaemonSets
	for o := m.from; o < m.to; o++ {
		clear(onOffer)
		for d := range running {
			if running[d].Has(o) {
				onOffer.Add(d)
			}
		}
		k := slices.IndexFunc(sets, func(s bitset.Set) bool { return slices.Equal(s, onOffer) })
		if k < 0 {
			k = len(sets)
			sets = append(sets, onOffer.Clone())
			st.Shapes = append(st.Shapes, st.shapeOf(m, g, onOffer))
		}
		st.Offers[o].shape = first + k
	}
	m.hasOneShape, m.most = len(sets) == 1, [2]int64{}
	for _, s := range st.Shapes[first:] {
		for i := range min(len(s.Room), len(m.most)) {
			m.most[i] = max(m.most[i], s.Room[i])
		}
	}
}

// daemonSets are the DaemonSets of the snapshot, and the summed requests and ports for sets of them.
type daemonSets struct {
	list  []*cluster.Daemon       // by namespace and name
	ports [][]cluster.HostPort    // by DaemonSet: its host ports that pods in the queue also use
	usage map[string]*daemonUsage // cache of method usageOf, by the key of the set of DaemonSets

	areAllTooSmall bool // whether the current pool has no offer with room for all of its DaemonSets
}

// daemonUsage is the sum of the requests and ports of a set of DaemonSets. It does not depend on the instance type.
type daemonUsage struct {
	amounts  resources.Amounts
	ports    []cluster.HostPort
	portList int // number of the list ports in podgroup.Queue.Ports
	kinds    []*cluster.PodKind
}

// systemNamespace is the namespace of DaemonSets that every node needs. An instance without room for the pods of
// these DaemonSets is too small.
const systemNamespace = "kube-system"

// runningOn returns the DaemonSets of the set whose pods run on a node of a type that has no room for all their pods.
// These are all DaemonSets of kube-system, even if their pods do not fit, and each other DaemonSet whose pod still
// fits, smallest first. The pods of the remaining DaemonSets stay pending on such a node.
func (g *daemonSets) runningOn(typ *catalog.Type, set bitset.Set) bitset.Set {
	out, left := bitset.New(len(g.list)), typ.Allocatable
	var others []int
	set.Each(func(d int) {
		if g.list[d].Namespace != systemNamespace {
			others = append(others, d)
			return
		}
		left = left.Sub(g.list[d].Requests)
		out.Add(d)
	})
	share := func(d int) float64 { // the larger of the DaemonSet's shares of the node's CPU and memory
		asks := g.list[d].Requests
		return max(float64(asks.CPU)/float64(max(typ.Allocatable.CPU, 1)), float64(asks.Memory)/float64(max(typ.Allocatable.Memory, 1)))
	}
	slices.SortStableFunc(others, func(a, b int) int { return cmp.Compare(share(a), share(b)) })
	for _, d := range others {
		if rest := left.Sub(g.list[d].Requests); !rest.IsNegative() {
			left = rest
			out.Add(d)
		}
	}
	return out
}

func (g *daemonSets) usageOf(set bitset.Set, ports *podgroup.Ports) *daemonUsage {
	key := set.Key()
	if known := g.usage[key]; known != nil {
		return known
	}
	out := &daemonUsage{}
	set.Each(func(d int) {
		out.amounts = out.amounts.Add(g.list[d].Requests)
		out.ports = append(out.ports, g.ports[d]...)
		if g.list[d].Kind != nil {
			out.kinds = append(out.kinds, g.list[d].Kind)
		}
	})
	out.portList = ports.Number(out.ports)
	g.usage[key] = out
	return out
}

// shapeOf returns the shape of an offer of the model, on whose nodes the pods of this set of DaemonSets run.
func (st *Stock) shapeOf(m *Model, g *daemonSets, set bitset.Set) Shape {
	running := set.Clone() // the DaemonSets whose pods take room
	set.Each(func(d int) {
		// A pod that requests a device that the type lacks stays pending and takes no room.
		for _, e := range g.list[d].Requests.Extended {
			if e.Value > m.typ.Allocatable.Of(e.Name) {
				running.Remove(d)
			}
		}
	})
	if g.areAllTooSmall {
		running = g.runningOn(m.typ, running)
	}
	all := g.usageOf(running, st.ports)
	s := Shape{Daemons: all.amounts, Ports: all.ports, PortList: all.portList, Kinds: all.kinds}
	left := m.typ.Allocatable.Sub(s.Daemons)
	s.Room = st.Dims.Of(left)
	// Numbers of attachable volumes are not in Allocatable. For a type, only the number of EBS volumes is known.
	for i, name := range st.Dims {
		if strings.HasPrefix(name, resources.AttachableVolumes) {
			s.Room[i] = resources.Unlimited
			if name == volumesOfEBS && m.typ.Volumes > 0 {
				s.Room[i] = m.typ.Volumes
			}
		}
	}
	s.IsTooSmall = left.IsNegative()
	return s
}

func sortedDaemons(daemons []cluster.Daemon) []*cluster.Daemon {
	out := make([]*cluster.Daemon, len(daemons))
	for i := range daemons {
		out[i] = &daemons[i]
	}
	slices.SortStableFunc(out, func(a, b *cluster.Daemon) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return out
}

// Tolerated returns the offers of the pools whose NoSchedule and NoExecute taints are tolerated. It ignores startup
// taints, because they are removed before pods run.
func (st *Stock) Tolerated(tolerations []requirements.Toleration) bitset.Set {
	out := bitset.New(len(st.Offers))
	for _, p := range st.Pools {
		if _, isRejected := requirements.Untolerated(p.Taints, tolerations); !isRejected {
			out.AddRange(p.from, p.to)
		}
	}
	return out
}

// unavoided returns the offers of the pools whose PreferNoSchedule taints are all
// tolerated.
func (st *Stock) unavoided(tolerations []requirements.Toleration) bitset.Set {
	out := bitset.New(len(st.Offers))
	for _, p := range st.Pools {
		avoided := func(t requirements.Taint) bool {
			return t.Effect == requirements.PreferNoSchedule && !requirements.Tolerated(t, tolerations)
		}
		if !slices.ContainsFunc(p.Taints, avoided) {
			out.AddRange(p.from, p.to)
		}
	}
	return out
}

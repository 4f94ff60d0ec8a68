package nomination

import (
	"slices"

	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/model/requirements"
	"github.com/joiner-sh/joiner/internal/model/resources"
)

const labelHostname = "kubernetes.io/hostname"

// Input is what Decide needs to know about one closed Node.
type Input struct {
	Zone   string               // of the Node
	Zones  []string             // all zones with nodes, the Node's zone included
	Labels requirements.Labels  // of the Node
	Taints []requirements.Taint // of the Node, without the taint that keeps it closed
	Pods   []cluster.Pod        // pods that the Node was launched for and that are not bound yet
	Room   resources.Amounts    // room for these pods
	OnNode []cluster.Pod        // pods that are bound to the Node
	// Bound has the pods of all nodes, and the pods that are nominated to open nodes, in the namespaces of Pods with a
	// spread over zones.
	Bound []Bound
	// Indirect has the IDs of pods that only kube-scheduler can bind: for example those with volumes or devices.
	Indirect map[string]bool
}

// Bound is a pod that topology spread constraints count.
type Bound struct {
	Namespace string
	Labels    map[string]string
	Zone      string // of its node
}

// Decision says what happens to the pods that a closed Node was launched for. Pods that are in no list are nominated
// before the Node opens, because only kube-scheduler can check their rules.
type Decision struct {
	Bind    []string // IDs of the pods to bind now
	Blocked []string // IDs of the pods whose spread over zones allows the Node only when pods of other zones are bound
}

// Decide returns which pods are bound to the Node now. No other pod can come to the Node meanwhile, so a pod is bound if
// its own rules and those of the other pods allow the Node. Where a rule depends on more than Input has, Decide assumes
// the worst case, and leaves the pod to kube-scheduler.
func Decide(in Input) Decision {
	var d Decision
	b := binder{in: in, zones: zoneCounts{in: in, counts: map[spreadKey]map[string]int{}}, room: in.Room}
	var waiting []*cluster.Pod
	for i := range in.Pods {
		if p := &in.Pods[i]; b.isSimple(p) {
			waiting = append(waiting, p)
		}
	}
	for {
		before := len(waiting)
		waiting = slices.DeleteFunc(waiting, func(p *cluster.Pod) bool {
			if !b.zones.allows(p) {
				return false
			}
			if b.allows(p) {
				b.place(p)
				d.Bind = append(d.Bind, p.ID())
			}
			return true
		})
		if len(waiting) == before {
			break
		}
	}
	for _, p := range waiting {
		d.Blocked = append(d.Blocked, p.ID())
	}
	return d
}

// binder checks the rules of the pods that are bound to the Node.
type binder struct {
	in    Input
	zones zoneCounts
	room  resources.Amounts // what is left of in.Room
}

// isSimple reports whether Joiner can check all rules of the pod, and the Node's labels and taints allow it.
func (b *binder) isSimple(p *cluster.Pod) bool {
	if b.in.Indirect[p.ID()] || p.Unplannable != "" || len(p.HostPorts) > 0 || len(p.Volumes) > 0 {
		return false
	}
	if slices.ContainsFunc(p.Affinity, isRequired) {
		return false
	}
	otherKey := func(t cluster.Term) bool { return isRequired(t) && t.Key != labelHostname }
	if slices.ContainsFunc(p.AntiAffinity, otherKey) {
		return false
	}
	if slices.ContainsFunc(p.Spread, func(s cluster.Spread) bool {
		return !s.Soft && s.Key != catalog.LabelZone && s.Key != labelHostname
	}) {
		return false
	}
	accepts := func(r requirements.Requirements) bool { return r.Accepts(b.in.Labels) }
	if len(p.Required) > 0 && !slices.ContainsFunc(p.Required, accepts) {
		return false
	}
	_, isKeptOff := requirements.Untolerated(b.in.Taints, p.Tolerations)
	return !isKeptOff
}

func isRequired(t cluster.Term) bool { return t.Weight == 0 }

// allows reports whether the Node has room for the pod, and whether the rules about the pods of one node allow it.
// Another node may have no pod of a spread over nodes, so MaxSkew is the limit on this one.
func (b *binder) allows(p *cluster.Pod) bool {
	if !p.Requests.Fits(b.room) {
		return false
	}
	others := func(yield func(*cluster.Pod) bool) {
		for i := range b.in.OnNode {
			if !yield(&b.in.OnNode[i]) {
				return
			}
		}
		for _, o := range b.zones.placed {
			if !yield(o) {
				return
			}
		}
	}
	for o := range others {
		if Repels(p, o) || Repels(o, p) {
			return false
		}
	}
	for i := range p.Spread {
		s := &p.Spread[i]
		if s.Soft || s.Key != labelHostname {
			continue
		}
		count := 1
		for o := range others {
			if o.Namespace == p.Namespace && s.Selector.Matches(o.Labels) {
				count++
			}
		}
		if count > s.MaxSkew {
			return false
		}
	}
	return true
}

// Repels reports whether required anti-affinity of p may keep o off its node or zone. It ignores the namespaces of terms.
func Repels(p, o *cluster.Pod) bool {
	return slices.ContainsFunc(p.AntiAffinity, func(t cluster.Term) bool { return isRequired(t) && t.Selector.Matches(o.Labels) })
}

func (b *binder) place(p *cluster.Pod) {
	b.room = b.room.Sub(p.Requests)
	b.zones.place(p)
}

package verify

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/model/requirements"
	"github.com/joiner-sh/joiner/internal/model/resources"
	"github.com/joiner-sh/joiner/internal/scheduling/packing"
)

const (
	labelHostname = "kubernetes.io/hostname"
	labelZone     = catalog.LabelZone

	// unknownName is the name of a node that does not exist yet: no pod can select it.
	unknownName = "\x00"
)

// typeName identifies an instance type of an EC2NodeClass.
type typeName struct{ class, name string }

// offer is an offering that a pool may launch, and the node that would result.
type offer struct {
	number         int // different for each offer of checker.offers
	choice         packing.Choice
	extra          requirements.Labels // additional labels of the planned node
	pool           *cluster.Pool
	typ            *catalog.Type
	offering       catalog.Offering
	labels         requirements.Labels  // labels of its node
	room           resources.Amounts    // room of its node for all pods
	daemonPods     []*cluster.Daemon    // the DaemonSets whose pods run on its node
	daemonRequests resources.Amounts    // sum of the requests of these pods
	portLists      [][]cluster.HostPort // host ports of these pods, by DaemonSet with host ports
	kinds          []*cluster.PodKind   // kinds of these pods, if known
	problems       []string             // why the pool may not launch it, regardless of the pods; empty if it may
	verdicts       []int8               // cache of accepts, by demand: 0 not computed, 1 accepted, -1 not accepted
}

// offerName identifies an offer. The same offering with other labels of the planned node is another offer. labels is
// the identity of these labels.
type offerName struct {
	pool, labels string
	choice       packing.Choice
}

// demand has the requirements of a pod on a node's labels and taints.
type demand struct {
	required    []requirements.Requirements
	tolerations []requirements.Toleration
}

// demandOf returns the index in checker.demands of the pod's requirements on a node's labels and taints. It adds them
// if they are new.
func (c *checker) demandOf(p *cluster.Pod) int {
	var w identity
	w.alternatives(p.Required)
	w.tolerations(p.Tolerations)
	n, ok := c.demandIndex[string(w)]
	if !ok {
		n = len(c.demands)
		c.demandIndex[string(w)] = n
		c.demands = append(c.demands, demand{required: p.Required, tolerations: p.Tolerations})
	}
	return n
}

// cachedOffer returns the choice as an offer of the pool, for a planned node with the additional labels extra. name is
// the identity of these labels. It returns nil if the market has no such offering.
func (c *checker) cachedOffer(pool *cluster.Pool, extra requirements.Labels, name string, choice packing.Choice) *offer {
	key := offerName{pool: pool.Name, labels: name, choice: choice}
	if o, ok := c.offers[key]; ok {
		return o
	}
	o := newOffer(c.snapshot, c.types[typeName{pool.NodeClass, choice.InstanceType}], pool, extra, choice)
	if o != nil {
		o.dropPendingDaemonPods(c.snapshot, c.market.Types(pool.NodeClass, pool.Name))
		o.number = len(c.offers)
	}
	c.offers[key] = o
	return o
}

// newOffer returns the choice as an offer of the pool, with the pods of all DaemonSets that accept its node. It
// returns nil if the type is nil or has no such offering.
func newOffer(
	s cluster.Snapshot, typ *catalog.Type, pool *cluster.Pool, extra requirements.Labels, choice packing.Choice,
) *offer {
	if typ == nil {
		return nil
	}
	i := slices.IndexFunc(typ.Offerings, func(o catalog.Offering) bool {
		return o.Zone == choice.Zone && o.CapacityType == choice.CapacityType && o.Reservation.ID == choice.Reservation
	})
	if i < 0 {
		return nil
	}
	o := &offer{choice: choice, extra: extra, pool: pool, typ: typ, offering: typ.Offerings[i]}
	o.room = typ.Allocatable
	if typ.Volumes > 0 {
		o.room = o.room.With(volumesOfEBS, typ.Volumes)
	}
	o.setLabels(extra)
	o.checkLaunch()
	for i := range s.Daemons {
		if d := &s.Daemons[i]; suits(d.Required, d.Tolerations, o.labels, pool.Taints) && o.hasDevices(d.Requests) {
			o.daemonPods = append(o.daemonPods, d)
		}
	}
	o.sumDaemonPods()
	return o
}

func (o *offer) sumDaemonPods() {
	o.daemonRequests, o.portLists, o.kinds = resources.Amounts{}, nil, nil
	for _, d := range o.daemonPods {
		o.daemonRequests = o.daemonRequests.Add(d.Requests)
		if len(d.HostPorts) > 0 {
			o.portLists = append(o.portLists, d.HostPorts)
		}
		if d.Kind != nil {
			o.kinds = append(o.kinds, d.Kind)
		}
	}
}

// setLabels sets the labels of the node: those of the type, the offering and the pool, and those for which the plan
// chose a value. Chosen values that contradict the offering are added to problems.
func (o *offer) setLabels(extra requirements.Labels) {
	o.labels = maps.Clone(o.typ.Labels)
	if o.labels == nil {
		o.labels = requirements.Labels{}
	}
	maps.Copy(o.labels, o.offering.Labels())
	for key, value := range extra {
		if had, ok := o.labels[key]; ok && had != value && o.pool.Labels[key] != value {
			o.problems = append(o.problems, fmt.Sprintf("the planned node's label %s is %s, the offering has %s", key, value, had))
		}
	}
	maps.Copy(o.labels, o.pool.Labels)
	maps.Copy(o.labels, extra)
	maps.Copy(o.labels, requirements.Labels{
		labelHostname: unknownName, "karpenter.sh/nodepool": o.pool.Name, "karpenter.k8s.aws/ec2nodeclass": o.pool.NodeClass,
		"karpenter.sh/registered": "true", "karpenter.sh/initialized": "true",
	})
}

// checkLaunch adds to problems the reasons why the pool may not launch the offer.
func (o *offer) checkLaunch() {
	if o.offering.Price != o.choice.Price {
		o.problems = append(o.problems, fmt.Sprintf("it costs %s, not %s", o.offering.Price, o.choice.Price))
	}
	if !o.offering.Available {
		o.problems = append(o.problems, "it is not available")
	}
	for _, r := range o.unmetRequirements() {
		o.problems = append(o.problems, fmt.Sprintf("the pool's requirement %s %s %v is not met by %q",
			r.Key, r.Operator, r.Values, o.labels[r.Key]))
	}
}

// unmetRequirements returns the requirements of the pool that the node would not satisfy.
func (o *offer) unmetRequirements() (out []requirements.Requirement) {
	for _, r := range o.pool.Requirements {
		values, ok := requirements.ValuesOf(r.Operator, r.Values...)
		if !ok || !(requirements.Requirements{r.Key: values}).Accepts(o.labels) {
			out = append(out, r)
		}
	}
	return out
}

// hasDevices reports whether the type has the requested extended resources. A DaemonSet pod that requests a device
// which the type lacks stays pending.
func (o *offer) hasDevices(requests resources.Amounts) bool {
	for _, e := range requests.Extended {
		if amount, isLimited := o.amountOf(e.Name); isLimited && e.Value > amount {
			return false
		}
	}
	return true
}

// amountOf returns how much of a resource a node of the offer has. isLimited is false only for the number of attachable
// volumes of a type that has no known limit.
func (o *offer) amountOf(name string) (n int64, isLimited bool) {
	n = o.room.Of(name)
	return n, n != 0 || !isAttachLimit(name)
}

func (o *offer) ports() []cluster.HostPort { return slices.Concat(o.portLists...) }

// hasPortConflict reports whether one of the ports conflicts with a host port of a DaemonSet pod.
func (o *offer) hasPortConflict(ports []cluster.HostPort) bool {
	return len(ports) > 0 && slices.ContainsFunc(o.portLists, func(list []cluster.HostPort) bool { return conflicts(ports, list) })
}

// accepts reports whether a node of the offer suits pods with the given demand, an index in checker.demands.
func (c *checker) accepts(o *offer, demand int) bool {
	if demand >= len(o.verdicts) {
		o.verdicts = append(o.verdicts, make([]int8, demand+1-len(o.verdicts))...)
	}
	if o.verdicts[demand] == 0 {
		o.verdicts[demand] = -1
		if d := c.demands[demand]; suits(d.required, d.tolerations, o.labels, o.pool.Taints) {
			o.verdicts[demand] = 1
		}
	}
	return o.verdicts[demand] > 0
}

// suits reports whether pods with this node affinity and these tolerations may run on a node with these labels and
// taints.
func suits(
	required []requirements.Requirements, tolerations []requirements.Toleration, labels requirements.Labels, taints []requirements.Taint,
) bool {
	if _, repels := requirements.Untolerated(taints, tolerations); repels {
		return false
	}
	if len(required) == 0 {
		return true
	}
	return slices.ContainsFunc(required, func(r requirements.Requirements) bool { return r.Accepts(labels) })
}

// lackingResources returns the resources of which a node of the offer has too little for its DaemonSet pods and for
// pods with the total requests sum.
func (o *offer) lackingResources(sum resources.Amounts) []string {
	lacking := o.daemonRequests.Add(sum).Lacking(o.room)
	return slices.DeleteFunc(lacking, func(name string) bool {
		_, isLimited := o.amountOf(name)
		return isAttachLimit(name) && !isLimited
	})
}

const (
	attachable   = "attachable-volumes-" // prefix of resources that count volumes attached to a node
	volumesOfEBS = attachable + "csi-ebs.csi.aws.com"
)

func isAttachLimit(name string) bool { return strings.HasPrefix(name, attachable) }

func (o *offer) String() string {
	text := o.choice.InstanceType + " " + o.choice.Zone + " " + o.choice.CapacityType
	if o.choice.Reservation != "" {
		text += " " + o.choice.Reservation
	}
	return text
}

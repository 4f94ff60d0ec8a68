package refusal

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/model/requirements"
	"github.com/joiner-sh/joiner/internal/model/resources"
	"github.com/joiner-sh/joiner/internal/scheduling/offering"
	"github.com/joiner-sh/joiner/internal/suggest"
)

// foreignHint returns a hint to replace a foreign label by the standard label; empty if the label is not foreign.
// A label is foreign if another system sets it on its nodes, or if its value names a capacity type. A NodePool must not
// set a foreign label, because its value may be wrong for the nodes of the NodePool.
func (e *explanation) foreignHint(key string, ask requirements.Values, pool *offering.Pool) string {
	value, _ := ask.Single()
	foreign, ok := catalog.ForeignLabelOf(key, value)
	if !ok || key == foreign.Key {
		return ""
	}
	text := fmt.Sprintf("the label %s is set by %s, and not on nodes of a NodePool: ", key, foreign.Owner)
	if foreign.Owner == "" {
		text = fmt.Sprintf("%s: %s names a capacity type, which a NodePool chooses by the label %s: ", key, value, foreign.Key)
	}
	switch {
	case foreign.Key == "":
		return text + "remove it from the pod, or use a label with a domain of your own in pod and NodePool"
	case foreign.Value == "":
		return text + fmt.Sprintf("let the pod ask for %s instead", foreign.Key)
	}
	text += fmt.Sprintf("let the pod ask for %s: %s instead", foreign.Key, foreign.Value)
	if accepted, ok := pool.Accepts[foreign.Key]; ok && !accepted.Accepts(foreign.Value) {
		text += fmt.Sprintf(", and add %s to that requirement of NodePool %s", foreign.Value, pool.Name)
	}
	return text
}

// valueHint returns a hint with the correct spelling of the required value of a well-known label; empty if no other
// spelling is known.
func valueHint(key string, ask requirements.Values) string {
	value, ok := ask.Single()
	if meant := catalog.SuggestedValue(key, value); ok && meant != "" {
		return fmt.Sprintf("the pod asks for %s: %s; the correct value is %s", key, value, meant)
	}
	return ""
}

// noPoolHint returns the hint for a pod that selects a NodePool that does not exist; empty if the NodePool exists or
// the pod selects several names.
func (e *explanation) noPoolHint(asks string, ask requirements.Values) string {
	var names []string
	for _, p := range e.in.Stock.Pools {
		names = append(names, p.Name)
	}
	value, ok := ask.Single()
	if !ok || slices.Contains(names, value) {
		return ""
	}
	if suggestion := suggest.Nearest(value, names); suggestion != "" {
		return fmt.Sprintf("%s, and there is no such NodePool: did you mean %s?", asks, suggestion)
	}
	return asks + ", and there is no such NodePool: create it, or change what the pod asks for"
}

// nearestType returns the instance type that the user probably meant: the type of the same family with the most similar
// name. The result is empty if the name of any type ends with the same size, such as xlarge: then the name is probably
// correct, and the type may exist in other regions.
func (e *explanation) nearestType(ask requirements.Values) string {
	value, _ := ask.Single()
	family, size, ok := strings.Cut(value, ".")
	types := e.in.Stock.Labels.Column(catalog.LabelInstanceType).Values
	var siblings []string
	for _, name := range types {
		otherFamily, otherSize, _ := strings.Cut(name, ".")
		if ok && otherSize == size {
			return ""
		}
		if otherFamily == family {
			siblings = append(siblings, name)
		}
	}
	return suggest.Nearest(value, siblings)
}

func taintHint(taint string, pool *offering.Pool) string {
	i := slices.IndexFunc(pool.Taints, func(t requirements.Taint) bool { return t.String() == taint })
	if i >= 0 && pool.Taints[i].IsTransient() {
		return fmt.Sprintf("a DaemonSet removes taint %s when it is ready: move it from spec.template.spec.taints of NodePool %s to startupTaints, "+
			"which pods need not tolerate", taint, pool.Name)
	}
	return fmt.Sprintf("add a toleration for %s to the pod, or take the taint off NodePool %s", taint, pool.Name)
}

// roomHint returns how to get enough room of the resource in the finding's detail. It compares the request to the
// largest room of any offering.
func (e *explanation) roomHint(f *finding) string {
	r, ask, name := slices.Index(e.in.Stock.Dims, f.reason.Detail), e.class.Amounts.Of(f.reason.Detail), f.reason.Detail
	if r < 0 && ask == 0 { // the detail is no resource: the node has no room for pods (Shape.IsTooSmall)
		return fmt.Sprintf("the DaemonSet pods alone fill the instances of NodePool %s: let it use larger instance types", f.pool.Name)
	}
	most := int64(0)
	for i := 0; r >= 0 && i < len(e.in.Stock.Shapes); i++ {
		most = max(most, e.in.Stock.Shapes[i].Room[r])
	}
	if most < ask {
		text := fmt.Sprintf("the pod asks for %s of %s; the largest instance type that a NodePool allows has %s for pods",
			resources.Format(name, ask), name, resources.Format(name, most))
		if fix := e.resourceFix(f.pool, name, most); fix != "" {
			text += ": " + fix
		}
		return text
	}
	text := fmt.Sprintf("no instance type of NodePool %s has %s of %s together with the other requests of the pod: ",
		f.pool.Name, resources.Format(name, ask), name)
	if name == resources.EphemeralStorage {
		return text + cmp.Or(e.diskFix(f.pool, r), "let it use larger instance types")
	}
	return text + "let it use larger instance types"
}

// resourceFix returns how nodes of the NodePool can have more of a resource; empty if unknown. most is the largest room
// of any offering.
func (e *explanation) resourceFix(p *offering.Pool, name string, most int64) string {
	switch {
	case name == resources.EphemeralStorage:
		return e.diskFix(p, slices.Index(e.in.Stock.Dims, name))
	case name == resources.Pods:
		return fmt.Sprintf("raise spec.kubelet.maxPods of EC2NodeClass %s, or let NodePool %s use larger instance types", p.NodeClass, p.Name)
	case name == resources.CPU, name == resources.Memory, strings.HasPrefix(name, resources.AttachableVolumes):
		return fmt.Sprintf("let NodePool %s use larger instance types, or ask for less", p.Name)
	case isInstanceTypeResource(name):
		return fmt.Sprintf("let NodePool %s use instance types that have more of it", p.Name)
	case most == 0 && strings.Contains(name, "/"), strings.HasPrefix(name, "hugepages-"):
		return fmt.Sprintf("if nodes of NodePool %s get it after they have joined, for example from a device plugin, set the amount in spec.capacity of a NodeOverlay "+
			"(feature gate NodeOverlay); else check the spelling of the name", p.Name)
	}
	return ""
}

// isInstanceTypeResource reports whether DescribeInstanceTypes returns the amount of
// the resource.
func isInstanceTypeResource(name string) bool {
	return slices.Contains([]string{
		catalog.ResourceNVIDIA, catalog.ResourceAMD, catalog.ResourceGaudi, catalog.ResourceNeuron, catalog.ResourceNeuronCore,
		catalog.ResourceEFA, catalog.ResourcePodENI,
	}, name)
}

// Sizes of EBS volumes.
const (
	gib            = int64(1) << 30 // the unit of volume sizes
	maxVolumeBytes = 64 << 10 * gib // the largest volume: 64 TiB
)

// diskFix returns how a node of the NodePool gets enough ephemeral storage; empty if unknown. It suggests instance
// store disks if all accepted types have unused disks that are larger than their present storage, and the disks of
// some type are large enough. It also suggests a larger EBS volume, if some volume size is large enough. r is the
// index of ephemeral storage in Stock.Dims.
func (e *explanation) diskFix(p *offering.Pool, r int) string {
	ask := e.class.Ask[r]
	storeBytes := int64(0)  // size of the smallest instance store that is large enough; 0 if there is none
	allHaveStore := true    // all accepted types have an unused instance store
	volumeBytes := int64(0) // size of the smallest EBS volume that is large enough; 0 if there is none
	e.eachAcceptedOffer(p, func(o int) {
		typ := e.in.Stock.TypeOf(o)
		gb, _ := strconv.ParseInt(typ.Labels[catalog.LabelLocalNVMe], 10, 64)
		bytes := gb * 1e9
		switch {
		case bytes <= typ.Capacity.EphemeralStorage || typ.Labels[catalog.LabelOS] == "windows": // already used for pods, or not usable
			allHaveStore = false
		case bytes >= ask && (storeBytes == 0 || bytes < storeBytes):
			storeBytes = bytes
		}
		if n := volumeFor(typ.Capacity.EphemeralStorage, typ.Allocatable.EphemeralStorage, e.in.Stock.Room(o)[r],
			ask); n > 0 && (volumeBytes == 0 || n < volumeBytes) {
			volumeBytes = n
		}
	})
	volume := ""
	if volumeBytes > 0 && volumeBytes <= maxVolumeBytes {
		device := "the volume that holds the pods' files"
		if p.Volume != "" {
			device = p.Volume
		}
		volume = fmt.Sprintf("set ebs.volumeSize of %s in spec.blockDeviceMappings of EC2NodeClass %s to %s or more",
			device, p.NodeClass, resources.Format(resources.EphemeralStorage, volumeBytes))
	}
	if allHaveStore && storeBytes > 0 {
		text := fmt.Sprintf("set spec.instanceStorePolicy: RAID0 in EC2NodeClass %s, without which the local disks of its instance types do not count", p.NodeClass)
		if volume != "" {
			text += ", or " + volume
		}
		return text
	}
	return volume
}

// eachAcceptedOffer visits the NodePool's offerings whose labels the class accepts; again for each further
// node affinity term that accepts it.
func (e *explanation) eachAcceptedOffer(p *offering.Pool, visit func(offer int)) {
	for v := range e.in.Stock.Variants {
		if e.in.Stock.Pools[e.in.Stock.Variants[v].Pool] != p {
			continue
		}
		for _, reqs := range alternatives(e.sig.Required) {
			left := e.in.Stock.OffersOf(&e.in.Stock.Variants[v])
			for _, key := range reqs.Keys() {
				left = left.Intersection(e.in.Stock.Labels.Accepting(key, reqs[key]))
			}
			left.Each(visit)
		}
	}
}

// volumeFor returns the size in bytes of a volume on which ask bytes are free for pods, rounded up to GiB; 0 if
// unknown. Of the present volume, total is the size, allocatable the part that is not reserved, and room the part that
// is free for pods. A larger volume is assumed to have the same reserved share.
func volumeFor(total, allocatable, room, ask int64) int64 {
	if total <= 0 || allocatable <= 0 {
		return 0
	}
	need := float64(ask+allocatable-room) * (float64(total) / float64(allocatable))
	return (int64(need) + gib) / gib * gib
}

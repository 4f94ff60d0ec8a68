package kube

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/model/resources"
)

// attachable begins the names of the resources that stand for volumes attached
// by a CSI driver: one piece for each volume. Nodes that do not say how many they
// take have none of it, and take any number.
const attachable = "attachable-volumes-csi-"

// The EBS driver, and what its volumes were called before there was CSI.
const (
	driverEBS = "ebs.csi.aws.com"
	inTreeEBS = "kubernetes.io/aws-ebs"
)

// attachment is a volume that must be attached to a node.
type attachment struct {
	driver string
	volume string // what the driver calls it; "namespace/name" of its claim until it is made
}

// attachments returns the volumes of the pod that a driver with a limit attaches,
// each once. Of what is not there nothing is known, and nothing counted.
func (v *volumes) attachments(pod *corev1.Pod) []attachment {
	var out []attachment
	for i := range pod.Spec.Volumes {
		name := claimName(pod, &pod.Spec.Volumes[i])
		if name == "" {
			continue
		}
		claim, ok := v.claims[pod.Namespace+"/"+name]
		if !ok {
			continue
		}
		if a := v.attachment(claim); v.limited[a.driver] {
			out = append(out, a)
		}
	}
	slices.SortFunc(out, func(a, b attachment) int {
		return cmp.Or(cmp.Compare(a.driver, b.driver), cmp.Compare(a.volume, b.volume))
	})
	return slices.Compact(out)
}

func (v *volumes) attachment(claim *corev1.PersistentVolumeClaim) attachment {
	if volume, ok := v.volumes[claim.Spec.VolumeName]; ok {
		switch source := &volume.Spec.PersistentVolumeSource; {
		case source.CSI != nil:
			return attachment{source.CSI.Driver, source.CSI.VolumeHandle}
		case source.AWSElasticBlockStore != nil: // "vol-1" or "aws://us-east-1a/vol-1"
			id := source.AWSElasticBlockStore.VolumeID
			return attachment{driverEBS, id[strings.LastIndexByte(id, '/')+1:]}
		}
		return attachment{}
	}
	class, ok := v.classes[v.classOf(claim)]
	if !ok {
		return attachment{}
	}
	driver := class.Provisioner
	if driver == inTreeEBS {
		driver = driverEBS
	}
	return attachment{driver, claim.Namespace + "/" + claim.Name}
}

// counted returns the amounts with the number of volumes for each driver in all,
// of which only those are counted that are in some.
func counted(a resources.Amounts, all, some []attachment) resources.Amounts {
	for _, one := range all {
		a = a.With(attachable+one.driver, 0)
	}
	for _, one := range some {
		name := attachable + one.driver
		a = a.With(name, a.Of(name)+1)
	}
	return a
}

// withoutVolumes returns the amounts without volumes: no Node ever reports such a
// resource, and a claim that asked for it would wait for it for ever.
func withoutVolumes(a resources.Amounts) resources.Amounts {
	for _, e := range a.Extended {
		if strings.HasPrefix(e.Name, attachable) {
			a = a.With(e.Name, 0)
		}
	}
	return a
}

// uses counts what the pod takes of the node's room. A volume that several pods
// of the node use is attached once.
func (n *nodeView) uses(b *builder, pod *corev1.Pod, requests resources.Amounts, ports []cluster.HostPort) {
	if all := b.around.volumes.attachments(pod); len(all) > 0 {
		fresh := slices.DeleteFunc(slices.Clone(all), func(a attachment) bool { return n.attached[a] })
		if n.attached == nil {
			n.attached = map[attachment]bool{}
		}
		for _, a := range fresh {
			n.attached[a] = true
		}
		requests = counted(requests, all, fresh)
	}
	n.value.Requested = n.value.Requested.Add(requests)
	n.value.HostPorts = mergePorts(n.value.HostPorts, ports)
}

// driversOf returns what drivers say of nodes, by the name of the Node.
func driversOf(nodes []*storagev1.CSINode) map[string]*storagev1.CSINode {
	out := make(map[string]*storagev1.CSINode, len(nodes))
	for _, n := range nodes {
		out[n.Name] = n
	}
	return out
}

// attachLimits returns how many volumes each of the node's drivers attaches. The
// drivers may be nil: nothing is known of them yet.
func attachLimits(drivers *storagev1.CSINode) resources.Amounts {
	var a resources.Amounts
	if drivers == nil {
		return a
	}
	for i := range drivers.Spec.Drivers {
		d := &drivers.Spec.Drivers[i]
		if d.Allocatable != nil && d.Allocatable.Count != nil && *d.Allocatable.Count > 0 {
			a = a.With(attachable+d.Name, int64(*d.Allocatable.Count))
		}
	}
	return a
}

// limitVolumes sets the node's attach limits: those that its CSI drivers report, or the known limit of its instance type if its
// EBS driver has not reported yet.
func (n *nodeView) limitVolumes(drivers *storagev1.CSINode, market catalog.Market) {
	v, said := &n.value, attachLimits(drivers)
	for _, e := range said.Extended {
		v.Allocatable = v.Allocatable.With(e.Name, e.Value)
	}
	if v.Claim == "" || v.Initialized || said.Of(attachable+driverEBS) != 0 {
		return
	}
	if most := volumesOfType(n, market); most > 0 {
		v.Allocatable = v.Allocatable.With(attachable+driverEBS, most)
	}
}

// volumesOfType is how many volumes the node's type takes, or the least of the
// types that its claim may become; 0 if that is not known.
func volumesOfType(n *nodeView, market catalog.Market) int64 {
	if n.value.ProviderID == "" {
		least := int64(0)
		for i, t := range offeredTypes(n.claim, market) {
			if i == 0 || t.Volumes < least {
				least = t.Volumes
			}
		}
		return least
	}
	types := market[n.value.NodeClass].Types
	i, ok := slices.BinarySearchFunc(types, n.value.Labels[catalog.LabelInstanceType], byTypeName)
	if !ok {
		return 0
	}
	return types[i].Volumes
}

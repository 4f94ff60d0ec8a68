package conversion

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/joiner-sh/joiner/internal/model/resources"
)

// AttachablePrefix is the prefix of the resource names that count volumes attached by a CSI driver: one unit per
// volume. A node whose driver reports no limit has no such resource, and no limit applies.
const AttachablePrefix = "attachable-volumes-csi-"

// The CSI driver of EBS, and the provisioner name of EBS volumes before CSI.
const (
	DriverEBS = "ebs.csi.aws.com"
	inTreeEBS = "kubernetes.io/aws-ebs"
)

// Attachment is a volume that must be attached to a node.
type Attachment struct {
	driver string
	volume string // the driver's volume handle; "namespace/name" of the claim until the volume is created
}

// Attachments returns the pod's volumes whose driver has an attach limit, each once. Claims and volumes that do not
// exist are not counted.
func (v *VolumeIndex) Attachments(pod *corev1.Pod) []Attachment {
	var out []Attachment
	for i := range pod.Spec.Volumes {
		name := ClaimName(pod, &pod.Spec.Volumes[i])
		if name == "" {
			continue
		}
		claim, ok := v.Claims[pod.Namespace+"/"+name]
		if !ok {
			continue
		}
		if a := v.attachment(claim); v.Limited[a.driver] {
			out = append(out, a)
		}
	}
	slices.SortFunc(out, func(a, b Attachment) int {
		return cmp.Or(cmp.Compare(a.driver, b.driver), cmp.Compare(a.volume, b.volume))
	})
	return slices.Compact(out)
}

// attachment returns the driver and the volume of a claim; the zero value if they are unknown, or if the volume needs
// no driver.
func (v *VolumeIndex) attachment(claim *corev1.PersistentVolumeClaim) Attachment {
	if volume, ok := v.Volumes[claim.Spec.VolumeName]; ok {
		switch source := &volume.Spec.PersistentVolumeSource; {
		case source.CSI != nil:
			return Attachment{source.CSI.Driver, source.CSI.VolumeHandle}
		case source.AWSElasticBlockStore != nil: // "vol-1" or "aws://us-east-1a/vol-1"
			id := source.AWSElasticBlockStore.VolumeID
			return Attachment{DriverEBS, id[strings.LastIndexByte(id, '/')+1:]}
		}
		return Attachment{}
	}
	class, ok := v.Classes[v.classOf(claim)]
	if !ok {
		return Attachment{}
	}
	driver := class.Provisioner
	if driver == inTreeEBS {
		driver = DriverEBS
	}
	return Attachment{driver, claim.Namespace + "/" + claim.Name}
}

// AddAttachments returns a with the number of volumes in counted, as one amount for each driver. It first removes the
// amounts of all drivers in all.
func AddAttachments(a resources.Amounts, all, counted []Attachment) resources.Amounts {
	for _, attachment := range all {
		a = a.With(AttachablePrefix+attachment.driver, 0)
	}
	for _, attachment := range counted {
		name := AttachablePrefix + attachment.driver
		a = a.With(name, a.Of(name)+1)
	}
	return a
}

// withoutVolumes returns the amounts without the resources that count volumes. No Node reports such a resource, so a
// NodeClaim that requested it would never be initialized.
func withoutVolumes(a resources.Amounts) resources.Amounts {
	for _, e := range a.Extended {
		if strings.HasPrefix(e.Name, AttachablePrefix) {
			a = a.With(e.Name, 0)
		}
	}
	return a
}

// CSINodesByName returns the CSINodes by Node name.
func CSINodesByName(nodes []*storagev1.CSINode) map[string]*storagev1.CSINode {
	out := make(map[string]*storagev1.CSINode, len(nodes))
	for _, n := range nodes {
		out[n.Name] = n
	}
	return out
}

// AttachLimits returns the attach limit of each of the node's drivers. If node is nil, no limit is known yet.
func AttachLimits(node *storagev1.CSINode) resources.Amounts {
	var a resources.Amounts
	if node == nil {
		return a
	}
	for i := range node.Spec.Drivers {
		d := &node.Spec.Drivers[i]
		if d.Allocatable != nil && d.Allocatable.Count != nil && *d.Allocatable.Count > 0 {
			a = a.With(AttachablePrefix+d.Name, int64(*d.Allocatable.Count))
		}
	}
	return a
}

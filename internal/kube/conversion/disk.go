package conversion

import (
	"fmt"
	"regexp"
	"slices"

	awsv1 "github.com/joiner-sh/joiner/api/aws/v1"
)

// volumeLimits are the EBS limits of a volume type. Users cannot choose the IOPS of a type with mostIOPS 0, or the
// throughput of a type with mostThroughput 0.
type volumeLimits struct {
	leastGiB, mostGiB               int64
	leastIOPS, mostIOPS             int64
	iopsPerGiB                      int64 // maximum IOPS per GiB of size; leastIOPS is allowed for any size
	leastThroughput, mostThroughput int64 // MiB/s
	neverBoots                      bool  // a volume of this type cannot be the root volume
}

// volumeTypes are the limits of each volume type. Where regions differ, the wider limit is listed. Source: "Amazon EBS
// volume types" in the EBS user guide.
var volumeTypes = map[string]volumeLimits{
	"gp2":      {leastGiB: 1, mostGiB: 16384},
	"gp3":      {leastGiB: 1, mostGiB: 65536, leastIOPS: 3000, mostIOPS: 80000, iopsPerGiB: 500, leastThroughput: 125, mostThroughput: 2000},
	"io1":      {leastGiB: 4, mostGiB: 16384, leastIOPS: 100, mostIOPS: 64000, iopsPerGiB: 50},
	"io2":      {leastGiB: 4, mostGiB: 65536, leastIOPS: 100, mostIOPS: 256000, iopsPerGiB: 1000},
	"st1":      {leastGiB: 125, mostGiB: 16384, neverBoots: true},
	"sc1":      {leastGiB: 125, mostGiB: 16384, neverBoots: true},
	"standard": {leastGiB: 1, mostGiB: 1024},
}

// iopsPerThroughput is how many IOPS a gp3 volume needs for each MiB/s of throughput.
const iopsPerThroughput = 4

var rootDevices = []string{"/dev/xvda", "/dev/sda1"}

// DiskProblem describes the first problem in spec.blockDeviceMappings that the schema accepts, but for which EC2 would
// reject the launch; empty if there is none.
func DiskProblem(mappings []awsv1.BlockDeviceMapping) string {
	firstIndex := map[string]int{} // the first mapping of each device
	for i, m := range mappings {
		field := fmt.Sprintf("spec.blockDeviceMappings[%d]", i)
		switch {
		case m.DeviceName == nil || *m.DeviceName == "":
			return field + ".deviceName is missing: name the device as the image does, /dev/xvda for the root volume of most images"
		case m.EBS == nil:
			return field + ".ebs is missing: set volumeSize or snapshotID for the volume of " + *m.DeviceName
		}
		if first, ok := firstIndex[*m.DeviceName]; ok {
			return fmt.Sprintf("%s.deviceName is %s, as in spec.blockDeviceMappings[%d]: a device can be mapped once", field, *m.DeviceName, first)
		}
		firstIndex[*m.DeviceName] = i
		if text := volumeProblem(m.EBS, m.RootVolume || slices.Contains(rootDevices, *m.DeviceName)); text != "" {
			return field + ".ebs" + text
		}
	}
	return ""
}

// volumeProblem describes a problem of a volume; the text begins with the field. Empty if there is none.
func volumeProblem(v *awsv1.BlockDevice, isRoot bool) string {
	kind := ""
	if v.VolumeType != nil {
		kind = *v.VolumeType
	}
	if text := sourceProblem(v); text != "" {
		return text
	}
	limits, known := volumeTypes[kind]
	switch {
	case v.IOPS == nil && (kind == "io1" || kind == "io2"):
		return ".iops is missing: a volume of type " + kind + " needs it"
	case v.IOPS != nil && known && limits.mostIOPS == 0:
		return ".iops cannot be chosen for a volume of type " + kind + ": leave it out, or choose gp3, io1 or io2"
	case v.Throughput != nil && kind != "" && kind != "gp3":
		return ".throughput cannot be chosen for a volume of type " + kind + ": leave it out, or choose gp3"
	case isRoot && limits.neverBoots:
		return ".volumeType is " + kind + ", from which no instance boots: choose gp3 for the root volume"
	case !known:
		return ""
	}
	return limits.problem(kind, v)
}

// sourceProblem describes a problem of the volume's size, snapshot or encryption; empty if there is none.
func sourceProblem(v *awsv1.BlockDevice) string {
	switch {
	case v.VolumeSize == nil && v.SnapshotID == nil:
		return ".volumeSize is missing: give it, or snapshotID"
	case v.KMSKeyID != nil && v.Encrypted != nil && !*v.Encrypted:
		return ".kmsKeyID is given for a volume that is not to be encrypted: set encrypted, or leave the key out"
	case v.KMSKeyID != nil && v.Encrypted == nil && v.SnapshotID == nil:
		return ".kmsKeyID is given without encrypted: set encrypted to true"
	case v.KMSKeyID != nil && !kmsKeys.MatchString(*v.KMSKeyID):
		return ".kmsKeyID is not a key: write the ID of a KMS key, alias/NAME, or the ARN of either"
	}
	return ""
}

// kmsKeys matches the IDs, aliases and ARNs of KMS keys that EC2 accepts. Source: KmsKeyId of EbsBlockDevice in the EC2
// API reference, and the key identifiers in the KMS guide.
var kmsKeys = regexp.MustCompile(`^(arn:aws[a-z-]*:kms:[a-z0-9-]+:[0-9]{12}:(key|alias)/\S+|alias/[a-zA-Z0-9/_-]+|mrk-[0-9a-f]+|[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})$`)

// problem describes which number of a volume is out of range or conflicts with another number; empty if none.
func (l volumeLimits) problem(kind string, v *awsv1.BlockDevice) string {
	size := int64(0) // unknown
	if v.VolumeSize != nil {
		size = GiBOf(v)
		if size < l.leastGiB || size > l.mostGiB {
			return fmt.Sprintf(".volumeSize is %d GiB, and a volume of type %s has %d to %d GiB", size, kind, l.leastGiB, l.mostGiB)
		}
	}
	iops := l.leastIOPS // the default of gp3; only gp3 has a throughput, for which iops is needed below
	if v.IOPS != nil {
		iops = *v.IOPS
		if mostForSize := max(l.leastIOPS, size*l.iopsPerGiB); iops < l.leastIOPS || iops > l.mostIOPS {
			return fmt.Sprintf(".iops is %d, and a volume of type %s has %d to %d", iops, kind, l.leastIOPS, l.mostIOPS)
		} else if size > 0 && iops > mostForSize {
			return fmt.Sprintf(".iops is %d, and a volume of type %s has at most %d for each GiB, %d for %d GiB: lower iops to %d, or raise volumeSize to %dGi",
				iops, kind, l.iopsPerGiB, mostForSize, size, mostForSize, (iops+l.iopsPerGiB-1)/l.iopsPerGiB)
		}
	}
	if v.Throughput == nil {
		return ""
	}
	switch given := *v.Throughput; {
	case given < l.leastThroughput || given > l.mostThroughput:
		return fmt.Sprintf(".throughput is %d MiB/s, and a volume of type %s has %d to %d", given, kind, l.leastThroughput, l.mostThroughput)
	case given*iopsPerThroughput > iops:
		return fmt.Sprintf(".throughput is %d MiB/s, and a volume of type %s has at most 0.25 MiB/s for each of its IOPS, %d for %d: lower throughput to %d, or raise iops to %d",
			given, kind, iops/iopsPerThroughput, iops, iops/iopsPerThroughput, given*iopsPerThroughput)
	}
	return ""
}

// GiBOf returns the size of a volume in GiB, rounded up, as in the EC2 request; 0 if the snapshot sets the size.
func GiBOf(v *awsv1.BlockDevice) int64 {
	if v.VolumeSize == nil {
		return 0
	}
	return (v.VolumeSize.Value() + 1<<30 - 1) >> 30
}

// ImageDisks are the volumes of an image: the size of the snapshot of each device, in GiB.
type ImageDisks struct {
	ID, Name string           // ID and Name of the image
	GiB      map[string]int64 // by device name
}

// SnapshotProblem describes the first volume of spec.blockDeviceMappings that is smaller than an image's snapshot for
// its device; empty if none.
func SnapshotProblem(mappings []awsv1.BlockDeviceMapping, images []ImageDisks) string {
	for i, m := range mappings {
		if m.DeviceName == nil || m.EBS == nil || m.EBS.SnapshotID != nil || m.EBS.VolumeSize == nil {
			continue // with SnapshotID, the image's snapshot is not used
		}
		for _, image := range images {
			if size, least := GiBOf(m.EBS), image.GiB[*m.DeviceName]; size < least {
				return fmt.Sprintf("spec.blockDeviceMappings[%d].ebs.volumeSize is %d GiB, and the image %s (%s) needs at least %d GiB on %s: write %dGi",
					i, size, image.Name, image.ID, least, *m.DeviceName, least)
			}
		}
	}
	return ""
}

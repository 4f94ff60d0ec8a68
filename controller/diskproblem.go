package controller

import (
	"fmt"
	"slices"

	awsv1 "github.com/joiner-sh/joiner/api/aws/v1"
)

// diskProblem returns what is wrong with spec.blockDeviceMappings that the schema lets through and EC2 would refuse at
// the launch, or nothing.
func diskProblem(mappings []awsv1.BlockDeviceMapping) string {
	first := map[string]int{} // by device
	for i, m := range mappings {
		field := fmt.Sprintf("spec.blockDeviceMappings[%d]", i)
		switch {
		case m.DeviceName == nil || *m.DeviceName == "":
			return field + ".deviceName is missing: name the device as the image does, /dev/xvda for the root of most"
		case m.EBS == nil:
			return field + ".ebs is missing: say how large the volume of " + *m.DeviceName + " is to be"
		}
		if other, ok := first[*m.DeviceName]; ok {
			return fmt.Sprintf("%s.deviceName is %s, as in spec.blockDeviceMappings[%d]: a device can be mapped once", field, *m.DeviceName, other)
		}
		first[*m.DeviceName] = i
		if text := volumeProblem(m.EBS); text != "" {
			return field + ".ebs" + text
		}
	}
	return ""
}

// volumeProblem returns what is wrong with a volume, beginning with the name of its field.
func volumeProblem(v *awsv1.BlockDevice) string {
	kind := ""
	set(&kind, v.VolumeType)
	switch {
	case v.VolumeSize == nil && v.SnapshotID == nil:
		return ".volumeSize is missing: give it, or snapshotID"
	case v.KMSKeyID != nil && v.Encrypted != nil && !*v.Encrypted:
		return ".kmsKeyID is given for a volume that is not to be encrypted: set encrypted, or leave the key out"
	case v.IOPS == nil && (kind == "io1" || kind == "io2"):
		return ".iops is missing: a volume of type " + kind + " needs it"
	case v.IOPS != nil && slices.Contains([]string{"standard", "gp2", "sc1", "st1"}, kind):
		return ".iops cannot be chosen for a volume of type " + kind + ": leave it out, or choose gp3, io1 or io2"
	case v.Throughput != nil && kind != "" && kind != "gp3":
		return ".throughput cannot be chosen for a volume of type " + kind + ": leave it out, or choose gp3"
	}
	return ""
}

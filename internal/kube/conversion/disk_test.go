package conversion

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"

	awsv1 "github.com/joiner-sh/joiner/api/aws/v1"
)

// TestDiskProblem: each key is a part of the message for the mappings; the empty key stands for no problem.
func TestDiskProblem(t *testing.T) {
	t.Parallel()
	size := resource.MustParse("50Gi")
	small := resource.MustParse("3Gi")
	text := func(s string) *string { return &s }
	number := func(n int64) *int64 { return &n }
	unencrypted := false
	disk := func(device string, change func(*awsv1.BlockDevice)) awsv1.BlockDeviceMapping {
		m := awsv1.BlockDeviceMapping{DeviceName: text(device), EBS: &awsv1.BlockDevice{VolumeSize: &size}}
		change(m.EBS)
		return m
	}
	unchanged := func(*awsv1.BlockDevice) {}
	for want, mappings := range map[string][]awsv1.BlockDeviceMapping{
		"": {disk("/dev/xvda", unchanged), disk("/dev/xvdb", func(d *awsv1.BlockDevice) { d.IOPS, d.VolumeType = number(3000), text("gp3") })},
		"spec.blockDeviceMappings[1].deviceName is missing": {disk("/dev/xvda", unchanged), {EBS: &awsv1.BlockDevice{VolumeSize: &size}}},
		"spec.blockDeviceMappings[0].deviceName is missing": {disk("", unchanged)},
		"spec.blockDeviceMappings[0].ebs is missing":        {{DeviceName: text("/dev/xvda")}},
		"as in spec.blockDeviceMappings[0]":                 {disk("/dev/xvda", unchanged), disk("/dev/xvda", unchanged)},
		"spec.blockDeviceMappings[0].ebs.volumeSize":        {disk("/dev/xvda", func(d *awsv1.BlockDevice) { d.VolumeSize = nil })},
		"spec.blockDeviceMappings[0].ebs.kmsKeyID": {disk("/dev/xvda",
			func(d *awsv1.BlockDevice) { d.KMSKeyID, d.Encrypted = text("k"), &unencrypted })},
		"spec.blockDeviceMappings[0].ebs.iops is missing": {disk("/dev/xvda", func(d *awsv1.BlockDevice) { d.VolumeType = text("io2") })},
		"spec.blockDeviceMappings[0].ebs.iops cannot": {disk("/dev/xvda",
			func(d *awsv1.BlockDevice) { d.IOPS, d.VolumeType = number(3000), text("gp2") })},
		"spec.blockDeviceMappings[0].ebs.throughput cannot be": {disk("/dev/xvda",
			func(d *awsv1.BlockDevice) { d.Throughput, d.VolumeType = number(500), text("io1"); d.IOPS = number(9) })},
		"spec.blockDeviceMappings[0].ebs.throughput is 1000 MiB/s, and a volume of type gp3 has at most 0.25 MiB/s for each of its IOPS, 750 for 3000: lower throughput to 750, or raise iops to 4000": {
			disk("/dev/xvda", func(d *awsv1.BlockDevice) {
				d.Throughput, d.IOPS, d.VolumeType = number(1000), number(3000), text("gp3")
			})},
		"ebs.throughput is 751 MiB/s, and a volume of type gp3 has at most 0.25": {disk("/dev/xvda",
			func(d *awsv1.BlockDevice) { d.Throughput, d.VolumeType = number(751), text("gp3") })},
		"ebs.throughput is 2001 MiB/s, and a volume of type gp3 has 125 to 2000": {disk("/dev/xvda", func(d *awsv1.BlockDevice) {
			d.Throughput, d.IOPS, d.VolumeType = number(2001), number(16000), text("gp3")
		})},
		"ebs.throughput is 100 MiB/s": {disk("/dev/xvda",
			func(d *awsv1.BlockDevice) { d.Throughput, d.VolumeType = number(100), text("gp3") })},
		"ebs.iops is 2999, and a volume of type gp3 has 3000": {disk("/dev/xvda",
			func(d *awsv1.BlockDevice) { d.IOPS, d.VolumeType = number(2999), text("gp3") })},
		"ebs.iops is 80001": {disk("/dev/xvda",
			func(d *awsv1.BlockDevice) { d.IOPS, d.VolumeType = number(80001), text("gp3") })},
		"at most 500 for each GiB, 25000 for 50 GiB: lower iops to 25000, or raise volumeSize to 51Gi": {disk("/dev/xvda",
			func(d *awsv1.BlockDevice) { d.IOPS, d.VolumeType = number(25001), text("gp3") })},
		"at most 50 for each GiB, 2500 for 50 GiB": {disk("/dev/xvda",
			func(d *awsv1.BlockDevice) { d.IOPS, d.VolumeType = number(2501), text("io1") })},
		"at most 1000 for each GiB, 50000 for 50 GiB": {disk("/dev/xvda",
			func(d *awsv1.BlockDevice) { d.IOPS, d.VolumeType = number(50001), text("io2") })},
		"ebs.volumeSize is 50 GiB, and a volume of type st1 has 125": {disk("/dev/sdf",
			func(d *awsv1.BlockDevice) { d.VolumeType = text("st1") })},
		"ebs.volumeType is sc1, from which no instance boots": {disk("/dev/xvda",
			func(d *awsv1.BlockDevice) { d.VolumeType = text("sc1") })},
		"ebs.volumeSize is 3 GiB, and a volume of type io2 has 4": {disk("/dev/xvdb",
			func(d *awsv1.BlockDevice) { d.IOPS, d.VolumeType, d.VolumeSize = number(100), text("io2"), &small })},
		"ebs.kmsKeyID is given without encrypted": {disk("/dev/xvda",
			func(d *awsv1.BlockDevice) { d.KMSKeyID = text("k") })},
	} {
		if got := DiskProblem(mappings); (want == "") != (got == "") || !strings.Contains(got, want) {
			t.Errorf("DiskProblem = %q, want a text with %q", got, want)
		}
	}
}

// TestDisksThatEC2Accepts: volumes within all limits have no problem. Several are exactly at a limit.
func TestDisksThatEC2Accepts(t *testing.T) {
	t.Parallel()
	text := func(s string) *string { return &s }
	number := func(n int64) *int64 { return &n }
	for _, d := range []struct {
		kind, size       string
		iops, throughput *int64
	}{
		{"gp3", "4Gi", number(3000), number(750)},
		{"gp3", "1Gi", number(3000), number(125)},
		{"gp3", "160Gi", number(80000), number(2000)},
		{"gp3", "100Gi", number(4000), number(1000)},
		{"gp3", "20Gi", nil, nil},
		{"io1", "100Gi", number(5000), nil},
		{"io2", "256Gi", number(256000), nil},
		{"gp2", "1Gi", nil, nil},
		{"standard", "20Gi", nil, nil},
		{"", "20Gi", number(3000), number(1000)},
	} {
		size := resource.MustParse(d.size)
		v := &awsv1.BlockDevice{VolumeSize: &size, IOPS: d.iops, Throughput: d.throughput}
		if d.kind != "" {
			v.VolumeType = text(d.kind)
		}
		if got := DiskProblem([]awsv1.BlockDeviceMapping{{DeviceName: text("/dev/xvda"), EBS: v}}); got != "" {
			t.Errorf("%+v: %s; want no problem", d, got)
		}
	}
}

// TestSnapshotProblem: a volume must be at least as large as the image's snapshot for its device.
func TestSnapshotProblem(t *testing.T) {
	t.Parallel()
	device, size := "/dev/xvda", resource.MustParse("2Gi")
	mappings := []awsv1.BlockDeviceMapping{{DeviceName: &device, EBS: &awsv1.BlockDevice{VolumeSize: &size}}}
	images := []ImageDisks{{ID: "ami-1", Name: "one", GiB: map[string]int64{"/dev/xvda": 2, "/dev/xvdb": 20}},
		{ID: "ami-2", Name: "two", GiB: map[string]int64{"/dev/xvda": 4}}}
	if got := SnapshotProblem(mappings, images[:1]); got != "" {
		t.Errorf("SnapshotProblem = %q for an image of the volume's size, want no problem", got)
	}
	want := "spec.blockDeviceMappings[0].ebs.volumeSize is 2 GiB, and the image two (ami-2) needs at least 4 GiB on /dev/xvda: write 4Gi"
	if got := SnapshotProblem(mappings, images); got != want {
		t.Errorf("SnapshotProblem = %q, want %q", got, want)
	}
}

package emulator_test

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

// TestVolumeLimits: EC2 rejects a volume whose size, IOPS or throughput is invalid for its type, for another of these
// values, or for the snapshot. It accepts volumes at the limits.
func TestVolumeLimits(t *testing.T) {
	t.Parallel()
	type ebs = types.LaunchTemplateEbsBlockDeviceRequest
	number := func(n int32) *int32 { return &n }
	for name, test := range map[string]struct {
		device string
		ebs    ebs
		want   string
	}{
		"throughput per IOPS": {"/dev/xvda",
			ebs{VolumeType: "gp3", VolumeSize: number(100), Iops: number(3000), Throughput: number(1000)},
			"InvalidParameterValue: Throughput (MiB/s) to iops ratio of 0.333333 is too high"},
		// The default is 3000 IOPS, and the limit 0.25 MiB/s per IOPS.
		"throughput with default IOPS": {"/dev/xvda", ebs{VolumeType: "gp3", VolumeSize: number(100), Throughput: number(751)},
			"InvalidParameterValue: Throughput (MiB/s) to iops ratio"},
		"gp3 IOPS per GiB": {"/dev/xvda", ebs{VolumeType: "gp3", VolumeSize: number(20), Iops: number(10001)},
			"InvalidParameterValue: Iops to volume size ratio of 500.050000 is too high; maximum is 500.000000"},
		"io1 IOPS per GiB": {"/dev/xvda", ebs{VolumeType: "io1", VolumeSize: number(100), Iops: number(5001)}, "maximum is 50.000000"},
		"io2 IOPS per GiB": {"/dev/xvda", ebs{VolumeType: "io2", VolumeSize: number(100), Iops: number(100001)}, "maximum is 1000.000000"},
		"too few IOPS": {"/dev/xvda", ebs{VolumeType: "gp3", VolumeSize: number(100), Iops: number(100)},
			"InvalidParameterValue: Volume iops of 100 is too low; minimum is 3000."},
		"gp2 with IOPS": {"/dev/xvda", ebs{VolumeType: "gp2", VolumeSize: number(100), Iops: number(3000)},
			"InvalidParameterCombination: The parameter iops is not supported for gp2 volumes."},
		"gp2 with throughput": {"/dev/xvda", ebs{VolumeType: "gp2", VolumeSize: number(100), Throughput: number(125)},
			"InvalidParameterCombination: The parameter throughput is not supported"},
		"io1 without IOPS": {"/dev/xvda", ebs{VolumeType: "io1", VolumeSize: number(100)},
			"MissingParameter: The request must contain the parameter iops"},
		"st1 below the minimum size": {"/dev/sdf", ebs{VolumeType: "st1", VolumeSize: number(100)},
			"InvalidParameterValue: Volume of 100GiB is too small for volume type st1"},
		"sc1 as root device": {"/dev/xvda", ebs{VolumeType: "sc1", VolumeSize: number(200)},
			"InvalidParameterValue: Invalid value 'sc1' for VolumeType"},
		"smaller than the snapshot": {"/dev/xvda", ebs{VolumeType: "gp3", VolumeSize: number(2)},
			"InvalidBlockDeviceMapping: Volume of size 2GB is smaller than snapshot"},
		"gp3 at the maximum": {"/dev/xvda",
			ebs{VolumeType: "gp3", VolumeSize: number(160), Iops: number(80000), Throughput: number(2000)}, "running"},
		"st1 at the minimum size": {"/dev/sdf", ebs{VolumeType: "st1", VolumeSize: number(125)}, "running"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newFixture(t)
			b.useRole(t, "controller", `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"*","Resource":"*"}]}`)
			data := types.RequestLaunchTemplateData{
				UserData:            aws.String(base64.StdEncoding.EncodeToString([]byte("#!/bin/bash\n"))),
				BlockDeviceMappings: []types.LaunchTemplateBlockDeviceMappingRequest{{DeviceName: &test.device, Ebs: &test.ebs}},
			}
			if got := b.launchResult(t, b.createTemplate(t, "joiner-a", data), false); !strings.Contains(got, test.want) {
				t.Errorf("launch: %q, want %q", got, test.want)
			}
		})
	}
}

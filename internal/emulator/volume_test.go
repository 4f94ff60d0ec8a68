package emulator_test

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

// TestVolumeRefusals: EC2 refuses volumes whose numbers do not suit their type, or each other, and makes the others.
func TestVolumeRefusals(t *testing.T) {
	t.Parallel()
	type ebs = types.LaunchTemplateEbsBlockDeviceRequest
	number := func(n int32) *int32 { return &n }
	for name, test := range map[string]struct {
		device string
		ebs    ebs
		want   string
	}{
		"throughput": {"/dev/xvda",
			ebs{VolumeType: "gp3", VolumeSize: number(100), Iops: number(3000), Throughput: number(1000)},
			"InvalidParameterValue: Throughput (MiB/s) to iops ratio of 0.333333 is too high"},
		"throughput of 1": {"/dev/xvda", ebs{VolumeType: "gp3", VolumeSize: number(100), Throughput: number(751)},
			"InvalidParameterValue: Throughput (MiB/s) to iops ratio"},
		"iops per GiB": {"/dev/xvda", ebs{VolumeType: "gp3", VolumeSize: number(20), Iops: number(10001)},
			"InvalidParameterValue: Iops to volume size ratio of 500.050000 is too high; maximum is 500.000000"},
		"io1 per GiB": {"/dev/xvda", ebs{VolumeType: "io1", VolumeSize: number(100), Iops: number(5001)}, "maximum is 50.000000"},
		"io2 per GiB": {"/dev/xvda", ebs{VolumeType: "io2", VolumeSize: number(100), Iops: number(100001)}, "maximum is 1000.000000"},
		"few iops": {"/dev/xvda", ebs{VolumeType: "gp3", VolumeSize: number(100), Iops: number(100)},
			"InvalidParameterValue: Volume iops of 100 is too low; minimum is 3000."},
		"iops of gp2": {"/dev/xvda", ebs{VolumeType: "gp2", VolumeSize: number(100), Iops: number(3000)},
			"InvalidParameterCombination: The parameter iops is not supported for gp2 volumes."},
		"throughput of 2": {"/dev/xvda", ebs{VolumeType: "gp2", VolumeSize: number(100), Throughput: number(125)},
			"InvalidParameterCombination: The parameter throughput is not supported"},
		"no iops": {"/dev/xvda", ebs{VolumeType: "io1", VolumeSize: number(100)},
			"MissingParameter: The request must contain the parameter iops"},
		"a small disk": {"/dev/sdf", ebs{VolumeType: "st1", VolumeSize: number(100)},
			"InvalidParameterValue: Volume of 100GiB is too small for volume type st1"},
		"a root": {"/dev/xvda", ebs{VolumeType: "sc1", VolumeSize: number(200)},
			"InvalidParameterValue: Invalid value 'sc1' for VolumeType"},
		"the snapshot": {"/dev/xvda", ebs{VolumeType: "gp3", VolumeSize: number(2)},
			"InvalidBlockDeviceMapping: Volume of size 2GB is smaller than snapshot"},
		"fast": {"/dev/xvda",
			ebs{VolumeType: "gp3", VolumeSize: number(160), Iops: number(80000), Throughput: number(2000)}, "running"},
		"a data disk": {"/dev/sdf", ebs{VolumeType: "st1", VolumeSize: number(125)}, "running"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.govern(t, "controller", `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"*","Resource":"*"}]}`)
			data := types.RequestLaunchTemplateData{
				UserData:            aws.String(base64.StdEncoding.EncodeToString([]byte("#!/bin/bash\n"))),
				BlockDeviceMappings: []types.LaunchTemplateBlockDeviceMappingRequest{{DeviceName: &test.device, Ebs: &test.ebs}},
			}
			if got := b.fate(t, b.template(t, "joiner-a", data), false); !strings.Contains(got, test.want) {
				t.Errorf("EC2 says %q, want %q", got, test.want)
			}
		})
	}
}

package main

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/karpenter-provider-aws/pkg/fake"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/joiner-sh/joiner/internal/model/catalog"
)

// TestRecordedResponses compares the table with the responses of EC2's API that Karpenter's AWS provider keeps for its
// own tests.
func TestRecordedResponses(t *testing.T) {
	t.Parallel()
	response, err := fake.NewEC2API().DescribeInstanceTypes(t.Context(), &ec2.DescribeInstanceTypesInput{})
	if err != nil {
		t.Fatal(err)
	}
	table, err := catalog.Embedded()
	if err != nil {
		t.Fatal(err)
	}
	compared := 0
	for _, want := range response.InstanceTypes {
		f, ok := table.Facts(string(want.InstanceType))
		if !ok {
			t.Errorf("%s is not in the table", want.InstanceType)
			continue
		}
		compared++
		got := infoOf(f)
		clearUncompared(&want, &got)
		if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(typesWithUnexported()...), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s (-API +table):\n%s", want.InstanceType, diff)
		}
	}
	if compared < 17 { // the number of types in the recorded responses
		t.Errorf("compared %d types, want at least 17", compared)
	}
}

// clearUncompared clears the fields that the recorded responses or Facts omit.
func clearUncompared(infos ...*ec2types.InstanceTypeInfo) {
	for _, i := range infos {
		i.NetworkInfo.EnaSupport, i.NetworkInfo.EfaSupported = "", nil
		i.EbsInfo.EncryptionSupport = ""
		if i.EbsInfo.EbsOptimizedInfo != nil {
			i.EbsInfo.EbsOptimizedInfo.BaselineThroughputInMBps = nil
			i.EbsInfo.EbsOptimizedInfo.MaximumThroughputInMBps = nil
		}
	}
}

func typesWithUnexported() []any {
	return []any{
		ec2types.InstanceTypeInfo{}, ec2types.NetworkInfo{}, ec2types.NetworkCardInfo{}, ec2types.EfaInfo{},
		ec2types.EbsInfo{}, ec2types.EbsOptimizedInfo{}, ec2types.GpuInfo{}, ec2types.GpuDeviceInfo{},
		ec2types.GpuDeviceMemoryInfo{}, ec2types.NeuronInfo{}, ec2types.NeuronDeviceInfo{},
		ec2types.NeuronDeviceCoreInfo{}, ec2types.NeuronDeviceMemoryInfo{}, ec2types.InstanceStorageInfo{},
		ec2types.ProcessorInfo{}, ec2types.VCpuInfo{}, ec2types.MemoryInfo{}, ec2types.PlacementGroupInfo{},
	}
}

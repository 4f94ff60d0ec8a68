package main

import (
	"context"
	"maps"
	"slices"
	"testing"

	v1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
	"github.com/aws/karpenter-provider-aws/pkg/operator/options"
	"github.com/aws/karpenter-provider-aws/pkg/providers/instancetype"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"

	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/model/resources"
)

// setting has the settings of one EC2NodeClass twice: as arguments for Karpenter's provider, and as Joiner's type
// (ours).
type setting struct {
	family         string
	volumes        []*v1.BlockDeviceMapping
	policy         *v1.InstanceStorePolicy
	interfaces     []*v1.NetworkInterface
	maxPods        *int32
	podsPerCore    *int32
	kubeReserved   map[string]string
	systemReserved map[string]string
	evictionHard   map[string]string
	reservedENIs   int
	overhead       float64

	ours catalog.Settings
}

func p[T any](v T) *T { return &v }

func settings() map[string]setting {
	size := resource.MustParse("100Gi")
	all := map[string]setting{}
	for _, family := range []string{
		catalog.AL2, catalog.AL2023, catalog.Bottlerocket, catalog.Custom, catalog.Windows2019, catalog.Windows2022, catalog.Windows2025,
	} {
		all[family] = setting{family: family, ours: catalog.Settings{Family: family}}
		all[family+" with most settings"] = setting{
			family:         family,
			volumes:        []*v1.BlockDeviceMapping{{DeviceName: p("/dev/xvdb"), EBS: &v1.BlockDevice{VolumeSize: &size}}},
			policy:         p(v1.InstanceStorePolicyRAID0),
			podsPerCore:    p[int32](7),
			kubeReserved:   map[string]string{"cpu": "250m", "pid": "100"},
			systemReserved: map[string]string{"memory": "300Mi"},
			evictionHard:   map[string]string{"memory.available": "3%", "nodefs.available": "5Gi"},
			reservedENIs:   1,
			overhead:       0.06,
			ours: catalog.Settings{
				Family:         family,
				Volumes:        []catalog.Volume{{Device: "/dev/xvdb", Bytes: 100 << 30}},
				InstanceStore:  catalog.RAID0,
				PodsPerCore:    7,
				KubeReserved:   map[string]int64{"cpu": 250, "pid": 100},
				SystemReserved: map[string]int64{"memory": 300 << 20},
				EvictionHard:   map[string]catalog.Threshold{"memory.available": {Percent: 3}, "nodefs.available": {Amount: 5 << 30}},
				ReservedENIs:   1,
				MemoryOverhead: p(0.06),
			},
		}
	}
	all["max pods and interfaces"] = setting{
		family:  catalog.AL2023,
		maxPods: p[int32](250),
		interfaces: []*v1.NetworkInterface{
			{InterfaceType: v1.InterfaceTypeInterface},
			{DeviceIndex: 1, InterfaceType: v1.InterfaceTypeEFAOnly},
		},
		// Family is empty, which means AL2023.
		ours: catalog.Settings{MaxPods: p[int64](250), Interfaces: []catalog.Interface{{}, {Device: 1, EFAOnly: true}}},
	}
	return all
}

// TestProvider builds every type of the table with the code of Karpenter's AWS provider and with Joiner's, for many
// settings. Labels, capacity and allocatable must be equal.
func TestProvider(t *testing.T) {
	t.Parallel()
	table, err := catalog.Embedded()
	if err != nil {
		t.Fatal(err)
	}
	for name, s := range settings() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const maxShown = 5
			agree, differ := 0, 0
			for _, f := range table.Types() {
				if catalog.Incompatible(f, catalog.Settings{Family: s.family}) != "" {
					continue
				}
				ours := catalog.Build(f, s.ours, "us-east-1")
				diff := compare(ours, f, s.build(t.Context(), f))
				if diff == "" {
					agree++
					continue
				}
				if differ++; differ <= maxShown {
					t.Errorf("%s (-Karpenter +Joiner):\n%s", f.Name, diff)
				}
			}
			t.Logf("%d types agree, %d differ", agree, differ)
		})
	}
}

// build returns the type as the provider builds it.
func (s setting) build(ctx context.Context, f catalog.Facts) *cloudprovider.InstanceType {
	overhead := s.overhead
	if overhead == 0 {
		overhead = 0.075 // the default of Joiner and Karpenter
	}
	ctx = options.ToContext(ctx, &options.Options{VMMemoryOverheadPercent: overhead, ReservedENIs: s.reservedENIs})
	return instancetype.NewInstanceType(ctx, infoOf(f), "us-east-1", []string{"us-east-1a"}, []v1.ZoneInfo{{Zone: "us-east-1a"}},
		s.volumes, s.policy, s.interfaces, s.maxPods, s.podsPerCore, s.kubeReserved, s.systemReserved, s.evictionHard,
		nil, s.family, nil)
}

// compare returns the difference between Joiner's type and the provider's type; empty if there is none.
func compare(ours catalog.Type, f catalog.Facts, theirs *cloudprovider.InstanceType) string {
	type node struct {
		Labels                map[string]string
		Capacity, Allocatable resources.Amounts
	}
	return cmp.Diff(
		node{labelsOf(theirs, f), amountsOf(theirs.Capacity), amountsOf(theirs.Allocatable()).RaiseNegatives()},
		node{withoutTenancy(ours.Labels), ours.Capacity, ours.Allocatable},
	)
}

// labelsOf returns the provider's requirements with a single value, without zone and capacity type, which belong to
// offerings. It drops the labels of an unknown clock speed or manufacturer: Joiner has no such labels, the provider has
// them without a meaningful value.
func labelsOf(it *cloudprovider.InstanceType, f catalog.Facts) map[string]string {
	labels := map[string]string{}
	for key, r := range it.Requirements {
		if r.Operator() == corev1.NodeSelectorOpIn && r.Len() == 1 {
			labels[key] = r.Values()[0]
		}
	}
	for _, key := range []string{catalog.LabelZone, catalog.LabelZoneID, catalog.LabelCapacityType} {
		delete(labels, key)
	}
	if slices.Contains(f.Unknown, catalog.UnknownClock) {
		delete(labels, catalog.LabelClock)
	}
	if f.Processor.Manufacturer == "" {
		delete(labels, catalog.LabelCPUManufacturer)
	}
	return labels
}

// withoutTenancy returns the labels without the tenancy. labelsOf drops it, too: the provider's requirement has two
// values.
func withoutTenancy(labels map[string]string) map[string]string {
	out := maps.Clone(labels)
	delete(out, catalog.LabelTenancy)
	return out
}

func amountsOf(list corev1.ResourceList) resources.Amounts {
	var a resources.Amounts
	for name, q := range list {
		n := q.Value()
		if name == corev1.ResourceCPU {
			n = q.MilliValue()
		}
		a = a.With(string(name), n)
	}
	return a
}

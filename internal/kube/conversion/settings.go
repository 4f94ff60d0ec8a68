package conversion

import (
	"fmt"
	"maps"
	"slices"

	awsv1 "github.com/joiner-sh/joiner/api/aws/v1"
	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/model/resources"
)

// Settings returns the fields of an EC2NodeClass that change the capacity of its nodes: AMI family, kubelet, volumes,
// network interfaces. If a field of spec.kubelet cannot be parsed, the error names the field. The settings then lack
// this field, and the fields of spec.kubelet that are read after it.
//
// The caller sets the fields that are not in the object: ReservedENIs, MemoryOverhead, Measured, PlacementGroup and
// PlacementStrategy.
func Settings(class *awsv1.EC2NodeClass) (catalog.Settings, error) {
	spec := class.Spec
	out := catalog.Settings{
		Family:             spec.ResolvedAMIFamily(),
		ConnectionTracking: spec.ConnectionTracking != nil,
	}
	_, out.PublishedImages = spec.Alias()
	if spec.InstanceStorePolicy != nil {
		out.InstanceStore = string(*spec.InstanceStorePolicy)
	}
	if spec.CPUOptions != nil && spec.CPUOptions.NestedVirtualization != nil {
		out.NestedVirtualization = *spec.CPUOptions.NestedVirtualization == nestedVirtualizationOn
	}
	for _, m := range spec.BlockDeviceMappings {
		out.Volumes = append(out.Volumes, volumeOf(m))
	}
	for _, n := range spec.NetworkInterfaces {
		out.Interfaces = append(out.Interfaces, catalog.Interface{
			Card:    int64(n.NetworkCardIndex),
			Device:  int64(n.DeviceIndex),
			EFAOnly: n.InterfaceType == awsv1.InterfaceTypeEFAOnly,
		})
	}
	err := kubeletSettings(&out, spec.Kubelet)
	if err != nil {
		err = fmt.Errorf("read ec2nodeclass %s: %w", class.Name, err)
	}
	return out, err
}

func volumeOf(m awsv1.BlockDeviceMapping) catalog.Volume {
	out := catalog.Volume{Root: m.RootVolume}
	if m.DeviceName != nil {
		out.Device = *m.DeviceName
	}
	if m.EBS != nil && m.EBS.VolumeSize != nil {
		out.Bytes = whole(*m.EBS.VolumeSize)
	}
	return out
}

// kubeletSettings sets the fields of out that come from spec.kubelet, and stops at the first error. kubelet is
// spec.kubelet, and may be nil.
func kubeletSettings(out *catalog.Settings, kubelet *awsv1.KubeletConfiguration) error {
	if kubelet == nil {
		return nil
	}
	if kubelet.MaxPods != nil {
		pods := int64(*kubelet.MaxPods)
		out.MaxPods = &pods
	}
	if kubelet.PodsPerCore != nil {
		out.PodsPerCore = int64(*kubelet.PodsPerCore)
	}
	var err error
	if out.KubeReserved, err = parseReserved("kubeReserved", kubelet.KubeReserved); err != nil {
		return err
	}
	if out.SystemReserved, err = parseReserved("systemReserved", kubelet.SystemReserved); err != nil {
		return err
	}
	out.EvictionHard = make(map[string]catalog.Threshold, len(kubelet.EvictionHard))
	for _, signal := range slices.Sorted(maps.Keys(kubelet.EvictionHard)) {
		threshold, err := catalog.ParseThreshold(kubelet.EvictionHard[signal])
		if err != nil {
			return fmt.Errorf("spec.kubelet.evictionHard[%s]: %w", signal, err)
		}
		out.EvictionHard[signal] = threshold
	}
	return nil
}

func parseReserved(field string, quantities map[string]string) (map[string]int64, error) {
	out := make(map[string]int64, len(quantities))
	for _, name := range slices.Sorted(maps.Keys(quantities)) {
		value, err := resources.Parse(name, quantities[name])
		if err != nil {
			return nil, fmt.Errorf("spec.kubelet.%s: %w", field, err)
		}
		out[name] = value
	}
	return out, nil
}

const nestedVirtualizationOn = "enabled"

package world

import (
	"maps"
	"slices"
)

// interfaces makes the network interfaces of a new instance.
func (b birth) interfaces(w *World, i Instance) []NetworkInterface {
	specs := b.data.Interfaces
	if len(specs) == 0 {
		specs = []InterfaceSpec{{}}
	}
	out := make([]NetworkInterface, 0, len(specs))
	for n, spec := range specs {
		ni := NetworkInterface{
			ID: w.NewID("eni"), SubnetID: b.subnet.ID, SecurityGroupIDs: b.groups,
			Card: value(spec.CardIndex), Device: value(spec.DeviceIndex),
			Kind: or(spec.Kind, "interface"), Tags: maps.Clone(b.tags["network-interface"]),
		}
		switch {
		case n == 0:
			ni.PrivateIP, ni.PrivateDNSName = i.PrivateIP, i.PrivateDNSName
		case ni.Kind != "efa-only":
			if a, ok := b.subnet.take(); ok {
				ni.PrivateIP, ni.PrivateDNSName = a.String(), PrivateName(i.Region, a.String())
			}
		}
		b.subnet.addressed(&ni, spec)
		out = append(out, ni)
	}
	return out
}

// volumes makes the EBS volumes of a new instance: those of its image, as altered
// and added to by the request, sorted by device.
func (b birth) volumes(w *World) []Volume {
	byDevice := map[string]Volume{}
	for _, v := range b.image.Volumes {
		byDevice[v.Device] = Volume{Device: v.Device, SizeGiB: v.SizeGiB, Kind: or(v.Kind, "gp3"), Encrypted: v.Encrypted, DeleteOnTermination: true}
	}
	for _, d := range b.data.Devices {
		if d.NoDevice != nil {
			delete(byDevice, d.DeviceName)
		}
		if d.EBS == nil {
			continue
		}
		v, ok := byDevice[d.DeviceName]
		if !ok {
			v = Volume{Device: d.DeviceName, Kind: "gp2", DeleteOnTermination: true}
		}
		v.Kind = or(d.EBS.Kind, v.Kind)
		if d.EBS.SizeGiB != nil {
			v.SizeGiB = *d.EBS.SizeGiB
		}
		if d.EBS.Encrypted != nil {
			v.Encrypted = *d.EBS.Encrypted
		}
		if d.EBS.DeleteOnTermination != nil {
			v.DeleteOnTermination = *d.EBS.DeleteOnTermination
		}
		byDevice[d.DeviceName] = v
	}
	out := make([]Volume, 0, len(byDevice))
	for _, device := range slices.Sorted(maps.Keys(byDevice)) {
		v := byDevice[device]
		v.ID, v.Tags = w.NewID("vol"), maps.Clone(b.tags["volume"])
		out = append(out, v)
	}
	return out
}

// value returns what a number points at, 0 for nil.
func value(n *int64) int64 {
	if n == nil {
		return 0
	}
	return *n
}

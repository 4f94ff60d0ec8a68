package world

import (
	"cmp"
	"maps"
	"slices"

	"github.com/joiner-sh/joiner/internal/emulator/world/failure"
	"github.com/joiner-sh/joiner/internal/emulator/world/network"
)

// newInterfaces creates the network interfaces of a new instance. The first has the addresses of the instance.
func (b resolvedLaunch) newInterfaces(w *World, i Instance) []NetworkInterface {
	specs := b.data.Interfaces
	if len(specs) == 0 {
		specs = []InterfaceSpec{{}} // one default interface
	}
	out := make([]NetworkInterface, 0, len(specs))
	for n, spec := range specs {
		ni := NetworkInterface{
			ID: w.idGenerator().New("eni"), SubnetID: b.subnet.ID, SecurityGroupIDs: b.groups,
			Card: value(spec.CardIndex), Device: value(spec.DeviceIndex),
			Kind: cmp.Or(spec.Kind, "interface"), Tags: maps.Clone(b.tags["network-interface"]),
		}
		switch {
		case n == 0:
			ni.PrivateIP, ni.PrivateDNSName = i.PrivateIP, i.PrivateDNSName
		case ni.Kind != "efa-only": // efa-only: without an IP address
			if a, ok := b.subnet.TakeAddress(); ok {
				ni.PrivateIP, ni.PrivateDNSName = a.String(), network.PrivateName(i.Region, a.String())
			}
		}
		addAddresses(b.subnet, &ni, spec)
		out = append(out, ni)
	}
	return out
}

// newVolumes creates the EBS volumes of a new instance, sorted by device. The request's devices change, remove or add
// volumes of the image.
func (b resolvedLaunch) newVolumes(w *World) []Volume {
	byDevice := map[string]Volume{}
	for _, v := range b.image.Volumes {
		byDevice[v.Device] = Volume{
			Device:              v.Device,
			SizeGiB:             v.SizeGiB,
			Kind:                cmp.Or(v.Kind, "gp3"),
			Encrypted:           v.Encrypted,
			DeleteOnTermination: true,
		}
	}
	for _, d := range b.data.Devices {
		if d.NoDevice != nil {
			delete(byDevice, d.DeviceName)
		}
		if d.EBS == nil {
			continue
		}
		v, ok := byDevice[d.DeviceName]
		if !ok { // the image has no such volume, and EC2's default type is gp2
			v = Volume{Device: d.DeviceName, Kind: "gp2", DeleteOnTermination: true}
		}
		v.Kind = cmp.Or(d.EBS.Kind, v.Kind)
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
		v.ID, v.Tags = w.idGenerator().New("vol"), maps.Clone(b.tags["volume"])
		out = append(out, v)
	}
	return out
}

// addAddresses assigns the IPv6 addresses and the prefixes that the specification of an interface requests.
func addAddresses(s *network.Subnet, ni *NetworkInterface, spec InterfaceSpec) {
	for range value(spec.IPv6AddressCount) {
		ni.IPv6 = append(ni.IPv6, s.TakeIPv6().String())
	}
	ni.PrimaryIPv6 = len(ni.IPv6) > 0 && spec.PrimaryIPv6 != nil && *spec.PrimaryIPv6
	for range value(spec.IPv6PrefixCount) {
		ni.Prefixes = append(ni.Prefixes, s.TakeIPv6Prefix().String())
	}
	for range value(spec.IPv4PrefixCount) {
		if p, ok := s.TakeIPv4Prefix(); ok {
			ni.Prefixes = append(ni.Prefixes, p.String())
		}
	}
}

// checkIPv6 returns an error if a launch requests IPv6 addresses in a subnet without an IPv6 block. EC2's message for
// this error is not documented.
func checkIPv6(d TemplateData, s *network.Subnet) error {
	for _, i := range d.Interfaces {
		if value(i.IPv6AddressCount)+value(i.IPv6PrefixCount) > 0 && !s.IPv6.IsValid() {
			return failure.New("InvalidParameterValue", "The subnet '%s' has no IPv6 CIDR block associated.", s.ID)
		}
	}
	return nil
}

// countIPv4 returns the number of IPv4 addresses that the interfaces of one instance need.
func countIPv4(d TemplateData) int {
	n := max(1, len(d.Interfaces))
	for _, i := range d.Interfaces {
		n += int(value(i.IPv4PrefixCount)) * network.PrefixSize4
	}
	return n
}

func value(n *int64) int64 {
	if n == nil {
		return 0
	}
	return *n
}

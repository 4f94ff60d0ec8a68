// Package network is the state of a region's VPCs: subnets with their addresses, security groups, route tables,
// endpoints, network ACLs and DHCP options.
//
// In: calls about VPCs as values, and the addresses that instances take and return.
// Out: VPCs and their resources, and free addresses.
// Never: an instance, a packet, a clock or a wire format.
package network

// Package nodeclass reconciles an EC2NodeClass, and deletes its launch templates and instance profiles with it. It
// resolves subnets, security groups, images, instance profile, placement group and capacity reservations, checks them
// before a launch, and warns about fields without effect.
//
// In: an EC2NodeClass, AWS.
// Out: its status.
// Never: launching an instance.
package nodeclass

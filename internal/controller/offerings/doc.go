// Package offerings keeps the catalog of instance types with prices, zonal shifts, NodeOverlays and measured memory, and
// builds the launch request of a NodeClaim from it: offerings in order of price, launch template, user data, placement group
// and capacity reservation.
//
// In: AWS prices and instance types, NodeOverlays, the EC2NodeClass.
// Out: the catalog, and launch requests.
// Never: a launch.
package offerings

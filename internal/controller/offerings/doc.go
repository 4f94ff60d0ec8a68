// Package offerings keeps the catalog of instance types: prices, zonal shifts, NodeOverlays and measured memory. From
// the catalog it builds the launch request of a NodeClaim: offerings in order of price, launch template, user data,
// placement group and capacity reservation.
//
// In: AWS prices and instance types, NodeOverlays, the EC2NodeClass.
// Out: the catalog, launch requests.
// Never: launching an instance.
package offerings

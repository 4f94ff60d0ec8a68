// Package lab is a real Kubernetes control plane beside an emulated AWS, in one command.
//
// In: how big and how quick the lab should be.
// Out: a cluster whose nodes are bought, booted and joined as on EKS, and the addresses of both.
// Never: a call to a real cloud, a need for root, or anything left behind when it ends.
package lab

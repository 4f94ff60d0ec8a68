// Package joiner is a node autoscaler for Amazon EKS.
//
// The folders of this module are the steps of its flow; ARCHITECTURE.md describes
// it on one page, and internal/repocheck enforces it.
package joiner

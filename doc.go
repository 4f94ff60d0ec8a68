// Package joiner is a node autoscaler for Amazon EKS.
//
// ARCHITECTURE.md describes its packages and the data flow between them. internal/repocheck enforces which package may
// import which.
package joiner

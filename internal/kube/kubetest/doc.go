// Package kubetest provides Kubernetes objects, an API server in memory and a text form of snapshots for tests.
//
// In: names and sizes.
// Out: pods, pools and nodes as the API server stores them.
// Never: code of the product; only tests import it.
package kubetest

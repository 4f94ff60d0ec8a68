package kubelet

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Settings are the flags and the configuration of one kubelet, and properties of its instance.
type Settings struct {
	NodeName   string            // name of the Node
	ProviderID string            // "aws:///us-east-1a/i-0…"; empty if the kubelet's configuration does not set it
	IP         string            // the node's address in the cluster's IP family
	ClusterDNS []string          // DNS servers of the node's pods
	Labels     map[string]string // from --node-labels
	Taints     []corev1.Taint    // from registerWithTaints

	// ExternalCloud is --cloud-provider=external: the node has the taint node.cloudprovider.kubernetes.io/uninitialized
	// until the cloud controller has initialized the node.
	ExternalCloud bool

	// OwnNetwork means that the node runs a single pod with the node's address and no network plug-in (Fargate).
	OwnNetwork bool
	// BeforeRemoval is called before a pod is removed from the node. nil disables the call.
	BeforeRemoval func()

	// PodAddresses returns how many addresses the VPC CNI can assign to pods on this node. environment has the
	// variables of the VPC CNI's own pod. A nil function means unlimited.
	PodAddresses func(environment map[string]string) int64

	// Capacity and Allocatable are the resources that the kubelet reports, without Devices.
	Capacity, Allocatable corev1.ResourceList
	// Devices are the resources that a device plug-in registers once it runs on the node, such as "nvidia.com/gpu".
	Devices corev1.ResourceList
	// HopLimit is the hop limit of the metadata service. With a limit of 1, only pods with hostNetwork can reach the
	// service. 0: unknown.
	HopLimit int64

	Arch          string // "amd64" or "arm64"
	OSImage       string
	KernelVersion string // output of uname -r
	Version       string // of the kubelet

	// Server is the URL of the API server. CA is the PEM certificate of the authority that signed its certificate.
	Server string
	CA     []byte
	// Proxy is the host and port of the proxy through which the kubelet calls the server. The lab has no proxy, so
	// these calls time out. Empty: no proxy.
	Proxy string
	// Reach returns the reason why the instance cannot reach the server, or nil. It is called before each request. A
	// nil function means that the server is always reachable.
	Reach func() error

	// Token returns the bearer token for the API server.
	Token func() (string, error)
	// Say adds a line to the kubelet's log.
	Say func(line string)
}

// Pace has the delays of steps on a node. The zero value means no delays.
type Pace struct {
	CNI      time.Duration // from registration until the network plug-in is ready, without an aws-node pod
	PodStart time.Duration // from binding a pod until it runs
	PodStop  time.Duration // from a pod's deletion until it is gone; never longer than its grace period
}

// Annotations that control how a pod of a lab ends.
const (
	// AnnotationRunFor is how long the pod runs until it ends by itself, a Go duration.
	AnnotationRunFor = "lab.joiner.sh/run-for"
	// AnnotationExitCode is the exit code of a pod that ends by itself; "0" when absent.
	AnnotationExitCode = "lab.joiner.sh/exit-code"
	// AnnotationStopAfter is how long the pod takes to stop, a Go duration.
	AnnotationStopAfter = "lab.joiner.sh/stop-after"
)

// Defaults of the kubelet.
const (
	leaseDuration   = 40 * time.Second  // nodeLeaseDurationSeconds
	leaseRenewal    = leaseDuration / 4 // interval between renewals of the lease
	statusHeartbeat = 5 * time.Minute   // nodeStatusReportFrequency
)

package kubelet

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Settings are what one kubelet knows about itself when it starts: its flags
// and configuration, and the machine it runs on.
type Settings struct {
	NodeName   string
	ProviderID string            // "aws:///us-east-1a/i-0…"; empty when nothing told the kubelet
	IP         string            // of the cluster's family
	ClusterDNS []string          // where its pods look for names
	Labels     map[string]string // from --node-labels
	Taints     []corev1.Taint    // from registerWithTaints

	// ExternalCloud is --cloud-provider=external: the node waits, tainted, for
	// the cloud's controller to describe it.
	ExternalCloud bool

	// OwnNetwork is a machine that needs no network plug-in: it is one pod's alone, which has the machine's own address.
	OwnNetwork bool
	// Leaving is told of a pod that is about to be gone from the machine; nil: nobody is.
	Leaving func()

	// PodAddresses is how many addresses the VPC CNI can give to pods on this machine, set as the environment of its
	// own pod says; nil: as many as are wanted.
	PodAddresses func(environment map[string]string) int64

	Capacity, Allocatable corev1.ResourceList
	// Devices are what a device plug-in tells the kubelet of, once it runs here: "nvidia.com/gpu".
	Devices corev1.ResourceList
	// HopLimit is how many hops answers of the metadata service take; 1 reaches no pod but those on the host's network. 0: not known.
	HopLimit int64

	Arch          string // "amd64" or "arm64"
	OSImage       string
	KernelVersion string
	Version       string // of the kubelet

	// Server and CA (PEM) are whom the kubelet's kubeconfig names.
	Server string
	CA     []byte
	// Proxy is the host and port of the proxy that the kubelet asks for the server; it does not answer. Empty: none.
	Proxy string
	// Reach says why the machine cannot reach the server, nil if it can. It is
	// asked before each request. Nil means always.
	Reach func() error

	// Token makes the bearer token that the kubelet shows to the API server.
	Token func() (string, error)
	// Say adds a line to the kubelet's log.
	Say func(line string)
}

// Pace is how long things take on a node. The zero value takes no time at all.
type Pace struct {
	CNI      time.Duration // from registration until the network plug-in is ready, where no aws-node pod decides it
	PodStart time.Duration // from a pod being bound until it runs
	PodStop  time.Duration // from a pod's deletion until it is gone; never longer than its grace period
}

// Annotations by which a pod of a lab says how long it lives.
const (
	// AnnotationRunFor makes the pod end by itself after a Go duration.
	AnnotationRunFor = "lab.joiner.sh/run-for"
	// AnnotationExitCode is the exit code of a pod that ends by itself; "0" when absent.
	AnnotationExitCode = "lab.joiner.sh/exit-code"
	// AnnotationStopAfter is how long the pod takes to stop, a Go duration.
	AnnotationStopAfter = "lab.joiner.sh/stop-after"
)

// leaseDuration and heartbeat are the kubelet's defaults: nodeLeaseDurationSeconds
// and a quarter of it, and nodeStatusReportFrequency.
const (
	leaseDuration   = 40 * time.Second
	leaseRenewal    = 10 * time.Second
	statusHeartbeat = 5 * time.Minute
)

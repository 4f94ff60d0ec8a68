package v1

import (
	"k8s.io/apimachinery/pkg/api/resource"
)

// BlockDeviceMapping attaches an EBS volume to an instance.
type BlockDeviceMapping struct {
	// DeviceName is the name of the device in the AMI, for example /dev/xvda. The schema allows to omit it; EC2 does not.
	// +optional
	DeviceName *string `json:"deviceName,omitempty"`
	// EBS has the settings of the volume. The schema allows to omit it, so it may be nil.
	// +kubebuilder:validation:XValidation:rule="has(self.snapshotID) || has(self.volumeSize)",message="set snapshotID or volumeSize"
	// +kubebuilder:validation:XValidation:rule="!has(self.volumeInitializationRate) || (has(self.snapshotID) && self.snapshotID != '')",message="volumeInitializationRate needs a snapshotID"
	// +optional
	EBS *BlockDevice `json:"ebs,omitempty"`
	// RootVolume is true if the kubelet's files, and so the pods' ephemeral storage, are on this volume.
	// +optional
	RootVolume bool `json:"rootVolume,omitempty"`
}

// BlockDevice is an EBS volume. A field that is not set has the default of EC2 or the value of the snapshot.
type BlockDevice struct {
	// DeleteOnTermination is whether the volume is deleted with its instance.
	// +optional
	DeleteOnTermination *bool `json:"deleteOnTermination,omitempty"`
	// Encrypted is whether the volume is encrypted. It cannot be set with SnapshotID.
	// +optional
	Encrypted *bool `json:"encrypted,omitempty"`
	// IOPS are the I/O operations per second of a gp3, io1 or io2 volume.
	// +optional
	IOPS *int64 `json:"iops,omitempty"`
	// KMSKeyID is the id, alias or ARN of the key to encrypt with.
	// +optional
	KMSKeyID *string `json:"kmsKeyID,omitempty"`
	// SnapshotID is the snapshot to start from.
	// +optional
	SnapshotID *string `json:"snapshotID,omitempty"`
	// Throughput of a gp3 volume, in MiB/s, 125 to 1000.
	// +optional
	Throughput *int64 `json:"throughput,omitempty"`
	// VolumeInitializationRate is how fast the snapshot is copied onto the volume, in MiB/s.
	// +kubebuilder:validation:Minimum=100
	// +kubebuilder:validation:Maximum=300
	// +optional
	VolumeInitializationRate *int32 `json:"volumeInitializationRate,omitempty"`
	// VolumeSize in Gi, G, Ti or T, up to 64T. It must be a string with a unit: a number of bytes is rejected.
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^((?:[1-9][0-9]{0,3}|[1-4][0-9]{4}|[5][0-8][0-9]{3}|59000)Gi|(?:[1-9][0-9]{0,3}|[1-5][0-9]{4}|[6][0-3][0-9]{3}|64000)G|([1-9]||[1-5][0-7]|58)Ti|([1-9]||[1-5][0-9]|6[0-3]|64)T)$`
	// +optional
	VolumeSize *resource.Quantity `json:"volumeSize,omitempty" hash:"string"`
	// VolumeType of the volume.
	// +kubebuilder:validation:Enum=standard;io1;io2;gp2;sc1;st1;gp3
	// +optional
	VolumeType *string `json:"volumeType,omitempty"`
}

// InstanceStorePolicy defines the use of instance store volumes.
//
// +kubebuilder:validation:Enum=RAID0
type InstanceStorePolicy string

// InstanceStoreRAID0 combines the volumes to one RAID 0 array for the pods' ephemeral storage.
const InstanceStoreRAID0 InstanceStorePolicy = "RAID0"

// InterfaceType is the kind of traffic that a network interface carries.
//
// +kubebuilder:validation:Enum=interface;efa-only
type InterfaceType string

// The interface types.
const (
	// InterfaceTypeInterface carries IP traffic.
	InterfaceTypeInterface InterfaceType = "interface"
	// InterfaceTypeEFAOnly carries only EFA traffic and has no IP address.
	InterfaceTypeEFAOnly InterfaceType = "efa-only"
)

// NetworkInterface is one interface that an instance starts with.
type NetworkInterface struct {
	// NetworkCardIndex is the index of the network card.
	// +kubebuilder:validation:Minimum=0
	NetworkCardIndex int32 `json:"networkCardIndex"`
	// DeviceIndex is the index of the interface on its network card. The primary interface is 0 on card 0.
	// +kubebuilder:validation:Minimum=0
	DeviceIndex int32 `json:"deviceIndex"`
	// InterfaceType is interface (IP traffic) or efa-only.
	InterfaceType InterfaceType `json:"interfaceType"`
}

// MetadataOptions defines the access to the instance metadata service.
type MetadataOptions struct {
	// HTTPEndpoint enables or disables the service.
	// +kubebuilder:default=enabled
	// +kubebuilder:validation:Enum=enabled;disabled
	// +optional
	HTTPEndpoint *string `json:"httpEndpoint,omitempty"`
	// HTTPProtocolIPv6 enables or disables the service's IPv6 address.
	// +kubebuilder:default=disabled
	// +kubebuilder:validation:Enum=enabled;disabled
	// +optional
	HTTPProtocolIPv6 *string `json:"httpProtocolIPv6,omitempty"`
	// HTTPPutResponseHopLimit is the maximum number of network hops of a response with a token. With 1, only pods with
	// hostNetwork get a token.
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=64
	// +optional
	HTTPPutResponseHopLimit *int64 `json:"httpPutResponseHopLimit,omitempty"`
	// HTTPTokens is required (IMDSv2) or optional.
	// +kubebuilder:default=required
	// +kubebuilder:validation:Enum=required;optional
	// +optional
	HTTPTokens *string `json:"httpTokens,omitempty"`
}

// ConnectionTracking sets the idle timeouts, in seconds, of tracked connections. A timeout that is not set has the
// default of EC2.
//
// +kubebuilder:validation:XValidation:rule="has(self.tcpEstablishedTimeout) || has(self.udpStreamTimeout) || has(self.udpTimeout)",message="set at least one of tcpEstablishedTimeout, udpStreamTimeout and udpTimeout"
type ConnectionTracking struct {
	// TCPEstablishedTimeout is the timeout of established TCP connections, in seconds.
	// +kubebuilder:validation:Minimum=60
	// +kubebuilder:validation:Maximum=432000
	// +optional
	TCPEstablishedTimeout *int32 `json:"tcpEstablishedTimeout,omitempty"`
	// UDPStreamTimeout is the timeout of UDP flows with more than one request and response, in seconds.
	// +kubebuilder:validation:Minimum=60
	// +kubebuilder:validation:Maximum=180
	// +optional
	UDPStreamTimeout *int32 `json:"udpStreamTimeout,omitempty"`
	// UDPTimeout is the timeout of other UDP flows, in seconds.
	// +kubebuilder:validation:Minimum=30
	// +kubebuilder:validation:Maximum=60
	// +optional
	UDPTimeout *int32 `json:"udpTimeout,omitempty"`
}

// CPUOptions are the CPU options of an instance.
type CPUOptions struct {
	// NestedVirtualization enables virtual machines on the instance. Only instance types that support it are then launched.
	// +kubebuilder:validation:Enum=enabled;disabled
	// +optional
	NestedVirtualization *string `json:"nestedVirtualization,omitempty"`
}

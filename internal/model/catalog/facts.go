package catalog

// Facts are the fields of EC2's DescribeInstanceTypes that Joiner uses. They depend on neither the region nor a
// NodeClass. The client in aws/ec2 reads them from the API, and the emulator serves them.
//
// A number is 0 if EC2 does not report the fact, or if the fact is listed in Unknown.
type Facts struct {
	Name string // "m5.large"

	CurrentGeneration bool // EC2's CurrentGeneration
	FreeTier          bool // never set in the embedded table
	BareMetal         bool // no hypervisor
	Burstable         bool // earns and spends CPU credits
	NitroEnclaves     bool // never set in the embedded table

	UsageClasses        []string // any of "on-demand", "spot", "capacity-block"; sorted
	Virtualization      []string // any of "hvm", "paravirtual"; sorted
	Hypervisor          string   // "nitro" or "xen"; empty for bare metal
	PlacementStrategies []string // any of "cluster", "partition", "spread"; sorted
	BootModes           []string // any of "legacy-bios", "uefi"; sorted
	RootDevices         []string // any of "ebs", "instance-store"; sorted

	Processor Processor // architecture, vCPUs and clock
	MemoryMiB int64     // EC2's MemoryInfo.SizeInMiB
	Storage   Storage   // zero: no local disks
	EBS       EBS       // bandwidth, IOPS and attachments of EBS
	Network   Network   // interfaces, addresses and bandwidth

	GPUs      []Accelerator // GpuInfo: NVIDIA, AMD, Habana, Qualcomm…
	Inference []Accelerator // InferenceAcceleratorInfo: inf1, dl2q
	Neuron    []Neuron      // NeuronInfo: inf2, trn1, trn2
	FPGAs     []Accelerator // FpgaInfo: f1, f2

	// Unknown lists the facts that EC2 reports and the embedded table lacks: Unknown… constants, sorted. Facts from
	// the API have none.
	Unknown []string
}

// Names of facts that the sources of the embedded table lack for some types.
const (
	UnknownClock       = "processor.clockMHz"
	UnknownEBS         = "ebs.bandwidth"
	UnknownBandwidth   = "network.baselineMbps"
	UnknownStorage     = "storage"     // the type has local disks of unknown size
	UnknownAccelerator = "accelerator" // the type has FPGAs of unknown model
)

// Processor is the processor of a type.
type Processor struct {
	// Architectures are EC2's names in EC2's order: "x86_64", "arm64", "i386", "x86_64_mac", "arm64_mac". The node has
	// the first that Kubernetes supports.
	Architectures []string
	Manufacturer  string   // "Intel", "AMD", "AWS"
	ClockMHz      int64    // sustained; EC2 reports GHz with one or two decimals
	Features      []string // "amd-sev-snp", "nested-virtualization"; sorted

	VCPUs          int64 // EC2's DefaultVCpus
	Cores          int64 // EC2's DefaultCores
	ThreadsPerCore int64 // EC2's DefaultThreadsPerCore
}

// Storage is the local disks of a type.
type Storage struct {
	TotalGB int64  // decimal gigabytes, as EC2 counts them
	Disks   []Disk // groups of equal disks
	NVMe    string // "required", "supported" or "unsupported"
}

// Disk is a number of equal local disks.
type Disk struct {
	Count  int64  // number of disks
	SizeGB int64  // size of one disk, in decimal gigabytes
	Kind   string // "ssd" or "hdd"
}

// EBS is the connection of a type to its EBS volumes.
type EBS struct {
	// Optimized says when the type is EBS-optimized: "default" (always), "supported" (on request) or "unsupported". If
	// it is "unsupported", the bandwidths are 0.
	Optimized    string
	BaselineMbps int64
	MaximumMbps  int64
	BaselineIOPS int64
	MaximumIOPS  int64
	NVMe         string // "required", "supported" or "unsupported"
}

// Network is the network interfaces of a type.
type Network struct {
	Performance string // EC2's words: "Up to 10 Gigabit"
	// BaselineMbps is the sustained bandwidth over all cards. The embedded table has it from EC2's documentation. The
	// client does not read the API's field, NetworkCardInfo.BaselineBandwidthInGbps.
	BaselineMbps  int64
	Cards         []NetworkCard // sorted by index; never empty
	DefaultCard   int64         // index of the card of the first interface
	MaxInterfaces int64         // maximum number of interfaces, over all cards

	IPv4PerInterface int64  // addresses of one interface, the primary one included
	IPv6PerInterface int64  // addresses of one interface
	IPv6             bool   // the type supports IPv6
	ENA              string // "required", "supported" or "unsupported"
	EFAInterfaces    int64  // maximum number of EFA interfaces; 0: no EFA

	EncryptionInTransit bool // traffic between two types with this feature is encrypted

	// BranchInterfaces is how many pods of a node can have an interface of their own (security groups for pods); 0 if
	// the type does not support trunking. The API does not report it: Amazon publishes it with the VPC resource
	// controller.
	BranchInterfaces int64
}

// NetworkCard is one network card of a type.
type NetworkCard struct {
	Index         int64  // index of the card, from 0
	MaxInterfaces int64  // maximum number of interfaces of the card
	Performance   string // "25 Gigabit"
}

// Accelerator is a number of equal devices.
type Accelerator struct {
	Name         string // "H100"
	Manufacturer string // "NVIDIA"
	Count        int64  // number of devices; 0 for a fraction of a device (g6f)
	MemoryMiB    int64  // memory of one device
}

// Neuron is a number of equal Inferentia or Trainium devices.
type Neuron struct {
	Name        string // "Inferentia2"
	Count       int64  // number of devices
	Cores       int64  // Neuron cores of one device
	CoreVersion int64  // generation of the Neuron cores
	MemoryMiB   int64  // memory of one device
}

// Arch returns "amd64" or "arm64", the name in Kubernetes of the first of the type's architectures that Kubernetes
// supports. It is empty for a type that cannot be a node (only i386, or Mac).
func (f Facts) Arch() string {
	for _, a := range f.Processor.Architectures {
		switch a {
		case "x86_64":
			return "amd64"
		case "arm64":
			return "arm64"
		}
	}
	return ""
}

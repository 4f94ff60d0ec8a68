package catalog

import (
	"slices"
	"strconv"
	"strings"
)

// ForeignLabel describes a node label that another system sets, and the corresponding label on nodes of a NodePool.
type ForeignLabel struct {
	Owner string // the system that sets the label, "GKE"; if empty, the system is unknown and Value is a capacity type
	Key   string // the corresponding label; empty if there is none
	Value string // the corresponding value of Key; empty if unknown
}

// foreignDomains returns, by domain, the system that sets the node labels of the domain; empty if a NodePool may set
// them. A domain includes its subdomains. If several domains match a label, the longest one decides. agentpool and keys
// with a slash are labels, not domains.
func foreignDomains() map[string]string {
	return map[string]string{
		"eks.amazonaws.com":              "EKS (managed node groups, Fargate, Auto Mode)",
		"eksctl.io":                      "eksctl (node groups)",
		"cloud.google.com":               "GKE",
		"gke.io":                         "GKE",
		"kubernetes.azure.com":           "AKS",
		"karpenter.azure.com":            "Karpenter on Azure",
		"kops.k8s.io":                    "kOps (instance groups)",
		"spotinst.io":                    "Spot Ocean",
		"cast.ai":                        "CAST AI",
		"oraclecloud.com":                "Oracle Cloud",
		"doks.digitalocean.com":          "DigitalOcean",
		"feature.node.kubernetes.io":     "Node Feature Discovery, after a node has joined",
		"nvidia.com":                     "NVIDIA GPU feature discovery, after a node has joined",
		"amd.com":                        "the AMD GPU node labeller, after a node has joined",
		"csi.aws.com":                    "CSI drivers, after a node has joined",
		"csi.storage.k8s.io":             "CSI drivers, after a node has joined",
		"vpc.amazonaws.com":              "the VPC CNI, after a node has joined",
		"topology.k8s.aws":               "the cloud provider, after a node has joined",
		"k8s.amazonaws.com/accelerator":  "node groups of Cluster Autoscaler",
		"karpenter.sh":                   "the controller",
		"karpenter.sh/provisioner-name":  "Karpenter before 0.32",
		"karpenter.k8s.aws":              "the controller",
		"kubernetes.io":                  "Kubernetes",
		"k8s.io":                         "Kubernetes",
		"node.kubernetes.io":             "", // users may set the labels of this domain and of the next one
		"node-restriction.kubernetes.io": "",
		"agentpool":                      "AKS",
	}
}

// ForeignLabelOf describes the label key if another system sets it, or if its value names a capacity type; otherwise it
// returns false. A NodePool must not set such a label, because its nodes may get another value. value is the value that
// the NodePool sets; empty if the NodePool allows several values.
func ForeignLabelOf(key, value string) (ForeignLabel, bool) {
	domain, name, hasDomain := strings.Cut(key, "/")
	if !hasDomain {
		domain, name = "", key
	}
	out := ForeignLabel{Owner: ownerOf(key, domain)}
	if capacityType := capacityTypeOf(name, value); capacityType != "" {
		out.Key, out.Value = LabelCapacityType, capacityType
		return out, true
	}
	if out.Owner == "" {
		return ForeignLabel{}, false
	}
	out.Key, out.Value = counterpart(domain, name, value)
	return out, true
}

// ownerOf returns the system that sets the label key; empty if users may set it. domain is the part of key before the
// slash.
func ownerOf(key, domain string) string {
	owners := foreignDomains()
	if owner, ok := owners[key]; ok {
		return owner
	}
	for domain != "" {
		if owner, ok := owners[domain]; ok {
			return owner
		}
		_, parent, hasParent := strings.Cut(domain, ".")
		if !hasParent {
			return ""
		}
		domain = parent
	}
	return ""
}

// capacityTypeOf returns the capacity type that a label of another system with this name and value stands for; empty if
// the label stands for none.
func capacityTypeOf(name, value string) string {
	letters := func(text string) string { // "Ec2Spot" becomes "ecspot"
		return strings.Map(func(r rune) rune {
			if r >= 'a' && r <= 'z' {
				return r
			}
			return -1
		}, strings.ToLower(text))
	}
	n, v := letters(name), letters(value)
	if slices.Contains([]string{"gkespot", "spot", "gkepreemptible", "preemptible", "isspot"}, n) && v == "true" {
		return Spot
	}
	if !slices.Contains([]string{
		"capacitytype", "lifecycle", "nodelifecycle", "instancelifecycle", "scalesetpriority", "gkeprovisioning",
		"purchaseoption", "purchasingoption",
		"markettype", "skupriority", "pricing", "pricingmodel", "billing",
	}, n) {
		return ""
	}
	switch v {
	case "spot", "ecspot", "awsspot", "preemptible", "spotinstance":
		return Spot
	case "ondemand", "econdemand", "od", "normal", "regular", "standard":
		return OnDemand
	case "capacityblock", "reserved", "reservation":
		return Reserved
	}
	return ""
}

// counterpart returns, for a label of another system, the corresponding label and its value on a node of a NodePool.
// Without a corresponding label, both are empty. An unknown value is empty.
func counterpart(domain, name, value string) (label, labelValue string) {
	switch name {
	case "nodegroup", "nodegroup-name", "nodegroup-id", "instancegroup", "gke-nodepool", "agentpool", "provisioner-name",
		"node-template-name", "ocean-id":
		return LabelNodePool, "" // a node group of another system has no NodePool with the same name
	case "machine-family", "sku-family":
		return LabelFamily, ""
	case "gke-accelerator", "accelerator", "gpu.product", "sku-gpu-name":
		return LabelGPUName, ""
	case "gpu.present", "gpu.deploy.device-plugin":
		return LabelGPUManufacturer, manufacturerOf(domain)
	case "gpu.count":
		return LabelGPUCount, value
	case "gpu.memory":
		return LabelGPUMemory, value
	case "instance-family", "instance-category", "instance-generation", "instance-size", "instance-cpu", "instance-memory",
		"instance-hypervisor",
		"instance-cpu-manufacturer", "instance-gpu-name", "instance-gpu-manufacturer", "instance-gpu-count", "instance-gpu-memory",
		"instance-local-nvme", "instance-network-bandwidth", "instance-ebs-bandwidth", "instance-encryption-in-transit-supported",
		"instance-accelerator-name", "instance-accelerator-manufacturer", "instance-accelerator-count":
		if domain != "karpenter.k8s.aws" {
			return "karpenter.k8s.aws/" + name, value
		}
	case "instance-type":
		return LabelInstanceType, value
	case "arch":
		return LabelArch, value
	case "os":
		return LabelOS, value
	case "zone":
		return LabelZone, value
	case "region":
		return LabelRegion, value
	}
	return "", ""
}

// manufacturerOf returns the first part of the domain: "nvidia" of "nvidia.com".
func manufacturerOf(domain string) string {
	first, _, _ := strings.Cut(domain, ".")
	return first
}

// LabelNodePool is the label with the name of a node's NodePool.
const LabelNodePool = "karpenter.sh/nodepool"

// mebibytes converts an amount of memory in GiB ("16", "16gib", "16g") to MiB, the unit of memory labels. A number
// without unit is taken as GiB if it is below 512, because every instance has at least 512 MiB. The result is empty if
// text is already in MiB, is not an amount of memory, or is 1 PiB or more, which no instance has.
func mebibytes(text string) string {
	amount := strings.TrimRight(text, "gib ")
	n, err := strconv.Atoi(amount)
	if err != nil || n <= 0 || n >= 1<<20 || amount == text && n >= 512 {
		return ""
	}
	return strconv.Itoa(n << 10)
}

// SuggestedValue returns the probable correct value for a misspelled value of a well-known label. It returns "" if
// value is correct, or if the correct value is unknown.
func SuggestedValue(key, value string) string {
	v := strings.ToLower(strings.TrimSpace(value))
	suggested := ""
	switch key {
	case LabelArch:
		switch v {
		case "x86_64", "x86-64", "x64", "x86", "amd64":
			suggested = "amd64"
		case "aarch64", "arm", "arm64v8", "arm64", "graviton":
			suggested = "arm64"
		}
	case LabelOS:
		switch v {
		case "linux", "windows":
			suggested = v
		}
	case LabelCapacityType:
		suggested = capacityTypeOf("capacity-type", value)
	case LabelMemory, LabelGPUMemory:
		suggested = mebibytes(v)
	case LabelGPUName:
		suggested = strings.TrimPrefix(strings.TrimPrefix(v, "nvidia-"), "tesla-")
	case LabelZone, LabelRegion, LabelInstanceType, LabelCategory, LabelFamily, LabelSize, LabelHypervisor, LabelCPUManufacturer,
		LabelGPUManufacturer, LabelAcceleratorName, LabelAcceleratorManufacturer:
		suggested = v
	}
	if suggested == value {
		return ""
	}
	return suggested
}

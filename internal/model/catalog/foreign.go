package catalog

import (
	"slices"
	"strconv"
	"strings"
)

// ForeignLabel is a node label that another system sets, with the corresponding label on nodes of a NodePool.
type ForeignLabel struct {
	Owner string // the system that sets the label, "GKE"; empty if users set it, with a value that names a capacity type
	Key   string // the corresponding label; empty if there is none
	Value string // the corresponding value of Key; empty if unknown
}

// foreignDomains returns the domains of labels that describe a node and that a NodePool must not set, with the system
// that sets them; empty if users set them. The longest matching domain counts; a domain includes its subdomains.
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
		"node.kubernetes.io":             "", // users may set the labels of these two
		"node-restriction.kubernetes.io": "",
		"agentpool":                      "AKS",
	}
}

// ForeignLabelOf reports whether another system sets the label, so that a NodePool that sets it could be wrong about
// its nodes. value is the only requested value; empty if there are several.
func ForeignLabelOf(key, value string) (ForeignLabel, bool) {
	domain, name, hasDomain := strings.Cut(key, "/")
	if !hasDomain {
		domain, name = "", key
	}
	out := ForeignLabel{Owner: ownerOf(key, domain)}
	if way := capacityTypeOf(name, value); way != "" {
		out.Key, out.Value = LabelCapacityType, way
		return out, true
	}
	if out.Owner == "" {
		return ForeignLabel{}, false
	}
	out.Key, out.Value = counterpart(domain, name, value)
	return out, true
}

// ownerOf returns the system that sets the label; empty if users may set it.
func ownerOf(key, domain string) string {
	owners := foreignDomains()
	if owner, ok := owners[key]; ok {
		return owner
	}
	for at := domain; at != ""; {
		if owner, ok := owners[at]; ok {
			return owner
		}
		_, rest, more := strings.Cut(at, ".")
		if !more {
			return ""
		}
		at = rest
	}
	return ""
}

// capacityTypeOf returns the capacity type that a label of another system stands for; empty if none.
func capacityTypeOf(name, value string) string {
	letters := func(text string) string {
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

// counterpart returns the corresponding label and value on a node of a NodePool; empty if there is none.
func counterpart(domain, name, value string) (string, string) {
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

func manufacturerOf(domain string) string {
	maker, _, _ := strings.Cut(domain, ".")
	return maker
}

// LabelNodePool is the name of the NodePool of a node.
const LabelNodePool = "karpenter.sh/nodepool"

// mebibytes returns an amount of memory in MiB, as in labels; empty if text already has that form. No instance has less
// than 512 MiB, so a number below that is in GiB.
func mebibytes(text string) string {
	digits := strings.TrimRight(text, "gib ")
	n, err := strconv.Atoi(digits)
	if err != nil || n <= 0 || n >= 1<<20 || digits == text && n >= 512 {
		return ""
	}
	return strconv.Itoa(n << 10)
}

// MeantValue returns the value of a well-known label that was most likely meant by a misspelled value; empty if
// unknown.
func MeantValue(key, value string) string {
	v := strings.ToLower(strings.TrimSpace(value))
	meant := ""
	switch key {
	case LabelArch:
		switch v {
		case "x86_64", "x86-64", "x64", "x86", "amd64":
			meant = "amd64"
		case "aarch64", "arm", "arm64v8", "arm64", "graviton":
			meant = "arm64"
		}
	case LabelOS:
		switch v {
		case "linux", "windows":
			meant = v
		}
	case LabelCapacityType:
		meant = capacityTypeOf("capacity-type", value)
	case LabelMemory, LabelGPUMemory:
		meant = mebibytes(v)
	case LabelGPUName:
		meant = strings.TrimPrefix(strings.TrimPrefix(v, "nvidia-"), "tesla-")
	case LabelZone, LabelRegion, LabelInstanceType, LabelCategory, LabelFamily, LabelSize, LabelHypervisor, LabelCPUManufacturer,
		LabelGPUManufacturer, LabelAcceleratorName, LabelAcceleratorManufacturer:
		meant = v
	}
	if meant == value {
		return ""
	}
	return meant
}

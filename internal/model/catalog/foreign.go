package catalog

import (
	"slices"
	"strconv"
	"strings"
)

// ForeignLabel is a node label that another system sets, with the corresponding label on nodes of a NodePool.
type ForeignLabel struct {
	Owner string // the system that sets the label, "GKE"; empty if the users' own tools set it, with a value that means a capacity type
	Key   string // the corresponding label; empty if there is none
	Value string // the corresponding value of Key; empty if unknown
}

// foreignDomains returns the domains of labels that describe a node and that a NodePool must not set, with the system
// that sets them; empty if users may set them. A domain includes its subdomains; of several matching domains, the
// longest applies. An entry with a slash is a complete label.
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

// ownerOf returns the system that sets the label key, whose domain is the part before the slash; empty if users may set
// the label.
func ownerOf(key, domain string) string {
	owners := foreignDomains()
	if owner, ok := owners[key]; ok {
		return owner
	}
	for at := domain; at != ""; {
		if owner, ok := owners[at]; ok {
			return owner
		}
		_, rest, hasParent := strings.Cut(at, ".")
		if !hasParent {
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

// counterpart returns the corresponding label and its value on a node of a NodePool. The label is empty if there is
// none, the value if it is unknown.
func counterpart(domain, name, value string) (label, corresponding string) {
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
	maker, _, _ := strings.Cut(domain, ".")
	return maker
}

// LabelNodePool is the name of the NodePool of a node.
const LabelNodePool = "karpenter.sh/nodepool"

// mebibytes converts an amount of memory in GiB ("16", "16gib", "16g") to MiB, the unit of memory labels. No instance
// has less than 512 MiB, so a number without unit is in GiB if it is lower. The result is empty if text is already in
// MiB or is no such amount.
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

package main

import (
	_ "embed"
	"slices"
	"strings"

	"github.com/aws/karpenter-provider-aws/pkg/providers/instancetype"

	"github.com/joiner-sh/joiner/internal/model/catalog"
)

// This file has the rules that EC2's documentation states for whole families. fakes_test.go compares them with recorded
// API responses.

//go:embed efa.txt
var efaText string

// efaTypes returns the names of the types that support EFA. A line of efa.txt has a family and its sizes with EFA.
func efaTypes() map[string]bool {
	types := map[string]bool{}
	for line := range strings.Lines(efaText) {
		words := strings.Fields(line)
		if len(words) == 0 || words[0] == "#" {
			continue
		}
		for _, size := range words[1:] {
			types[words[0]+"."+size] = true
		}
	}
	return types
}

// optimizedOnRequest are the families for which EBS optimization must be requested. Source: EC2 User Guide, "EBS
// optimization supported".
var optimizedOnRequest = []string{"c1", "c3", "g2", "i2", "m1", "m2", "m3", "r3"}

// unencrypted are the Nitro families that do not encrypt traffic between instances: those of Nitro version 2. Later
// versions encrypt this traffic. Families on Xen do not encrypt it either, but are not listed. Source: EC2 Instance
// Types guide, "Nitro-based instances", network features.
var unencrypted = []string{
	"a1", "c5", "c5d", "c6g", "c6gd", "g5g", "i3", "m5", "m5a", "m5ad", "m5d", "m6g", "m6gd",
	"r5", "r5a", "r5ad", "r5b", "r5d", "r6g", "r6gd", "t3", "t3a", "t4g", "x2gd", "z1d",
}

// xenENA are the Xen families with an Elastic Network Adapter. Source: EC2 User Guide, "Enhanced networking".
var xenENA = []string{"f1", "g3", "g3s", "h1", "i3", "p2", "p3", "r4", "x1", "x1e"}

// placement returns the placement group strategies of a family. supportsCluster is the record's
// placement_group_support, which is false for burstable types and for the previous generation. No flex family supports
// the strategy cluster, even if supportsCluster is true. Source: EC2 User Guide, "Placement strategies".
func placement(family string, supportsCluster bool) []string {
	if supportsCluster && !strings.HasSuffix(family, "-flex") {
		return []string{"cluster", "partition", "spread"}
	}
	return []string{"partition", "spread"}
}

// network returns the network properties of a type from the limits of its network interfaces and its baseline bandwidth
// in Mbps.
func network(limits *instancetype.VPCLimits, baseline int64) catalog.Network {
	n := catalog.Network{
		BaselineMbps:     baseline,
		DefaultCard:      int64(limits.DefaultNetworkCardIndex),
		IPv4PerInterface: int64(limits.IPv4PerInterface),
	}
	for _, c := range limits.NetworkCards {
		n.Cards = append(n.Cards, catalog.NetworkCard{
			Index: c.NetworkCardIndex, MaxInterfaces: c.MaximumNetworkInterfaces, Performance: c.NetworkPerformance,
		})
		n.MaxInterfaces += c.MaximumNetworkInterfaces
	}
	if limits.IsTrunkingCompatible {
		n.BranchInterfaces = int64(limits.BranchInterface)
	}
	return n
}

// applyRules sets the facts that follow from the type's family.
func applyRules(f *catalog.Facts, supportsEFA bool) {
	family, _, _ := strings.Cut(f.Name, ".")
	nitro := f.Hypervisor == "nitro" || f.BareMetal
	if nitro {
		f.EBS.NVMe, f.Network.ENA = "required", "required"
		f.RootDevices = []string{"ebs"}
		f.Network.EncryptionInTransit = !slices.Contains(unencrypted, family)
	} else {
		f.EBS.NVMe, f.Network.ENA = "unsupported", "unsupported"
		if slices.Contains(xenENA, family) || f.Name == "m4.16xlarge" { // the only m4 with ENA
			f.Network.ENA = "supported"
		}
	}
	if f.Network.IPv6 {
		f.Network.IPv6PerInterface = f.Network.IPv4PerInterface
	}
	if supportsEFA {
		f.Network.EFAInterfaces = int64(len(f.Network.Cards)) // one per card
	}
	f.Processor.ThreadsPerCore = threadsPerCore(f.Processor, family)
	f.Processor.Cores = f.Processor.VCPUs / f.Processor.ThreadsPerCore
}

// oneThread are the families, besides those with Graviton (arm64), that have one vCPU per core. Source: EC2 User Guide,
// "CPU options".
var oneThread = []string{
	"c1", "c7a", "c8a", "hpc6a", "hpc6id", "hpc7a", "m1", "m2", "m3", "m7a", "m8a", "m8azn", "r7a", "r8a", "t1", "t2",
}

func threadsPerCore(p catalog.Processor, family string) int64 {
	if p.VCPUs < 2 || slices.Contains(p.Architectures, "arm64") || slices.Contains(oneThread, family) {
		return 1
	}
	return 2
}

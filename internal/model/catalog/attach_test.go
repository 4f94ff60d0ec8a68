package catalog

import "testing"

// TestAttachments compares the limits with the table in aws-ebs-csi-driver 1.5x, which was made from
// DescribeInstanceTypes. The limits include the volumes that a node boots with.
func TestAttachments(t *testing.T) {
	t.Parallel()
	const shared, alone = true, false // whether each further interface reduces the number
	for name, c := range map[string]struct {
		want   int64
		shared bool
	}{
		"t2.medium": {39, alone}, "m4.large": {39, alone}, "i3.large": {39, alone},
		"p3.16xlarge": {39, alone}, "x1e.32xlarge": {39, alone}, "p4d.24xlarge": {28, alone},
		"m5.large": {27, shared}, "t3.medium": {27, shared}, "m7g.large": {27, shared}, "c7gn.16xlarge": {27, shared},
		"m5d.large": {26, shared}, "m5d.24xlarge": {23, shared}, "c6gd.16xlarge": {25, shared}, "i3en.24xlarge": {19, shared},
		"i4i.32xlarge": {19, shared}, "d3.8xlarge": {3, shared}, "d3en.2xlarge": {23, shared},
		"x2iedn.32xlarge": {25, shared}, "z1d.12xlarge": {25, shared},
		"g4dn.xlarge": {25, shared}, "g4dn.12xlarge": {22, shared}, "g4ad.16xlarge": {21, shared},
		"g5.48xlarge": {9, shared}, "g5g.16xlarge": {25, shared}, "p3dn.24xlarge": {17, shared},
		"inf1.24xlarge": {11, shared}, "inf2.xlarge": {26, shared}, "inf2.48xlarge": {28, shared},
		"trn1.2xlarge": {25, shared}, "trn1.32xlarge": {28, shared}, "dl1.24xlarge": {28, shared},
		"m5.metal": {31, shared}, "c6id.metal": {31, shared}, "r7gd.metal": {31, shared},
		"m7i.large": {32, alone}, "m7i-flex.8xlarge": {32, alone}, "c7a.medium": {32, alone},
		"c7i.16xlarge": {48, alone}, "i7ie.18xlarge": {48, alone}, "r7a.24xlarge": {64, alone}, "r7iz.32xlarge": {88, alone},
		"m7a.48xlarge": {128, alone}, "m7i.metal-24xl": {39, alone}, "r7iz.metal-32xl": {79, alone},
		"m8g.medium": {32, alone}, "c8gd.48xlarge": {128, alone}, "r8gn.48xlarge": {64, alone}, "x8g.metal-48xl": {79, alone},
		"c8i.96xlarge": {128, alone}, "m8i.metal-48xl": {64, alone}, "r8i.metal-96xl": {79, alone}, "c8a.metal-24xl": {64, alone},
		"g6.12xlarge": {32, alone}, "g6e.48xlarge": {128, alone}, "gr6.8xlarge": {32, alone},
		"p5.48xlarge": {64, alone}, "f2.48xlarge": {128, alone}, "u7i-6tb.112xlarge": {128, alone},
	} {
		if n, isShared := attachments(factsOf(t, name)); n != c.want || isShared != c.shared {
			t.Errorf("%s: %d attachments, shared %t; want %d, %t", name, n, isShared, c.want, c.shared)
		}
	}
	metal := func(name string, cpus int64, arch string) Facts {
		return Facts{Name: name, BareMetal: true, Processor: Processor{VCPUs: cpus, Architectures: []string{arch}}}
	}
	for want, f := range map[int64]Facts{ // types that the embedded table does not have
		27: {Name: "hpc7a.96xlarge", Hypervisor: "nitro"},
		39: metal("c8gn.metal-48xl", 192, "arm64"),
		78: metal("r8gb.metal-48xl", 192, "arm64"),
		79: metal("x8aedz.metal-24xl", 96, "x86_64"),
		64: {Name: "trn2.48xlarge", Hypervisor: "nitro", Processor: Processor{VCPUs: 192}},
	} {
		if n, isShared := attachments(f); n != want || isShared {
			t.Errorf("%s: %d attachments, shared %t; want %d, not shared", f.Name, n, isShared, want)
		}
	}
}

// TestVolumes: Type.Volumes leaves out boot volumes, and further interfaces if they share the limit.
func TestVolumes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		typ  string
		set  Settings
		want int64
	}{
		"a root volume, the CNI's interface": {"m5.large", Settings{}, 25},
		"a local disk":                       {"m5d.large", Settings{}, 24},
		"interfaces do not count":            {"m7i.large", Settings{}, 31},
		"xen":                                {"t2.medium", Settings{}, 38},
		"bottlerocket has two volumes":       {"m7i.large", Settings{Family: Bottlerocket}, 30},
		"bottlerocket's volumes are mapped": {"m7i.large",
			Settings{Family: Bottlerocket, Volumes: []Volume{{Device: "/dev/xvda"}, {Device: "/dev/xvdb"}}}, 30},
		"windows":                    {"m7i.large", Settings{Family: Windows2022, Volumes: []Volume{{Device: "/dev/sda1"}}}, 31},
		"the root is mapped":         {"m7i.large", Settings{Volumes: []Volume{{Device: "/dev/xvda"}}}, 31},
		"a root with another device": {"m7i.large", Settings{Volumes: []Volume{{Device: "/dev/sda1", Root: true}}}, 31},
		"a further volume":           {"m7i.large", Settings{Volumes: []Volume{{Device: "/dev/xvda"}, {Device: "/dev/sdf"}}}, 30},
		"only a further volume":      {"m7i.large", Settings{Volumes: []Volume{{Device: "/dev/sdf"}}}, 30},
		"custom: one volume is the root": {"m7i.large",
			Settings{Family: Custom, Volumes: []Volume{{Device: "/dev/sda"}, {Device: "/dev/sdb"}}}, 30},
		"four interfaces":                     {"m5.24xlarge", Settings{Interfaces: make([]Interface, 4)}, 23},
		"more interfaces than the type has":   {"m5.large", Settings{Interfaces: make([]Interface, 9)}, 24},
		"never less than one (24 disks)":      {"d3.8xlarge", Settings{Volumes: []Volume{{Device: "/dev/xvda"}, {Device: "/dev/sdf"}}}, 1},
		"the highest limit, without the root": {"m7i.48xlarge", Settings{}, 127},
	} {
		if got := Build(factsOf(t, c.typ), c.set, "r").Volumes; got != c.want {
			t.Errorf("%s: %d volumes, want %d", name, got, c.want)
		}
	}
}

package main

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/joiner-sh/joiner/internal/model/catalog"
)

// table is the generated table in memory.
type table struct {
	types   []catalog.Facts // sorted by name
	byName  map[string]bool // types without a record: their names give vCPUs, memory and processor
	regions []region        // sorted by name
	leftOut []omission      // types of the sources that are not in types, sorted by name
}

// omission is a type that is left out of the table, and the reason.
type omission struct{ name, why string }

// merge combines the sources into one Facts for each type.
func merge(src sources) table {
	t := table{byName: map[string]bool{}}
	scheme := newScheme(src)
	names := map[string]bool{}
	for name := range src.records {
		names[name] = true
	}
	for name := range src.limits {
		names[name] = true
	}
	for name := range src.usEast1 {
		names[name] = true
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		f, why := src.facts(name, scheme)
		if why != "" {
			t.leftOut = append(t.leftOut, omission{name, why})
			continue
		}
		t.types = append(t.types, f)
		if _, hasRecord := src.records[name]; !hasRecord {
			t.byName[name] = true
		}
	}
	t.regions = regions(src, t.types)
	t.dropUnoffered()
	return t
}

// dropUnoffered moves types that no region of the table offers to leftOut.
func (t *table) dropUnoffered() {
	offered := map[string]bool{}
	for _, r := range t.regions {
		for _, row := range r.rows {
			offered[row.typ] = true
		}
	}
	t.types = slices.DeleteFunc(t.types, func(f catalog.Facts) bool {
		if !offered[f.Name] {
			t.leftOut = append(t.leftOut, omission{f.Name, "no price in any region of the table"})
			delete(t.byName, f.Name)
		}
		return !offered[f.Name]
	})
	slices.SortFunc(t.leftOut, func(x, y omission) int { return cmp.Compare(x.name, y.name) })
}

// facts combines the sources' data about a type. If the type cannot be in the table, facts returns the reason as text:
// the data is incomplete, or Kubernetes does not run on the architecture.
func (s sources) facts(name string, scheme scheme) (catalog.Facts, string) {
	limits, ok := s.limits[name]
	if !ok {
		return catalog.Facts{}, "no source says which network cards and hypervisor it has"
	}
	f := catalog.Facts{
		Name:           name,
		UsageClasses:   []string{"on-demand", "spot"},
		Virtualization: []string{"hvm"},
		BareMetal:      limits.IsBareMetal,
		Hypervisor:     limits.Hypervisor,
	}
	f.Network = network(limits, s.bandwidth[name])
	if f.Network.BaselineMbps == 0 {
		f.Unknown = append(f.Unknown, catalog.UnknownBandwidth)
	}
	r, hasRecord := s.records[name]
	if hasRecord {
		describeFromRecord(&f, r, s.clocks)
	} else if why := scheme.describeFromName(&f); why != "" {
		return catalog.Facts{}, why
	}
	applyRules(&f, s.efa[name])
	switch {
	case f.Arch() == "":
		return catalog.Facts{}, "Kubernetes does not run on " + strings.Join(f.Processor.Architectures, ", ")
	case f.MemoryMiB <= 0 || f.Processor.VCPUs <= 0:
		return catalog.Facts{}, "no source says its vCPUs and memory"
	}
	slices.Sort(f.Unknown)
	return f, ""
}

// describeFromRecord fills f from a record. The clock speed comes from clocks if clocks has the family.
func describeFromRecord(f *catalog.Facts, r record, clocks map[string]int64) {
	family, _, _ := strings.Cut(r.Name, ".")
	f.CurrentGeneration = r.Generation == "current"
	f.Burstable = r.BasePerformance != nil
	if !r.hasSpotPrice() {
		f.UsageClasses = []string{"on-demand"}
	}
	if slices.Contains(r.Virtualization, "PV") {
		// PV is added to HVM: records of the oldest types list only PV, but these types also boot from HVM images.
		// EC2's API returns these types for the filter hvm.
		f.Virtualization = append(f.Virtualization, "paravirtual")
	}
	f.PlacementStrategies = placement(family, r.PlacementGroups)
	f.Processor = catalog.Processor{
		Architectures: r.Arch,
		Manufacturer:  manufacturer(r.Processor),
		ClockMHz:      cmp.Or(clocks[family], parseClock(r.Clock)),
		VCPUs:         r.VCPU,
	}
	if f.Processor.ClockMHz == 0 {
		f.Unknown = append(f.Unknown, catalog.UnknownClock)
	}
	f.MemoryMiB = int64(math.Floor(r.MemoryGiB * 1024))
	f.Network.Performance = r.NetworkPerformance
	f.Network.IPv6 = r.IPv6
	f.Storage = storage(r)
	f.EBS = ebs(r, f)
	setDevices(f, r)
}

func (r record) hasSpotPrice() bool {
	for _, p := range r.Pricing {
		if p.Linux.SpotMean != "" && p.Linux.SpotMean != "N/A" {
			return true
		}
	}
	return false
}

// manufacturer returns "" if it does not know the processor.
func manufacturer(processor string) string {
	for _, name := range []string{"Intel", "AMD", "AWS", "Apple"} {
		if strings.Contains(processor, name) {
			return name
		}
	}
	return ""
}

// parseClock converts "3.1 GHz" and "Up to 3.7 GHz" to MHz; 0 for any other text.
func parseClock(text string) int64 {
	number := strings.TrimSuffix(strings.TrimPrefix(text, "Up to "), " GHz")
	ghz, err := strconv.ParseFloat(number, 64)
	if err != nil {
		return 0
	}
	return catalog.MHz(ghz)
}

// storage returns the instance storage of a record; empty if there are no disks.
func storage(r record) catalog.Storage {
	if r.Storage == nil || r.Storage.Devices*r.Storage.SizeGB == 0 {
		return catalog.Storage{}
	}
	s := catalog.Storage{
		TotalGB: r.Storage.Devices * r.Storage.SizeGB,
		Disks:   []catalog.Disk{{Count: r.Storage.Devices, SizeGB: r.Storage.SizeGB, Kind: "hdd"}},
		NVMe:    "unsupported",
	}
	if r.Storage.SSD {
		s.Disks[0].Kind = "ssd"
	}
	if r.Storage.NVMe {
		s.NVMe = "required"
	}
	return s
}

// ebs returns the EBS limits of a record. It adds UnknownEBS to f.Unknown if the record contradicts f.Hypervisor.
func ebs(r record, f *catalog.Facts) catalog.EBS {
	e := catalog.EBS{
		Optimized:    "default",
		BaselineMbps: r.EBSBaselineMbps, MaximumMbps: r.EBSMaximumMbps,
		BaselineIOPS: r.EBSBaselineIOPS, MaximumIOPS: r.EBSMaximumIOPS,
	}
	family, _, _ := strings.Cut(r.Name, ".")
	switch {
	case slices.Contains(optimizedOnRequest, family) && r.EBSOptimized:
		e.Optimized = "supported"
	case !r.EBSOptimized && f.Hypervisor == "xen":
		e.Optimized = "unsupported"
	case !r.EBSOptimized:
		f.Unknown = append(f.Unknown, catalog.UnknownEBS) // Nitro instances are always EBS-optimized: the record is wrong
	}
	return e
}

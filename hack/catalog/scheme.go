package main

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/joiner-sh/joiner/internal/model/catalog"
)

// scheme derives the data of a type from its name, for types that are newer than the records. The size gives the vCPUs.
// The letter before the generation gives the memory per vCPU, and the letter after the generation gives the processor.
// Source: EC2 Instance Types guide, "Naming conventions". The scheme is used only if no record contradicts it.
type scheme struct {
	contradicting []string           // names of the records that contradict the scheme
	prices        map[string]float64 // dollars per hour in us-east-1, by type
}

// schemeName matches the names to which the scheme may apply, such as m8gd.metal-48xl. Its groups 1 to 4 are the
// letter before the generation (m), the generation (8), the letter after it (g), and further letters (d). Groups 5 to
// 8 are "-flex", "metal-", and the size's number (48) and unit (xl).
var schemeName = regexp.MustCompile(`^([cmrix])([0-9]+)([agi])([a-z]*)(-flex)?\.(metal-)?([0-9]*)(medium|large|xlarge|xl)$`)

// memoryRatios maps the letter before the generation to the memory in MiB per vCPU, and to the first generation with
// this ratio.
var memoryRatios = map[string]struct{ perVCPU, since int64 }{
	"c": {2048, 6}, "m": {4096, 6}, "r": {8192, 6}, "i": {8192, 7}, "x": {16384, 8},
}

// processors maps the letter after the generation to the processor's manufacturer and architecture.
var processors = map[string]catalog.Processor{
	"a": {Manufacturer: "AMD", Architectures: []string{"x86_64"}},
	"g": {Manufacturer: "AWS", Architectures: []string{"arm64"}},
	"i": {Manufacturer: "Intel", Architectures: []string{"x86_64"}},
}

// newScheme returns the scheme after checking it against all records to which it applies.
func newScheme(src sources) scheme {
	s := scheme{prices: src.usEast1}
	for _, name := range sortedNames(src.records) {
		r := src.records[name]
		p, memory, ok := deriveFromName(name)
		if !ok {
			continue
		}
		if p.VCPUs != r.VCPU || memory != int64(r.MemoryGiB*1024) || p.Manufacturer != manufacturer(r.Processor) ||
			p.Architectures[0] != r.Arch[0] {
			s.contradicting = append(s.contradicting, name)
		}
	}
	return s
}

// describeFromName fills f from the type's name. If that is not possible, it returns the reason.
func (s scheme) describeFromName(f *catalog.Facts) string {
	const unknown = "no source says its vCPUs and memory"
	p, memory, ok := deriveFromName(f.Name)
	if !ok {
		return unknown
	}
	if len(s.contradicting) > 0 {
		return unknown + ", and the naming scheme is broken by " + strings.Join(s.contradicting, ", ")
	}
	if why := s.checkPrice(f.Name, p.VCPUs); why != "" {
		return unknown + ", and " + why
	}
	f.Processor, f.MemoryMiB = p, memory
	f.CurrentGeneration = true
	f.Network.IPv6 = true
	family, _, _ := strings.Cut(f.Name, ".")
	f.PlacementStrategies = placement(family, true)
	f.EBS.Optimized = "default"
	f.Unknown = append(f.Unknown, catalog.UnknownClock, catalog.UnknownEBS)
	// Family i and the letter d mean local disks; the name does not give their size.
	if m := schemeName.FindStringSubmatch(f.Name); m[1] == "i" || strings.Contains(m[4], "d") {
		f.Unknown = append(f.Unknown, catalog.UnknownStorage)
	}
	return ""
}

// deriveFromName derives the processor and the memory in MiB from a type's name. It returns false if the scheme does
// not apply.
func deriveFromName(name string) (catalog.Processor, int64, bool) {
	m := schemeName.FindStringSubmatch(name)
	if m == nil || m[1] == "x" && strings.Contains(m[4], "e") { // x…e: the memory per vCPU differs between generations
		return catalog.Processor{}, 0, false
	}
	ratio := memoryRatios[m[1]]
	if generation, err := strconv.ParseInt(m[2], 10, 64); err != nil || generation < ratio.since {
		return catalog.Processor{}, 0, false
	}
	p := processors[m[3]]
	switch { // an xlarge has 4 vCPUs, an 8xlarge 8 times as many
	case m[8] == "medium":
		p.VCPUs = 1
	case m[8] == "large":
		p.VCPUs = 2
	case m[7] == "":
		p.VCPUs = 4
	default:
		n, err := strconv.ParseInt(m[7], 10, 64)
		if err != nil {
			return catalog.Processor{}, 0, false
		}
		p.VCPUs = 4 * n
	}
	return p, p.VCPUs * ratio.perVCPU, true
}

// checkPrice compares a type's price per vCPU with that of its family's xlarge, which has 4 vCPUs. If the prices differ
// or one is missing, it returns an error text: the type may have another number of vCPUs than the scheme assumes.
// Prices from 2 % below to 12 % above that of the xlarge count as equal: bare metal types have the price of dedicated
// tenancy, up to 10 % more.
func (s scheme) checkPrice(name string, vcpus int64) string {
	family, _, _ := strings.Cut(name, ".")
	xlarge, hasXlarge := s.prices[family+".xlarge"]
	price, hasPrice := s.prices[name]
	if !hasXlarge || !hasPrice {
		return "its family has no price to check the naming scheme against"
	}
	if ratio := price / float64(vcpus) / (xlarge / 4); ratio < 0.98 || ratio > 1.12 {
		return fmt.Sprintf("its price is %.2f times what its name leads to expect", ratio)
	}
	return ""
}

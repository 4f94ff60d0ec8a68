package catalog

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// TypeColumn is a fact that types.tsv contains, as a column or in the column "other".
type TypeColumn struct {
	Name  string           // "ebs.baselineMbps"; unique
	Field func(*Facts) any // returns a pointer to the fact; setFact lists the possible types
}

// TypeColumns returns all facts that types.tsv can contain. Together they are all fields of Facts.
func TypeColumns() []TypeColumn {
	return []TypeColumn{
		{firstColumn, func(f *Facts) any { return &f.Name }},
		{"processor.vcpus", func(f *Facts) any { return &f.Processor.VCPUs }},
		{"processor.cores", func(f *Facts) any { return &f.Processor.Cores }},
		{"processor.threadsPerCore", func(f *Facts) any { return &f.Processor.ThreadsPerCore }},
		{"processor.clockMHz", func(f *Facts) any { return &f.Processor.ClockMHz }},
		{"processor.manufacturer", func(f *Facts) any { return &f.Processor.Manufacturer }},
		{"processor.architectures", func(f *Facts) any { return &f.Processor.Architectures }},
		{"processor.features", func(f *Facts) any { return &f.Processor.Features }},
		{"memoryMiB", func(f *Facts) any { return &f.MemoryMiB }},
		{"storage.totalGB", func(f *Facts) any { return &f.Storage.TotalGB }},
		{"storage.disks", func(f *Facts) any { return &f.Storage.Disks }},
		{"storage.nvme", func(f *Facts) any { return &f.Storage.NVMe }},
		{"ebs.baselineMbps", func(f *Facts) any { return &f.EBS.BaselineMbps }},
		{"ebs.maximumMbps", func(f *Facts) any { return &f.EBS.MaximumMbps }},
		{"ebs.baselineIOPS", func(f *Facts) any { return &f.EBS.BaselineIOPS }},
		{"ebs.maximumIOPS", func(f *Facts) any { return &f.EBS.MaximumIOPS }},
		{"ebs.optimized", func(f *Facts) any { return &f.EBS.Optimized }},
		{"ebs.nvme", func(f *Facts) any { return &f.EBS.NVMe }},
		{"network.performance", func(f *Facts) any { return &f.Network.Performance }},
		{"network.baselineMbps", func(f *Facts) any { return &f.Network.BaselineMbps }},
		{"network.cards", func(f *Facts) any { return &f.Network.Cards }},
		{"network.defaultCard", func(f *Facts) any { return &f.Network.DefaultCard }},
		{"network.maxInterfaces", func(f *Facts) any { return &f.Network.MaxInterfaces }},
		{"network.ipv4PerInterface", func(f *Facts) any { return &f.Network.IPv4PerInterface }},
		{"network.ipv6PerInterface", func(f *Facts) any { return &f.Network.IPv6PerInterface }},
		{"network.ipv6", func(f *Facts) any { return &f.Network.IPv6 }},
		{"network.ena", func(f *Facts) any { return &f.Network.ENA }},
		{"network.efaInterfaces", func(f *Facts) any { return &f.Network.EFAInterfaces }},
		{"network.encryptionInTransit", func(f *Facts) any { return &f.Network.EncryptionInTransit }},
		{"network.branchInterfaces", func(f *Facts) any { return &f.Network.BranchInterfaces }},
		{"currentGeneration", func(f *Facts) any { return &f.CurrentGeneration }},
		{"freeTier", func(f *Facts) any { return &f.FreeTier }},
		{"bareMetal", func(f *Facts) any { return &f.BareMetal }},
		{"burstable", func(f *Facts) any { return &f.Burstable }},
		{"nitroEnclaves", func(f *Facts) any { return &f.NitroEnclaves }},
		{"usageClasses", func(f *Facts) any { return &f.UsageClasses }},
		{"virtualization", func(f *Facts) any { return &f.Virtualization }},
		{"hypervisor", func(f *Facts) any { return &f.Hypervisor }},
		{"placement", func(f *Facts) any { return &f.PlacementStrategies }},
		{"bootModes", func(f *Facts) any { return &f.BootModes }},
		{"rootDevices", func(f *Facts) any { return &f.RootDevices }},
		{"gpus", func(f *Facts) any { return &f.GPUs }},
		{"inference", func(f *Facts) any { return &f.Inference }},
		{"neuron", func(f *Facts) any { return &f.Neuron }},
		{"fpgas", func(f *Facts) any { return &f.FPGAs }},
		{"unknown", func(f *Facts) any { return &f.Unknown }},
	}
}

// setFact sets the fact at a pointer from the text in types.tsv.
//
//	text      as it is; "none" if empty
//	number    decimal digits
//	bool      "true" or "false"
//	list      elements separated by ","; "none" if empty
//	structure COUNTxFIELD:FIELD…, in the order of setFact; trailing zero fields may be omitted
//
// Structures are 2x1900:ssd (Disk), 8xH100:NVIDIA:81920 (Accelerator), 16xTrainium:2:2:32768 (Neuron) and 2x8 or
// 2x8:100 Gigabit (NetworkCard). The network cards of a type are numbered from 0, so they have no index.
func setFact(field any, text string) error {
	var err error
	switch field := field.(type) {
	case *string:
		*field, err = parseText(text)
	case *int64:
		*field, err = parseNumber(text)
	case *bool:
		*field = text == "true"
		if text != "true" && text != "false" {
			err = fmt.Errorf(`%q: want "true" or "false"`, text)
		}
	case *[]string:
		*field, err = parseList(text, parseText)
	case *[]Disk:
		*field, err = parseStructures(text, func(d *Disk) []any { return []any{&d.Count, &d.SizeGB, &d.Kind} })
	case *[]Accelerator:
		*field, err = parseStructures(text, func(a *Accelerator) []any {
			return []any{&a.Count, &a.Name, &a.Manufacturer, &a.MemoryMiB}
		})
	case *[]Neuron:
		*field, err = parseStructures(text, func(n *Neuron) []any {
			return []any{&n.Count, &n.Name, &n.Cores, &n.CoreVersion, &n.MemoryMiB}
		})
	case *[]NetworkCard:
		*field, err = parseCards(text)
	default:
		err = fmt.Errorf("no notation for %T", field)
	}
	return err
}

func parseText(text string) (string, error) {
	switch text {
	case "":
		return "", errors.New(`an empty text: want "none"`)
	case noValue:
		return "", nil
	}
	return text, nil
}

func parseNumber(text string) (int64, error) {
	n, err := strconv.ParseUint(text, 10, 63)
	if err != nil {
		return 0, fmt.Errorf("%q: want a whole number from 0", text)
	}
	return int64(n), nil
}

func parseList[T any](text string, parse func(string) (T, error)) ([]T, error) {
	if text == noValue {
		return nil, nil
	}
	out := make([]T, 0, strings.Count(text, ",")+1)
	for part := range strings.SplitSeq(text, ",") {
		element, err := parse(part)
		if err != nil {
			return nil, err
		}
		out = append(out, element)
	}
	return out, nil
}

// parseStructures parses a list of structures. fields returns pointers to the fields of a structure, the count first.
func parseStructures[T any](text string, fields func(*T) []any) ([]T, error) {
	return parseList(text, func(text string) (T, error) {
		var out T
		pointers := fields(&out)
		count, rest, _ := strings.Cut(text, "x")
		parts := append([]string{count}, strings.Split(rest, ":")...)
		if len(parts) > len(pointers) {
			return out, fmt.Errorf("%q: want at most %d fields after the count", text, len(pointers)-1)
		}
		for i, part := range parts {
			if err := setFact(pointers[i], part); err != nil {
				return out, fmt.Errorf("%q: %w", text, err)
			}
		}
		return out, nil
	})
}

// equalCards is a number of network cards that differ only in their index.
type equalCards struct {
	count int64
	card  NetworkCard
}

// parseCards parses a list of network cards, and numbers them from 0.
func parseCards(text string) ([]NetworkCard, error) {
	groups, err := parseStructures(text, func(c *equalCards) []any {
		return []any{&c.count, &c.card.MaxInterfaces, &c.card.Performance}
	})
	var cards []NetworkCard
	for _, group := range groups {
		for range group.count {
			group.card.Index = int64(len(cards))
			cards = append(cards, group.card)
		}
	}
	return cards, err
}

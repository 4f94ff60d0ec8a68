package main

import (
	"bytes"
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/joiner-sh/joiner/internal/model/catalog"
)

// commonFacts has the facts that most types share. They are the line of defaults in types.tsv.
var commonFacts = catalog.Facts{
	Name:                "default",
	CurrentGeneration:   true,
	UsageClasses:        []string{"on-demand", "spot"},
	Virtualization:      []string{"hvm"},
	Hypervisor:          "nitro",
	PlacementStrategies: []string{"cluster", "partition", "spread"},
	RootDevices:         []string{"ebs"},
	Processor:           catalog.Processor{Architectures: []string{"x86_64"}, Manufacturer: "Intel", ThreadsPerCore: 2},
	EBS:                 catalog.EBS{Optimized: "default", NVMe: "required"},
	Network:             catalog.Network{IPv6: true, ENA: "required", EncryptionInTransit: true},
}

// rareFacts are the facts that differ from commonFacts for few types. They have no column in types.tsv: the last column
// has the rare facts that differ.
var rareFacts = []string{
	"bareMetal", "bootModes", "burstable", "currentGeneration", "ebs.nvme", "ebs.optimized", "fpgas", "freeTier", "gpus",
	"hypervisor", "inference", "network.defaultCard", "network.ena", "network.ipv6", "neuron", "nitroEnclaves", "placement",
	"processor.features", "rootDevices", "usageClasses", "virtualization",
}

const typesHelp = `# Written by hack/catalog: a line per instance type. "-" is the value in the line "default"; there it is 0, false or none.
# "^" is the value in the line above.
# Lists are separated by ",". Equal devices are COUNTxFIELD:FIELD…, with these fields: storage.disks GB:KIND,
# network.cards INTERFACES:PERFORMANCE, neuron NAME:CORES:VERSION:MiB, gpus, inference and fpgas NAME:MANUFACTURER:MiB.
# Last fields of a device that are 0 or none may be missing, as may "-" at the end of a line. The column "other" has the
# facts without a column.
`

// typesFile returns types.tsv, whose format catalog.ParseTypes documents. It returns an error if the format cannot
// represent a fact, such as a name with a comma.
func typesFile(types []catalog.Facts) ([]byte, error) {
	var columns, rare []catalog.TypeColumn
	for _, c := range catalog.TypeColumns() {
		if slices.Contains(rareFacts, c.Name) {
			rare = append(rare, c)
		} else {
			columns = append(columns, c)
		}
	}
	slices.SortFunc(rare, func(a, b catalog.TypeColumn) int { return cmp.Compare(a.Name, b.Name) })

	var out bytes.Buffer
	out.WriteString(typesHelp)
	for _, c := range columns {
		out.WriteString(c.Name + "\t")
	}
	out.WriteString("other\n")
	var above []string // cells of the previous line
	writeLine := func(defaults, f catalog.Facts) {
		var cells []string
		for _, c := range columns {
			cells = append(cells, cmp.Or(cellIfDiffers(c, defaults, f), "-"))
		}
		var others []string
		for _, c := range rare {
			if cell := cellIfDiffers(c, defaults, f); cell != "" {
				others = append(others, c.Name+"="+cell)
			}
		}
		cells = append(cells, cmp.Or(strings.Join(others, "; "), "-"))
		cells, above = withoutRepetition(cells, above), cells
		for cells[len(cells)-1] == "-" {
			cells = cells[:len(cells)-1]
		}
		out.WriteString(strings.Join(cells, "\t") + "\n")
	}
	writeLine(catalog.Facts{}, commonFacts)
	above = nil // The line of defaults has other values.
	for _, f := range types {
		writeLine(commonFacts, f)
	}
	return out.Bytes(), checkTypesFile(out.String(), types)
}

// withoutRepetition returns the cells with "^" for each cell that equals the cell above it and is longer than "^". above
// is nil for the first line.
func withoutRepetition(cells, above []string) []string {
	short := slices.Clone(cells)
	for i := range above {
		if len(cells[i]) > 1 && cells[i] == above[i] {
			short[i] = "^"
		}
	}
	return short
}

// checkTypesFile returns an error if the text of types.tsv does not represent the types.
func checkTypesFile(text string, types []catalog.Facts) error {
	parsed, err := catalog.ParseTypes("types.tsv", text)
	if err != nil {
		return fmt.Errorf("parse the new types.tsv: %w", err)
	}
	if len(parsed) != len(types) {
		return fmt.Errorf("types.tsv has %d types, want %d", len(parsed), len(types))
	}
	for i, f := range parsed {
		if !reflect.DeepEqual(f, types[i]) {
			return fmt.Errorf("types.tsv cannot represent %s: it is %+v, but parsed as %+v", types[i].Name, types[i], f)
		}
	}
	return nil
}

// cellIfDiffers returns the cell of a fact of f; empty if the fact has the default value.
func cellIfDiffers(c catalog.TypeColumn, defaults, f catalog.Facts) string {
	if cell := cellOf(c.Field(&f)); cell != cellOf(c.Field(&defaults)) {
		return cell
	}
	return ""
}

// cellOf returns the notation of a fact in types.tsv.
func cellOf(field any) string {
	switch field := field.(type) {
	case *string:
		return cmp.Or(*field, "none")
	case *int64:
		return strconv.FormatInt(*field, 10)
	case *bool:
		return strconv.FormatBool(*field)
	case *[]string:
		return cmp.Or(strings.Join(*field, ","), "none")
	case *[]catalog.Disk:
		return structures(*field, func(d catalog.Disk) []any { return []any{&d.Count, &d.SizeGB, &d.Kind} })
	case *[]catalog.Accelerator:
		return structures(*field, func(a catalog.Accelerator) []any {
			return []any{&a.Count, &a.Name, &a.Manufacturer, &a.MemoryMiB}
		})
	case *[]catalog.Neuron:
		return structures(*field, func(n catalog.Neuron) []any {
			return []any{&n.Count, &n.Name, &n.Cores, &n.CoreVersion, &n.MemoryMiB}
		})
	case *[]catalog.NetworkCard:
		return cards(*field)
	default:
		panic(fmt.Sprintf("no notation for %T", field)) // impossible: TypeColumns has no other types
	}
}

// structures returns the notation of a list of structures. fields returns pointers to a structure's fields, the count
// first.
func structures[T any](list []T, fields func(T) []any) string {
	var out []string
	for _, element := range list {
		var cells []string
		for _, field := range fields(element) {
			cells = append(cells, cellOf(field))
		}
		// Drops the last fields that are 0 or none, but not the count and the first field.
		for last := len(cells) - 1; last > 1 && (cells[last] == "0" || cells[last] == "none"); last-- {
			cells = cells[:last]
		}
		out = append(out, cells[0]+"x"+strings.Join(cells[1:], ":"))
	}
	return cellOf(&out)
}

// cards returns the notation of network cards. Consecutive cards that differ only in their index are one structure.
func cards(list []catalog.NetworkCard) string {
	type equalCards struct {
		count int64
		card  catalog.NetworkCard
	}
	var groups []equalCards
	for _, c := range list {
		c.Index = 0 // not in the file: it is the position in the list
		if last := len(groups) - 1; last >= 0 && groups[last].card == c {
			groups[last].count++
		} else {
			groups = append(groups, equalCards{1, c})
		}
	}
	return structures(groups, func(e equalCards) []any { return []any{&e.count, &e.card.MaxInterfaces, &e.card.Performance} })
}

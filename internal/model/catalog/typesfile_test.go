package catalog

import (
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
)

const typesText = `# comment
type	memoryMiB	network.ipv6	network.cards	storage.disks	other
default	8	true	-	-	hypervisor=nitro; usageClasses=on-demand,spot
a.large	-	-	1x4	-	-
b.large	16	false	2x8:100 Gigabit,1x2	2x1900:ssd	gpus=8xH100:NVIDIA:81920; hypervisor=none; neuron=1xTrainium:2:2; usageClasses=none
c.large	^	^	-	^
c.xlarge	32	^	-	^
`

func TestParseTypes(t *testing.T) {
	t.Parallel()
	got, err := ParseTypes("types.tsv", typesText)
	if err != nil {
		t.Fatal(err)
	}
	want := []Facts{{
		Name: "a.large", MemoryMiB: 8, Hypervisor: "nitro", UsageClasses: []string{"on-demand", "spot"},
		Network: Network{IPv6: true, Cards: []NetworkCard{{MaxInterfaces: 4}}},
	}, {
		Name: "b.large", MemoryMiB: 16,
		Network: Network{Cards: []NetworkCard{
			{MaxInterfaces: 8, Performance: "100 Gigabit"}, {Index: 1, MaxInterfaces: 8, Performance: "100 Gigabit"},
			{Index: 2, MaxInterfaces: 2},
		}},
		Storage: Storage{Disks: []Disk{{Count: 2, SizeGB: 1900, Kind: "ssd"}}},
		GPUs:    []Accelerator{{Name: "H100", Manufacturer: "NVIDIA", Count: 8, MemoryMiB: 81920}},
		Neuron:  []Neuron{{Name: "Trainium", Count: 1, Cores: 2, CoreVersion: 2}},
	}, {
		Name: "c.large", MemoryMiB: 16, Hypervisor: "nitro", UsageClasses: []string{"on-demand", "spot"},
		Storage: Storage{Disks: []Disk{{Count: 2, SizeGB: 1900, Kind: "ssd"}}},
	}, {
		Name: "c.xlarge", MemoryMiB: 32, Hypervisor: "nitro", UsageClasses: []string{"on-demand", "spot"},
		Storage: Storage{Disks: []Disk{{Count: 2, SizeGB: 1900, Kind: "ssd"}}},
	}}
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Errorf("ParseTypes (-want +got):\n%s", diff)
	}
}

// TestParseTypesErrors replaces a part of typesText. Each error names file and line, and the column if there is one.
func TestParseTypesErrors(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ old, new, want string }{
		"empty file":               {typesText, "", "f:0: the file ends before the line of defaults"},
		"no line of defaults":      {typesText[strings.Index(typesText, "default"):], "", "f:2: the file ends before the line of defaults"},
		"first column":             {"type\t", "name\t", `f:2: the first column is "name" and the last is "other", want`},
		"last column":              {"\tother\n", "\tgpus\n", `f:2: the first column is "type" and the last is "gpus", want`},
		"unknown column":           {"\tmemoryMiB", "\tmemory", "f:2: column memory: no such fact, or a second column with this name"},
		"column twice":             {"\tnetwork.ipv6", "\tmemoryMiB", "f:2: column memoryMiB: no such fact, or a second column with this name"},
		"name of defaults":         {"default\t", "a\t", `f:3: column type: "a": want the line of defaults`},
		"a cell is missing":        {"a.large\t-", "a.large", "f:4: column network.ipv6: \"1x4\": want \"true\" or \"false\""},
		"too many columns":         {"a.large\t-", "a.large\t-\t-", "f:4: want at most 6 columns, have 7"},
		"empty line":               {"a.large\t-\t-\t1x4\t-\t-", "", "f:4: column type: \"\": want the name of an instance type, such as m5.large"},
		"- as a name":              {"a.large", "-", `f:4: column type: "-": want the name of an instance type`},
		"type twice":               {"b.large", "a.large", `f:5: column type: "a.large" follows "a.large"`},
		"value of a default":       {"default\t8", "default\tx", `f:3: column memoryMiB: "x": want a whole number from 0`},
		"negative number":          {"\t16\t", "\t-16\t", `f:5: column memoryMiB: "-16": want a whole number from 0`},
		"large number":             {"\t16\t", "\t9223372036854775808\t", `f:5: column memoryMiB: "9223372036854775808": want a whole number from 0`},
		"nothing above":            {"a.large\t-", "a.large\t^", `f:4: column 2: "^": want a value, because no type is above`},
		"empty cell":               {"\t16\t", "\t\t", `f:5: column memoryMiB: "": want a whole number from 0`},
		"bool":                     {"\tfalse\t", "\tno\t", `f:5: column network.ipv6: "no": want "true" or "false"`},
		"no count":                 {"2x1900:ssd", "1900:ssd", `f:5: column storage.disks: "1900:ssd": "1900:ssd": want a whole number from 0`},
		"only a count":             {"2x1900:ssd", "2", `f:5: column storage.disks: "2": "": want a whole number from 0`},
		"field of a structure":     {"2x1900:ssd", "2xssd:1900", `f:5: column storage.disks: "2xssd:1900": "ssd": want a whole number from 0`},
		"too many fields":          {"2x1900:ssd", "2x1900:ssd:1", `f:5: column storage.disks: "2x1900:ssd:1": want at most 2 fields after the count`},
		"empty element":            {"1x2", "", `f:5: column network.cards: "": "": want a whole number from 0`},
		"empty text in a list":     {"on-demand,spot", "on-demand,", `f:3: column other: usageClasses: an empty text: want "none"`},
		"no value":                 {"hypervisor=none", "hypervisor", `f:5: column other: "hypervisor": want NAME=VALUE`},
		"unknown fact":             {"hypervisor=none", "hyper=none", "f:5: column other: hyper: no such fact, or a fact with its own column"},
		"fact with its own column": {"hypervisor=none", "memoryMiB=1", "f:5: column other: memoryMiB: no such fact, or a fact with its own column"},
		"facts not sorted":         {"hypervisor=none", "bareMetal=true", "f:5: column other: bareMetal: facts must be sorted by name, each once"},
		"empty value":              {"hypervisor=none", "hypervisor=", `f:5: column other: hypervisor: an empty text: want "none"`},
	} {
		if strings.Count(typesText, c.old) != 1 {
			t.Errorf("%s: typesText must contain %q once", name, c.old)
		}
		_, err := ParseTypes("f", strings.Replace(typesText, c.old, c.new, 1))
		if err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %s", name, err, c.want)
		}
	}
}

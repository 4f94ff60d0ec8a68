package main

import (
	"bytes"
	"encoding/json"
	"maps"
	"reflect"
	"slices"

	"github.com/joiner-sh/joiner/internal/model/catalog"
)

// commonFacts has the facts that most types share. It is the first line of types.jsonl.
var commonFacts = catalog.Facts{
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

// typesFile returns types.jsonl: commonFacts, then a line per type with its name and the facts that differ from
// commonFacts.
func (t table) typesFile() []byte {
	var out bytes.Buffer
	base := jsonFields(commonFacts)
	delete(base, "name")
	writeLine(&out, "", base)
	for _, f := range t.types {
		fields := jsonFields(f)
		delete(fields, "name")
		writeLine(&out, f.Name, differing(base, fields))
	}
	return out.Bytes()
}

// jsonFields returns the facts as a JSON object.
func jsonFields(f catalog.Facts) map[string]any {
	data, err := json.Marshal(f)
	if err != nil {
		panic(err) // impossible: JSON can represent all types of fields in Facts
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	var out map[string]any
	if err := dec.Decode(&out); err != nil {
		panic(err)
	}
	return out
}

// differing returns the fields that differ from the fields of base, and zero values for the fields that only base has.
func differing(base, fields map[string]any) map[string]any {
	out := map[string]any{}
	for name, value := range fields {
		inBase, isObject := base[name].(map[string]any)
		switch {
		case isObject:
			if d := differing(inBase, value.(map[string]any)); len(d) > 0 {
				out[name] = d
			}
		case !reflect.DeepEqual(value, base[name]):
			out[name] = value
		}
	}
	for name, value := range base {
		if _, ok := fields[name]; !ok {
			out[name] = zeroOf(value)
		}
	}
	return out
}

// zeroOf returns the zero value of a JSON value's type. The zero value of a list is null.
func zeroOf(value any) any {
	switch value := value.(type) {
	case string:
		return ""
	case bool:
		return false
	case json.Number:
		return 0
	case map[string]any:
		out := map[string]any{}
		for name, v := range value {
			out[name] = zeroOf(v)
		}
		return out
	default:
		return nil
	}
}

// writeLine writes an object with the name first and the other fields in alphabetical order.
func writeLine(out *bytes.Buffer, name string, object map[string]any) {
	out.WriteString(`{"name":"` + name + `"`)
	for _, key := range slices.Sorted(maps.Keys(object)) {
		var value bytes.Buffer
		enc := json.NewEncoder(&value)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(object[key]); err != nil {
			panic(err)
		}
		out.WriteString(`,"` + key + `":`)
		out.Write(bytes.TrimSpace(value.Bytes()))
	}
	out.WriteString("}\n")
}

package main

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/joiner-sh/joiner/internal/model/catalog"
)

// TestTypesFile checks that types.tsv is the file that this program writes for the types in types.tsv.
func TestTypesFile(t *testing.T) {
	t.Parallel()
	want, err := os.ReadFile(filepath.Join("..", "..", "internal", "model", "catalog", "table", "types.tsv"))
	if err != nil {
		t.Fatal(err)
	}
	table, err := catalog.Embedded()
	if err != nil {
		t.Fatal(err)
	}
	got, err := typesFile(table.Types())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("types.tsv (-file +written):\n%s", diff)
	}
}

// TestEveryFact checks that types.tsv can represent every field of Facts: with its default, as zero, and with another
// value.
func TestEveryFact(t *testing.T) {
	t.Parallel()
	same, zero, full := commonFacts, catalog.Facts{Name: "b.large"}, catalog.Facts{}
	same.Name = "a.large"
	counter := int64(0)
	fill(reflect.ValueOf(&full).Elem(), &counter)
	full.Name = "c.large"
	for i := range full.Network.Cards { // the file has no index: it is the position in the list
		full.Network.Cards[i].Index = int64(i)
	}
	if _, err := typesFile([]catalog.Facts{same, zero, full}); err != nil {
		t.Error(err)
	}
}

// fill sets all fields of a value: bools to true, other fields to different values, made from the counter.
func fill(v reflect.Value, counter *int64) {
	*counter++
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i), counter)
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range v.Len() {
			fill(v.Index(i), counter)
		}
	case reflect.String:
		v.SetString("text " + strings.Repeat("x", int(*counter)))
	case reflect.Int64:
		v.SetInt(*counter)
	case reflect.Bool:
		v.SetBool(true)
	default:
		panic(v.Kind())
	}
}

// TestUnrepresentable checks that typesFile returns an error for facts that types.tsv cannot represent.
func TestUnrepresentable(t *testing.T) {
	t.Parallel()
	for name, f := range map[string]catalog.Facts{
		"tab":             {Name: "a.large", Hypervisor: "x\ty"},
		"end of line":     {Name: "a.large", Hypervisor: "x\ny"},
		"comma":           {Name: "a.large", UsageClasses: []string{"x,y"}},
		"colon":           {Name: "a.large", GPUs: []catalog.Accelerator{{Name: "x:y"}}},
		"semicolon":       {Name: "a.large", Hypervisor: "x; y"},
		"none":            {Name: "a.large", Hypervisor: "none"},
		"empty list":      {Name: "a.large", UsageClasses: []string{}},
		"negative number": {Name: "a.large", MemoryMiB: -1},
		"index of a card": {Name: "a.large", Network: catalog.Network{Cards: []catalog.NetworkCard{{Index: 1, MaxInterfaces: 1}}}},
	} {
		if text, err := typesFile([]catalog.Facts{f}); err == nil {
			t.Errorf("%s: want an error, got the file:\n%s", name, text)
		}
	}
}

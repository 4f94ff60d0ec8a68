package api

import (
	"reflect"
	"strings"
	"sync"
)

// field is how a field of a struct is called on the wire.
type field struct {
	index  []int
	query  string // in a query request: "ImageId"
	xml    string // in an answer with small letters, EC2's: "imageId"
	item   string // the elements of a list
	always bool   // written even when empty
	flat   bool   // the elements of a list follow each other without an element around them
}

// Codec reads requests into structs and writes structs as answers, by the names
// of their fields. The structs of this package spell the fields as AWS does, so
// that few need a tag. Its zero value is ready for use, by several goroutines.
type Codec struct {
	known sync.Map // reflect.Type → []field: finding them out takes reflection
}

// fieldsOf returns the fields of a struct type, those of embedded structs among them.
func (c *Codec) fieldsOf(t reflect.Type) []field {
	if known, ok := c.known.Load(t); ok {
		return known.([]field)
	}
	var out []field
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Anonymous && f.Type.Kind() == reflect.Struct {
			for _, inner := range c.fieldsOf(f.Type) {
				inner.index = append([]int{i}, inner.index...)
				out = append(out, inner)
			}
			continue
		}
		if f.IsExported() {
			out = append(out, readTag(f, i))
		}
	}
	c.known.Store(t, out)
	return out
}

// readTag reads `aws:"query,answer,item or option"`: each part may be empty.
func readTag(f reflect.StructField, i int) field {
	parts := append(strings.Split(f.Tag.Get("aws"), ","), "", "", "")
	out := field{index: []int{i}, query: parts[0], xml: parts[1], item: "item"}
	if out.query == "" {
		out.query = f.Name
	}
	if out.xml == "" {
		out.xml = strings.ToLower(out.query[:1]) + out.query[1:]
	}
	switch parts[2] {
	case "":
	case "always":
		out.always = true
	case "flat":
		out.flat = true
	default:
		out.item = parts[2]
	}
	return out
}

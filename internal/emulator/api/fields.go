package api

import (
	"reflect"
	"strings"
	"sync"
)

// field has the names of a struct field on the wire.
type field struct {
	index  []int  // for reflect.Value.FieldByIndex
	query  string // name in a query request: "ImageId"
	xml    string // name in an answer of EC2, which begins with a small letter: "imageId"
	item   string // name of the XML element of each item of a list in an answer
	always bool   // a scalar is written even if empty
	flat   bool   // the items of a list are written without an XML element around all of them
}

// Codec decodes requests into structs and encodes structs as answers, by the names of their fields. The structs of the
// services name their fields like AWS, so that few need a tag. The zero value is ready for use. It is safe for
// concurrent use.
type Codec struct {
	known sync.Map // reflect.Type → []field; a cache, because reflection is slow
}

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

// readTag reads a tag of the form `aws:"query,answer,item"`. Each part may be empty. The third part is the
// option "always", the option "flat", or the name of the XML element of a list's items. i is the index of the field.
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

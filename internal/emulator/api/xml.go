package api

import (
	"bytes"
	"encoding/base64"
	"encoding/xml"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"time"
)

// Dialect has the differences between the XML of EC2 and that of the other query services.
type Dialect struct {
	LowerFirst bool   // names begin with a small letter, as in EC2's answers
	Item       string // name of the XML element of each item of a list: "item" or "member"
}

// The names of the XML elements of list items.
const (
	Ec2Item   = "item"   // EC2
	QueryItem = "member" // the other query services
)

// Encoder writes values as XML elements.
type Encoder struct {
	Codec   *Codec
	Out     bytes.Buffer
	Dialect Dialect
}

// element writes v as an XML element. It omits a nil pointer, and an empty scalar unless f.always is set.
func (e *Encoder) element(name string, v reflect.Value, f field) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			f.always = true // a pointer that is not nil is written, even if its value is zero
			e.element(name, v.Elem(), f)
		}
	case reflect.Struct:
		e.structure(name, v)
	case reflect.Slice:
		e.list(name, v, f)
	case reflect.Map:
		e.pairs(name, v)
	default:
		if text := scalar(v); text != "" || f.always {
			e.Text(name, text)
		}
	}
}

// structure writes a struct or a time. It omits a zero time.
func (e *Encoder) structure(name string, v reflect.Value) {
	if t, ok := v.Interface().(time.Time); ok {
		if !t.IsZero() {
			e.Text(name, t.UTC().Format("2006-01-02T15:04:05.000Z"))
		}
		return
	}
	e.Open(name)
	e.Fields(v)
	e.Close(name)
}

// Fields writes the fields of a struct.
func (e *Encoder) Fields(v reflect.Value) {
	for _, f := range e.Codec.fieldsOf(v.Type()) {
		name := f.query
		if e.Dialect.LowerFirst {
			name = f.xml
		}
		e.element(name, v.FieldByIndex(f.index), f)
	}
}

// list writes a list. It omits a nil list and an empty flat list, and writes any other empty list as an empty element.
// To a client, an omitted list and an empty element are both an empty list. Bytes are written as base64.
func (e *Encoder) list(name string, v reflect.Value, f field) {
	if v.Type().Elem().Kind() == reflect.Uint8 {
		e.Text(name, base64.StdEncoding.EncodeToString(v.Bytes()))
		return
	}
	item := f.item
	if item == "" || item == Ec2Item { // the tag names no element
		item = e.Dialect.Item
	}
	if f.flat {
		for i := range v.Len() {
			e.element(name, v.Index(i), field{always: true})
		}
		return
	}
	if v.IsNil() {
		return
	}
	e.Open(name)
	for i := range v.Len() {
		e.element(item, v.Index(i), field{always: true})
	}
	e.Close(name)
}

// pairs writes a map of strings in the format of SQS: one element per pair, sorted by key. It omits a map of another
// type.
func (e *Encoder) pairs(name string, v reflect.Value) {
	m, ok := v.Interface().(map[string]string)
	if !ok {
		return
	}
	for _, key := range slices.Sorted(maps.Keys(m)) {
		e.Open(name)
		e.Text("Name", key)
		e.Text("Value", m[key])
		e.Close(name)
	}
}

// Open writes the start of an element.
func (e *Encoder) Open(name string) {
	e.Out.WriteByte('<')
	e.Out.WriteString(name)
	e.Out.WriteByte('>')
}

// Close writes the end of an element.
func (e *Encoder) Close(name string) {
	e.Out.WriteString("</")
	e.Out.WriteString(name)
	e.Out.WriteByte('>')
}

// Text writes an element with an escaped text.
func (e *Encoder) Text(name, text string) {
	e.Open(name)
	_ = xml.EscapeText(&e.Out, []byte(text)) // writing to a bytes.Buffer cannot fail
	e.Close(name)
}

// scalar returns a value as text.
func scalar(v reflect.Value) string {
	switch v.Kind() {
	case reflect.String:
		return v.String()
	case reflect.Bool:
		return strconv.FormatBool(v.Bool())
	case reflect.Int, reflect.Int64:
		return strconv.FormatInt(v.Int(), 10)
	case reflect.Float64:
		return strconv.FormatFloat(v.Float(), 'f', -1, 64)
	default:
	}
	return fmt.Sprint(v.Interface())
}

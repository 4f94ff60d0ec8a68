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

// Dialect is how a service spells its XML.
type Dialect struct {
	Small bool   // names begin with a small letter: EC2
	Item  string // the elements of a list: "item" or "member"
}

// The dialects of the query services.
const (
	Ec2Item   = "item"
	QueryItem = "member"
)

// Encoder writes values as XML elements.
type Encoder struct {
	Codec   *Codec       // knows the fields of the types
	Out     bytes.Buffer // what has been written so far
	Dialect Dialect      // of the service that answers
}

// element writes v as an element; what is empty is left out.
func (e *Encoder) element(name string, v reflect.Value, f field) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			f.always = true // given, even if it is zero
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

// structure writes a struct, or a time. A struct of which nothing is written is
// left out, unless the field is a list's element.
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
		if e.Dialect.Small {
			name = f.xml
		}
		e.element(name, v.FieldByIndex(f.index), f)
	}
}

// list writes a list, also when it is empty; EC2's dialect omits a nil one only if it is
// optional, which clients cannot distinguish from an empty one.
func (e *Encoder) list(name string, v reflect.Value, f field) {
	if v.Type().Elem().Kind() == reflect.Uint8 {
		e.Text(name, base64.StdEncoding.EncodeToString(v.Bytes()))
		return
	}
	item := f.item
	if item == "" || item == Ec2Item {
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

// pairs writes a map as SQS does: an element per pair, sorted by name.
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
	_ = xml.EscapeText(&e.Out, []byte(text)) // a bytes.Buffer takes everything
	e.Close(name)
}

// scalar writes a value as text.
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

package emulator

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

// dialect is how a service spells its XML.
type dialect struct {
	small bool   // names begin with a small letter: EC2
	item  string // the elements of a list: "item" or "member"
}

// The dialects of the query services.
const (
	ec2Item   = "item"
	queryItem = "member"
)

// encoder writes values as XML elements.
type encoder struct {
	codec   *codec
	out     bytes.Buffer
	dialect dialect
}

// element writes v as an element; what is empty is left out.
func (e *encoder) element(name string, v reflect.Value, f field) {
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
			e.text(name, text)
		}
	}
}

// structure writes a struct, or a time. A struct of which nothing is written is
// left out, unless the field is a list's element.
func (e *encoder) structure(name string, v reflect.Value) {
	if t, ok := v.Interface().(time.Time); ok {
		if !t.IsZero() {
			e.text(name, t.UTC().Format("2006-01-02T15:04:05.000Z"))
		}
		return
	}
	e.open(name)
	e.fields(v)
	e.close(name)
}

// fields writes the fields of a struct.
func (e *encoder) fields(v reflect.Value) {
	for _, f := range e.codec.fieldsOf(v.Type()) {
		name := f.query
		if e.dialect.small {
			name = f.xml
		}
		e.element(name, v.FieldByIndex(f.index), f)
	}
}

// list writes a list, also when it is empty; EC2's dialect omits a nil one only if it is
// optional, which clients cannot distinguish from an empty one.
func (e *encoder) list(name string, v reflect.Value, f field) {
	if v.Type().Elem().Kind() == reflect.Uint8 {
		e.text(name, base64.StdEncoding.EncodeToString(v.Bytes()))
		return
	}
	item := f.item
	if item == "" || item == ec2Item {
		item = e.dialect.item
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
	e.open(name)
	for i := range v.Len() {
		e.element(item, v.Index(i), field{always: true})
	}
	e.close(name)
}

// pairs writes a map as SQS does: an element per pair, sorted by name.
func (e *encoder) pairs(name string, v reflect.Value) {
	m, ok := v.Interface().(map[string]string)
	if !ok {
		return
	}
	for _, key := range slices.Sorted(maps.Keys(m)) {
		e.open(name)
		e.text("Name", key)
		e.text("Value", m[key])
		e.close(name)
	}
}

func (e *encoder) open(name string) {
	e.out.WriteByte('<')
	e.out.WriteString(name)
	e.out.WriteByte('>')
}

func (e *encoder) close(name string) {
	e.out.WriteString("</")
	e.out.WriteString(name)
	e.out.WriteByte('>')
}

func (e *encoder) text(name, text string) {
	e.open(name)
	_ = xml.EscapeText(&e.out, []byte(text)) // a bytes.Buffer takes everything
	e.close(name)
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
	}
	return fmt.Sprint(v.Interface())
}

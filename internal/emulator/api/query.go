package api

import (
	"encoding/base64"
	"fmt"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/joiner-sh/joiner/internal/emulator/world/failure"
)

// Limits of a request. No real request reaches them; they bound the cost of a hostile request.
const (
	MaxBody       = 2 << 20 // bytes
	maxParameters = 20_000
	maxDepth      = 16 // parts of a parameter's name
)

// Parameter is a node of the tree of a query request's parameters. The path of "Filter.1.Name" in the tree is Filter,
// 1, Name.
type Parameter struct {
	value    string
	set      bool // the request has a value for this node
	children map[string]*Parameter
	used     bool // Decode has read this node
}

// ParseQuery returns the tree of a form's parameters.
func ParseQuery(form url.Values) (*Parameter, error) {
	root := &Parameter{}
	if len(form) > maxParameters {
		return nil, InvalidRequest("The request has more than %d parameters", maxParameters)
	}
	for name, values := range form {
		parts := strings.Split(name, ".")
		if len(parts) > maxDepth {
			return nil, InvalidRequest("The parameter %.80q is nested too deeply", name)
		}
		node := root
		for _, part := range parts {
			if node.children == nil {
				node.children = map[string]*Parameter{}
			}
			if node.children[part] == nil {
				node.children[part] = &Parameter{}
			}
			node = node.children[part]
		}
		node.value, node.set = values[0], true
	}
	return root, nil
}

// Decode stores the parameters under p in the fields of a struct. The name of a parameter is the first part of the
// field's tag aws; if that part is empty, it is the field's name. readTag describes the tags.
func (c *Codec) Decode(p *Parameter, into any) error {
	return c.fill(p, reflect.ValueOf(into).Elem(), "")
}

// fill sets v from p. path is the full name of p, for error messages.
func (c *Codec) fill(p *Parameter, v reflect.Value, path string) error {
	p.used = true
	switch v.Kind() {
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			return p.fillTime(v, path)
		}
		return c.fillStruct(p, v, path)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		return c.fill(p, v.Elem(), path)
	case reflect.Slice:
		return c.fillSlice(p, v, path)
	case reflect.Map:
		return p.fillMap(v)
	default:
	}
	return p.fillScalar(v, path)
}

func (c *Codec) fillStruct(p *Parameter, v reflect.Value, path string) error {
	for _, f := range c.fieldsOf(v.Type()) {
		child := p.children[f.query]
		if child == nil {
			continue
		}
		if err := c.fill(child, v.FieldByIndex(f.index), join(path, f.query)); err != nil {
			return err
		}
	}
	return nil
}

// fillSlice reads a list. The elements of the list are numbered, directly below p (EC2) or below "member" (IAM, STS). A
// list of bytes is base64 text instead.
func (c *Codec) fillSlice(p *Parameter, v reflect.Value, path string) error {
	if v.Type().Elem().Kind() == reflect.Uint8 {
		raw, err := base64.StdEncoding.DecodeString(p.value)
		if err != nil {
			return InvalidValue(path, p.value)
		}
		v.SetBytes(raw)
		return nil
	}
	if m := p.children["member"]; m != nil {
		m.used = true
		p = m
	}
	for _, n := range p.numbers() {
		element := reflect.New(v.Type().Elem()).Elem()
		key := strconv.Itoa(n)
		if err := c.fill(p.children[key], element, join(path, key)); err != nil {
			return err
		}
		v.Set(reflect.Append(v, element))
	}
	return nil
}

// fillMap reads a map of strings: numbered pairs of Name (or Key) and Value, directly below p or below "entry".
func (p *Parameter) fillMap(v reflect.Value) error {
	if p.children["entry"] != nil {
		p.children["entry"].used = true
		p = p.children["entry"]
	}
	v.Set(reflect.MakeMap(v.Type()))
	for _, n := range p.numbers() {
		pair := p.children[strconv.Itoa(n)]
		pair.used = true
		var name, value string
		for key, child := range pair.children {
			child.used = true
			if key == "Value" {
				value = child.value
			} else {
				name = child.value
			}
		}
		v.SetMapIndex(reflect.ValueOf(name), reflect.ValueOf(value))
	}
	return nil
}

func (p *Parameter) fillTime(v reflect.Value, path string) error {
	t, err := time.Parse(time.RFC3339, p.value)
	if err != nil {
		return InvalidValue(path, p.value)
	}
	v.Set(reflect.ValueOf(t.UTC()))
	return nil
}

// fillScalar sets v, which is a string, a bool, an integer or a float, to the value of p.
func (p *Parameter) fillScalar(v reflect.Value, path string) error {
	var err error
	switch v.Kind() {
	case reflect.String:
		v.SetString(p.value)
	case reflect.Bool:
		var b bool
		b, err = strconv.ParseBool(p.value)
		v.SetBool(b)
	case reflect.Int, reflect.Int64:
		var n int64
		n, err = strconv.ParseInt(p.value, 10, 64)
		v.SetInt(n)
	case reflect.Float64:
		var f float64
		f, err = strconv.ParseFloat(p.value, 64)
		v.SetFloat(f)
	default:
		return fmt.Errorf("decode parameter %s: no rule for %s", path, v.Type())
	}
	if err != nil {
		return InvalidValue(path, p.value)
	}
	return nil
}

// numbers returns the names of the children that are numbers, in ascending order.
func (p *Parameter) numbers() []int {
	var out []int
	for key := range p.children {
		if n, err := strconv.Atoi(key); err == nil && n >= 0 && strconv.Itoa(n) == key {
			out = append(out, n)
		}
	}
	slices.Sort(out)
	return out
}

// Unused returns the name of the alphabetically first parameter below p that Decode has not read; empty if it has
// read all. path is the name of p.
func (p *Parameter) Unused(path string) string {
	names := make([]string, 0, len(p.children))
	for name := range p.children {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		child := p.children[name]
		if !child.used {
			return join(path, name)
		}
		if found := child.Unused(join(path, name)); found != "" {
			return found
		}
	}
	return ""
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// InvalidRequest returns the error for a request that cannot be parsed.
func InvalidRequest(format string, args ...any) error {
	return &failure.Error{Code: "InvalidRequest", Message: fmt.Sprintf(format, args...)}
}

// InvalidValue returns the error for an invalid value of a parameter.
func InvalidValue(name, value string) error {
	return &failure.Error{Code: "InvalidParameterValue", Message: fmt.Sprintf("Value (%.200s) for parameter %s is invalid.", value, name)}
}

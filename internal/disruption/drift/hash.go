package drift

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Versions of the hash algorithms, as in Karpenter 1.14. The hashes equal Karpenter's.
const (
	PoolVersion  = "v3"
	ClassVersion = "v5"
)

// Hash returns the hash of v in decimal, as Karpenter writes it on objects. It is the hash of
// github.com/mitchellh/hashstructure in format 2, with lists as sets and without zero fields. Hash honors the struct
// tag "hash": "ignore", "string" for values with a String method, and "duration" for texts that Karpenter parses as
// durations. It returns an error if v holds a value that cannot be hashed, such as a channel or a function.
func Hash(v any) (string, error) {
	hash, err := hashOf(reflect.ValueOf(v))
	return strconv.FormatUint(hash, 10), err
}

// Parts returns a short hash of each field of the struct v, by JSON name. It leaves out the fields that Hash leaves
// out. A later comparison shows which fields have changed.
func Parts(v any) (map[string]string, error) {
	out := map[string]string{}
	s := reflect.Indirect(reflect.ValueOf(v))
	for i := range s.NumField() {
		value, ok, err := hashedField(s, i)
		if err != nil {
			return nil, err
		}
		if !ok {
			continue
		}
		hash, err := hashOf(value)
		if err != nil {
			return nil, fmt.Errorf("hash %s: %w", s.Type().Field(i).Name, err)
		}
		out[nameInJSON(s.Type().Field(i))] = Short(strconv.FormatUint(hash, 10))
	}
	return out, nil
}

// Short returns eight hexadecimal digits that identify the text.
func Short(text string) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(text)) // it never fails
	return fmt.Sprintf("%08x", h.Sum32())
}

func nameInJSON(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	if name == "" {
		return f.Name
	}
	return name
}

// hashOf returns the hash of one value. A pointer has the hash of the value that it points to; a nil pointer has the
// hash of the zero value.
func hashOf(v reflect.Value) (uint64, error) {
	v = dereference(v)
	if v.Type() == reflect.TypeFor[time.Time]() {
		return hashOfTime(v)
	}
	switch v.Kind() {
	case reflect.Map:
		return hashOfMap(v)
	case reflect.Struct:
		return hashOfStruct(v)
	case reflect.Slice:
		return hashOfSet(v)
	case reflect.Array:
		return hashOfList(v)
	case reflect.String:
		return sum([]byte(v.String())), nil
	default:
	}
	return hashOfNumber(v)
}

// dereference follows pointers and interfaces to their value. For nil it returns the zero value of the type; 0 for a
// nil interface.
func dereference(v reflect.Value) reflect.Value {
	zero := reflect.TypeFor[int]()
	for v.Kind() == reflect.Interface || v.Kind() == reflect.Pointer {
		if v.Kind() == reflect.Pointer {
			zero = v.Type().Elem()
		}
		v = v.Elem()
	}
	if !v.IsValid() {
		return reflect.Zero(zero)
	}
	return v
}

func hashOfTime(v reflect.Value) (uint64, error) {
	at, ok := v.Interface().(time.Time)
	if !ok {
		return 0, fmt.Errorf("a %s is not a time", v.Type())
	}
	text, err := at.MarshalBinary()
	return sum(text), err
}

// hashOfNumber hashes the bytes of a number, lowest first. int and uint have 8 bytes, bool has 1.
func hashOfNumber(v reflect.Value) (uint64, error) {
	switch v.Kind() {
	case reflect.Bool:
		if v.Bool() {
			return sum([]byte{1}), nil
		}
		return sum([]byte{0}), nil
	case reflect.Int:
		return sum(binary.LittleEndian.AppendUint64(nil, uint64(v.Int()))), nil
	case reflect.Uint:
		return sum(binary.LittleEndian.AppendUint64(nil, v.Uint())), nil
	default:
	}
	text, err := binary.Append(nil, binary.LittleEndian, v.Interface())
	if err != nil {
		return 0, fmt.Errorf("a %s has no hash: %w", v.Type(), err)
	}
	return sum(text), nil
}

// hashOfMap ignores the order of the pairs.
func hashOfMap(v reflect.Value) (uint64, error) {
	var out uint64
	for _, key := range v.MapKeys() {
		pair, err := hashOfPair(key, v.MapIndex(key))
		if err != nil {
			return 0, err
		}
		out ^= pair
	}
	return rehash(out), nil
}

// hashOfSet ignores the order of the elements of a slice.
func hashOfSet(v reflect.Value) (uint64, error) {
	var out uint64
	for i := range v.Len() {
		element, err := hashOf(v.Index(i))
		if err != nil {
			return 0, err
		}
		out ^= element
	}
	return out, nil
}

// hashOfList hashes the elements of an array in order.
func hashOfList(v reflect.Value) (uint64, error) {
	var out uint64
	for i := range v.Len() {
		element, err := hashOf(v.Index(i))
		if err != nil {
			return 0, err
		}
		out = combine(out, element)
	}
	return out, nil
}

// hashOfStruct hashes the name of the type and, in order, the fields that hashedField includes. It calls rehash after
// each field.
func hashOfStruct(v reflect.Value) (uint64, error) {
	out := sum([]byte(v.Type().Name()))
	for i := range v.NumField() {
		value, ok, err := hashedField(v, i)
		if err != nil {
			return 0, err
		}
		if !ok {
			continue
		}
		pair, err := hashOfPair(reflect.ValueOf(v.Type().Field(i).Name), value)
		if err != nil {
			return 0, err
		}
		out = rehash(out ^ pair)
	}
	return out, nil
}

// hashedField returns the value of a struct's field for the hash, and whether the field is part of the hash.
func hashedField(s reflect.Value, i int) (reflect.Value, bool, error) {
	field, value := s.Type().Field(i), s.Field(i)
	tag := field.Tag.Get("hash")
	if !field.IsExported() || slices.Contains([]string{"ignore", "-"}, tag) || value.IsZero() {
		return value, false, nil
	}
	switch tag {
	case "string":
		text, ok := value.Interface().(fmt.Stringer)
		if !ok {
			return value, false, fmt.Errorf("the field %s has no String method", field.Name)
		}
		return reflect.ValueOf(text.String()), true, nil
	case "duration":
		texts, ok := value.Interface().(map[string]string)
		if !ok {
			return value, false, fmt.Errorf("the field %s is not a map of durations", field.Name)
		}
		return reflect.ValueOf(durations(texts)), true, nil
	}
	return value, true, nil
}

// Duration has the name and the field of Karpenter's type for durations, because both are part of the hash.
type Duration struct {
	Duration time.Duration
}

// durations parses texts as durations. An invalid text, which Karpenter cannot parse at all, stays a text.
func durations(texts map[string]string) map[string]any {
	out := map[string]any{}
	for name, text := range texts {
		if d, err := time.ParseDuration(text); err == nil {
			out[name] = Duration{d}
		} else {
			out[name] = text
		}
	}
	return out
}

func hashOfPair(key, value reflect.Value) (uint64, error) {
	k, err := hashOf(key)
	if err != nil {
		return 0, err
	}
	v, err := hashOf(value)
	return combine(k, v), err
}

func combine(a, b uint64) uint64 {
	return sum(binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, a), b))
}

// rehash hashes a hash again. This prevents values that are combined without an order from canceling each other.
func rehash(a uint64) uint64 { return sum(binary.LittleEndian.AppendUint64(nil, a)) }

func sum(text []byte) uint64 {
	h := fnv.New64()
	_, _ = h.Write(text) // it never fails
	return h.Sum64()
}

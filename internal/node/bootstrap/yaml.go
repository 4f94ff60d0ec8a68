package bootstrap

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// mapping is a YAML mapping with ordered fields. A value is a string, an int64, a bool, a flow, a mapping, or a list of
// strings or mappings.
type mapping []field

// flow is a value in YAML's flow style, written as JSON.
type flow string

type field struct {
	key   string
	value any
}

// sortedMapping returns the entries of m, sorted by key.
func sortedMapping(m map[string]string) mapping {
	var out mapping
	for _, k := range slices.Sorted(maps.Keys(m)) {
		out = append(out, field{k, m[k]})
	}
	return out
}

// String returns the mapping as YAML.
func (m mapping) String() string {
	var b strings.Builder
	m.write(&b, "")
	return b.String()
}

// write writes the mapping as YAML, with indent before each line.
func (m mapping) write(b *strings.Builder, indent string) {
	for _, f := range m {
		b.WriteString(indent + scalar(f.key) + ":")
		switch v := f.value.(type) {
		case mapping:
			b.WriteString("\n")
			v.write(b, indent+"  ")
		case []mapping:
			b.WriteString("\n")
			for _, item := range v { // "- " replaces the indent of the item's first line
				b.WriteString(indent + "- " + strings.TrimPrefix(item.indented(indent+"  "), indent+"  "))
			}
		case []string:
			b.WriteString("\n")
			for _, item := range v {
				b.WriteString(indent + "- " + scalar(item) + "\n")
			}
		default:
			b.WriteString(" " + scalar(v) + "\n")
		}
	}
}

func (m mapping) indented(indent string) string {
	var b strings.Builder
	m.write(&b, indent)
	return b.String()
}

// scalar returns a value as YAML. It quotes a string as JSON unless isPlain allows it without quotes.
func scalar(value any) string {
	switch v := value.(type) {
	case int64:
		return strconv.FormatInt(v, 10)
	case bool:
		return strconv.FormatBool(v)
	case flow:
		return string(v)
	case string:
		if isPlain(v) {
			return v
		}
		quoted, err := json.Marshal(v)
		if err != nil {
			return strconv.Quote(v)
		}
		return string(quoted)
	}
	return fmt.Sprint(value)
}

// isPlain reports whether every YAML parser reads s, written without quotes, as the string s. For this, s must begin
// with a letter, optionally after dashes, and must have no special character.
func isPlain(s string) bool {
	word := strings.TrimLeft(s, "-")
	if word == "" || !isLetter(word[0]) || strings.HasPrefix(s, "---") {
		return false
	}
	for i := range len(word) {
		if c := word[i]; !isLetter(c) && (c < '0' || c > '9') && !strings.ContainsRune("._/=,+-", rune(c)) {
			return false
		}
	}
	switch strings.ToLower(word) { // YAML 1.1 reads these words as booleans, null and numbers
	case "true", "false", "yes", "no", "on", "off", "y", "n", "null", "nan", "inf":
		return false
	}
	return true
}

func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

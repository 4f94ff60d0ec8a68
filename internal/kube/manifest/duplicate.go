package manifest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
)

// duplicate is a key that one mapping has twice. Parsers differ in which of the two values they use.
type duplicate struct {
	key   string
	first int  // line of the first occurrence in the text, from 1; 0 if unknown
	line  int  // line of the second occurrence
	isTop bool // the key is at the top level: a --- between two documents may be missing
}

// fail records the duplicate as a problem. start is the line of the file at which the text begins.
func (k duplicate) fail(d *Decoder, file string, start int) {
	first, fix := "", "remove one"
	if k.first > 0 {
		first = fmt.Sprintf(" (first in line %d)", start+k.first-1)
	}
	if k.isTop {
		fix = "add a missing --- between two documents"
	}
	d.AddProblem(file, start+k.line-1, "key %s occurs twice%s; %s", k.key, first, fix)
}

// yamlDuplicate returns the duplicate key from errors of a strict YAML parser like `line 7: key "cpu" already set in
// map`, where 7 is the line of the value. A key that overrides a merged mapping (<<) is not a duplicate.
func yamlDuplicate(text []byte, strictErr error) (duplicate, bool) {
	lines := bytes.Split(text, []byte("\n"))
	merges := bytes.Contains(text, []byte("<<"))
	for _, match := range duplicateKeyError.FindAllStringSubmatch(strictErr.Error(), -1) {
		line, err := strconv.Atoi(match[1])
		if err != nil || line < 1 || line > len(lines) {
			continue
		}
		key := match[2]
		if unquoted, err := strconv.Unquote(key); err == nil {
			key = unquoted
		}
		found := blockDuplicate(lines[:line], key)
		if found.first > 0 || !merges {
			return found, true
		}
	}
	return duplicate{}, false
}

var duplicateKeyError = regexp.MustCompile(`line (\d+): key (.+) already set in map`)

// blockDuplicate searches upward from the last line for the key. From the line of the key, it searches further upward
// for the same key of the same mapping. If it finds no second occurrence, first is 0.
func blockDuplicate(lines [][]byte, key string) duplicate {
	out := duplicate{key: key, line: len(lines)}
	column := -1 // column of the key; -1 until the key is found
	for i := len(lines) - 1; i >= 0; i-- {
		lineColumn, name := yamlKeyOf(lines[i])
		switch {
		case lineColumn < 0: // empty, or a comment
		case column < 0 && name == key:
			column, out.line, out.isTop = lineColumn, i+1, lineColumn == 0
		case column < 0:
		case lineColumn == column && name == key:
			out.first = i + 1
			return out
		case lineColumn < column: // above the mapping
			return out
		}
		if column > 0 && bytes.HasPrefix(bytes.TrimLeft(lines[i], " "), []byte("- ")) && lineColumn == column {
			return out // the mapping begins in this line, as an item of a list
		}
	}
	return out
}

// yamlKeyOf returns the column and the name of the key at the start of a line of a block mapping, after the dashes of
// lists. The name is empty if the line has no key. The column is -1 if the line is empty or a comment.
func yamlKeyOf(line []byte) (int, string) {
	rest := bytes.TrimLeft(line, " ")
	for bytes.HasPrefix(rest, []byte("- ")) {
		rest = bytes.TrimLeft(rest[1:], " ")
	}
	trimmed := bytes.TrimRight(rest, " \r")
	if len(trimmed) == 0 || trimmed[0] == '#' {
		return -1, ""
	}
	column := len(line) - len(rest)
	if quote := trimmed[0]; quote == '"' || quote == '\'' {
		name, after, ok := bytes.Cut(trimmed[1:], []byte{quote})
		if ok && bytes.HasPrefix(bytes.TrimLeft(after, " "), []byte(":")) {
			return column, string(name)
		}
		return column, ""
	}
	name, after, ok := bytes.Cut(trimmed, []byte(":"))
	if !ok || len(after) > 0 && after[0] != ' ' && after[0] != '\t' {
		return column, ""
	}
	return column, string(bytes.TrimRight(name, " "))
}

func jsonDuplicate(text []byte) (duplicate, bool) {
	var stack []frame
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '{':
			stack = append(stack, frame{isObject: true, awaitsKey: true})
		case '[':
			stack = append(stack, frame{})
		case '}', ']':
			stack = stack[:len(stack)-1]
		case ',':
			stack[len(stack)-1].awaitsKey = stack[len(stack)-1].isObject
		case '"':
			end := stringEnd(text, i)
			if top := len(stack) - 1; top >= 0 && stack[top].awaitsKey {
				key := unescaped(text[i:end])
				if first, ok := stack[top].add(key, i); ok {
					return duplicate{key: key, first: lineAt(text, first), line: lineAt(text, i)}, true
				}
			}
			i = end - 1
		}
	}
	return duplicate{}, false
}

// frame is a JSON object or array that is being parsed.
type frame struct {
	isObject  bool           // an object, not an array
	awaitsKey bool           // the next string is a key
	few       []keyOffset    // the keys so far, while they are fewer than manyKeys
	many      map[string]int // offsets of the keys so far, by key; nil while few is used
}

type keyOffset struct {
	key    string
	offset int
}

// manyKeys is the number of keys from which a map is faster than a list.
const manyKeys = 16

// add records the offset of a key. It returns the offset of an earlier occurrence; false if there is none.
func (f *frame) add(key string, offset int) (int, bool) {
	f.awaitsKey = false
	if f.many != nil {
		before, ok := f.many[key]
		f.many[key] = offset
		return before, ok
	}
	for _, k := range f.few {
		if k.key == key {
			return k.offset, true
		}
	}
	f.few = append(f.few, keyOffset{key, offset})
	if len(f.few) == manyKeys {
		f.many = make(map[string]int, 2*manyKeys)
		for _, k := range f.few {
			f.many[k.key] = k.offset
		}
	}
	return 0, false
}

func stringEnd(text []byte, start int) int {
	for i := start + 1; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(text)
}

func unescaped(quoted []byte) string {
	if bytes.IndexByte(quoted, '\\') < 0 {
		return string(quoted[1 : len(quoted)-1])
	}
	var out string
	if err := json.Unmarshal(quoted, &out); err != nil {
		return string(quoted)
	}
	return out
}

func lineAt(text []byte, offset int) int { return 1 + bytes.Count(text[:offset], []byte("\n")) }

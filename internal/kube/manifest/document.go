package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"
)

// Document is one document of a file, as JSON.
type Document struct {
	File string // path of the file, or "<stdin>"
	Line int    // line of its start, from 1
	text []byte // as written in the file
	JSON []byte // the document converted to JSON

	isJSON bool // text is JSON, not YAML
	lists  int  // number of Lists and JSON arrays that contain the document
}

// documents splits a file into its documents, and returns those that can be read. It records a problem for each of the
// others. In a .json file, it stops at the first document that is not JSON.
func (d *Decoder) documents(s source) []Document {
	if trimmed := bytes.TrimSpace(s.data); len(trimmed) > 0 && (trimmed[0] == '{' || trimmed[0] == '[') {
		docs, err := jsonDocuments(s)
		if err == nil {
			return slices.DeleteFunc(docs, d.refuseDuplicate)
		}
		if strings.HasSuffix(strings.ToLower(s.name), ".json") {
			d.AddProblem(s.name, jsonLine(s.data, err), "is not JSON: %v", err)
			return slices.DeleteFunc(docs, d.refuseDuplicate)
		}
		// YAML may also begin with a brace.
	}
	var out []Document
	for _, part := range splitYAML(s) {
		part.skipComments()
		data, err := yaml.YAMLToJSONStrict(part.text)
		if err != nil {
			if found, ok := yamlDuplicate(part.text, err); ok {
				found.fail(d, s.name, part.Line)
				continue
			}
			// The strict parser also rejects a key that overrides a merged mapping (<<), which is valid.
			data, err = yaml.YAMLToJSON(part.text)
		}
		switch {
		case err != nil:
			line, text := yamlProblem(part, err)
			d.AddProblem(s.name, line, "is not YAML: %s%s", text, yamlHint(part.text))
			continue
		case bytes.Equal(bytes.TrimSpace(data), []byte("null")):
			continue // the document has only comments
		}
		part.JSON = data
		out = append(out, part)
	}
	return out
}

// refuseDuplicate records a problem if a mapping of the JSON document has a key twice, and reports whether it did.
func (d *Decoder) refuseDuplicate(doc Document) bool {
	found, ok := jsonDuplicate(doc.text)
	if ok {
		found.fail(d, doc.File, doc.Line)
	}
	return ok
}

// jsonLine returns the line of a JSON syntax error, or the last line if the text ends too early.
func jsonLine(data []byte, err error) int {
	end := len(bytes.TrimRight(data, "\n"))
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		end = min(end, int(syntax.Offset))
	}
	return 1 + bytes.Count(data[:end], []byte("\n"))
}

// jsonDocuments returns the documents before the first invalid one, and the error of that one.
func jsonDocuments(s source) ([]Document, error) {
	var out []Document
	decoder := json.NewDecoder(bytes.NewReader(s.data))
	line, before := 1, 0
	for {
		var raw json.RawMessage
		err := decoder.Decode(&raw)
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return out, err
		}
		start := int(decoder.InputOffset()) - len(raw)
		line, before = line+bytes.Count(s.data[before:start], []byte("\n")), start
		out = append(out, Document{File: s.name, Line: line, text: raw, JSON: raw, isJSON: true})
	}
}

// splitYAML splits a file at the lines that are "---", alone or before a blank and more text. In YAML such a line ends
// a document everywhere, even inside a block scalar.
func splitYAML(s source) []Document {
	var out []Document
	current := Document{File: s.name, Line: 1}
	line := 0
	for text := range bytes.Lines(bytes.TrimPrefix(s.data, []byte("\xEF\xBB\xBF"))) {
		line++
		rest, ok := bytes.CutPrefix(text, []byte("---"))
		if !ok || len(bytes.TrimSpace(rest)) > 0 && rest[0] != ' ' && rest[0] != '\t' {
			current.text = append(current.text, text...)
			continue
		}
		out = append(out, current)
		// The text after the dashes belongs to the next document.
		current = Document{File: s.name, Line: line, text: bytes.TrimLeft(rest, " \t")}
	}
	return append(out, current)
}

// skipComments moves the start of the document to its first line that is neither empty nor a comment.
func (doc *Document) skipComments() {
	for len(doc.text) > 0 {
		line, rest, _ := bytes.Cut(doc.text, []byte("\n"))
		line = bytes.TrimSpace(line)
		if len(line) > 0 && line[0] != '#' {
			return
		}
		doc.text, doc.Line = rest, doc.Line+1
	}
}

// yamlProblem returns the line in the file and the cause from an error like "error converting YAML to JSON: yaml: line
// 7: did not find expected key".
func yamlProblem(part Document, err error) (int, string) {
	text := strings.TrimPrefix(err.Error(), "error converting YAML to JSON: ")
	text = strings.TrimPrefix(text, "yaml: ")
	rest, ok := strings.CutPrefix(text, "line ")
	if !ok {
		return part.Line, text
	}
	number, rest, _ := strings.Cut(rest, ": ")
	line, convErr := strconv.Atoi(number)
	if convErr != nil {
		return part.Line, text
	}
	return part.Line + line - 1, rest
}

// yamlHint returns the end of a message about text that is not YAML: the probable cause; empty if none is known.
func yamlHint(text []byte) string {
	switch {
	case bytes.Contains(text, []byte("{{")):
		return "; it looks like a Helm template: give the output of helm template instead"
	case bytes.Contains(text, []byte("\n\t")):
		return "; lines may be indented by spaces only"
	}
	return ""
}

// lineOf returns the number of the first line that contains key and value. Without such a line, it returns the first
// line with key, else the first line of the document. The result is a guess, for messages only.
func (doc Document) lineOf(key, value string) int {
	best := 0
	for i, line := range strings.Split(string(doc.text), "\n") {
		if !strings.Contains(line, key) {
			continue
		}
		if strings.Contains(line, value) {
			return doc.Line + i
		}
		if best == 0 {
			best = doc.Line + i
		}
	}
	if best == 0 {
		best = doc.Line
	}
	return best
}

package manifest

import (
	"bytes"
	"encoding/json"
)

func (d *Decoder) readItems(s source, doc Document, items []json.RawMessage) {
	documentsOf := doc.jsonItems
	if !doc.isJSON {
		documentsOf = doc.yamlItems
	}
	if doc.lists == maxListDepth {
		d.AddProblem(doc.File, doc.Line, "lists are nested more than %d deep; give the objects themselves", maxListDepth)
		return
	}
	for _, item := range documentsOf(items) {
		item.lists = doc.lists + 1
		d.readDocument(s, item)
	}
}

// maxListDepth is the maximum nesting depth of lists. Each level parses its content again, so a small file with many
// levels would take minutes. kubectl writes one level.
const maxListDepth = 10

// jsonItems returns the items of a JSON document, each with its line and text.
func (doc Document) jsonItems(items []json.RawMessage) []Document {
	out := make([]Document, 0, len(items))
	rest, line := doc.text, doc.Line
	for _, item := range items {
		inner := Document{File: doc.File, Line: line, text: item, JSON: item, isJSON: true}
		if offset := bytes.Index(rest, item); offset >= 0 {
			inner.Line += bytes.Count(rest[:offset], []byte("\n"))
			line = inner.Line + bytes.Count(item, []byte("\n"))
			rest = rest[offset+len(item):]
		}
		out = append(out, inner)
	}
	return out
}

// yamlItems returns the items of a YAML document. Items in block style, each after its own dash, get their line and
// text; items in another style get the line of the document.
func (doc Document) yamlItems(items []json.RawMessage) []Document {
	starts := itemStarts(doc.text, bytes.HasPrefix(doc.JSON, []byte("[")))
	out := make([]Document, 0, len(items))
	line, before := doc.Line, 0
	for i, item := range items {
		inner := Document{File: doc.File, Line: doc.Line, JSON: item}
		if len(starts) == len(items)+1 {
			line += bytes.Count(doc.text[before:starts[i]], []byte("\n"))
			before = starts[i]
			inner.Line, inner.text = line, doc.text[starts[i]:starts[i+1]]
		}
		out = append(out, inner)
	}
	return out
}

// itemStarts returns the offsets at which the items of a List begin, and the offset at which the last item ends. isBare
// means that the text is only the list, without the key items.
func itemStarts(text []byte, isBare bool) []int {
	var out []int
	indent, inList, next := -1, isBare, 0
	for line := range bytes.Lines(text) {
		start := next
		next += len(line)
		rest := bytes.TrimLeft(line, " ")
		if content := bytes.TrimSpace(rest); len(content) == 0 || content[0] == '#' {
			continue
		}
		// An item begins with a dash, alone or before white space.
		column, isItem := len(line)-len(rest), rest[0] == '-' && (len(rest) == 1 || bytes.IndexByte([]byte(" \r\n"), rest[1]) >= 0)
		switch {
		case !inList:
			inList = bytes.HasPrefix(line, []byte("items:"))
		case indent < 0 && isItem, isItem && column == indent:
			indent = column
			out = append(out, start)
		case column <= indent:
			return append(out, start)
		}
	}
	return append(out, next)
}

package manifest

import (
	"bytes"
	"encoding/json"
)

// items reads each item of a List as a document of its own.
func (d *Decoder) items(s source, doc Document, items []json.RawMessage) {
	inner := doc.jsonItems
	if !doc.isJSON {
		inner = doc.yamlItems
	}
	if doc.lists == listsMost {
		d.Fail(doc.File, doc.Line, "lists lie within lists, more than %d of them; give the objects themselves", listsMost)
		return
	}
	for _, item := range inner(items) {
		item.lists = doc.lists + 1
		d.document(s, item)
	}
}

// listsMost is how many lists may lie one within the other. Each is read as a whole once more, so that a small file of
// many takes minutes; kubectl writes one.
const listsMost = 10

// jsonItems are the items of a document that is written as JSON, each with its place and its text.
func (doc Document) jsonItems(items []json.RawMessage) []Document {
	out := make([]Document, 0, len(items))
	rest, line := doc.text, doc.Line
	for _, item := range items {
		inner := Document{File: doc.File, Line: line, text: item, JSON: item, isJSON: true}
		if at := bytes.Index(rest, item); at >= 0 {
			inner.Line += bytes.Count(rest[:at], []byte("\n"))
			line = inner.Line + bytes.Count(item, []byte("\n"))
			rest = rest[at+len(item):]
		}
		out = append(out, inner)
	}
	return out
}

// yamlItems are the items of a document that is written as YAML. Those that are written one below the other, each
// behind its dash, have their place and their text; those of any other style have the place of the document.
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

// itemStarts returns the offsets at which the items of a List begin, and the one at which the last ends. Whole: the text is
// nothing but the list.
func itemStarts(text []byte, whole bool) []int {
	var out []int
	indent, in, at := -1, whole, 0
	for line := range bytes.Lines(text) {
		start := at
		at += len(line)
		rest := bytes.TrimLeft(line, " ")
		if says := bytes.TrimSpace(rest); len(says) == 0 || says[0] == '#' {
			continue
		}
		deep, isItem := len(line)-len(rest), rest[0] == '-' && (len(rest) == 1 || bytes.IndexByte([]byte(" \r\n"), rest[1]) >= 0)
		switch {
		case !in:
			in = bytes.HasPrefix(line, []byte("items:"))
		case indent < 0 && isItem, isItem && deep == indent:
			indent = deep
			out = append(out, start)
		case deep <= indent:
			return append(out, start)
		}
	}
	return append(out, at)
}

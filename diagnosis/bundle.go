package diagnosis

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// largest is the most that a bundle may have: 64 MiB, that of a cluster with thousands of nodes many times over.
const largest = 64 << 20

// Write writes evidence as a bundle: JSON, the same bytes for the same evidence. Secrets are taken out of all texts once more,
// whoever collected them.
func Write(e Evidence) ([]byte, error) {
	e.Format = Format
	plain, err := json.Marshal(e)
	if err != nil {
		return nil, fmt.Errorf("write bundle: %w", err)
	}
	var tree any
	d := json.NewDecoder(bytes.NewReader(plain))
	d.UseNumber()
	if err := d.Decode(&tree); err != nil {
		return nil, fmt.Errorf("write bundle: %w", err)
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(maskTree("", tree)); err != nil {
		return nil, fmt.Errorf("write bundle: %w", err)
	}
	return b.Bytes(), nil
}

// maskTree takes secrets out of all strings but certificates, which are public and look like none.
func maskTree(key string, tree any) any {
	switch t := tree.(type) {
	case string:
		if key == "ca" {
			return t
		}
		return Mask(t)
	case []any:
		for i := range t {
			t[i] = maskTree(key, t[i])
		}
	case map[string]any:
		for k := range t {
			t[k] = maskTree(k, t[k])
		}
	}
	return tree
}

// Parse reads a bundle. The error says what is wrong with a text that is none.
func Parse(text []byte) (Evidence, error) {
	var e Evidence
	switch {
	case len(text) > largest:
		return e, fmt.Errorf("read bundle: it has %d bytes, more than %d", len(text), largest)
	case len(bytes.TrimSpace(text)) == 0:
		return e, errors.New("read bundle: it is empty")
	}
	if err := json.Unmarshal(text, &e); err != nil {
		return Evidence{}, fmt.Errorf("read bundle: it is not the JSON that joiner doctor --bundle writes: %w", err)
	}
	switch {
	case e.Format == 0:
		return Evidence{}, errors.New("read bundle: it is not one: joiner doctor --bundle FILE writes them")
	case e.Format > Format:
		return Evidence{}, fmt.Errorf("read bundle: it is of format %d, and this program knows %d: use a newer joiner", e.Format, Format)
	}
	return e, nil
}

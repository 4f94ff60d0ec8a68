package diagnosis

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strconv"
)

// maxBundleSize is the maximum size of a bundle in bytes. Bundles of clusters with thousands of nodes are much smaller.
const maxBundleSize = 64 << 20

// maxValues is the maximum number of values in a bundle, estimated from its commas. A bundle of joiner doctor has about
// thirty bytes per value, so 64 MiB have fewer values. Smaller values could take gigabytes of memory.
const maxValues = 4 << 20

// Write returns evidence as a bundle, which is JSON: the same bytes for the same evidence. Collectors have already
// removed secrets; Write masks all strings again, in case a collector has missed a secret.
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

// maskTree removes secrets from all strings of a JSON tree. key is the field name whose value is the tree. Certificates
// (key "ca") are kept: they are public, although they look like secrets.
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

// Parse reads a bundle. Its error names the mistake in the text, and its JSON path if a field has the wrong type.
func Parse(text []byte) (Evidence, error) {
	var e Evidence
	switch {
	case len(text) > maxBundleSize:
		return e, fmt.Errorf("read bundle: the file has %d bytes, more than %d", len(text), maxBundleSize)
	case bytes.Count(text, []byte{','}) > maxValues:
		return e, fmt.Errorf("read bundle: the file has more than %d values", maxValues)
	case len(bytes.TrimSpace(text)) == 0:
		return e, errors.New("read bundle: the file is empty")
	}
	var tree any
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	err := d.Decode(&tree)
	if err == nil {
		if _, end := d.Token(); !errors.Is(end, io.EOF) { // Decoder.More would report a stray closing bracket as the end
			err = errors.New("text follows the JSON object")
		}
	}
	if err != nil {
		return Evidence{}, fmt.Errorf("read bundle: it is not the JSON that joiner doctor --bundle writes: %w", err)
	}
	if err := checkFormat(tree); err != nil {
		return Evidence{}, fmt.Errorf("read bundle: %w", err)
	}
	if err := checkShape("", tree, reflect.TypeFor[Evidence]()); err != nil {
		return Evidence{}, fmt.Errorf("read bundle: %w; joiner doctor --bundle FILE writes it", err)
	}
	markNulls(tree)
	plain, err := json.Marshal(tree)
	if err != nil {
		return Evidence{}, fmt.Errorf("read bundle: %w", err)
	}
	if err := json.Unmarshal(plain, &e); err != nil {
		return Evidence{}, errors.New("read bundle: it is not the JSON that joiner doctor --bundle writes")
	}
	return e, nil
}

// checkFormat checks the format version of a bundle. It must be called before checkShape, because another version may
// have other fields.
func checkFormat(tree any) error {
	object, isObject := tree.(map[string]any)
	format, hasFormat := object["format"]
	number, isNumber := format.(json.Number)
	n, err := strconv.Atoi(number.String())
	switch {
	case !isObject, !hasFormat:
		return errors.New("the file is not a bundle: joiner doctor --bundle FILE writes bundles")
	case !isNumber || err != nil || n < 1:
		return fmt.Errorf("its format is %s, and the only format is %d: joiner doctor --bundle FILE writes it",
			OrElse(number.String(), "not a number"), Format)
	case n > Format:
		return fmt.Errorf("its format is %d, and this program reads formats up to %d: use a newer joiner", n, Format)
	}
	return nil
}

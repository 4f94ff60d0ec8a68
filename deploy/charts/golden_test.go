package charts

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

const (
	// defaultsName is the values file that sets only the required value. Its golden file has every rendered object.
	defaultsName = "defaults"
	// sameMark begins a document of another golden file whose object is the same as in defaults.golden.yaml.
	sameMark = "# as in defaults.golden.yaml: "
)

var (
	kindLine = regexp.MustCompile(`(?m)^kind: (\S+)$`)
	nameLine = regexp.MustCompile(`(?m)^  name: (\S+)$`)
)

// goldenPath returns the path of the golden file of a values file.
func goldenPath(name string) string { return "testdata/" + name + ".golden.yaml" }

// golden returns the rendered manifests in the golden file of a values file.
func golden(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(goldenPath(name))
	if err != nil {
		t.Fatal(err)
	}
	if name == defaultsName {
		return string(text)
	}
	return expand(t, string(text), defaultObjects(t))
}

// defaultObjects returns the documents of defaults.golden.yaml by kind and name.
func defaultObjects(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, doc := range documents(golden(t, defaultsName)) {
		out[objectID(t, doc)] = doc
	}
	return out
}

// compact replaces each document that is the same as in defaults.golden.yaml by a comment. So a golden file shows what
// its values file changes.
func compact(t *testing.T, manifests string, defaults map[string]string) string {
	t.Helper()
	docs := documents(manifests)
	for i, doc := range docs {
		if id := objectID(t, doc); defaults[id] == doc {
			docs[i] = sameMark + id
		}
	}
	return joinDocuments(docs)
}

// expand reverses compact.
func expand(t *testing.T, text string, defaults map[string]string) string {
	t.Helper()
	docs := documents(text)
	for i, doc := range docs {
		id, isSame := strings.CutPrefix(doc, sameMark)
		if !isSame {
			continue
		}
		if defaults[id] == "" {
			t.Fatalf("defaults.golden.yaml has no %s", id)
		}
		docs[i] = defaults[id]
	}
	return joinDocuments(docs)
}

// documents returns the YAML documents of manifests that helm template printed. joinDocuments reverses documents.
func documents(manifests string) []string {
	return strings.Split(strings.TrimSuffix(strings.TrimPrefix(manifests, "---\n"), "\n"), "\n---\n")
}

func joinDocuments(docs []string) string { return "---\n" + strings.Join(docs, "\n---\n") + "\n" }

// objectID returns the kind and name of the object in a document.
func objectID(t *testing.T, doc string) string {
	t.Helper()
	kind, name := kindLine.FindStringSubmatch(doc), nameLine.FindStringSubmatch(doc)
	if kind == nil || name == nil {
		t.Fatalf("a document has no kind or name:\n%s", doc)
	}
	return kind[1] + " " + name[1]
}

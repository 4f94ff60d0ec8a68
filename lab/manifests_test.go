package lab_test

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestManifestsOfKarpenter applies the manifests that users wrote for Karpenter, as they are, by server-side apply and strictly, so that
// a field which is not there is an error: they pass all that an object passes but the last step, so that nothing is bought for them.
func TestManifestsOfKarpenter(t *testing.T) {
	l := shared(t)
	files, err := filepath.Glob("../bench/conformance/testdata/manifests/*.yaml")
	if err != nil || len(files) < 22 {
		t.Fatalf("there are %d manifests: %v; want at least 22", len(files), err)
	}
	applied := 0
	for _, file := range files {
		for _, object := range documents(t, file) {
			if isNamespaced, err := l.Client.IsObjectNamespaced(object); err == nil && isNamespaced && object.GetNamespace() == "" {
				object.SetNamespace(metav1.NamespaceDefault)
			}
			err := l.Client.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(object), client.FieldOwner("user"), client.DryRunAll)
			if err != nil {
				t.Errorf("%s: %s %s: %v", filepath.Base(file), object.GetKind(), object.GetName(), err)
			}
			applied++
		}
	}
	t.Logf("%d objects of %d files", applied, len(files))
}

// documents reads the objects of a file.
func documents(t *testing.T, file string) []*unstructured.Unstructured {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var out []*unstructured.Unstructured
	reader := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
	for {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return out
		}
		object := &unstructured.Unstructured{}
		if err == nil {
			err = yaml.Unmarshal(document, &object.Object)
		}
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if len(object.Object) > 0 {
			out = append(out, object)
		}
	}
}

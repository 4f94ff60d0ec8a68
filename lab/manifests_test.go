package lab_test

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/joiner-sh/joiner/lab"
)

// TestManifestsOfKarpenter applies unchanged manifests that users wrote for Karpenter. Server-side apply rejects
// unknown fields. In a dry run, the API server validates the objects and does not store them, so nothing is launched.
func TestManifestsOfKarpenter(t *testing.T) {
	l := sharedLab(t)
	files, err := filepath.Glob("../bench/conformance/testdata/manifests/*.yaml")
	if err != nil || len(files) < 22 {
		t.Fatalf("%d manifests: %v; want at least 22", len(files), err)
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

// TestFieldsWithoutEffectAreReported checks the reports of fields that have no effect. At its start, the controller
// logs one line for each object with such fields, and later one line for each new object. Each object gets an event.
func TestFieldsWithoutEffectAreReported(t *testing.T) {
	l := parallelLab(t, lab.Options{})
	staticPool := func(name string) string {
		return `
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: ` + name + `}
spec:
  replicas: 1
  template: {spec: {requirements: [], nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: none}}}
---
`
	}
	apply(t, l, staticPool("early"), `
apiVersion: karpenter.sh/v1alpha1
kind: NodeOverlay
metadata: {name: cheap}
spec: {requirements: [], priceAdjustment: "-10%"}
`)
	restartController(t, l, "FEATURE_GATES=CapacityBuffer=true")
	d := definitions{t: t, l: l}
	awaitLog := func(name string) {
		d.awaitLog("this field has no effect", "NodePool "+name, "spec.replicas")
	}
	awaitLog("early")
	d.awaitLog("this field has no effect", "NodeOverlay cheap", "the feature gate NodeOverlay is off")
	d.awaitLog("this setting has no effect", "CapacityBuffer=true", "no spare capacity is kept")
	apply(t, l, staticPool("late"))
	awaitLog("late")
	eventually(t, l, 30*time.Second, "an event on each object", func() bool {
		events, err := l.Kube.EventsV1().Events(metav1.NamespaceDefault).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			return false
		}
		count := map[string]int{}
		for _, e := range events.Items {
			if e.Reason == "FieldNotHonoured" {
				count[e.Regarding.Name]++
			}
		}
		return count["early"] == 1 && count["late"] == 1 && count["cheap"] == 1
	})
	text, err := os.ReadFile(l.Logs("joiner"))
	if err != nil {
		t.Fatal(err)
	}
	if lines := bytes.Count(text, []byte("this field has no effect")); lines != 3 {
		t.Errorf("%d log lines about fields without effect, want 3: early, late and cheap", lines)
	}
	checkNoDenials(t, l, "kube-system", lab.ControllerAccount)
}

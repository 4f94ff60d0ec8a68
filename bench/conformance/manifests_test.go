package conformance

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
)

var definitionNames = map[string]string{
	"NodePool": "nodepools.karpenter.sh", "NodeClaim": "nodeclaims.karpenter.sh", "NodeOverlay": "nodeoverlays.karpenter.sh",
	"EC2NodeClass": "ec2nodeclasses.karpenter.k8s.aws",
}

// TestManifests: Joiner's and Karpenter's CustomResourceDefinitions accept the realistic manifests in
// testdata/manifests, drop none of their fields, and store equal objects.
func TestManifests(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/manifests/*.yaml")
	if err != nil || len(files) < 22 {
		t.Fatalf("testdata has %d manifests (%v), want at least 22", len(files), err)
	}
	seen := compareResults(t, files, true, func(name string) string { return name })
	for _, kind := range []string{"NodePool", "NodeOverlay", "EC2NodeClass"} {
		if seen[kind] == 0 {
			t.Errorf("the manifests include no %s, want at least one", kind)
		}
	}
}

// TestExamples: Joiner's and Karpenter's CustomResourceDefinitions reject the same examples of Karpenter's source. The
// test replaces the placeholders in the examples.
func TestExamples(t *testing.T) {
	t.Parallel()
	folder, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/aws/karpenter-provider-aws").Output()
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(folder)), "examples", "v1", "*.yaml"))
	if err != nil || len(files) < 15 {
		t.Fatalf("found %d examples (%v), want at least 15", len(files), err)
	}
	compareResults(t, files, false, func(name string) string {
		switch name {
		case "ALIAS_VERSION":
			return "latest"
		case "AMI_ID":
			return "ami-0123456789abcdef0"
		}
		return "demo"
	})
}

// compareResults checks that Joiner's and Karpenter's definitions give the same result for every object in the files
// whose kind is in definitionNames. fill returns the values of variables in the files. If mustAccept is true, the
// definitions must also accept every object and drop no field. compareResults returns the number of objects by kind.
func compareResults(t *testing.T, files []string, mustAccept bool, fill func(variable string) string) map[string]int {
	t.Helper()
	all, seen := pairs(t), map[string]int{}
	compiled := map[string][2]*Definition{}
	for name, pair := range all {
		compiled[name] = [2]*Definition{compile(t, pair.ours), compile(t, pair.theirs)}
	}
	for _, file := range files {
		for _, object := range objectsOf(t, file, fill) {
			kind, _ := object["kind"].(string)
			definitions, ok := compiled[definitionNames[kind]]
			if !ok {
				continue // another kind, for instance a workload
			}
			seen[kind]++
			t.Run(filepath.Base(file)+"/"+kind, func(t *testing.T) {
				ours, theirs := create(t, definitions[0], object), create(t, definitions[1], object)
				if diff := gocmp.Diff(errorKinds(theirs.errs), errorKinds(ours.errs)); diff != "" {
					t.Errorf("errors differ (-theirs +ours):\n%s", diff)
				}
				if diff := gocmp.Diff(theirs.stored, ours.stored); diff != "" {
					t.Errorf("objects differ (-theirs +ours):\n%s", diff)
				}
				// If no field was dropped, merging the manifest into the stored object changes nothing.
				if diff := gocmp.Diff(merge(ours.stored, object), ours.stored); mustAccept && (diff != "" || len(ours.errs) > 0) {
					t.Errorf("rejected (%v), or fields dropped (-want +stored):\n%s", ours.errs.ToAggregate(), diff)
				}
			})
		}
	}
	if len(seen) == 0 {
		t.Error("no file has an object of a kind in definitionNames")
	}
	return seen
}

func create(t *testing.T, definition *Definition, object map[string]any) result {
	t.Helper()
	out := runtime.DeepCopyJSON(object)
	definition.Read(out)
	return result{stored: out, errs: definition.Create(t.Context(), out)}
}

func objectsOf(t *testing.T, file string, fill func(string) string) []map[string]any {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var out []map[string]any
	reader := yaml.NewYAMLReader(bufio.NewReader(strings.NewReader(os.Expand(string(text), fill))))
	for {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		data, err := yaml.ToJSON(document)
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if object := decode(t, bytes.TrimSpace(data)); len(object) > 0 {
			out = append(out, object)
		}
	}
}

// Package charts has the tests of the Helm charts.
package charts

import (
	"bytes"
	"context"
	"flag"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

var rewrite = flag.Bool("rewrite", false, "rewrite the rendered manifests, the README's table and the schema")

// The chart's folder, release and namespace.
const (
	chart     = "joiner"
	release   = "joiner"
	namespace = "joiner"
)

// helm runs the Helm binary of HELM_BINARY, which make chart builds. If HELM_BINARY is not set, helm skips the test.
func helm(t *testing.T, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	path := os.Getenv("HELM_BINARY")
	if path == "" {
		t.Skip("HELM_BINARY is not set: make chart builds Helm and runs this test with it")
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, args...)
	home := t.TempDir()
	cmd.Env = []string{"HOME=" + home, "HELM_CACHE_HOME=" + home, "HELM_CONFIG_HOME=" + home, "HELM_DATA_HOME=" + home, "KUBECONFIG=/nowhere"}
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err = cmd.Run()
	return out.String(), errs.String(), err
}

// valuesFiles returns the paths of the values files of testdata, by name without extension.
func valuesFiles(t *testing.T) map[string]string {
	t.Helper()
	files, err := filepath.Glob("testdata/*.values.yaml")
	if err != nil || len(files) < 5 {
		t.Fatalf("testdata has %d values files, want at least 5 (%v)", len(files), err)
	}
	out := map[string]string{}
	for _, file := range files {
		out[strings.TrimSuffix(filepath.Base(file), ".values.yaml")] = file
	}
	return out
}

// TestRendered renders the chart with each values file of testdata, and compares the result with its golden file. The
// defaults come first, because other golden files are diffs to the golden file of the defaults.
func TestRendered(t *testing.T) {
	paths := valuesFiles(t)
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(paths)), func(name string) bool { return name == defaultsName })
	for _, name := range append([]string{defaultsName}, names...) {
		values := paths[name]
		t.Run(name, func(t *testing.T) {
			if out, errs, err := helm(t, "lint", "--strict", chart, "-n", namespace, "-f", values); err != nil {
				t.Errorf("helm lint: %v\n%s%s", err, out, errs)
			}
			got, errs, err := helm(t, "template", release, chart, "-n", namespace, "-f", values)
			if err != nil {
				t.Fatalf("helm template: %v\n%s", err, errs)
			}
			if *rewrite {
				if err := os.WriteFile(goldenPath(name), []byte(goldenText(t, name, got)), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if got != golden(t, name) {
				t.Errorf("%s differs from the rendered chart: run make chart REWRITE=1, and review the difference", goldenPath(name))
			}
		})
	}
}

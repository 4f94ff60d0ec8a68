// Package charts has only tests, of the Helm charts.
package charts

import (
	"bytes"
	"context"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var rewrite = flag.Bool("rewrite", false, "rewrite the rendered manifests, the README's table and the schema")

// Folder, release and namespace of the chart in these tests.
const (
	chart     = "joiner"
	release   = "joiner"
	namespace = "joiner"
)

// helm runs the Helm binary of HELM_BINARY, which make chart builds. Without it, the test is skipped.
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

// combinations returns the paths of the values files of testdata, by name without extension.
func combinations(t *testing.T) map[string]string {
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

// TestRendered renders the chart with each values file of testdata, and compares the result with its golden file.
func TestRendered(t *testing.T) {
	for name, values := range combinations(t) {
		t.Run(name, func(t *testing.T) {
			if out, errs, err := helm(t, "lint", "--strict", chart, "-n", namespace, "-f", values); err != nil {
				t.Errorf("helm lint: %v\n%s%s", err, out, errs)
			}
			got, errs, err := helm(t, "template", release, chart, "-n", namespace, "-f", values)
			if err != nil {
				t.Fatalf("helm template: %v\n%s", err, errs)
			}
			golden := filepath.Join("testdata", name+".golden.yaml")
			if *rewrite {
				if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil || got != string(want) {
				t.Errorf("%s differs from the rendered chart (%v): run make chart REWRITE=1, and review the difference", golden, err)
			}
		})
	}
}

package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// TestChart checks that the chart of a release contains the files of the checkout's chart, and the versions of the
// release. The release workflow must push and publish the chart.
func TestChart(t *testing.T) {
	t.Parallel()
	o := options{root: "../..", out: t.TempDir(), release: "v1.2.3-rc.1"}
	if err := o.writeChart(); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(o.out, "joiner-1.2.3-rc.1.tgz"))
	if err != nil {
		t.Fatal(err)
	}
	if err := o.writeChart(); err != nil {
		t.Fatal(err)
	}
	if again, err := os.ReadFile(filepath.Join(o.out, "joiner-1.2.3-rc.1.tgz")); err != nil || !bytes.Equal(data, again) {
		t.Errorf("a second build of the chart differs, or cannot be read: %v", err)
	}
	z, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	files, content := map[string]*tar.Header{}, map[string][]byte{}
	readTar(t, z, files, content)
	for _, name := range []string{"values.yaml", "values.schema.json", "values.rules.json", "README.md",
		"templates/deployment.yaml", "templates/_helpers.tpl"} {
		want, err := os.ReadFile(filepath.Join("../..", chartFolder, name))
		if err != nil || !bytes.Equal(content["joiner/"+name], want) {
			t.Errorf("%s differs from the checkout: %v", name, err)
		}
	}
	var metadata struct{ Name, Version, AppVersion, APIVersion string }
	if err := yaml.Unmarshal(content["joiner/Chart.yaml"], &metadata); err != nil {
		t.Fatal(err)
	}
	if metadata.Name != "joiner" || metadata.Version != "1.2.3-rc.1" || metadata.AppVersion != o.release || metadata.APIVersion != "v2" {
		t.Errorf("Chart.yaml has %+v, want name joiner, API version v2 and the versions of the release", metadata)
	}
	workflowText, err := os.ReadFile("../../.github/workflows/release.yml")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"helm push dist/joiner-*.tgz",
		"gh release create \"$TAG\" --verify-tag --generate-notes dist/*.tar.gz dist/*.tgz"} {
		if !strings.Contains(string(workflowText), want) {
			t.Errorf("the release workflow does not contain %q", want)
		}
	}
}

// TestChartWithoutVersion checks that a Chart.yaml without the version line is an error.
func TestChartWithoutVersion(t *testing.T) {
	t.Parallel()
	if _, err := withVersion([]byte("name: joiner\nappVersion: 1\n"), "1.2.3", "v1.2.3"); err == nil {
		t.Error("a Chart.yaml without a version line is accepted, want an error")
	}
}

// TestChartFromRegistry checks that docs/installation.md installs the chart from the address to which the release
// workflow pushes it, and that the workflow attests the files that the guide verifies.
func TestChartFromRegistry(t *testing.T) {
	t.Parallel()
	guide, err := os.ReadFile("../../docs/installation.md")
	if err != nil {
		t.Fatal(err)
	}
	workflowText, err := os.ReadFile("../../.github/workflows/release.yml")
	if err != nil {
		t.Fatal(err)
	}
	charts := regexp.MustCompile(`(?m)^ +CHARTS: (oci://\S+?)/?\$\{\{ github\.repository_owner \}\}(\S*)$`).FindSubmatch(workflowText)
	if charts == nil {
		t.Fatal("the workflow does not set CHARTS to the address of a registry")
	}
	address := string(charts[1]) + "/joiner-sh" + string(charts[2]) + "/joiner"
	for _, want := range []string{"--install joiner " + address + " --version VERSION", "helm show values " + address,
		"oci://ghcr.io/joiner-sh/joiner:vVERSION --repo joiner-sh/joiner"} {
		if !strings.Contains(string(guide), want) {
			t.Errorf("docs/installation.md does not contain %q", want)
		}
	}
	for _, want := range []string{"subject-name: ghcr.io/${{ github.repository }}", "dist/*.tgz", "push-to-registry: true"} {
		if !strings.Contains(string(workflowText), want) {
			t.Errorf("the workflow does not contain %q, so it does not attest what the guide verifies", want)
		}
	}
}

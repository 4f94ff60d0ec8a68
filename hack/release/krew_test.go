package main

import (
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// plugin has the used fields of krew's manifest.
type plugin struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name string `json:"name"`
	} `json:"metadata"`
	Spec struct {
		Version          string `json:"version"`
		Homepage         string `json:"homepage"`
		ShortDescription string `json:"shortDescription"`
		Description      string `json:"description"`
		Caveats          string `json:"caveats"`
		Platforms        []struct {
			Selector struct {
				MatchLabels map[string]string `json:"matchLabels"`
			} `json:"selector"`
			URI    string `json:"uri"`
			Sha256 string `json:"sha256"`
			Bin    string `json:"bin"`
		} `json:"platforms"`
	} `json:"spec"`
}

// TestKrewManifest checks that krew accepts the manifest, and that it has exactly the platforms of the archives.
func TestKrewManifest(t *testing.T) {
	t.Parallel()
	sums := map[platform]string{}
	for i, p := range archivePlatforms() {
		sums[p] = strings.Repeat(string(rune('a'+i)), 64) // as long as a checksum
	}
	text, err := krewManifest(filepath.Join("../..", krewTemplate), "v1.2.3", sums)
	if err != nil {
		t.Fatal(err)
	}
	var p plugin
	if err := yaml.UnmarshalStrict(text, &p); err != nil {
		t.Fatal(err)
	}
	if p.APIVersion != "krew.googlecontainertools.github.com/v1alpha2" || p.Kind != "Plugin" ||
		p.Metadata.Name != "joiner" || p.Spec.Version != "v1.2.3" {
		t.Errorf("the manifest is %+v, want API v1alpha2, kind Plugin, name joiner and version v1.2.3", p)
	}
	if s := p.Spec.ShortDescription; s == "" || len(s) > 50 || strings.HasSuffix(s, ".") || strings.Contains(s, "\n") {
		t.Errorf("shortDescription %q, want up to 50 characters on one line, without a full stop", s)
	}
	for _, line := range strings.Split(p.Spec.Description+p.Spec.Caveats, "\n") {
		if len(line) > 80 {
			t.Errorf("a line of description and caveats has more than 80 characters: %q", line)
		}
	}
	seen := map[platform]bool{}
	for _, archive := range p.Spec.Platforms {
		target := platform{archive.Selector.MatchLabels["os"], archive.Selector.MatchLabels["arch"]}
		seen[target] = true
		if archive.Sha256 != sums[target] || archive.Bin != "joiner" ||
			archive.URI != p.Spec.Homepage+"/releases/download/v1.2.3/"+archiveName(target) {
			t.Errorf("%s is %+v, want checksum %s, program joiner, and the URI of the release", target, archive, sums[target])
		}
	}
	if len(seen) != len(sums) || len(p.Spec.Platforms) != len(sums) {
		t.Errorf("the manifest has the platforms %v, want each of %v once", seen, archivePlatforms())
	}
	if _, err := krewManifest(filepath.Join("../..", krewTemplate), "v1.2.3", map[platform]string{{"linux", "amd64"}: "a"}); err == nil {
		t.Error("krewManifest accepts a platform without checksum, want an error")
	}
}

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

// TestKrewManifest checks that the manifest is valid for krew, and has exactly the platforms of the archives.
func TestKrewManifest(t *testing.T) {
	t.Parallel()
	sums := map[platform]string{}
	for i, p := range archivePlatforms() {
		sums[p] = strings.Repeat(string(rune('a'+i)), 64)
	}
	text, err := krew(filepath.Join("../..", krewTemplate), "v1.2.3", sums)
	if err != nil {
		t.Fatal(err)
	}
	var p plugin
	if err := yaml.UnmarshalStrict(text, &p); err != nil {
		t.Fatal(err)
	}
	if p.APIVersion != "krew.googlecontainertools.github.com/v1alpha2" || p.Kind != "Plugin" ||
		p.Metadata.Name != "joiner" || p.Spec.Version != "v1.2.3" {
		t.Errorf("head %+v", p)
	}
	if s := p.Spec.ShortDescription; s == "" || len(s) > 50 || strings.HasSuffix(s, ".") || strings.Contains(s, "\n") {
		t.Errorf("krew lists each plugin in one line, and this is too long or not a title: %q", s)
	}
	for _, line := range strings.Split(p.Spec.Description+p.Spec.Caveats, "\n") {
		if len(line) > 80 {
			t.Errorf("longer than 80 characters: %q", line)
		}
	}
	seen := map[platform]bool{}
	for _, q := range p.Spec.Platforms {
		on := platform{q.Selector.MatchLabels["os"], q.Selector.MatchLabels["arch"]}
		seen[on] = true
		if q.Sha256 != sums[on] || q.Bin != "joiner" || q.URI != p.Spec.Homepage+"/releases/download/v1.2.3/"+archiveName(on) {
			t.Errorf("%s: %+v", on, q)
		}
	}
	if len(seen) != len(sums) || len(p.Spec.Platforms) != len(sums) {
		t.Errorf("platforms %v, want %v", seen, archivePlatforms())
	}
	if _, err := krew(filepath.Join("../..", krewTemplate), "v1.2.3", map[platform]string{{"linux", "amd64"}: "a"}); err == nil {
		t.Error("a manifest without all of the archives is written without an error")
	}
}

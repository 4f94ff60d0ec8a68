package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// plugin is what krew reads of a manifest.
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

// TestKrewManifest: the manifest is one that krew takes, and has exactly the platforms that there are archives for.
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
	if p.APIVersion != "krew.googlecontainertools.github.com/v1alpha2" || p.Kind != "Plugin" || p.Metadata.Name != "joiner" || p.Spec.Version != "v1.2.3" {
		t.Errorf("head %+v", p)
	}
	if s := p.Spec.ShortDescription; s == "" || len(s) > 50 || strings.HasSuffix(s, ".") || strings.Contains(s, "\n") {
		t.Errorf("krew lists plugins in one line, so this is too long or no title: %q", s)
	}
	for _, line := range strings.Split(p.Spec.Description+p.Spec.Caveats, "\n") {
		if len(line) > 80 {
			t.Errorf("longer than 80 letters: %q", line)
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
		t.Error("a manifest without all of the archives is made")
	}
}

// workflow is what GitHub reads of a workflow, as far as it is held to something here.
type workflow struct {
	Name        string            `json:"name"`
	Permissions map[string]string `json:"permissions"`
	Jobs        map[string]struct {
		Permissions map[string]string `json:"permissions"`
		RunsOn      string            `json:"runs-on"`
		Timeout     int               `json:"timeout-minutes"`
		Steps       []struct {
			Name string            `json:"name"`
			Uses string            `json:"uses"`
			Run  string            `json:"run"`
			With map[string]any    `json:"with"`
			Env  map[string]string `json:"env"`
		} `json:"steps"`
	} `json:"jobs"`
}

// TestWorkflows: workflows may read and no more unless a job says so, end by themselves, use fixed versions, never build a command from
// what a stranger wrote, and run what there is.
func TestWorkflows(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../.github/workflows/*.yml")
	if err != nil || len(files) != 2 {
		t.Fatalf("workflows %v, %v", files, err)
	}
	ours := regexp.MustCompile(`(?:^|\s)(\.ci/\S+|hack/[\w-]+|deploy/\S+)`)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var w workflow
		if err := yaml.Unmarshal(text, &w); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if w.Permissions["contents"] != "read" || len(w.Permissions) != 1 {
			t.Errorf("%s: permissions %v, want contents: read", file, w.Permissions)
		}
		for name, job := range w.Jobs {
			if job.Timeout == 0 || job.RunsOn == "" {
				t.Errorf("%s: job %s has no timeout-minutes or runs-on", file, name)
			}
			for _, step := range job.Steps {
				if step.Uses != "" && !regexp.MustCompile(`^[\w-]+/[\w-]+@(v\d+|[0-9a-f]{40})$`).MatchString(step.Uses) {
					t.Errorf("%s: %s is not at a fixed version", file, step.Uses)
				}
				if strings.Contains(step.Run, "${{") {
					t.Errorf("%s: %q is built from an expression: pass it by env", file, step.Run)
				}
				for _, m := range ours.FindAllStringSubmatch(step.Run, -1) {
					if _, err := os.Stat(filepath.Join("../..", m[1])); err != nil {
						t.Errorf("%s: %q names what is not there: %v", file, step.Run, err)
					}
				}
			}
		}
	}
}

// TestWorkflowsUseOneGo: the version of Go is that of go.mod.
func TestWorkflowsUseOneGo(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"ci.yml", "release.yml"} {
		text, err := os.ReadFile(filepath.Join("../../.github/workflows", name))
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(string(text), "\n")
		if !slices.ContainsFunc(lines, func(l string) bool { return strings.TrimSpace(l) == "go-version-file: go.mod" }) {
			t.Errorf("%s does not take the version of Go from go.mod", name)
		}
	}
}

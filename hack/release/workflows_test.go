package main

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// workflow has the checked fields of a GitHub workflow.
type workflow struct {
	Name        string            `json:"name"`
	Permissions map[string]string `json:"permissions"`
	Jobs        map[string]job    `json:"jobs"`

	file, text string
}

type job struct {
	Permissions map[string]string `json:"permissions"`
	RunsOn      string            `json:"runs-on"`
	Timeout     int               `json:"timeout-minutes"`
	Steps       []step            `json:"steps"`
}

type step struct {
	Name string            `json:"name"`
	Uses string            `json:"uses"`
	Run  string            `json:"run"`
	With map[string]any    `json:"with"`
	Env  map[string]string `json:"env"`
	ID   string            `json:"id"`
}

func readWorkflows(t *testing.T) []workflow {
	t.Helper()
	files, err := filepath.Glob("../../.github/workflows/*.y*ml")
	if err != nil || len(files) != 2 {
		t.Fatalf("the workflows are %v (%v), want 2", files, err)
	}
	out := make([]workflow, 0, len(files))
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		w := workflow{file: file, text: string(text)}
		if err := yaml.Unmarshal(text, &w); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		out = append(out, w)
	}
	return out
}

// TestWorkflows checks that jobs have a timeout, never build a command from an expression, and run only files that
// exist.
func TestWorkflows(t *testing.T) {
	t.Parallel()
	repositoryFile := regexp.MustCompile(`(?:^|\s)(\.ci/\S+|hack/[\w-]+|deploy/\S+)`)
	for _, w := range readWorkflows(t) {
		for name, job := range w.Jobs {
			if job.Timeout == 0 || job.RunsOn == "" {
				t.Errorf("%s: job %s has no timeout-minutes or runs-on", w.file, name)
			}
			for _, step := range job.Steps {
				if strings.Contains(step.Run, "${{") {
					t.Errorf("%s: %q contains an expression: pass it in env", w.file, step.Run)
				}
				for _, m := range repositoryFile.FindAllStringSubmatch(step.Run, -1) {
					if _, err := os.Stat(filepath.Join("../..", m[1])); err != nil {
						t.Errorf("%s: %q runs a file that does not exist: %v", w.file, step.Run, err)
					}
				}
			}
		}
	}
}

// TestActionsArePinned checks that each action is pinned to a commit, with its version in a comment, and all uses of an
// action have the same digest.
func TestActionsArePinned(t *testing.T) {
	t.Parallel()
	usesLine := regexp.MustCompile(`(?m)^\s*(?:- )?uses: *(.*)$`)
	pinned := regexp.MustCompile(`^([\w-]+/[\w./-]+)@([0-9a-f]{40}) # v\d+\.\d+\.\d+$`)
	digests := map[string]string{}
	for _, w := range readWorkflows(t) {
		steps := 0 // with uses
		for _, j := range w.Jobs {
			for _, s := range j.Steps {
				if s.Uses != "" {
					steps++
				}
			}
		}
		lines := usesLine.FindAllStringSubmatch(w.text, -1)
		if len(lines) != steps {
			t.Errorf("%s: uses: is on %d lines, but in %d steps", w.file, len(lines), steps)
		}
		for _, l := range lines {
			m := pinned.FindStringSubmatch(l[1])
			if m == nil {
				t.Errorf("%s: %q is not pinned: want OWNER/ACTION@ 40 hex digits, and the version as a comment: # v1.2.3", w.file, l[1])
				continue
			}
			if other := digests[m[1]]; other != "" && other != m[2] {
				t.Errorf("%s: %s has two digests", w.file, m[1])
			}
			digests[m[1]] = m[2]
		}
	}
}

func neededPermissions(j job) map[string]string {
	out := map[string]string{}
	for _, s := range j.Steps {
		action, _, _ := strings.Cut(s.Uses, "@")
		switch {
		case action == "actions/checkout":
			if out["contents"] == "" {
				out["contents"] = "read"
			}
		case action == "docker/login-action":
			out["packages"] = "write"
		case action == "actions/attest-build-provenance":
			out["id-token"], out["attestations"] = "write", "write"
		case strings.Contains(s.Run, "gh release create"):
			out["contents"] = "write"
		}
	}
	return out
}

// TestLeastPermissions checks that a workflow grants no permissions, and each job exactly those that its steps need. A
// job that may write to the repository does not check it out, and no checkout keeps credentials. No job of a release
// uses a cache.
func TestLeastPermissions(t *testing.T) {
	t.Parallel()
	for _, w := range readWorkflows(t) {
		if w.Permissions == nil || len(w.Permissions) > 0 {
			t.Errorf("%s: permissions %v, want {}: each job has its own", w.file, w.Permissions)
		}
		for name, j := range w.Jobs {
			if want := neededPermissions(j); !maps.Equal(j.Permissions, want) {
				t.Errorf("%s: job %s has the permissions %v, but needs %v", w.file, name, j.Permissions, want)
			}
			for _, s := range j.Steps {
				action, _, _ := strings.Cut(s.Uses, "@")
				if action == "actions/checkout" && (s.With["persist-credentials"] != false || j.Permissions["contents"] == "write") {
					t.Errorf("%s: job %s: the checkout keeps credentials, or the job may write to the repository", w.file, name)
				}
				if action == "actions/setup-go" && w.Name == "release" && s.With["cache"] != false {
					t.Errorf("%s: job %s uses a cache: a release uses nothing that another workflow has stored", w.file, name)
				}
			}
		}
	}
}

// TestOneToolchain checks that every module, the workflows, the release tool and make use the compiler of the toolchain
// line in go.mod.
func TestOneToolchain(t *testing.T) {
	want, err := toolchainOf("../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), "git", "-C", "../..", "ls-files", "--cached", "--others",
		"--exclude-standard", "*go.mod").Output()
	modules := strings.Fields(string(out))
	if err != nil || len(modules) < 10 {
		t.Fatalf("git lists the modules %v (%v), want at least 10", modules, err)
	}
	for _, m := range modules {
		if got, err := toolchainOf(filepath.Join("../..", m)); err != nil || got != want {
			t.Errorf("%s: toolchain %q, %v; want %s", m, got, err, want)
		}
	}
	for _, w := range readWorkflows(t) {
		for name, j := range w.Jobs {
			for i, s := range j.Steps {
				if strings.HasPrefix(s.Uses, "actions/setup-go@") &&
					("go"+fmt.Sprint(s.With["go-version"]) != want || s.With["go-version-file"] != nil) {
					t.Errorf("%s: job %s, step %d: %v, want go-version %s, no go-version-file", w.file, name, i, s.With, want)
				}
			}
		}
	}
	makefile, err := os.ReadFile("../../Makefile")
	if err != nil || !strings.Contains(string(makefile), "export GOTOOLCHAIN := $(shell sed -n 's/^toolchain //p' go.mod)") {
		t.Errorf("the Makefile does not set GOTOOLCHAIN to the toolchain line of go.mod: %v", err)
	}
	t.Setenv("GOTOOLCHAIN", "local")
	env, err := buildEnv("../..", platform{"linux", "amd64"})
	last := ""
	for _, e := range env {
		if v, ok := strings.CutPrefix(e, "GOTOOLCHAIN="); ok {
			last = v // the last value is used
		}
	}
	if err != nil || last != want {
		t.Errorf("the release is built with %q, %v; want %s", last, err, want)
	}
}

// TestEverythingIsAttested checks that each file of a release is attested and published, and that the image and the
// chart in the registry are attested.
func TestEverythingIsAttested(t *testing.T) {
	t.Parallel()
	o := smallCheckout(t)
	o.twice = false
	if err := o.writeImage(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := o.writeArchives(t.Context()); err != nil {
		t.Fatal(err)
	}
	chart := options{root: "../..", out: o.out, release: o.release}
	if err := chart.writeChart(); err != nil {
		t.Fatal(err)
	}
	var subjects, registryNames, published []string
	for _, w := range readWorkflows(t) {
		for _, j := range w.Jobs {
			for _, s := range j.Steps {
				if strings.HasPrefix(s.Uses, "actions/attest-build-provenance@") {
					path, _ := s.With["subject-path"].(string)
					subjects = append(subjects, strings.Fields(path)...)
					if name, _ := s.With["subject-name"].(string); name != "" && s.With["push-to-registry"] == true && s.With["subject-digest"] != nil {
						registryNames = append(registryNames, name)
					}
				}
				if _, files, ok := strings.Cut(s.Run, "gh release create"); ok {
					published = append(published, strings.Fields(files)...)
				}
			}
		}
	}
	files, err := os.ReadDir(o.out)
	if err != nil || len(files) < 8 {
		t.Fatalf("the release has the files %v (%v), want at least 8", files, err)
	}
	for _, f := range files {
		matches := func(pattern string) bool {
			ok, err := filepath.Match(pattern, "dist/"+f.Name())
			return err == nil && ok
		}
		if f.IsDir() {
			continue // the image, which is pushed instead
		}
		if !slices.ContainsFunc(subjects, matches) {
			t.Errorf("%s is not attested: the subjects are %v", f.Name(), subjects)
		}
		if !slices.ContainsFunc(published, matches) {
			t.Errorf("%s is not published", f.Name())
		}
	}
	slices.Sort(registryNames)
	if want := []string{"ghcr.io/${{ github.repository }}",
		"ghcr.io/${{ github.repository_owner }}/charts/joiner"}; !slices.Equal(registryNames, want) {
		t.Errorf("the attested names in the registry are %v, want %v", registryNames, want)
	}
}

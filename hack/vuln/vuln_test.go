package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// build builds the binary of a module in testdata.
func build(t *testing.T, module string, flags ...string) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), module)
	cmd := exec.CommandContext(t.Context(), "go", append(append([]string{"build", "-o", out}, flags...), ".")...)
	cmd.Dir = filepath.Join("testdata", module)
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build %s: %v\n%s", module, err, text)
	}
	return out
}

// within returns a path relative to the checkout, for run.
func within(t *testing.T, path string) string {
	t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	rel, err := filepath.Rel(root, path)
	if err != nil {
		t.Fatal(err)
	}
	return rel
}

// TestReachableFails checks that a program that links a vulnerable function fails, from its binary, from a binary
// without symbols, and from its sources. The output names the vulnerability, the module, the version that fixes it, and
// the function.
func TestReachableFails(t *testing.T) {
	t.Setenv("VULNDB", "")
	for name, args := range map[string][]string{
		"binary":   {within(t, build(t, "vulnerable"))},
		"stripped": {within(t, build(t, "vulnerable", "-ldflags", "-s -w"))},
		"source":   {"-source", "hack/vuln/testdata/vulnerable", "."},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			err := run(t.Context(), args, &out)
			if err == nil || !strings.Contains(err.Error(), "reachable vulnerabilities; update the named modules") {
				t.Fatalf("a vulnerable program passes: %v\n%s", err, &out)
			}
			for _, want := range []string{"https://pkg.go.dev/vuln/GO-2021-0113: golang.org/x/text@v0.3.6, fixed in v0.3.7: golang.org/x/text/language."} {
				if !strings.Contains(out.String(), want) {
					t.Errorf("the output lacks %q:\n%s", want, &out)
				}
			}
		})
	}
}

// TestUnreachedPasses checks that a vulnerable module without a linked vulnerable function does not count.
func TestUnreachedPasses(t *testing.T) {
	t.Setenv("VULNDB", "")
	var out bytes.Buffer
	if err := run(t.Context(), []string{within(t, build(t, "unreached"))}, &out); err != nil {
		t.Errorf("%v\n%s", err, &out)
	}
	if !strings.HasSuffix(out.String(), "unreached: 0 reachable\n") {
		t.Errorf("output %q", &out)
	}
}

// TestFailuresAreNotPasses checks that a check that cannot be completed fails.
func TestFailuresAreNotPasses(t *testing.T) {
	for name, args := range map[string][]string{"no file": {"bin/none"}, "no program": {"go.mod"}, "nothing": {}} {
		t.Setenv("VULNDB", "")
		if err := run(t.Context(), args, &bytes.Buffer{}); err == nil {
			t.Errorf("%s: passes", name)
		}
	}
	t.Setenv("VULNDB", "file:///nowhere")
	if err := run(t.Context(), []string{within(t, build(t, "unreached"))}, &bytes.Buffer{}); err == nil {
		t.Error("no database: passes")
	}
	if _, err := reachableOf(strings.NewReader("")); err == nil {
		t.Error("no output: passes")
	}
	if _, err := reachableOf(strings.NewReader(`{"config": {}} {"fin`)); err == nil {
		t.Error("incomplete output: passes")
	}
}

// TestDatabase checks that the database contains every entry of the module, and its indexes list each entry once per
// module.
func TestDatabase(t *testing.T) {
	t.Parallel()
	module, _, err := pinnedDatabase(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	to := t.TempDir()
	if err := layOut(filepath.Join(module, "data", "osv"), to); err != nil {
		t.Fatal(err)
	}
	want, err := filepath.Glob(filepath.Join(module, "data", "osv", "*.json"))
	if err != nil || len(want) < 4000 {
		t.Fatalf("%d entries, %v", len(want), err)
	}
	got, err := filepath.Glob(filepath.Join(to, "ID", "GO-*.json"))
	if err != nil || len(got) != len(want) {
		t.Errorf("%d entries of %d, %v", len(got), len(want), err)
	}
	var modules []moduleIndex
	var vulns []vulnIndex
	for name, value := range map[string]any{"modules": &modules, "vulns": &vulns, "db": &struct{}{}} {
		data, err := os.ReadFile(filepath.Join(to, "index", name+".json"))
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(data, value); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if len(vulns) != len(want) {
		t.Errorf("the index has %d of %d entries", len(vulns), len(want))
	}
	for _, m := range modules {
		seen := map[string]bool{}
		for _, v := range m.Vulns {
			if seen[v.ID] {
				t.Errorf("%s has %s twice", m.Path, v.ID)
			}
			seen[v.ID] = true
		}
	}
	if err := layOut(t.TempDir(), t.TempDir()); err == nil {
		t.Error("a folder without entries is accepted as a database")
	}
}

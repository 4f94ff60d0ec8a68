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

// fromRoot returns a path relative to the root of the checkout, as run expects it.
func fromRoot(t *testing.T, path string) string {
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

// TestReachableFails checks that run fails for a program that links a vulnerable function: for its binary, its binary
// without symbols, and its sources. The output names the vulnerability, the module, the version with the fix, and the
// package of the function.
func TestReachableFails(t *testing.T) {
	t.Setenv("VULNDB", "")
	for name, args := range map[string][]string{
		"binary":   {fromRoot(t, build(t, "vulnerable"))},
		"stripped": {fromRoot(t, build(t, "vulnerable", "-ldflags", "-s -w"))},
		"source":   {"-source", "hack/vuln/testdata/vulnerable", "."},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			err := run(t.Context(), args, &out)
			if err == nil || !strings.Contains(err.Error(), "reachable vulnerabilities; update the named modules") {
				t.Fatalf("the error of run is %v, want the advice to update the modules\n%s", err, &out)
			}
			for _, want := range []string{"https://pkg.go.dev/vuln/GO-2021-0113: golang.org/x/text@v0.3.6, fixed in v0.3.7: golang.org/x/text/language."} {
				if !strings.Contains(out.String(), want) {
					t.Errorf("the output lacks %q:\n%s", want, &out)
				}
			}
		})
	}
}

// TestUnreachedPasses checks that run accepts a program that uses a vulnerable module, but links no vulnerable
// function.
func TestUnreachedPasses(t *testing.T) {
	t.Setenv("VULNDB", "")
	var out bytes.Buffer
	if err := run(t.Context(), []string{fromRoot(t, build(t, "unreached"))}, &out); err != nil {
		t.Errorf("want no error for a program that links no vulnerable function, got %v\n%s", err, &out)
	}
	if !strings.HasSuffix(out.String(), "unreached: 0 reachable\n") {
		t.Errorf("the output is %q, want 0 reachable vulnerabilities at its end", &out)
	}
}

// TestIncompleteCheckFails checks that run fails if a check cannot be completed.
func TestIncompleteCheckFails(t *testing.T) {
	for name, args := range map[string][]string{"no file": {"bin/none"}, "no program": {"go.mod"}, "no arguments": {}} {
		t.Setenv("VULNDB", "")
		if err := run(t.Context(), args, &bytes.Buffer{}); err == nil {
			t.Errorf("%s: the check passes, want an error", name)
		}
	}
	t.Setenv("VULNDB", "file:///nowhere")
	if err := run(t.Context(), []string{fromRoot(t, build(t, "unreached"))}, &bytes.Buffer{}); err == nil {
		t.Error("no database: the check passes, want an error")
	}
	if _, err := reachableOf(strings.NewReader("")); err == nil {
		t.Error("no output: the check passes, want an error")
	}
	if _, err := reachableOf(strings.NewReader(`{"config": {}} {"fin`)); err == nil {
		t.Error("incomplete output: the check passes, want an error")
	}
}

// TestDatabase checks that the written database has every entry of the pinned vulndb module, and that
// index/modules.json lists no entry twice for an affected module.
func TestDatabase(t *testing.T) {
	t.Parallel()
	source, _, err := pinnedDatabase(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	to := t.TempDir()
	if err := writeDatabase(filepath.Join(source, "data", "osv"), to); err != nil {
		t.Fatal(err)
	}
	want, err := filepath.Glob(filepath.Join(source, "data", "osv", "*.json"))
	if err != nil || len(want) < 4000 {
		t.Fatalf("the module has %d entries (%v), want at least 4000", len(want), err)
	}
	got, err := filepath.Glob(filepath.Join(to, "ID", "GO-*.json"))
	if err != nil || len(got) != len(want) {
		t.Errorf("the database has %d of %d entries (%v)", len(got), len(want), err)
	}
	var modules []moduleIndex
	var vulns []vulnIndex
	for name, value := range map[string]any{"modules": &modules, "vulns": &vulns, "db": &struct{}{}} {
		data, err := os.ReadFile(filepath.Join(to, "index", name+".json"))
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(data, value); err != nil {
			t.Errorf("read index/%s.json: %v", name, err)
		}
	}
	if len(vulns) != len(want) {
		t.Errorf("index/vulns.json has %d of %d entries", len(vulns), len(want))
	}
	for _, m := range modules {
		seen := map[string]bool{}
		for _, v := range m.Vulns {
			if seen[v.ID] {
				t.Errorf("index/modules.json lists %s twice for %s", v.ID, m.Path)
			}
			seen[v.ID] = true
		}
	}
	if err := writeDatabase(t.TempDir(), t.TempDir()); err == nil {
		t.Error("writeDatabase accepts a folder without entries, want an error")
	}
}

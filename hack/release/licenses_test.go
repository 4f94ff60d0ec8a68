package main

import (
	"debug/buildinfo"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestLicenses checks that releases contain the license of each module that is linked into the binary, of parts of
// modules with their own license, and of Go.
func TestLicenses(t *testing.T) {
	t.Parallel()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	o := options{root: root, release: "v1.2.3", revision: "abc"}
	p := imagePlatforms()[0]
	binary, err := o.build(t.Context(), o.root, t.TempDir(), p)
	if err != nil {
		t.Fatal(err)
	}
	info, err := buildinfo.ReadFile(binary)
	if err != nil || len(info.Deps) < 50 {
		t.Fatalf("the binary has %d modules (%v), want at least 50", len(info.Deps), err)
	}
	if want, err := toolchainOf("../../go.mod"); err != nil || info.GoVersion != want {
		t.Errorf("the release is built with %s, %v; want %s", info.GoVersion, err, want)
	}
	data, err := o.licensesOf(t.Context(), o.root, binary, p)
	if err != nil {
		t.Fatal(err)
	}
	text := string(data)
	lower := strings.ToLower(text) // some modules call the file license.md
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		// The file's name begins with licen[cs]e or copying.
		if name := strings.ToLower("\n" + m.Path + " " + m.Version + ": "); !strings.Contains(lower, name+"lic") &&
			!strings.Contains(lower, name+"copying") {
			t.Errorf("the license of %s %s is missing", m.Path, m.Version)
		}
	}
	for _, want := range []string{"\nGo " + strings.TrimPrefix(info.GoVersion, "go") + ": LICENSE\n", "Apache License",
		": third_party/forked/", "Redistribution and use"} {
		if !strings.Contains(text, want) {
			t.Errorf("the licenses do not contain %q", want)
		}
	}
	if again, err := o.licensesOf(t.Context(), o.root, binary, p); err != nil || string(again) != text {
		t.Errorf("a second call of licensesOf returns other licenses, or an error: %v", err)
	}
}

// TestNoLicense checks that a linked module without a license is an error.
func TestNoLicense(t *testing.T) {
	t.Parallel()
	o := smallCheckout(t)
	for name, text := range map[string]string{
		"go.mod": "module example.com/small\n\ngo 1.26.0\n\ntoolchain " + toolchain(t) +
			"\n\nrequire example.com/other v0.0.0\n\nreplace example.com/other => ./other\n",
		"other/go.mod":       "module example.com/other\n\ngo 1.26.0\n",
		"other/other.go":     "package other\n\n// Name is used.\nvar Name = \"other\"\n",
		"cmd/joiner/main.go": "package main\n\nimport \"example.com/other\"\n\nfunc main() { println(other.Name) }\n",
	} {
		file := filepath.Join(o.root, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := o.writeArchives(t.Context()); err == nil ||
		!strings.Contains(err.Error(), "example.com/other v0.0.0 is linked into the program but has no license file") {
		t.Errorf("a module without a license: error %v, want an error that names the module", err)
	}
	if err := os.WriteFile(filepath.Join(o.root, "other/COPYING"), []byte("all of it\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := o.writeArchives(t.Context()); err != nil {
		t.Errorf("a module with a license: error %v, want none", err)
	}
	data, err := exec.CommandContext(t.Context(), "tar", "-xOzf", filepath.Join(o.out, archiveName(archivePlatforms()[0])),
		licensesFile).Output()
	if err != nil || !strings.Contains(string(data), "\nexample.com/other v0.0.0: COPYING\n") ||
		!strings.Contains(string(data), "\nall of it\n") {
		t.Errorf("want the license of example.com/other in the archive, got\n%.500s\n(%v)", data, err)
	}
}

func toolchain(t *testing.T) string {
	t.Helper()
	out, err := toolchainOf("../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	return out
}

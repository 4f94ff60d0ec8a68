package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

// smallCheckout returns options for the checkout of a small program, with all files of a release except the chart's.
func smallCheckout(t *testing.T) options {
	t.Helper()
	root := t.TempDir()
	manifest, err := os.ReadFile(filepath.Join("../..", krewTemplate))
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"go.mod":             "module example.com/small\n\ngo 1.26.0\n\ntoolchain " + toolchain(t) + "\n",
		"cmd/joiner/main.go": "package main\n\nvar release, revision string\n\nfunc main() { println(release, revision) }\n",
		"LICENSE":            "Apache-2.0\n",
		krewTemplate:         string(manifest),
	} {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return options{root: root, out: t.TempDir(), release: "v1.2.3", revision: "abc", twice: true}
}

// TestImage checks that two builds of the same sources result in the same image. The image runs as an unprivileged
// user. It contains the program, its bill of materials, certificates, and a folder for temporary files.
func TestImage(t *testing.T) {
	t.Parallel()
	o := smallCheckout(t)
	if err := o.writeImage(t.Context()); err != nil {
		t.Fatal(err)
	}
	index, err := layout.ImageIndexFromPath(filepath.Join(o.out, "image"))
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Index(index); err != nil {
		t.Error(err)
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	// The layout contains one index, which lists the architectures.
	inner, err := index.ImageIndex(manifest.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	digest, err := os.ReadFile(filepath.Join(o.out, "image.digest"))
	if err != nil || strings.TrimSpace(string(digest)) != manifest.Manifests[0].Digest.String() {
		t.Errorf("image.digest is %q, %v; want %s", digest, err, manifest.Manifests[0].Digest)
	}
	if manifest, err = inner.IndexManifest(); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, d := range manifest.Manifests {
		got = append(got, d.Platform.String())
		img, err := inner.Image(d.Digest)
		if err != nil {
			t.Fatal(err)
		}
		checkImage(t, img, d.Platform.Architecture)
	}
	if !slices.Equal(got, []string{"linux/amd64", "linux/arm64"}) {
		t.Errorf("the image is for %v, want linux/amd64 and linux/arm64", got)
	}
	if manifest.Annotations["org.opencontainers.image.version"] != "v1.2.3" {
		t.Errorf("the annotations are %v, want the version v1.2.3", manifest.Annotations)
	}
}

func checkImage(t *testing.T, img v1.Image, arch string) {
	t.Helper()
	config, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if c := config.Config; config.Architecture != arch || config.OS != "linux" || c.User != nonrootUser ||
		!slices.Equal(c.Entrypoint, []string{"/joiner"}) ||
		!slices.Equal(c.Cmd, []string{"controller"}) || !config.Created.IsZero() {
		t.Errorf("%s: want an image that runs /joiner controller as the nonroot user, got the config %+v", arch, config)
	}
	files := map[string]*tar.Header{}
	content := map[string][]byte{}
	layers, err := img.Layers()
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range layers {
		r, err := l.Uncompressed()
		if err != nil {
			t.Fatal(err)
		}
		readTar(t, r, files, content)
	}
	for name, mode := range map[string]int64{"joiner": 0o755, "tmp/": 0o1777, "etc/passwd": 0o644, "etc/ssl/certs/": 0o755,
		"usr/share/joiner/sbom.cdx.json": 0o644,
		"usr/share/joiner/LICENSE":       0o644, "usr/share/joiner/THIRD_PARTY_LICENSES": 0o644,
	} {
		if h := files[name]; h == nil || h.Mode != mode || h.Uid != 0 || !h.ModTime.IsZero() && h.ModTime.Unix() != 0 {
			t.Errorf("%s: %s is %+v, want mode %o, owner root and the time 1970", arch, name, h, mode)
		}
	}
	if pool := x509.NewCertPool(); !pool.AppendCertsFromPEM(content["etc/ssl/certs/ca-certificates.crt"]) {
		t.Errorf("%s: no certificate can be read", arch)
	}
	if n := bytes.Count(content["etc/ssl/certs/ca-certificates.crt"], []byte("BEGIN CERTIFICATE")); n < 100 {
		t.Errorf("%s: the image has only %d certificates, want at least 100", arch, n)
	}
	if arch == runtime.GOARCH && runtime.GOOS == "linux" {
		program := filepath.Join(t.TempDir(), "joiner")
		if err := os.WriteFile(program, content["joiner"], 0o755); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.CommandContext(t.Context(), program).CombinedOutput(); err != nil || string(out) != "v1.2.3 abc\n" {
			t.Errorf("the program printed %q, %v; want its version and commit", out, err)
		}
	}
}

// readTar adds the headers and contents of an archive to files and content, by name.
func readTar(t *testing.T, r io.Reader, files map[string]*tar.Header, content map[string][]byte) {
	t.Helper()
	for tr := tar.NewReader(r); ; {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		files[h.Name] = h
		if content[h.Name], err = io.ReadAll(tr); err != nil {
			t.Fatal(err)
		}
	}
}

// TestDifferentSourcesDiffer checks that rebuild detects a different build.
func TestDifferentSourcesDiffer(t *testing.T) {
	t.Parallel()
	o := smallCheckout(t)
	first, err := o.buildIndex(t.Context(), o.root, t.TempDir(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	want, err := first.Digest()
	if err != nil {
		t.Fatal(err)
	}
	source := filepath.Join(o.root, "cmd/joiner/main.go")
	if err := os.WriteFile(source, []byte("package main\n\nvar release, revision string\n\nfunc main() { println(revision, release) }\n"),
		0o644); err != nil {
		t.Fatal(err)
	}
	if err := o.rebuild(t.Context(), want); err == nil || !strings.Contains(err.Error(), "two builds of the same sources differ") {
		t.Errorf("rebuild with changed sources returns %v, want an error that the builds differ", err)
	}
}

// TestArchives checks that SHA256SUMS and krew's manifest have the checksums of the archives, and that each archive has
// the program, its licenses and its bill of materials.
func TestArchives(t *testing.T) {
	t.Parallel()
	o := smallCheckout(t)
	if err := o.writeArchives(t.Context()); err != nil {
		t.Fatal(err)
	}
	sums, err := os.ReadFile(filepath.Join(o.out, "SHA256SUMS"))
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := os.ReadFile(filepath.Join(o.out, "krew.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range archivePlatforms() {
		data, err := os.ReadFile(filepath.Join(o.out, archiveName(p)))
		if err != nil {
			t.Fatal(err)
		}
		sum := fmt.Sprintf("%x", sha256.Sum256(data))
		if !strings.Contains(string(sums), sum+"  "+archiveName(p)+"\n") || !strings.Contains(string(manifest), sum) {
			t.Errorf("%s: SHA256SUMS or krew.yaml does not contain its checksum %s", p, sum)
		}
		z, err := gzip.NewReader(bytes.NewReader(data))
		if err != nil {
			t.Fatal(err)
		}
		files := map[string]*tar.Header{}
		readTar(t, z, files, map[string][]byte{})
		if files["joiner"] == nil || files["joiner"].Mode != 0o755 || files["LICENSE"] == nil || files[licensesFile] == nil ||
			files["sbom.cdx.json"] == nil {
			t.Errorf("%s: a file is missing, or joiner is not executable: the archive has %v", p, files)
		}
	}
}

// TestBill checks that the bill of materials of a binary lists each module once, with its version, and is reproducible.
func TestBill(t *testing.T) {
	t.Parallel()
	binary, err := os.Executable() // of this test
	if err != nil {
		t.Fatal(err)
	}
	text, err := billOf(binary, "v1.2.3")
	if err != nil {
		t.Fatal(err)
	}
	again, err := billOf(binary, "v1.2.3")
	if err != nil || !bytes.Equal(text, again) {
		t.Errorf("a second bill of the same binary differs, or has an error: %v", err)
	}
	var b bill
	if err := json.Unmarshal(text, &b); err != nil {
		t.Fatal(err)
	}
	if b.Format != "CycloneDX" || b.SpecVersion != "1.5" ||
		!regexp.MustCompile(`^urn:uuid:[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`).MatchString(b.SerialNumber) {
		t.Errorf("format %q, version %q, serial %q; want CycloneDX, 1.5, UUID", b.Format, b.SpecVersion, b.SerialNumber)
	}
	seen := map[string]bool{}
	for _, c := range b.Components {
		if seen[c.Ref] || c.Version == "" || !strings.HasPrefix(c.PURL, "pkg:golang/"+c.Name+"@") {
			t.Errorf("a component occurs twice, has no version, or its PURL does not have its name: %+v", c)
		}
		seen[c.Ref] = true
	}
	for _, want := range []string{"github.com/google/go-containerregistry", "std"} {
		if !slices.ContainsFunc(b.Components, func(c component) bool { return c.Name == want }) {
			t.Errorf("the bill does not contain %s", want)
		}
	}
	if len(b.Dependencies) != 1 || len(b.Dependencies[0].DependsOn) != len(b.Components) {
		t.Errorf("dependencies %+v, want one entry: the program depends on every component", b.Dependencies)
	}
}

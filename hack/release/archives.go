package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/template"
)

// krewTemplate is the template of krew's manifest, with placeholders for the version and the checksums.
const krewTemplate = "deploy/krew/joiner.yaml"

// writeArchives writes an archive of the command line for each platform, the checksums of the archives (SHA256SUMS),
// and krew's manifest.
func (o *options) writeArchives(ctx context.Context) error {
	folder, err := os.MkdirTemp("", "release-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	license, err := os.ReadFile(filepath.Join(o.root, "LICENSE"))
	if err != nil {
		return err
	}
	sums := map[platform]string{}
	var lines []string
	for _, p := range archivePlatforms() {
		binary, err := o.build(ctx, o.root, folder, p)
		if err != nil {
			return err
		}
		program, err := os.ReadFile(binary)
		if err != nil {
			return err
		}
		bom, err := billOf(binary, o.release)
		if err != nil {
			return err
		}
		thirdParty, err := o.licensesOf(ctx, o.root, binary, p)
		if err != nil {
			return err
		}
		data, err := pack([]entry{
			{name: "LICENSE", data: license}, {name: licensesFile, data: thirdParty}, {name: "joiner", data: program, mode: 0o755},
			{name: "sbom.cdx.json", data: bom},
		})
		if err != nil {
			return err
		}
		name := archiveName(p)
		if err := os.WriteFile(filepath.Join(o.out, name), data, 0o644); err != nil {
			return err
		}
		sums[p] = fmt.Sprintf("%x", sha256.Sum256(data))
		lines = append(lines, sums[p]+"  "+name+"\n")
		logf("archive %s", name)
	}
	slices.Sort(lines)
	if err := os.WriteFile(filepath.Join(o.out, "SHA256SUMS"), []byte(strings.Join(lines, "")), 0o644); err != nil {
		return err
	}
	manifest, err := krewManifest(filepath.Join(o.root, krewTemplate), o.release, sums)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(o.out, "krew.yaml"), manifest, 0o644)
}

func archiveName(p platform) string { return "joiner_" + p.os + "_" + p.arch + ".tar.gz" }

// pack creates a tar.gz with the entries in their order. The same entries result in the same bytes.
func pack(entries []entry) ([]byte, error) {
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	w := tar.NewWriter(z)
	for _, e := range entries {
		if err := writeEntry(w, e); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// krewManifest renders the template at path with the version and the checksums of the archives. A platform of the
// template without a checksum is an error.
func krewManifest(path, release string, sums map[platform]string) ([]byte, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	t, err := template.New(filepath.Base(path)).Option("missingkey=error").Funcs(template.FuncMap{
		"sum": func(system, arch string) (string, error) {
			if s := sums[platform{system, arch}]; s != "" {
				return s, nil
			}
			return "", fmt.Errorf("there is no archive for %s/%s", system, arch)
		},
	}).Parse(string(text))
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	if err := t.Execute(&out, struct{ Version string }{release}); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

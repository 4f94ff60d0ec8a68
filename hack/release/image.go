package main

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/pem"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// nonrootUser is the user and the group of the image's process. Any other user works too: the program does not write to
// the image's file system.
const nonrootUser = "65532:65532"

// writeImage writes the image as an OCI layout to out/image, its digest to out/image.digest, and a bill of materials
// for each architecture to out.
func (o *options) writeImage(ctx context.Context) error {
	folder, err := os.MkdirTemp("", "release-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	index, err := o.buildIndex(ctx, o.root, folder, o.out)
	if err != nil {
		return err
	}
	digest, err := index.Digest()
	if err != nil {
		return err
	}
	if o.twice {
		if err := o.rebuild(ctx, digest); err != nil {
			return err
		}
	}
	path, err := layout.Write(filepath.Join(o.out, "image"), mutate.IndexMediaType(empty.Index, types.OCIImageIndex))
	if err == nil {
		err = path.AppendIndex(index, layout.WithAnnotations(map[string]string{"org.opencontainers.image.ref.name": o.release}))
	}
	if err != nil {
		return fmt.Errorf("write the image: %w", err)
	}
	if err := os.WriteFile(filepath.Join(o.out, "image.digest"), []byte(digest.String()+"\n"), 0o644); err != nil {
		return err
	}
	logf("image %s %s", o.release, digest)
	return nil
}

// pushImage pushes the image in out/image to the repository, with the release as its tag. It returns an error if
// out/image has no image with the digest in out/image.digest.
func (o *options) pushImage(ctx context.Context) error {
	text, err := os.ReadFile(filepath.Join(o.out, "image.digest"))
	if err != nil {
		return err
	}
	digest, err := v1.NewHash(strings.TrimSpace(string(text)))
	if err != nil {
		return fmt.Errorf("read image.digest: %w", err)
	}
	images, err := layout.ImageIndexFromPath(filepath.Join(o.out, "image"))
	if err != nil {
		return err
	}
	index, err := images.ImageIndex(digest)
	if err != nil {
		return fmt.Errorf("read the image %s: %w", digest, err)
	}
	ref, err := name.NewTag(o.push + ":" + o.release)
	if err != nil {
		return err
	}
	if err := remote.WriteIndex(ref, index, remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain)); err != nil {
		return fmt.Errorf("push %s: %w", ref, err)
	}
	logf("pushed %s@%s", ref.Context(), digest)
	return nil
}

// rebuild builds the image from a copy of the sources in another folder. It returns an error if the digest is not want.
func (o *options) rebuild(ctx context.Context, want v1.Hash) error {
	folder, err := os.MkdirTemp("", "release-again-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	sources := filepath.Join(folder, "elsewhere")
	if err := copySources(o.root, sources); err != nil {
		return err
	}
	index, err := o.buildIndex(ctx, sources, folder, folder)
	if err != nil {
		return err
	}
	got, err := index.Digest()
	if err != nil {
		return err
	}
	if got != want {
		return fmt.Errorf("two builds of the same sources differ: %s and %s", want, got)
	}
	logf("two builds have the same digest")
	return nil
}

// buildIndex builds the binaries of the checkout at root, and returns the image of all architectures. It writes the
// binaries and the bills of materials to the given folders.
func (o *options) buildIndex(ctx context.Context, root, binaryFolder, billFolder string) (v1.ImageIndex, error) {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, p := range imagePlatforms() {
		binary, err := o.build(ctx, root, binaryFolder, p)
		if err != nil {
			return nil, err
		}
		bom, err := billOf(binary, o.release)
		if err != nil {
			return nil, err
		}
		if err := os.WriteFile(filepath.Join(billFolder, "joiner-"+p.os+"-"+p.arch+".cdx.json"), bom, 0o644); err != nil {
			return nil, err
		}
		thirdParty, err := o.licensesOf(ctx, root, binary, p)
		if err != nil {
			return nil, err
		}
		license, err := os.ReadFile(filepath.Join(root, "LICENSE"))
		if err != nil {
			return nil, err
		}
		img, err := o.imageOf(p, binary, []entry{
			{name: "usr/share/joiner/LICENSE", data: license},
			{name: "usr/share/joiner/" + licensesFile, data: thirdParty},
			{name: "usr/share/joiner/sbom.cdx.json", data: bom},
		})
		if err != nil {
			return nil, fmt.Errorf("make the image for %s: %w", p, err)
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add: img, Descriptor: v1.Descriptor{MediaType: types.OCIManifestSchema1, Platform: &v1.Platform{OS: p.os, Architecture: p.arch}},
		})
	}
	annotated, ok := mutate.Annotations(index, o.labels()).(v1.ImageIndex)
	if !ok {
		return nil, fmt.Errorf("annotate the image: the result is not an index")
	}
	return annotated, nil
}

// labels returns the labels of the image, which are also the annotations of its index.
func (o *options) labels() map[string]string {
	return map[string]string{
		"org.opencontainers.image.title":       "joiner",
		"org.opencontainers.image.description": "A node autoscaler for Amazon EKS",
		"org.opencontainers.image.source":      "https://github.com/joiner-sh/joiner",
		"org.opencontainers.image.licenses":    "Apache-2.0",
		"org.opencontainers.image.version":     o.release,
		"org.opencontainers.image.revision":    o.revision,
	}
}

// imageOf returns the image of one architecture. The first layer has certificates, users and /tmp, which seldom change.
// The second layer has the program and its documents.
func (o *options) imageOf(p platform, binary string, documents []entry) (v1.Image, error) {
	program, err := os.ReadFile(binary)
	if err != nil {
		return nil, err
	}
	base, err := layerOf([]entry{
		{name: "etc/group", data: []byte("root:x:0:\nnonroot:x:65532:\n")},
		{name: "etc/passwd", data: []byte("root:x:0:0:root:/:/sbin/nologin\nnonroot:x:65532:65532:nonroot:/tmp:/sbin/nologin\n")},
		{name: "etc/ssl/certs/ca-certificates.crt", data: rootCertificates()},
		{name: "tmp/", mode: 0o1777},
	})
	if err != nil {
		return nil, err
	}
	programLayer, err := layerOf(append([]entry{{name: "joiner", data: program, mode: 0o755}}, documents...))
	if err != nil {
		return nil, err
	}
	img := mutate.MediaType(empty.Image, types.OCIManifestSchema1)
	img = mutate.ConfigMediaType(img, types.OCIConfigJSON)
	if img, err = mutate.AppendLayers(img, base, programLayer); err != nil {
		return nil, err
	}
	config, err := img.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture = p.os, p.arch
	config.Config = v1.Config{
		User: nonrootUser, Entrypoint: []string{"/joiner"}, Cmd: []string{"controller"}, WorkingDir: "/",
		Env: []string{"PATH=/", "SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt"}, Labels: o.labels(),
	}
	return mutate.ConfigFile(img, config)
}

// rootCertificates returns Mozilla's root certificates as PEM, at the version in go.mod.
func rootCertificates() []byte {
	var out bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil { // a PEM file cannot express name constraints
			_ = pem.Encode(&out, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate})
		}
	}
	return out.Bytes()
}

// entry is a file in an archive or a layer, or a folder if the name ends with a slash.
type entry struct {
	name string
	data []byte
	mode int64 // 0: 0644
}

// layerOf packs entries and their parent folders into a layer. All times are 1970 and all owners root, so that the same
// entries result in the same bytes.
func layerOf(entries []entry) (v1.Layer, error) {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	written := map[string]bool{}
	for _, e := range entries {
		for i := range e.name { // a parent folder ends at each slash before the end
			if parent := e.name[:i+1]; e.name[i] == '/' && i+1 < len(e.name) && !written[parent] {
				written[parent] = true
				if err := writeEntry(w, entry{name: parent, mode: 0o755}); err != nil {
					return nil, err
				}
			}
		}
		if err := writeEntry(w, e); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(out.Bytes())), nil },
		tarball.WithMediaType(types.OCILayer), tarball.WithCompressedCaching)
}

func writeEntry(w *tar.Writer, e entry) error {
	h := &tar.Header{Name: e.name, Mode: e.mode, Size: int64(len(e.data)), Typeflag: tar.TypeReg, Format: tar.FormatUSTAR}
	if e.name[len(e.name)-1] == '/' {
		h.Typeflag = tar.TypeDir
	}
	if h.Mode == 0 {
		h.Mode = 0o644
	}
	if err := w.WriteHeader(h); err != nil {
		return err
	}
	_, err := w.Write(e.data)
	return err
}

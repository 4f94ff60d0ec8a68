package main

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// platform is what a binary runs on.
type platform struct{ os, arch string }

func (p platform) String() string { return p.os + "/" + p.arch }

// imagePlatforms are those of the image, archivePlatforms those of the command line.
func imagePlatforms() []platform { return []platform{{"linux", "amd64"}, {"linux", "arm64"}} }

func archivePlatforms() []platform {
	return append(imagePlatforms(), platform{"darwin", "amd64"}, platform{"darwin", "arm64"})
}

// build makes the static binary of the checkout at root for a platform, and returns its path. Neither the folder, the time nor the
// machine is in it.
func (o *options) build(ctx context.Context, root, folder string, p platform) (string, error) {
	out := filepath.Join(folder, "joiner-"+p.os+"-"+p.arch)
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false",
		"-ldflags", "-s -w -buildid= -X main.release="+o.release+" -X main.revision="+o.revision, "-o", out, "./cmd/joiner")
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-mod=readonly", "GOWORK=off", "GOOS="+p.os, "GOARCH="+p.arch, "GOAMD64=v1", "GOARM64=v8.0")
	if text, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build for %s: %w\n%s", p, err, strings.TrimSpace(string(text)))
	}
	return out, nil
}

// copySources copies what the binary is built from to another folder: the module's Go files, what they embed, go.mod and go.sum.
func copySources(from, to string) error {
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name != "." && (d.Name()[0] == '.' || d.Name() == "bin" || d.Name() == "dist" || hasModule(path)) {
				return filepath.SkipDir
			}
			return os.MkdirAll(filepath.Join(to, name), 0o755)
		}
		if !d.Type().IsRegular() {
			return nil
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, name), data, 0o644)
	})
}

func hasModule(folder string) bool {
	_, err := os.Stat(filepath.Join(folder, "go.mod"))
	return err == nil
}

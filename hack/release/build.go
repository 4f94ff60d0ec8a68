package main

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

type platform struct{ os, arch string }

func (p platform) String() string { return p.os + "/" + p.arch }

func imagePlatforms() []platform { return []platform{{"linux", "amd64"}, {"linux", "arm64"}} }

func archivePlatforms() []platform {
	return append(imagePlatforms(), platform{"darwin", "amd64"}, platform{"darwin", "arm64"})
}

// build builds the static binary of the checkout at root for a platform, writes it to folder, and returns its path. The
// bytes of the binary do not depend on the folders, the time or the computer.
func (o *options) build(ctx context.Context, root, folder string, p platform) (string, error) {
	out := filepath.Join(folder, "joiner-"+p.os+"-"+p.arch)
	env, err := buildEnv(root, p)
	if err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false",
		"-ldflags", "-s -w -buildid= -X main.release="+o.release+" -X main.revision="+o.revision, "-o", out, "./cmd/joiner")
	cmd.Dir, cmd.Env = root, env
	if text, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build for %s: %w\n%s", p, err, strings.TrimSpace(string(text)))
	}
	return out, nil
}

// buildEnv returns the environment of every go command for a release. The toolchain line in the checkout's go.mod
// determines the compiler: the version of the installed Go, and the caller's GOTOOLCHAIN, have no effect.
func buildEnv(root string, p platform) ([]string, error) {
	toolchain, err := toolchainOf(filepath.Join(root, "go.mod"))
	if err != nil {
		return nil, err
	}
	return append(os.Environ(), "GOTOOLCHAIN="+toolchain, "CGO_ENABLED=0", "GOFLAGS=-mod=readonly", "GOWORK=off",
		"GOOS="+p.os, "GOARCH="+p.arch, "GOAMD64=v1", "GOARM64=v8.0"), nil
}

var toolchainLine = regexp.MustCompile(`(?m)^toolchain (go\d+\.\d+\.\d+)$`)

// toolchainOf returns the toolchain of a go.mod: "go1.27.3". A file without a toolchain line is an error.
func toolchainOf(file string) (string, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	m := toolchainLine.FindSubmatch(text)
	if m == nil {
		return "", fmt.Errorf("%s has no line toolchain goX.Y.Z", file)
	}
	return string(m[1]), nil
}

// copySources copies a Go module to a folder, except nested Go modules, hidden folders, bin and dist.
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

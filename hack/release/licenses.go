package main

import (
	"bytes"
	"cmp"
	"context"
	"debug/buildinfo"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// licensesFile is the file with the licenses of all linked modules, in the archives and in the image.
const licensesFile = "THIRD_PARTY_LICENSES"

// The names of files with licenses and with other legal notices.
var (
	licenseName = regexp.MustCompile(`(?i)^(un)?(licen[cs]e|copying)([-._].*)?$`)
	noticeName  = regexp.MustCompile(`(?i)^(notice|patents|copyright)s?([-._].*)?$`)
)

type licenseText struct {
	text  string
	files []string // "module version: file"
}

// linkedModule is a module that is linked into a program.
type linkedModule struct {
	path, version, folder string
	packages              []string // folders of the linked packages
}

// licensesOf returns the content of licensesFile for a binary of the checkout at root: the licenses of Go, of the
// linked modules, and of parts of these modules that have their own license. A module without a license is an error.
// The same modules result in the same bytes.
func (o *options) licensesOf(ctx context.Context, root, binary string, p platform) ([]byte, error) {
	modules, err := linkedModules(ctx, root, p)
	if err != nil {
		return nil, err
	}
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return nil, fmt.Errorf("read the build information of %s: %w", binary, err)
	}
	for _, m := range info.Deps {
		if modules[m.Path] == nil {
			return nil, fmt.Errorf("module %s is linked into the program, but go list does not list it", m.Path)
		}
	}
	goRoot, err := goOutput(ctx, root, p, "env", "GOROOT")
	if err != nil {
		return nil, err
	}
	modules["Go"] = &linkedModule{path: "Go", version: strings.TrimPrefix(info.GoVersion, "go"), folder: strings.TrimSpace(goRoot)}
	texts := map[string]*licenseText{}
	for _, path := range slices.Sorted(maps.Keys(modules)) {
		if err := modules[path].collect(texts); err != nil {
			return nil, err
		}
	}
	return writeLicenses(texts), nil
}

// linkedModules returns the modules of the program's packages by path, without the checkout's own module.
func linkedModules(ctx context.Context, root string, p platform) (map[string]*linkedModule, error) {
	const format = `{{if not .Standard}}{{with .Module}}{{if not .Main}}{{.Path}}|{{.Version}}|{{.Dir}}|{{end}}{{end}}{{.Dir}}{{end}}`
	text, err := goOutput(ctx, root, p, "list", "-deps", "-f", format, "./cmd/joiner")
	if err != nil {
		return nil, err
	}
	modules := map[string]*linkedModule{}
	for _, line := range strings.Split(strings.TrimSpace(text), "\n") {
		fields := strings.Split(line, "|")
		if len(fields) != 4 {
			continue // the standard library, or the checkout's own package
		}
		m := modules[fields[0]]
		if m == nil {
			m = &linkedModule{path: fields[0], version: fields[1], folder: fields[2]}
			modules[m.path] = m
		}
		m.packages = append(m.packages, fields[3])
	}
	return modules, nil
}

// collect adds the module's license files to texts: those in the module's folder, in the folders of the linked
// packages, and in the folders between. A module without a license file in its own folder is an error.
func (m *linkedModule) collect(texts map[string]*licenseText) error {
	folders := map[string]bool{m.folder: true}
	for _, folder := range m.packages {
		for f := folder; len(f) > len(m.folder); f = filepath.Dir(f) {
			folders[f] = true
		}
	}
	hasLicense := false
	for _, folder := range slices.Sorted(maps.Keys(folders)) {
		files, err := os.ReadDir(folder)
		if err != nil {
			return err
		}
		for _, f := range files {
			isLicense := licenseName.MatchString(f.Name())
			if f.IsDir() || filepath.Ext(f.Name()) == ".go" || !isLicense && !noticeName.MatchString(f.Name()) {
				continue
			}
			data, err := os.ReadFile(filepath.Join(folder, f.Name()))
			if err != nil {
				return err
			}
			name, err := filepath.Rel(m.folder, filepath.Join(folder, f.Name()))
			if err != nil {
				return err
			}
			hasLicense = hasLicense || isLicense && folder == m.folder && len(bytes.TrimSpace(data)) > 0
			text := strings.TrimSpace(strings.ReplaceAll(string(data), "\r\n", "\n"))
			if texts[text] == nil {
				texts[text] = &licenseText{text: text}
			}
			texts[text].files = append(texts[text].files, m.path+" "+m.version+": "+filepath.ToSlash(name))
		}
	}
	if !hasLicense {
		return fmt.Errorf("%s %s is linked into the program but has no license file", m.path, m.version)
	}
	return nil
}

// writeLicenses returns the content of licensesFile: each text once, after the list of files that contain it.
func writeLicenses(texts map[string]*licenseText) []byte {
	sorted := slices.SortedFunc(maps.Values(texts), func(a, b *licenseText) int { return cmp.Compare(a.files[0], b.files[0]) })
	var out bytes.Buffer
	out.WriteString("Joiner is licensed under the Apache License 2.0. The program contains the software below, under these licenses.\n")
	for _, t := range sorted {
		out.WriteString("\n" + strings.Repeat("=", 80) + "\n" + strings.Join(t.files, "\n") + "\n" + strings.Repeat("-", 80) +
			"\n\n" + t.text + "\n")
	}
	return out.Bytes()
}

func goOutput(ctx context.Context, root string, p platform, args ...string) (string, error) {
	env, err := buildEnv(root, p)
	if err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir, cmd.Env = root, env
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("go %s: %w\n%s", args[0], err, strings.TrimSpace(stderr.String()))
	}
	return string(out), nil
}

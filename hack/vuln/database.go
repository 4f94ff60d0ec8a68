package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// databaseModule is the module with the entries of the Go vulnerability database, below data/osv.
const databaseModule = "golang.org/x/vulndb"

// entry has the fields of a database entry that the indexes need.
type entry struct {
	ID       string    `json:"id"`
	Modified time.Time `json:"modified"`
	Aliases  []string  `json:"aliases,omitempty"`
	Affected []struct {
		Package struct {
			Name string `json:"name"`
		} `json:"package"`
	} `json:"affected,omitempty"`
}

// moduleIndex is an element of index/modules.json: a module with its vulnerabilities.
type moduleIndex struct {
	Path  string        `json:"path"`
	Vulns []moduleEntry `json:"vulns"`
}

// moduleEntry is a vulnerability of a module. It omits the optional field "fixed": govulncheck reads the versions from
// the entry's own file.
type moduleEntry struct {
	ID       string    `json:"id"`
	Modified time.Time `json:"modified"`
}

// vulnIndex is an element of index/vulns.json.
type vulnIndex struct {
	ID       string    `json:"id"`
	Modified time.Time `json:"modified"`
	Aliases  []string  `json:"aliases,omitempty"`
}

// pinnedDatabase returns the folder of databaseModule in the module cache, at the version in go.mod. If necessary, the
// go command downloads the module and checks it against go.sum.
func pinnedDatabase(ctx context.Context) (folder, version string, err error) {
	cmd := exec.CommandContext(ctx, "go", "mod", "download", "-json", databaseModule)
	out, err := cmd.Output()
	var m struct{ Dir, Version, Error string }
	if jsonErr := json.Unmarshal(out, &m); err != nil || jsonErr != nil {
		return "", "", fmt.Errorf("download %s: %w %s", databaseModule, errors.Join(err, jsonErr), m.Error)
	}
	if m.Dir == "" {
		return "", "", fmt.Errorf("download %s: the go command names no folder: %s", databaseModule, m.Error)
	}
	return m.Dir, m.Version, nil
}

// writeDatabase reads the entries in the folder from, which are files ID.json. It writes them to the folder to, in the
// format of a Go vulnerability database: index/db.json, index/modules.json, index/vulns.json and ID/*.json
// (https://go.dev/security/vuln/database#api).
func writeDatabase(from, to string) error {
	files, err := filepath.Glob(filepath.Join(from, "*.json"))
	if err != nil {
		return fmt.Errorf("list the vulnerability database: %w", err)
	}
	if len(files) == 0 {
		return fmt.Errorf("%s has no entries of a vulnerability database", from)
	}
	for _, folder := range []string{"ID", "index"} {
		if err := os.MkdirAll(filepath.Join(to, folder), 0o755); err != nil {
			return err
		}
	}
	modules := map[string]*moduleIndex{}
	vulns := make([]vulnIndex, 0, len(files))
	var newest time.Time
	for _, file := range files {
		e, err := copyEntry(file, filepath.Join(to, "ID"))
		if err != nil {
			return err
		}
		if e.Modified.After(newest) {
			newest = e.Modified
		}
		vulns = append(vulns, vulnIndex{e.ID, e.Modified, e.Aliases})
		for _, a := range e.Affected {
			m := modules[a.Package.Name]
			if m == nil {
				m = &moduleIndex{Path: a.Package.Name}
				modules[m.Path] = m
			}
			if !slices.ContainsFunc(m.Vulns, func(other moduleEntry) bool { return other.ID == e.ID }) {
				m.Vulns = append(m.Vulns, moduleEntry{e.ID, e.Modified})
			}
		}
	}
	sorted := make([]*moduleIndex, 0, len(modules))
	for _, path := range slices.Sorted(maps.Keys(modules)) {
		sorted = append(sorted, modules[path])
	}
	for name, value := range map[string]any{"db": map[string]time.Time{"modified": newest}, "modules": sorted, "vulns": vulns} {
		data, err := json.Marshal(value)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(to, "index", name+".json"), data, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// copyEntry copies the file of an entry to a folder, and returns the entry.
func copyEntry(file, folder string) (entry, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return entry{}, err
	}
	var e entry
	if err := json.Unmarshal(data, &e); err != nil {
		return entry{}, fmt.Errorf("read %s: %w", file, err)
	}
	if want := strings.TrimSuffix(filepath.Base(file), ".json"); e.ID != want {
		return entry{}, fmt.Errorf("read %s: its id is %q", file, e.ID)
	}
	return e, os.WriteFile(filepath.Join(folder, e.ID+".json"), data, 0o644)
}

// database returns the URL of the pinned database for govulncheck. It writes the database to a folder below cache,
// unless that folder exists.
func database(ctx context.Context, cache string) (string, error) {
	source, version, err := pinnedDatabase(ctx)
	if err != nil {
		return "", err
	}
	folder := filepath.Join(cache, "vulndb-"+version)
	if _, err := os.Stat(filepath.Join(folder, "index", "modules.json")); err == nil {
		return "file://" + filepath.ToSlash(folder), nil
	}
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return "", err
	}
	// The folder gets its final name when it is complete, so that an incomplete database is never used.
	unfinished, err := os.MkdirTemp(cache, "vulndb-")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(unfinished) }()
	if err := writeDatabase(filepath.Join(source, "data", "osv"), unfinished); err != nil {
		return "", err
	}
	if err := os.Rename(unfinished, folder); err != nil {
		return "", err
	}
	return "file://" + filepath.ToSlash(folder), nil
}

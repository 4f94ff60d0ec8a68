package manifest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/joiner-sh/joiner/internal/kube/conversion"
	"github.com/joiner-sh/joiner/internal/kube/snapshot"
	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/suggest"
)

// Manifests are the objects that were read from files, and a summary of the documents that were left out.
type Manifests struct {
	snapshot.Objects
	// Skipped counts the documents of kinds that do not affect a plan, by kind and group: "Service",
	// "Ingress.networking.k8s.io".
	Skipped map[string]int
	// Unknown counts the documents of unknown kinds, which may create pods, by kind and group: "Rollout.argoproj.io".
	Unknown map[string]int
	// Notes are sentences for the user about assumptions and ignored values.
	Notes []string
}

// ReadFiles reads Kubernetes manifests, as YAML or JSON with any number of documents and Lists: from files, from
// folders (*.yaml, *.yml, *.json) and their subfolders, except those that begin with a dot, and from stdin for "-". For
// each workload it adds one pod per replica, unless the manifests contain pods of the workload.
//
// The error joins one error per problem, one line each, with file, line and fix. The readable objects are returned with
// the error.
//
// To plan with the result, call Snapshot(View{Now: now, Market: market}) with a market made from Settings.
func ReadFiles(paths []string, stdin io.Reader) (Manifests, error) {
	d := Decoder{
		Skipped: map[string]int{}, Unknown: map[string]int{}, Seen: map[string]string{}, Read: map[string]bool{}, admission: newAdmission(),
	}
	for _, path := range paths {
		if path == "" {
			d.AddProblem("-f", 0, "the path is empty; name a file or a folder, or - for standard input")
			continue
		}
		if path == "-" {
			d.ReadStream("<stdin>", stdin, true)
			continue
		}
		d.ReadPath(path)
	}
	d.completeAll()
	d.createPods()
	return Manifests{Objects: d.objects, Skipped: d.Skipped, Unknown: d.Unknown, Notes: d.notes}, errors.Join(d.Errs...)
}

// Settings returns the settings of each node class that a NodePool names, by name of the class. A class that is not
// among the manifests has default settings.
func (m Manifests) Settings() (map[string]catalog.Settings, error) {
	return m.Objects.Settings()
}

// source is one file.
type source struct {
	name  string // path of the file
	data  []byte
	named bool // the user has named the file; false for a file found in a folder
}

// ReadPath reads a file or a folder.
func (d *Decoder) ReadPath(path string) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		d.AddProblem(path, 0, "there is no such file or folder; check the path")
		return
	case err != nil:
		d.AddProblem(path, 0, "cannot be read: %v", withoutPath(err))
		return
	case !info.IsDir():
		d.readFile(path, true)
		return
	}
	found, hasUnread := 0, false
	err = filepath.WalkDir(path, func(file string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			hasUnread = true
			d.AddProblem(file, 0, "cannot be read: %v", withoutPath(err))
			if entry != nil && entry.IsDir() {
				return fs.SkipDir
			}
			return nil
		case entry.IsDir():
			if file != path && strings.HasPrefix(entry.Name(), ".") {
				return fs.SkipDir
			}
			return nil
		case !slices.Contains([]string{".yaml", ".yml", ".json"}, strings.ToLower(filepath.Ext(file))):
			return nil
		}
		found++
		d.readFile(file, false)
		return nil
	})
	if err != nil {
		d.AddProblem(path, 0, "cannot be read: %v", withoutPath(err))
	}
	if found == 0 && err == nil && !hasUnread {
		d.AddProblem(path, 0, "contains no *.yaml, *.yml or *.json file; name the files, or another folder")
	}
}

// readFile reads a file, unless it was read before. See source for named.
func (d *Decoder) readFile(path string, named bool) {
	id := filepath.Clean(path)
	if absolute, err := filepath.Abs(path); err == nil {
		id = absolute
	}
	if d.Read[id] {
		return
	}
	d.Read[id] = true
	info, err := os.Stat(path)
	if err != nil {
		d.AddProblem(path, 0, "cannot be read: %v", withoutPath(err))
		return
	}
	// A shell passes <(command) as a pipe. A pipe in a folder may never end, so only a pipe named by the user is read.
	if mode := info.Mode(); !mode.IsRegular() && !(named && mode.Type() == fs.ModeNamedPipe) {
		d.AddProblem(path, 0, "is not a regular file; give a file with Kubernetes objects, or - for standard input")
		return
	}
	file, err := os.Open(path)
	if err != nil {
		d.AddProblem(path, 0, "cannot be read: %v", withoutPath(err))
		return
	}
	defer func() { _ = file.Close() }() // opened read-only
	d.ReadStream(path, file, named)
}

// maxBytes is the maximum size of all files together. The objects of a cluster of 10,000 pods have about 50 MB.
const maxBytes = 64 << 20

// ReadStream reads r as one file with the name. named is false for a file that was found in a folder.
func (d *Decoder) ReadStream(name string, r io.Reader, named bool) {
	data, err := io.ReadAll(io.LimitReader(r, maxBytes-d.bytes+1))
	d.bytes += int64(len(data))
	switch {
	case err != nil:
		d.AddProblem(name, 0, "cannot be read: %v", withoutPath(err))
		return
	case d.bytes > maxBytes:
		d.bytes = maxBytes // later files are then reported only if they are not empty
		d.AddProblem(name, 0, "is too large: all files together may have at most %d MiB; leave out objects that do not affect the plan",
			maxBytes>>20)
		return
	case bytes.HasPrefix(data, []byte("\xFF\xFE")), bytes.HasPrefix(data, []byte("\xFE\xFF")):
		d.AddProblem(name, 0, "is written in UTF-16; save it as UTF-8")
		return
	case bytes.IndexByte(data, 0) >= 0:
		d.AddProblem(name, 0, "is binary, so neither YAML nor JSON; give a file with Kubernetes objects")
		return
	case !utf8.Valid(data):
		d.AddProblem(name, 1+bytes.Count(data[:firstInvalid(data)], []byte("\n")), "is not written in UTF-8; save it as UTF-8")
		return
	}
	d.readSource(source{name: name, data: data, named: named})
}

func firstInvalid(data []byte) int {
	offset := 0
	for offset < len(data) {
		r, size := utf8.DecodeRune(data[offset:])
		if r == utf8.RuneError && size == 1 {
			break
		}
		offset += size
	}
	return offset
}

// withoutPath returns the cause of a file system error without the path, which the message already has.
func withoutPath(err error) error {
	var pathErr *fs.PathError
	if errors.As(err, &pathErr) {
		return pathErr.Err
	}
	return err
}

// AddProblem records a problem at a line of a file; line 0 means the whole file.
func (d *Decoder) AddProblem(file string, line int, format string, args ...any) {
	d.Errs = append(d.Errs, errors.New(position(file, line)+": "+suggest.Short(conversion.OneLine(fmt.Sprintf(format, args...)))))
}

// note records a note about a line of a file; line 0 means the whole file.
func (d *Decoder) note(file string, line int, format string, args ...any) {
	d.notes = append(d.notes, position(file, line)+": "+suggest.Short(conversion.OneLine(fmt.Sprintf(format, args...))))
}

// position returns "file:line", or the file if line is 0.
func position(file string, line int) string {
	if line == 0 {
		return file
	}
	return fmt.Sprintf("%s:%d", file, line)
}

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

// Manifests is what was read from files: the objects, and what was left out.
type Manifests struct {
	snapshot.Objects
	// Skipped counts the documents of kinds that do not matter to a plan, by
	// kind and group: "Service", "Ingress.networking.k8s.io".
	Skipped map[string]int
	// Strange counts, likewise, the documents of kinds that are neither planned nor known not to make pods:
	// "Rollout.argoproj.io".
	Strange map[string]int
	// Notes are sentences about what was assumed or overlooked, for the user to read.
	Notes []string
}

// ReadFiles reads Kubernetes manifests, as YAML or JSON with any number of
// documents and Lists: from files, from folders with all below them (*.yaml,
// *.yml, *.json), and from stdin for "-". Workloads count as the pods of their
// replicas, unless pods of theirs are among the manifests.
//
// The error joins one error for each thing that is wrong, one line each, with
// file, line and what to do. What could be read is returned beside it.
//
// To plan with the result: Snapshot(View{Now: now, Market: market}) with a market
// made from Settings.
func ReadFiles(paths []string, stdin io.Reader) (Manifests, error) {
	d := Decoder{
		Skipped: map[string]int{}, Strange: map[string]int{}, Seen: map[string]string{}, Read: map[string]bool{}, admission: newAdmission(),
	}
	for _, path := range paths {
		if path == "" {
			d.Fail("-f", 0, "the path is empty; name a file or a folder, or - for standard input")
			continue
		}
		if path == "-" {
			d.Stream("<stdin>", stdin, true)
			continue
		}
		d.Path(path)
	}
	d.completeAll()
	d.expand()
	return Manifests{Objects: d.objects, Skipped: d.Skipped, Strange: d.Strange, Notes: d.notes}, errors.Join(d.Errs...)
}

// Settings returns, by name, what each node class sets that a NodePool names. A
// class that is not among the manifests has the settings of one that sets nothing.
func (m Manifests) Settings() (map[string]catalog.Settings, error) {
	return m.Objects.Settings()
}

// source is one file.
type source struct {
	name  string
	data  []byte
	named bool // by the user, and not found in a folder
}

// Path reads a file or a folder.
func (d *Decoder) Path(path string) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		d.Fail(path, 0, "there is no such file or folder; check the path")
		return
	case err != nil:
		d.Fail(path, 0, "cannot be read: %v", plain(err))
		return
	case !info.IsDir():
		d.file(path, true)
		return
	}
	found, unread := 0, false
	err = filepath.WalkDir(path, func(file string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			unread = true
			d.Fail(file, 0, "cannot be read: %v", plain(err))
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
		d.file(file, false)
		return nil
	})
	if err != nil {
		d.Fail(path, 0, "cannot be read: %v", plain(err))
	}
	if found == 0 && err == nil && !unread {
		d.Fail(path, 0, "holds no *.yaml, *.yml or *.json file; name the files, or another folder")
	}
}

// file reads a file, once however often it is named.
func (d *Decoder) file(path string, named bool) {
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
		d.Fail(path, 0, "cannot be read: %v", plain(err))
		return
	}
	// A shell gives the output of a command as a pipe; one that lies in a folder may never end.
	if mode := info.Mode(); !mode.IsRegular() && !(named && mode.Type() == fs.ModeNamedPipe) {
		d.Fail(path, 0, "is no regular file; give a file with Kubernetes objects, or - for standard input")
		return
	}
	file, err := os.Open(path)
	if err != nil {
		d.Fail(path, 0, "cannot be read: %v", plain(err))
		return
	}
	defer func() { _ = file.Close() }() // it was only read
	d.Stream(path, file, named)
}

// maxBytes is how much is read in all: a cluster of 10,000 pods takes some 50 MB.
const maxBytes = 64 << 20

// Stream reads what r holds as one file.
func (d *Decoder) Stream(name string, r io.Reader, named bool) {
	data, err := io.ReadAll(io.LimitReader(r, maxBytes-d.bytes+1))
	d.bytes += int64(len(data))
	switch {
	case err != nil:
		d.Fail(name, 0, "cannot be read: %v", plain(err))
		return
	case d.bytes > maxBytes:
		d.bytes = maxBytes
		d.Fail(name, 0, "is too large: of all files together at most %d MiB are read; leave out what does not matter to the plan",
			maxBytes>>20)
		return
	case bytes.HasPrefix(data, []byte("\xFF\xFE")), bytes.HasPrefix(data, []byte("\xFE\xFF")):
		d.Fail(name, 0, "is written in UTF-16; save it as UTF-8")
		return
	case bytes.IndexByte(data, 0) >= 0:
		d.Fail(name, 0, "is binary, so neither YAML nor JSON; give a file with Kubernetes objects")
		return
	case !utf8.Valid(data):
		d.Fail(name, 1+bytes.Count(data[:firstInvalid(data)], []byte("\n")), "is not written in UTF-8; save it as UTF-8")
		return
	}
	d.source(source{name: name, data: data, named: named})
}

// firstInvalid is where text stops to be UTF-8.
func firstInvalid(data []byte) int {
	at := 0
	for at < len(data) {
		r, size := utf8.DecodeRune(data[at:])
		if r == utf8.RuneError && size == 1 {
			break
		}
		at += size
	}
	return at
}

// plain is the cause of a file system's error without the path, which the message has already.
func plain(err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		return path.Err
	}
	return err
}

// Fail notes that something is wrong at a line of a file; line 0: with the file as a whole.
func (d *Decoder) Fail(file string, line int, format string, args ...any) {
	d.Errs = append(d.Errs, errors.New(where(file, line)+": "+suggest.Short(conversion.OneLine(fmt.Sprintf(format, args...)))))
}

func (d *Decoder) note(file string, line int, format string, args ...any) {
	d.notes = append(d.notes, where(file, line)+": "+suggest.Short(conversion.OneLine(fmt.Sprintf(format, args...))))
}

func where(file string, line int) string {
	if line == 0 {
		return file
	}
	return fmt.Sprintf("%s:%d", file, line)
}

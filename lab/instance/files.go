package instance

import (
	"bytes"
	"context"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
)

// maxFile is the maximum size of an emulated file, in bytes.
const maxFile = 1 << 20

// files is the file system of an instance, in memory. A folder exists if the image contains it or a script has created
// it.
type files struct {
	mu      sync.Mutex
	content map[string][]byte // of files, by absolute path
	folders map[string]bool   // by absolute path
}

func newFiles() *files {
	f := &files{content: map[string][]byte{}, folders: map[string]bool{}}
	for _, folder := range []string{
		"/", "/bin", "/dev", "/dev/fd", "/etc", "/etc/eks", "/etc/containerd", "/etc/kubernetes", "/etc/kubernetes/kubelet", "/etc/systemd",
		"/etc/systemd/system", "/etc/systemd/system/kubelet.service.d", "/etc/sysctl.d", "/home", "/home/ec2-user", "/mnt", "/opt", "/root",
		"/run", "/sbin", "/tmp", "/usr", "/usr/bin", "/usr/local", "/usr/local/bin", "/usr/sbin", "/var", "/var/lib", "/var/lib/kubelet",
		"/var/log", "/var/run",
	} {
		f.folders[folder] = true
	}
	f.content["/etc/eks/release"] = []byte("BASE_AMI_ID=\"\"\n")
	f.content["/etc/os-release"] = []byte("ID=\"amzn\"\n")
	return f
}

// read returns the content of a file; false if it does not exist.
func (f *files) read(name string) ([]byte, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	data, ok := f.content[name]
	return bytes.Clone(data), ok
}

// write writes data to a file, or appends data if isAppend is true. It truncates the file at maxFile.
func (f *files) write(name string, data []byte, isAppend bool) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.folders[path.Dir(name)] {
		return &os.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	if isAppend {
		data = append(bytes.Clone(f.content[name]), data...)
	}
	if len(data) > maxFile {
		data = data[:maxFile]
	}
	f.content[name] = data
	return nil
}

// makeFolder creates a folder and its parents.
func (f *files) makeFolder(name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for ; name != "/" && name != "."; name = path.Dir(name) {
		f.folders[name] = true
	}
}

func (f *files) remove(name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.content, name)
}

// open opens a file with the flags of os.OpenFile. Opening for writing creates the file.
func (f *files) open(name string, flag int) (io.ReadWriteCloser, error) {
	if flag&(os.O_WRONLY|os.O_RDWR) != 0 {
		if err := f.write(name, nil, flag&os.O_TRUNC == 0); err != nil {
			return nil, err
		}
		return &openFile{files: f, name: name}, nil
	}
	data, ok := f.read(name)
	if !ok {
		return nil, &os.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return &openFile{files: f, name: name, reader: bytes.NewReader(data)}, nil
}

func (f *files) stat(name string) (fs.FileInfo, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if data, ok := f.content[name]; ok {
		return fileInfo{name: path.Base(name), size: int64(len(data)), mode: 0o644}, nil
	}
	if f.folders[name] {
		return fileInfo{name: path.Base(name), mode: fs.ModeDir | 0o755}, nil
	}
	return nil, &os.PathError{Op: "stat", Path: name, Err: fs.ErrNotExist}
}

func (f *files) readDir(ctx context.Context, name string) ([]fs.DirEntry, error) {
	name = absolute(ctx, name)
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.folders[name] {
		return nil, &os.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	var out []fs.DirEntry
	for file, data := range f.content {
		if path.Dir(file) == name {
			out = append(out, fs.FileInfoToDirEntry(fileInfo{name: path.Base(file), size: int64(len(data)), mode: 0o644}))
		}
	}
	for folder := range f.folders {
		if folder != "/" && path.Dir(folder) == name {
			out = append(out, fs.FileInfoToDirEntry(fileInfo{name: path.Base(folder), mode: fs.ModeDir | 0o755}))
		}
	}
	slices.SortFunc(out, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return out, nil
}

// openFile is an open file, either for reading from the start or for appending.
type openFile struct {
	files  *files
	name   string
	reader *bytes.Reader // nil when open for writing
}

func (o *openFile) Read(p []byte) (int, error) {
	if o.reader == nil {
		return 0, io.EOF
	}
	return o.reader.Read(p)
}

func (o *openFile) Write(p []byte) (int, error) {
	if err := o.files.write(o.name, p, true); err != nil {
		return 0, err
	}
	return len(p), nil
}

func (o *openFile) Close() error { return nil }

// Package inputfile reads files that the user names on the command line, up to a maximum size.
//
// In: the path of a file, or a reader.
// Out: its bytes.
// Never: more memory than the maximum size, even for a file without an end such as /dev/zero.
package inputfile

import (
	"fmt"
	"io"
	"os"
)

// MaxBytes is the maximum size of a file.
const MaxBytes = 256 << 20

// Read returns the bytes of the file. It returns an error if the file has more than MaxBytes.
func Read(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // it was only read
	return ReadAll(file, path)
}

// ReadAll returns all bytes of r. It returns an error, with the name, if there are more than MaxBytes.
func ReadAll(r io.Reader, name string) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, MaxBytes+1))
	if err != nil {
		return nil, err
	}
	if len(data) > MaxBytes {
		return nil, fmt.Errorf("%s is too large: a file may have at most %d MiB", name, MaxBytes>>20)
	}
	return data, nil
}

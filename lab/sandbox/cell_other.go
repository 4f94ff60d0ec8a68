//go:build !linux

package sandbox

import (
	"errors"
	"syscall"
)

var errNotHere = errors.New("cells are made by Linux alone")

// Isolate does nothing where there is no Linux.
func Isolate(*syscall.SysProcAttr) {}

// Possible says why no cell can be made on this machine.
func Possible(string) error { return errNotHere }

// Main makes no cell here.
func Main(string) int { return 1 }

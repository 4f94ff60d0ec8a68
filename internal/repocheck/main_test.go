// Package repocheck has tests of the whole repository: allowed imports, documents that match the code, and allowed
// files.
//
// In: the files of the checkout.
// Out: test failures that name the file and the line.
// Never: code that a program imports.
package repocheck

import (
	"fmt"
	"os"
	"testing"
)

// TestMain changes to the root of the checkout, so that the tests can use paths relative to it.
func TestMain(m *testing.M) {
	if err := os.Chdir("../.."); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

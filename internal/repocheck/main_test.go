// Package repocheck has the tests of the repository as a whole: who may import whom, what documents say, and what may be in a commit.
//
// In: the files of the checkout.
// Out: test failures that name the file and the line.
// Never: code that a program uses.
package repocheck

import (
	"fmt"
	"os"
	"testing"
)

// TestMain changes to the root of the checkout: the tests name files as they are named from there.
func TestMain(m *testing.M) {
	if err := os.Chdir("../.."); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// Command catalog generates the embedded table of package internal/model/catalog from the EC2 data in public Go
// modules. Run it in its folder: `go run .`, then `go test ./...`, which compares every type of the new table with the
// output of Karpenter's AWS provider. The first build takes minutes.
//
// In: the modules of go.mod, and the documented rules in rules.go and efa.txt.
// Out: types.tsv, prices.tsv, left-out.txt and by-name.txt; the same modules give the same files.
// Never: a call to AWS, or a number that comes from no source and no documented rule.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

func main() {
	out := flag.String("out", filepath.Join("..", "..", "internal", "model", "catalog", "table"), "folder to write the table to")
	flag.Parse()
	if err := run(*out); err != nil {
		fmt.Fprintln(os.Stderr, "catalog:", err)
		os.Exit(1)
	}
}

// run writes the files of the catalog to the folder out, and deletes stale files there. It prints the types that are
// left out.
func run(out string) error {
	src, err := load()
	if err != nil {
		return err
	}
	t := merge(src)
	files, err := t.files()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	for _, f := range files {
		if err := os.WriteFile(filepath.Join(out, f.name), f.data, 0o644); err != nil {
			return err
		}
	}
	if err := removeStale(out, files); err != nil {
		return err
	}
	fmt.Printf("%d types, %d regions, %d types left out:\n", len(t.types), len(t.regions), len(t.leftOut))
	for _, l := range t.leftOut {
		fmt.Printf("  %s: %s\n", l.name, l.why)
	}
	return nil
}

// removeStale deletes the .tsv files in the folder out that are not among files.
func removeStale(out string, files []file) error {
	old, err := filepath.Glob(filepath.Join(out, "*.tsv"))
	if err != nil {
		return err
	}
	for _, path := range old {
		hasName := func(f file) bool { return f.name == filepath.Base(path) }
		if slices.ContainsFunc(files, hasName) {
			continue
		}
		if err := os.Remove(path); err != nil {
			return err
		}
	}
	return nil
}

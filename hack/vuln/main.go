// Command vuln checks programs for known vulnerabilities with govulncheck, and fails if a vulnerable function is
// reachable.
//
//	go -C hack/vuln run . bin/joiner bin/lab      the functions that are linked into binaries (seconds)
//	go -C hack/vuln run . -source . ./cmd/joiner  the functions that the sources of a module call, with traces (minutes)
//
// The database is the module golang.org/x/vulndb at the version in go.mod, so the same commit has the same findings.
// VULNDB=https://vuln.go.dev selects the live database.
//
// Exit status: 0 no reachable vulnerability, 1 a reachable vulnerability, or the check failed.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "vuln: "+err.Error())
		os.Exit(1)
	}
}

// check is one run of govulncheck.
type check struct {
	name string   // path of the binary, or folder of the module
	args []string // arguments that select the mode and the packages or binary
}

// accepted has the vulnerabilities, by program and ID, that do not fail the check as long as no version of the module
// fixes them: only those of the lab, which listens on loopback only and is not part of a release.
var accepted = map[string]map[string]bool{
	"bin/lab": {"GO-2025-3521": true, "GO-2025-3547": true},
}

// run runs the checks that the arguments select, and returns an error if a vulnerability is reachable.
func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("vuln", flag.ContinueOnError)
	root := flags.String("root", "../..", "the `FOLDER` of the checkout: other paths are relative to this folder")
	source := flags.String("source", "", "check the packages of the module in this `FOLDER`, not binaries")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() == 0 {
		return errors.New("no arguments: give the path of a binary, or -source and packages")
	}
	base, err := filepath.Abs(*root)
	if err != nil {
		return err
	}
	db := os.Getenv("VULNDB")
	if db == "" {
		if db, err = database(ctx, filepath.Join(base, "bin")); err != nil {
			return err
		}
	}
	var checks []check
	if *source != "" {
		checks = []check{{*source, append([]string{"-C", filepath.Join(base, *source), "-mode=source"}, flags.Args()...)}}
	} else {
		for _, binary := range flags.Args() {
			checks = append(checks, check{binary, []string{"-mode=binary", filepath.Join(base, binary)}})
		}
	}
	reachable := 0
	for _, c := range checks {
		found, err := c.run(ctx, db)
		if err != nil {
			return err
		}
		found = slices.DeleteFunc(found, func(f finding) bool {
			isAccepted := accepted[c.name][f.ID] && f.Fixed == ""
			if isAccepted {
				_, _ = fmt.Fprintf(out, "%s: accepted: %s\n", c.name, f)
			}
			return isAccepted
		})
		_, _ = fmt.Fprintf(out, "%s: %d reachable\n", c.name, len(found))
		for _, f := range found {
			_, _ = fmt.Fprintln(out, "  "+f.String())
		}
		reachable += len(found)
	}
	if reachable > 0 {
		return fmt.Errorf("%d reachable vulnerabilities; update the named modules, then run go mod tidy in each module of this repository", reachable)
	}
	return nil
}

// run runs govulncheck with the database at the URL db, and returns the reachable vulnerabilities.
func (c check) run(ctx context.Context, db string) ([]finding, error) {
	cmd := exec.CommandContext(ctx, "go", append([]string{"tool", "govulncheck", "-db", db, "-format", "json"}, c.args...)...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	found, readErr := reachableOf(pipe)
	if readErr != nil {
		_ = cmd.Process.Kill()
	}
	if err := cmd.Wait(); err != nil || readErr != nil {
		return nil, fmt.Errorf("check %s: %w\n%s", c.name, errors.Join(err, readErr), strings.TrimSpace(stderr.String()))
	}
	return found, nil
}

// finding is a vulnerability that govulncheck found in a program.
type finding struct {
	ID    string  `json:"osv"`
	Fixed string  `json:"fixed_version"`
	Trace []frame `json:"trace"` // the vulnerable function first
}

type frame struct {
	Module   string `json:"module"`
	Version  string `json:"version"`
	Package  string `json:"package"`
	Function string `json:"function"`
	Receiver string `json:"receiver"`
}

func (f finding) String() string {
	vulnerable := f.Trace[0]
	fixed := "no fixed version"
	if f.Fixed != "" {
		fixed = "fixed in " + f.Fixed
	}
	name := vulnerable.Function
	if vulnerable.Receiver != "" {
		name = strings.TrimPrefix(vulnerable.Receiver, "*") + "." + name
	}
	text := fmt.Sprintf("https://pkg.go.dev/vuln/%s: %s@%s, %s: %s.%s",
		f.ID, vulnerable.Module, vulnerable.Version, fixed, vulnerable.Package, name)
	if n := len(f.Trace); n > 1 {
		text += ", called by " + f.Trace[n-1].Package + "." + f.Trace[n-1].Function
	}
	return text
}

// reachableOf reads govulncheck's messages, and returns the findings with a function, one per vulnerability, sorted by
// ID. It drops findings without a function: they are about modules and packages whose vulnerable functions are not
// linked. Without govulncheck's first message, config, it returns an error: then the lack of findings proves nothing.
func reachableOf(r io.Reader) ([]finding, error) {
	byID := map[string]finding{}
	hasConfig := false
	for dec := json.NewDecoder(r); ; {
		var m struct {
			Config  *struct{} `json:"config"`
			Finding *finding  `json:"finding"`
		}
		err := dec.Decode(&m)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("read the output of govulncheck: %w", err)
		}
		hasConfig = hasConfig || m.Config != nil
		if f := m.Finding; f != nil && len(f.Trace) > 0 && f.Trace[0].Function != "" {
			if _, known := byID[f.ID]; !known {
				byID[f.ID] = *f
			}
		}
	}
	if !hasConfig {
		return nil, errors.New("govulncheck printed no message config")
	}
	out := make([]finding, 0, len(byID))
	for _, f := range byID {
		out = append(out, f)
	}
	slices.SortFunc(out, func(a, b finding) int { return strings.Compare(a.ID, b.ID) })
	return out, nil
}

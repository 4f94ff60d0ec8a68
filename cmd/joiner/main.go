// Command joiner runs the controller and the command line of Joiner, a node autoscaler for Amazon EKS.
package main

import (
	"context"
	"os"
	"runtime/debug"

	"github.com/joiner-sh/joiner/internal/cli"
)

func main() {
	// Signals are left to end the process: only the controller has something to bring to an end first.
	streams := cli.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}
	root := cli.Root(version(), streams, commands()...)
	os.Exit(cli.Run(context.Background(), root, cli.CalledAs(root, os.Args[0], os.Args[1:])))
}

// What hack/build writes into the binary, by the linker's -X: the release, "v0.2.0" or "v0.2.0-7-gd2bf13c3a8f1" between releases, and the
// commit. Nothing else changes them.
var release, revision string

// version is the release and the commit, as far as they are known.
func version() string {
	text := release
	if info, ok := debug.ReadBuildInfo(); text == "" && ok {
		text = info.Main.Version
	}
	if text == "" {
		text = "unknown"
	}
	if c := commit(); c != "" {
		text += " " + c[:min(12, len(c))]
	}
	return text
}

// commit is that of the checkout that the binary was built from, empty if it was not.
func commit() string {
	if revision != "" {
		return revision
	}
	info, _ := debug.ReadBuildInfo()
	if info == nil {
		return ""
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			return s.Value
		}
	}
	return ""
}

// Command joiner runs the controller and the command line of Joiner, a node autoscaler for Amazon EKS.
package main

import (
	"context"
	"os"
	"runtime/debug"

	"github.com/joiner-sh/joiner/internal/cli"
)

func main() {
	// The context has no signal handler: package cli handles the signals of all commands except the controller, which
	// handles its signals itself, for a graceful shutdown.
	streams := cli.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}
	root := cli.Root(version(), streams, commands()...)
	os.Exit(cli.Run(context.Background(), root, cli.CalledAs(root, os.Args[0], os.Args[1:])))
}

// release and revision are set by hack/build with the linker's -X. release is "v0.2.0", or "v0.2.0-7-gd2bf13c3a8f1" for
// a commit between releases; revision is the commit.
var release, revision string

// version returns the release ("unknown" if there is none) and, if known, the first 12 characters of the commit.
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

// commit returns the commit that the binary was built from; empty if unknown.
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

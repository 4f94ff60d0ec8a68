// Command joiner buys the nodes that pending pods need.
package main

import (
	"context"
	"os"
	"runtime/debug"

	"github.com/joiner-sh/joiner/cli"
)

func main() {
	// Signals are left to end the process: only the controller has something to bring to an end first.
	streams := cli.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}
	os.Exit(cli.Run(context.Background(), cli.Root(version(), streams, commands()...), os.Args[1:]))
}

// version is that of the module, and the commit when built from a checkout.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	text := info.Main.Version
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			text += " " + s.Value[:min(12, len(s.Value))]
		}
	}
	return text
}

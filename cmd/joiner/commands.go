package main

import "github.com/spf13/cobra"

// commands returns the commands that need packages which package cli must not import.
func commands() []*cobra.Command {
	return []*cobra.Command{newController()}
}

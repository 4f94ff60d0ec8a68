package main

import "github.com/spf13/cobra"

// commands are those that need more than package cli knows. Each is made by a
// function in a file of its own.
func commands() []*cobra.Command {
	return []*cobra.Command{newController()}
}

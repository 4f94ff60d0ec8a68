package main

import "github.com/spf13/cobra"

// commands returns the commands whose packages package cli must not
// import.
func commands() []*cobra.Command {
	return []*cobra.Command{newController()}
}

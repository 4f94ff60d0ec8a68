//go:build !linux && !darwin

package cli

import "os"

// terminalWidth returns how many columns the terminal behind a file has; 0 if it is none, or not known.
func terminalWidth(*os.File) int { return 0 }

//go:build !linux && !darwin

package cli

import "os"

// terminalWidth returns the number of columns of a terminal; 0 if the file is not a terminal, or its width is unknown.
func terminalWidth(*os.File) int { return 0 }

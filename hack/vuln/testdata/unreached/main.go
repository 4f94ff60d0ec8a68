// Command unreached uses a module with a known vulnerability, but none of its vulnerable functions.
package main

import (
	"fmt"
	"os"

	"golang.org/x/text/width"
)

func main() { fmt.Println(width.Fold.String(os.Args[0])) }

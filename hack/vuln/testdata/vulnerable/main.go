// Command vulnerable calls a function with a known vulnerability.
package main

import (
	"fmt"
	"os"

	"golang.org/x/text/language"
)

func main() { fmt.Println(language.Parse(os.Args[0])) }

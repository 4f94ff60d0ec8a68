//go:build pin

package main

// The vulnerability database is a Go module. go.mod pins its version, and this import makes go mod tidy keep the module
// in go.mod. The package has no imports, so go.mod and go.sum stay short.
import _ "golang.org/x/vulndb/cmd/vulnreport/color"

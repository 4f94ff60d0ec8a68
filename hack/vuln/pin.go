//go:build pin

package main

// The vulnerability database is a Go module: go.mod says which version of it is used, and go mod tidy keeps that line for this import.
import _ "golang.org/x/vulndb/report"

//go:build sources

package main

// Command catalog reads instances.json of this module from the module's folder in the module cache. The import keeps
// the module in go.mod. It is never compiled, because the module's package would embed 130 MB.
import _ "github.com/LeanerCloud/ec2-instances-info"

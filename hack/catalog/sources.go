//go:build sources

package main

// instances.json of this module is read from its folder in the module cache. The import keeps the module in go.mod. It is never compiled,
// because it would embed 130 MB.
import _ "github.com/LeanerCloud/ec2-instances-info"

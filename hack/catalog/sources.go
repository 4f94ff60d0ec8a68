//go:build sources

package main

// This import keeps the module ec2-instances-info in go.mod. Command catalog reads the module's instances.json from the
// module cache. No build sets the tag sources, because the module's package would embed 130 MB.
import _ "github.com/LeanerCloud/ec2-instances-info"

//go:build sources

package main

// instances.json of this module is read from its folder, where the go command
// put it. The import keeps the module in go.mod; it is never compiled, for it
// would embed 130 MB.
import _ "github.com/LeanerCloud/ec2-instances-info"

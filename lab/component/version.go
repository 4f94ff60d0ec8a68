package component

import (
	"strings"
	_ "unsafe" // for go:linkname

	"k8s.io/component-base/version"
)

// Version is the version of the Kubernetes module that this binary is built from. It is a constant, because test
// binaries do not contain module versions. A test compares it with go.mod.
const Version = "v1.36.3"

// builtVersion is the variable that Kubernetes' own build sets with the linker flag -X. Without that flag, for example
// with `go run`, a program reports v0.0.0-master as the cluster's version.
//
//go:linkname builtVersion k8s.io/component-base/version.gitVersion
var builtVersion string

// setVersion sets the program's version, unless the linker has set it.
func setVersion() error {
	if !strings.HasPrefix(builtVersion, "v0.0.0") {
		return nil
	}
	builtVersion = Version
	return version.SetDynamicVersion(Version)
}

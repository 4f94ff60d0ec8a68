package component

import (
	"strings"
	_ "unsafe" // for go:linkname

	"k8s.io/component-base/version"
)

// Version is the version of the Kubernetes module that this binary is built
// from. Go leaves the versions of modules out of test binaries, so it is
// written here, and a test holds it against go.mod.
const Version = "v1.36.3"

// builtVersion is the variable that Kubernetes' own build sets with the
// linker's -X. A program built without it, as by `go run` and `go test`, calls
// itself v0.0.0-master, and clients would think that of the cluster.
//
//go:linkname builtVersion k8s.io/component-base/version.gitVersion
var builtVersion string

// setVersion gives the program its version, unless the linker did.
func setVersion() error {
	if !strings.HasPrefix(builtVersion, "v0.0.0") {
		return nil
	}
	builtVersion = Version
	return version.SetDynamicVersion(Version)
}

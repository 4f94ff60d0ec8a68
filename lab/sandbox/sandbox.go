// Package sandbox runs a program as a container runtime runs the one of a pod: files, a user and a network of its own.
//
// In: the root folder of its file system, a user id, an environment, and the outbound addresses that it can reach.
// Out: a program on a root that is read-only for all users, without any capability, that reaches its outbound addresses and nothing else.
// The package writes down its other calls (names, instance metadata, the agent of Pod Identity).
// Never: this host's files or network; root, where the kernel lets every user create namespaces.
package sandbox

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// Arg is the first argument that makes the lab's binary run Main.
const Arg = "cell"

// Spec says what runs in a sandbox.
type Spec struct {
	Root    string   // folder on this host that the program has as its root, read-only
	Program string   // path of the program below Root
	Args    []string // its arguments, without its own name
	Env     []string // all of its environment: NAME=value
	User    int      // its user and group id: not 0
	Host    string   // the name of its host, as a pod's is that of the pod

	// Outbound maps an address in the sandbox, "172.20.0.1:443", to a Unix socket of this host.
	Outbound map[string]string
	// Inbound maps a Unix socket of this host, which is created, to an address in the sandbox, "127.0.0.1:8081".
	Inbound map[string]string
	// BlockedCalls is a file that gets a line for each call to an address that is not outbound: "tcp 169.254.169.254:80". The sandbox
	// listens only at the ports of the outbound addresses and at those of DNS, HTTP and HTTPS; calls to other ports are refused.
	BlockedCalls string
}

// Save writes a spec to a file and returns the arguments that have the lab's binary run it. The caller starts it with Isolate.
func (s Spec) Save(file string) ([]string, error) {
	text, err := json.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("write the spec of a sandbox: %w", err)
	}
	if err := os.WriteFile(file, text, 0o600); err != nil {
		return nil, fmt.Errorf("write the spec of a sandbox: %w", err)
	}
	return []string{Arg, file}, nil
}

// load reads what Save wrote.
func load(file string) (Spec, error) {
	var s Spec
	text, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(text, &s)
	}
	if err == nil && (s.User == 0 || !filepath.IsAbs(s.Root) || !filepath.IsAbs(s.Program)) {
		err = fmt.Errorf("user %d, root %q and program %q: want a user id above 0 and absolute paths", s.User, s.Root, s.Program)
	}
	if err != nil {
		return s, fmt.Errorf("read the spec of a sandbox: %w", err)
	}
	return s, nil
}

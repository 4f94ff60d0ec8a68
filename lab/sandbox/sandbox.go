// Package sandbox runs a program as a container runtime does: with its own files, user and network.
//
// In: the root folder of the program's file system, a user ID, an environment, and the outbound addresses that the
// program can reach.
// Out: a running program without capabilities, on a root folder that is read-only for all users. The program can reach
// only its outbound addresses. The package records other calls: DNS, instance metadata, the Pod Identity agent.
// Never: access to this host's files or network; a need for the user root, if the kernel lets every user create
// namespaces.
package sandbox

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// Arg is the first argument that makes the lab's binary run Main.
const Arg = "cell"

// Spec describes the program of a sandbox and its surroundings.
type Spec struct {
	Root    string   // folder on this host that is the program's read-only root
	Program string   // path of the program below Root
	Args    []string // arguments, without the program's name
	Env     []string // complete environment: NAME=value
	User    int      // user and group ID, above 0
	Host    string   // host name in the sandbox

	// Outbound maps an address in the sandbox, "172.20.0.1:443", to a Unix socket of this host.
	Outbound map[string]string
	// Inbound maps a Unix socket of this host, which the sandbox creates, to an address in the sandbox,
	// "127.0.0.1:8081".
	Inbound map[string]string
	// BlockedCalls is a file that gets a line for each call to an address that is not in Outbound:
	// "tcp 169.254.169.254:80". The sandbox listens only at the ports of the outbound addresses, and at the ports of
	// DNS, HTTP and HTTPS. It refuses calls to other ports without recording them.
	BlockedCalls string
}

// Save writes a spec to a file and returns the arguments of the lab's binary that run the sandbox. The caller starts
// the binary with the process attributes that Isolate sets.
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

func load(file string) (Spec, error) {
	var s Spec
	text, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(text, &s)
	}
	if err == nil && (s.User == 0 || !filepath.IsAbs(s.Root) || !filepath.IsAbs(s.Program)) {
		err = fmt.Errorf("user %d, root %q and program %q: the user ID must be above 0 and the paths must be absolute", s.User, s.Root, s.Program)
	}
	if err != nil {
		return s, fmt.Errorf("read the spec of a sandbox: %w", err)
	}
	return s, nil
}

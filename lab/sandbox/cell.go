// Package sandbox runs a program as a container runtime runs the one of a pod: files, a user and a network of its own.
//
// In: the folder that is to be the root of its file system, a user id, an environment, and doors: the addresses that lead out.
// Out: a program on a root that nobody can write to, without any capability, that reaches its doors and nothing else; what else it
// asks for (names, instance metadata, the agent of Pod Identity) is written down.
// Never: this machine's files or network; root, where the kernel lets everybody have namespaces.
package sandbox

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// Arg is the first argument that makes the lab's binary run Main.
const Arg = "cell"

// Spec says what runs in a cell.
type Spec struct {
	Root    string   // folder on this machine that the program has as its root, read-only
	Program string   // path of the program below Root
	Args    []string // its arguments, without its own name
	Env     []string // all of its environment: NAME=value
	User    int      // its user and group id: not 0
	Host    string   // the name of its host, as a pod's is that of the pod

	// Doors lead out: from an address in the cell, "172.20.0.1:443", to a Unix socket of this machine.
	Doors map[string]string
	// Windows lead in: from a Unix socket of this machine, which is made, to an address in the cell, "127.0.0.1:8081".
	Windows map[string]string
	// Strangers is a file that gets a line for each call to an address that has no door: "tcp 169.254.169.254:80". Only the ports of
	// doors and those of DNS, HTTP and HTTPS are listened at; at any other, a call is refused, as nobody is there.
	Strangers string
}

// Save writes a spec to a file and returns the arguments that have the lab's binary run it. The caller starts it with Isolate.
func (s Spec) Save(file string) ([]string, error) {
	text, err := json.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("write the spec of a cell: %w", err)
	}
	if err := os.WriteFile(file, text, 0o600); err != nil {
		return nil, fmt.Errorf("write the spec of a cell: %w", err)
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
		return s, fmt.Errorf("read the spec of a cell: %w", err)
	}
	return s, nil
}

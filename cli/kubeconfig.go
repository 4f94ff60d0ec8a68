package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"k8s.io/client-go/tools/clientcmd"
)

// KubeconfigProblem says in one line what keeps the kubeconfig files at paths
// from leading to a cluster, with their names. It returns err, which is client-go's
// answer to them, where the files themselves are in order: a context or a
// certificate is missing then.
func KubeconfigProblem(paths []string, err error) error {
	var there []string
	for _, path := range paths {
		_, wrong := clientcmd.LoadFromFile(path)
		switch {
		case path == "", errors.Is(wrong, fs.ErrNotExist):
			continue
		case errors.As(wrong, new(*fs.PathError)):
			return plain(wrong)
		case wrong != nil:
			return fmt.Errorf("%s is no kubeconfig: %s", path, unlike(wrong))
		}
		there = append(there, path)
	}
	switch {
	case len(there) == 0:
		return fmt.Errorf("there is no kubeconfig at %s", strings.Join(paths, " or "))
	case clientcmd.IsEmptyConfig(err):
		return fmt.Errorf("the kubeconfig %s names no cluster", strings.Join(there, " or "))
	}
	return err
}

// unlike says in what a file differs from a kubeconfig. client-go tells of Go's types and of its own source.
func unlike(err error) string {
	if _, problem, ok := strings.Cut(err.Error(), "yaml: "); ok {
		return "it is not YAML: " + problem
	}
	return "it should hold an object of kind Config, apiVersion v1"
}

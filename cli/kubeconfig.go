package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/joiner-sh/joiner/spelling"
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
	case clientcmd.IsContextNotFound(err), strings.HasPrefix(err.Error(), `context "`):
		return missingContext(there, err)
	}
	return err
}

// mostContexts is how many contexts are listed; who has more looks into the file.
const mostContexts = 10

// missingContext says which contexts the files have instead of the one of which err says that there is none.
func missingContext(files []string, err error) error {
	all, wrong := (&clientcmd.ClientConfigLoadingRules{Precedence: files}).Load()
	if wrong != nil {
		return err
	}
	names := slices.Sorted(maps.Keys(all.Contexts))
	listed, hint := strings.Join(names[:min(len(names), mostContexts)], ", "), ""
	if _, quoted, ok := strings.Cut(err.Error(), `"`); ok {
		missing, _, _ := strings.Cut(quoted, `"`)
		hint = spelling.Hint(missing, names)
	}
	switch {
	case len(names) == 0:
		listed = "no context at all"
	case len(names) > mostContexts:
		listed += fmt.Sprintf(" and %d more", len(names)-mostContexts)
	}
	return fmt.Errorf("%w in %s%s, which has %s", err, strings.Join(files, " or "), hint, listed)
}

// unlike says in what a file differs from a kubeconfig. client-go tells of Go's types and of its own source.
func unlike(err error) string {
	if _, problem, ok := strings.Cut(err.Error(), "yaml: "); ok {
		return "it is not YAML: " + problem
	}
	return "it should hold an object of kind Config, apiVersion v1"
}

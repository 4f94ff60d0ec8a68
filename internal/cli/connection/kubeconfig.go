package connection

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"

	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"

	"github.com/joiner-sh/joiner/internal/cli/message"
	"github.com/joiner-sh/joiner/internal/suggest"
)

// KubeconfigProblem explains err, the error of client-go about the kubeconfig files at paths, in a one-line error. It
// explains four causes: a file is invalid, no file exists, the files name no cluster, or a context does not exist. For
// other causes it returns err.
func KubeconfigProblem(paths []string, err error) error {
	var existing []string
	for _, path := range paths {
		_, loadErr := clientcmd.LoadFromFile(path)
		switch {
		case path == "", errors.Is(loadErr, fs.ErrNotExist):
			continue
		case errors.As(loadErr, new(*fs.PathError)): // unreadable, for instance a folder
			return message.WithoutSyscall(loadErr)
		case loadErr != nil:
			if field := invalidBase64Field(path); field != "" {
				return fmt.Errorf("%s: %s is not base64: %s", path, field, RewriteKubeconfig)
			}
			return fmt.Errorf("%s is no kubeconfig: %s", path, notKubeconfigReason(loadErr))
		}
		existing = append(existing, path)
	}
	switch {
	case len(existing) == 0:
		return fmt.Errorf("there is no kubeconfig at %s", strings.Join(paths, " or "))
	case clientcmd.IsEmptyConfig(err):
		return fmt.Errorf("the kubeconfig %s names no cluster", strings.Join(existing, " or "))
	case clientcmd.IsContextNotFound(err), strings.HasPrefix(err.Error(), `context "`): // two errors with this cause
		return missingContext(existing, err)
	}
	return err
}

// RewriteKubeconfig is the advice for a damaged kubeconfig.
const RewriteKubeconfig = "write it again, for instance with aws eks update-kubeconfig --name CLUSTER"

const maxListedContexts = 10

// missingContext adds the names of the contexts in the files, and a similar name, to err, the error about a context
// that does not exist. If the files cannot be merged, it returns err.
func missingContext(files []string, err error) error {
	all, loadErr := (&clientcmd.ClientConfigLoadingRules{Precedence: files}).Load()
	if loadErr != nil {
		return err
	}
	names := slices.Sorted(maps.Keys(all.Contexts))
	listed, hint := strings.Join(names[:min(len(names), maxListedContexts)], ", "), ""
	if _, quoted, ok := strings.Cut(err.Error(), `"`); ok {
		missing, _, _ := strings.Cut(quoted, `"`)
		hint = suggest.Hint(missing, names)
	}
	switch {
	case len(names) == 0:
		listed = "no context at all"
	case len(names) > maxListedContexts:
		listed += fmt.Sprintf(" and %d more", len(names)-maxListedContexts)
	}
	return fmt.Errorf("%w in %s%s, which has %s", err, strings.Join(files, " or "), hint, listed)
}

// keyFields are the fields of a kubeconfig's cluster or user that contain the base64 of PEM.
type keyFields struct {
	Authority   string `json:"certificate-authority-data"`
	Certificate string `json:"client-certificate-data"`
	Key         string `json:"client-key-data"`
}

// invalidBase64Field returns the first field of a kubeconfig that is not valid base64; empty if there is none. The
// error of client-go does not name the field.
func invalidBase64Field(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	var config struct {
		Clusters []struct {
			Name    string    `json:"name"`
			Cluster keyFields `json:"cluster"`
		} `json:"clusters"`
		Users []struct {
			Name string    `json:"name"`
			User keyFields `json:"user"`
		} `json:"users"`
	}
	if yaml.Unmarshal(text, &config) != nil {
		return ""
	}
	for _, c := range config.Clusters {
		if !isBase64(c.Cluster.Authority) {
			return "certificate-authority-data of cluster " + c.Name
		}
	}
	for _, u := range config.Users {
		switch {
		case !isBase64(u.User.Certificate):
			return "client-certificate-data of user " + u.Name
		case !isBase64(u.User.Key):
			return "client-key-data of user " + u.Name
		}
	}
	return ""
}

// isBase64 reports whether the text is valid base64. Empty text is valid.
func isBase64(text string) bool {
	_, err := base64.StdEncoding.DecodeString(text)
	return err == nil
}

// notKubeconfigReason returns the reason why a file is not a kubeconfig. It omits the Go types and source files in err,
// the error of client-go.
func notKubeconfigReason(err error) string {
	if _, problem, ok := strings.Cut(err.Error(), "yaml: "); ok {
		return "it is not YAML: " + problem
	}
	return "the file should contain an object of kind Config, apiVersion v1"
}

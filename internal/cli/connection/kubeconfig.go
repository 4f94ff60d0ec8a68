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

// KubeconfigProblem returns a one-line error about the kubeconfig files at paths: the first file that is invalid, that
// none exists, that they name no cluster, or that a context does not exist. Otherwise it returns err, the error of
// client-go.
func KubeconfigProblem(paths []string, err error) error {
	var existing []string
	for _, path := range paths {
		_, loadErr := clientcmd.LoadFromFile(path)
		switch {
		case path == "", errors.Is(loadErr, fs.ErrNotExist):
			continue
		case errors.As(loadErr, new(*fs.PathError)):
			return message.Plain(loadErr)
		case loadErr != nil:
			if field := undecodable(path); field != "" {
				return fmt.Errorf("%s: %s is not base64: %s", path, field, RewriteKubeconfig)
			}
			return fmt.Errorf("%s is no kubeconfig: %s", path, unlike(loadErr))
		}
		existing = append(existing, path)
	}
	switch {
	case len(existing) == 0:
		return fmt.Errorf("there is no kubeconfig at %s", strings.Join(paths, " or "))
	case clientcmd.IsEmptyConfig(err):
		return fmt.Errorf("the kubeconfig %s names no cluster", strings.Join(existing, " or "))
	case clientcmd.IsContextNotFound(err), strings.HasPrefix(err.Error(), `context "`):
		return missingContext(existing, err)
	}
	return err
}

// RewriteKubeconfig is the advice for a damaged kubeconfig.
const RewriteKubeconfig = "write it again, for instance with aws eks update-kubeconfig --name CLUSTER"

// mostContexts is the maximum number of contexts that an error lists.
const mostContexts = 10

// missingContext returns err, the error about a context that does not exist, with the contexts in the files and a
// similar name. If the files cannot be read together, it returns err alone.
func missingContext(files []string, err error) error {
	all, loadErr := (&clientcmd.ClientConfigLoadingRules{Precedence: files}).Load()
	if loadErr != nil {
		return err
	}
	names := slices.Sorted(maps.Keys(all.Contexts))
	listed, hint := strings.Join(names[:min(len(names), mostContexts)], ", "), ""
	if _, quoted, ok := strings.Cut(err.Error(), `"`); ok {
		missing, _, _ := strings.Cut(quoted, `"`)
		hint = suggest.Hint(missing, names)
	}
	switch {
	case len(names) == 0:
		listed = "no context at all"
	case len(names) > mostContexts:
		listed += fmt.Sprintf(" and %d more", len(names)-mostContexts)
	}
	return fmt.Errorf("%w in %s%s, which has %s", err, strings.Join(files, " or "), hint, listed)
}

// keyFields are the fields of a cluster or a user in a kubeconfig that hold base64 of PEM.
type keyFields struct {
	Authority   string `json:"certificate-authority-data"`
	Certificate string `json:"client-certificate-data"`
	Key         string `json:"client-key-data"`
}

// undecodable returns the first field of a kubeconfig that is not valid base64; empty if there is none. The error of
// client-go does not name the field.
func undecodable(path string) string {
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

// isBase64 reports whether the text is valid base64; empty text is.
func isBase64(text string) bool {
	_, err := base64.StdEncoding.DecodeString(text)
	return err == nil
}

// unlike returns the reason why a file is not a kubeconfig, without the Go types and source files that err, the error
// of client-go, names.
func unlike(err error) string {
	if _, problem, ok := strings.Cut(err.Error(), "yaml: "); ok {
		return "it is not YAML: " + problem
	}
	return "the file should contain an object of kind Config, apiVersion v1"
}

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/joiner-sh/joiner/lab/process"
)

// running returns the folder of the lab that the command applies to.
func running() (string, error) {
	homes, err := process.Homes()
	if err != nil {
		return "", err
	}
	return choose(homes, os.Getenv("KUBECONFIG"))
}

// choose returns the folder of the lab whose kubeconfig the variable KUBECONFIG names, or of the only lab. Several labs
// without a match are an error, because a lab could belong to another person.
func choose(homes []string, variable string) (string, error) {
	for _, path := range filepath.SplitList(variable) {
		for _, home := range homes {
			if isSame(path, kubeconfigOf(home)) {
				return home, nil
			}
		}
	}
	switch len(homes) {
	case 0:
		return "", errors.New("no lab is running: start one with `lab up --joiner PROGRAM`")
	case 1:
		return homes[0], nil
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d labs are running, and KUBECONFIG names none of them. Choose one, the newest is first:", len(homes))
	for _, home := range homes {
		b.WriteString("\n  export " + quoted("KUBECONFIG="+kubeconfigOf(home)))
	}
	return "", errors.New(b.String())
}

// kubeconfigOf returns the path of the administrator's kubeconfig in a lab's folder.
func kubeconfigOf(home string) string { return filepath.Join(home, "kubeconfig") }

// isSame reports whether two paths lead to the same file.
func isSame(a, b string) bool {
	one, err := os.Stat(a)
	other, err2 := os.Stat(b)
	return err == nil && err2 == nil && os.SameFile(one, other)
}

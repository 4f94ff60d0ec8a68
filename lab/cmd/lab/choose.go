package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/joiner-sh/joiner/lab/process"
)

// runningHome returns the folder of the running lab to which the command applies.
func runningHome() (string, error) {
	homes, err := process.Homes()
	if err != nil {
		return "", err
	}
	return choose(homes, os.Getenv("KUBECONFIG"))
}

// choose returns the folder of the lab whose kubeconfig is in kubeconfigs, the value of KUBECONFIG. Without a match, it
// returns the folder of the only lab. Several labs without a match are an error, because the command must not change
// the wrong lab.
func choose(homes []string, kubeconfigs string) (string, error) {
	for _, path := range filepath.SplitList(kubeconfigs) {
		for _, home := range homes {
			if isSameFile(path, kubeconfigOf(home)) {
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

func kubeconfigOf(home string) string { return filepath.Join(home, "kubeconfig") }

func isSameFile(a, b string) bool {
	infoA, errA := os.Stat(a)
	infoB, errB := os.Stat(b)
	return errA == nil && errB == nil && os.SameFile(infoA, infoB)
}

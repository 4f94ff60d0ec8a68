package cli

import (
	"fmt"
	"slices"

	"github.com/joiner-sh/joiner/internal/kube/snapshot"
	"github.com/joiner-sh/joiner/internal/node/userdata"
)

// bootNotes returns notes about the problems of the user data and kubelet settings of the EC2NodeClasses that NodePools
// use. Some of these problems would keep the nodes of a plan from joining. Problems with the certainty Possible are
// left out.
func bootNotes(o snapshot.Objects) []string {
	used := map[string]bool{}
	for _, p := range o.Pools {
		used[nodeClassOf(p)] = true
	}
	var out []string
	for _, class := range o.Classes {
		if !used[class.Name] || class.Spec.UserData == nil && class.Spec.Kubelet == nil {
			continue
		}
		r := &renderFlags{}
		if r.completeCluster() != nil {
			return nil // impossible: no flag is set that could be invalid
		}
		for _, p := range r.userDataParser(class)(textOrEmpty(class.Spec.UserData)) {
			if note := bootNote(class.Name, p); note != "" && !slices.Contains(out, note) {
				out = append(out, note)
			}
		}
	}
	return out
}

// bootNote returns the note about one problem. It returns "" for a problem with the certainty Possible, and for a
// likely problem that would not prevent joining.
func bootNote(class string, p userdata.Problem) string {
	text := p.String()
	if p.Kind == userdata.Unwritable {
		text = p.Cause
	}
	switch {
	case p.IsFatal():
		return fmt.Sprintf("EC2NodeClass %s: no instance of it would join: %s", class, text)
	case p.Harm == userdata.NeverJoins && p.Certainty == userdata.Likely:
		return fmt.Sprintf("EC2NodeClass %s: it is likely that no instance of it would join: %s", class, text)
	case p.Certainty == userdata.Certain:
		return fmt.Sprintf("EC2NodeClass %s: %s", class, text)
	}
	return ""
}

package controller

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/joiner-sh/joiner/packing"
)

// explain writes a refusal as one sentence: "No place for the pod: TypeMismatch kubernetes.io/arch (812 offerings), …".
func explain(r packing.Refusal) string {
	var b strings.Builder
	b.WriteString("No place for the pod")
	for i, reason := range r.Reasons {
		sep := ", "
		if i == 0 {
			sep = ": "
		}
		b.WriteString(sep + string(reason.Code))
		if reason.Detail != "" {
			b.WriteString(" " + reason.Detail)
		}
		if reason.Count > 1 {
			fmt.Fprintf(&b, " (%d offerings)", reason.Count)
		}
	}
	// To mend what was just named is no advice.
	what, repeats := strings.CutPrefix(r.Hint, "mend NodePool ")
	if r.Hint != "" && !(repeats && strings.Contains(b.String(), what)) {
		b.WriteString(". " + r.Hint)
	}
	return b.String()
}

// refusalSummary counts refusals by their first reason: "TypeMismatch kubernetes.io/arch: 12 pods; …", most first.
func refusalSummary(refusals []packing.Refusal) string {
	counts := map[string]int{}
	for _, r := range refusals {
		text := "no reason"
		if len(r.Reasons) > 0 {
			text = strings.TrimSpace(string(r.Reasons[0].Code) + " " + r.Reasons[0].Detail)
		}
		counts[text]++
	}
	texts := slices.Sorted(maps.Keys(counts))
	slices.SortStableFunc(texts, func(a, b string) int { return cmp.Compare(counts[b], counts[a]) })
	const shown = 5
	if len(texts) > shown {
		texts = texts[:shown]
	}
	for i, text := range texts {
		texts[i] = text + ": " + count(counts[text], "pod")
	}
	return strings.Join(texts, "; ")
}

// count writes "1 pod", "2 pods".
func count(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return strconv.Itoa(n) + " " + noun
}

func uid(text string) types.UID { return types.UID(text) }

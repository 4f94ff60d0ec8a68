package manifest

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestLongLists reads the output of kubectl for a large cluster: a List of many items. The time must grow linearly:
// quadratic growth would take many minutes here.
func TestLongLists(t *testing.T) {
	t.Parallel()
	const count = 50_000
	var json, yaml strings.Builder
	json.WriteString("{\n  \"apiVersion\": \"v1\",\n  \"items\": [\n")
	yaml.WriteString("apiVersion: v1\nitems:\n")
	for i := range count {
		fmt.Fprintf(&json, "    {\"apiVersion\": \"v1\", \"kind\": \"Event\", \"metadata\": {\"name\": \"event-%d\"}},\n", i)
		fmt.Fprintf(&yaml, "- apiVersion: v1\n  kind: Event\n  metadata: {name: event-%d}\n", i)
	}
	json.WriteString("    {\"apiVersion\": \"v1\", \"kind\": \"Pod\", \"metadata\": {}}\n  ],\n  \"kind\": \"List\"\n}\n")
	yaml.WriteString("- apiVersion: v1\n  kind: Pod\n  metadata: {}\nkind: List\n")
	for name, c := range map[string]struct {
		text string
		line int // of the last item, after the header and count items of 1 line (JSON) or 3 lines (YAML)
	}{"JSON": {json.String(), count + 4}, "YAML": {yaml.String(), 3*count + 3}} {
		start := time.Now()
		m, err := read([]byte(c.text))
		want := fmt.Sprintf("<stdin>:%d: Pod has no metadata.name", c.line)
		if err == nil || err.Error() != want || m.Skipped["Event"] != count {
			t.Errorf("%s: %v, %d events skipped; want %s and %d", name, err, m.Skipped["Event"], want, count)
		}
		if took := time.Since(start); took > time.Minute {
			t.Errorf("%s: reading %d items took %s, want at most a minute", name, count, took)
		}
	}
}

// TestListsWithinLists: lists that are nested up to ten deep are read like one list. A small file with thousands of
// levels, which would take minutes and gigabytes, is rejected.
func TestListsWithinLists(t *testing.T) {
	t.Parallel()
	nested := func(lists int) string {
		pod := `{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}, "spec": {"containers": [{"name": "web", "image": "web"}]}}`
		return strings.Repeat(`{"apiVersion": "v1", "kind": "List", "items": [`, lists) + pod + strings.Repeat("]}", lists)
	}
	if m, err := read([]byte(nested(maxListDepth))); err != nil || len(m.Pods) != 1 {
		t.Errorf("%d lists: %v, %d pods; want 1 pod", maxListDepth, err, len(m.Pods))
	}
	for _, lists := range []int{maxListDepth + 1, 3_000} {
		if _, err := read([]byte(nested(lists))); err == nil ||
			err.Error() != "<stdin>:1: lists are nested more than 10 deep; give the objects themselves" {
			t.Errorf("%d lists: the error is %v, want that lists are nested more than 10 deep", lists, err)
		}
	}
}

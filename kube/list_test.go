package kube

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestLongLists reads what kubectl writes of a large cluster: a List of many items. The time must grow with their number, not with its
// square, which would take many minutes here.
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
		line int // of the last item
	}{"JSON": {json.String(), count + 4}, "YAML": {yaml.String(), 3*count + 3}} {
		start := time.Now()
		m, err := read([]byte(c.text))
		want := fmt.Sprintf("<stdin>:%d: Pod has no metadata.name", c.line)
		if err == nil || err.Error() != want || m.Skipped["Event"] != count {
			t.Errorf("%s: %v, %d left out, want %s and %d", name, err, m.Skipped["Event"], want, count)
		}
		if took := time.Since(start); took > time.Minute {
			t.Errorf("%s: %s for %d items", name, took, count)
		}
	}
}

package permissions

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

const rulesFile = "../../deploy/charts/joiner/templates/_rights.tpl"

// TestChart compares the roles of the chart with the rules.
func TestChart(t *testing.T) {
	var want bytes.Buffer
	want.WriteString("{{/* Written by go test ./internal/permissions -run TestChart -rewrite: change package permissions, not this file. */}}\n")
	for _, where := range []RuleScope{Cluster, Own, System} {
		fmt.Fprintf(&want, "{{- define \"joiner.rights.%s\" }}\n", where)
		for _, r := range RulesIn(where) {
			want.WriteString(r.template())
		}
		want.WriteString("{{- end }}\n")
	}
	if *rewrite {
		if err := os.WriteFile(rulesFile, want.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if got, err := os.ReadFile(rulesFile); err != nil || !bytes.Equal(got, want.Bytes()) {
		t.Errorf("%s differs from the lists in package permissions (%v): go test ./internal/permissions -run TestChart -rewrite", rulesFile, err)
	}
}

func (r Rule) template() string {
	var b strings.Builder
	if r.When != "" {
		fmt.Fprintf(&b, "{{- if .Values.%s }}\n", r.When)
	}
	group := r.Group
	if group == "" {
		group = `""`
	}
	fmt.Fprintf(&b, "# %s\n- apiGroups: [%s]\n  resources: [%s]\n", r.Why, group, strings.Join(r.Resources, ", "))
	if len(r.Names) > 0 {
		fmt.Fprintf(&b, "  resourceNames: [%s]\n", strings.Join(r.Names, ", "))
	}
	fmt.Fprintf(&b, "  verbs: [%s]\n", strings.Join(r.Verbs, ", "))
	if r.When != "" {
		b.WriteString("{{- end }}\n")
	}
	return b.String()
}

// TestRulesAreNarrow: no rule has wildcards, none is a duplicate, and each has a reason.
func TestRulesAreNarrow(t *testing.T) {
	t.Parallel()
	granted := map[string]bool{}
	for _, r := range Rules() {
		if r.Why == "" || len(r.Resources) == 0 || len(r.Verbs) == 0 {
			t.Errorf("%+v: want resources, verbs and a reason", r)
		}
		for _, resource := range r.Resources {
			for _, verb := range r.Verbs {
				permission := fmt.Sprint(r.where(), r.Group, resource, verb, r.Names)
				if granted[permission] {
					t.Errorf("%s is granted by two rules", permission)
				}
				granted[permission] = true
			}
		}
		if all := slices.Concat([]string{r.Group}, r.Resources, r.Verbs); slices.Contains(all, "*") || slices.Contains(r.Resources, "secrets") {
			t.Errorf("%+v: want no wildcards and no secrets", r)
		}
		// CRDs are the exception: server-side apply creates them with a request that names the object.
		if slices.Contains(r.Verbs, "create") && len(r.Names) > 0 && r.Resources[0] != "customresourcedefinitions" {
			t.Errorf("%+v: resourceNames cannot restrict create, because the API server authorizes it before it knows the object's name", r)
		}
	}
}

// TestAllows: the rules allow requests that the controller makes, and no similar ones.
func TestAllows(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		request Request // verb, group, resource, name and scope
		want    bool
	}{
		"pods of all namespaces":   {Request{"list", "", "pods", "", Cluster}, true},
		"pods of one namespace":    {Request{"list", "", "pods", "", Own}, true},
		"reading one pod":          {Request{"get", "", "pods", "web", Cluster}, false},
		"an eviction":              {Request{"create", "", "pods/eviction", "web", Cluster}, true},
		"creating a pod":           {Request{"create", "", "pods", "web", Cluster}, false},
		"secrets":                  {Request{"list", "", "secrets", "", System}, false},
		"the lease":                {Request{"update", "coordination.k8s.io", "leases", LeaseName, Own}, true},
		"another lease":            {Request{"update", "coordination.k8s.io", "leases", "kube-scheduler", Own}, false},
		"leases of all namespaces": {Request{"update", "coordination.k8s.io", "leases", LeaseName, Cluster}, false},
		"kube-dns":                 {Request{"get", "", "services", "kube-dns", System}, true},
		"another service":          {Request{"get", "", "services", "metrics", System}, false},
		"a CRD of ours": {Request{"patch", "apiextensions.k8s.io", "customresourcedefinitions",
			"nodepools.karpenter.sh", Cluster}, true},
		"a CRD of others": {Request{"patch", "apiextensions.k8s.io", "customresourcedefinitions",
			"certificates.cert-manager.io", Cluster}, false},
	} {
		if got := slices.ContainsFunc(Rules(), func(r Rule) bool { return r.Allows(c.request) }); got != c.want {
			t.Errorf("%s: %+v is allowed: %t, want %t", name, c.request, got, c.want)
		}
	}
}

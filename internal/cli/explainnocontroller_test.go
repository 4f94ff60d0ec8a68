package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/joiner-sh/joiner/internal/cli/output"
)

// apiKinds are the kinds that the API server of these tests serves, by group and version.
var apiKinds = map[string]map[string]string{
	"v1": {"nodes": "Node", "pods": "Pod", "namespaces": "Namespace", "services": "Service", "configmaps": "ConfigMap",
		"serviceaccounts":   "ServiceAccount",
		"persistentvolumes": "PersistentVolume", "persistentvolumeclaims": "PersistentVolumeClaim",
		"replicationcontrollers": "ReplicationController"},
	"apps/v1": {"deployments": "Deployment", "daemonsets": "DaemonSet", "replicasets": "ReplicaSet",
		"statefulsets": "StatefulSet"},
	"policy/v1":                    {"poddisruptionbudgets": "PodDisruptionBudget"},
	"storage.k8s.io/v1":            {"storageclasses": "StorageClass", "csinodes": "CSINode", "volumeattachments": "VolumeAttachment"},
	"scheduling.k8s.io/v1":         {"priorityclasses": "PriorityClass"},
	"coordination.k8s.io/v1":       {"leases": "Lease"},
	"rbac.authorization.k8s.io/v1": {"clusterroles": "ClusterRole", "clusterrolebindings": "ClusterRoleBinding"},
	"karpenter.sh/v1":              {"nodepools": "NodePool", "nodeclaims": "NodeClaim"},
	"karpenter.sh/v1alpha1":        {"nodeoverlays": "NodeOverlay"},
	"karpenter.k8s.aws/v1":         {"ec2nodeclasses": "EC2NodeClass"},
}

// listServer starts an API server with these objects, as JSON by resource, and returns the path of a kubeconfig for it.
// Listing the denied resource is forbidden.
func listServer(t *testing.T, items map[string]string, denied string) string {
	t.Helper()
	bodies := map[string]any{"/api": map[string]any{"kind": "APIVersions", "versions": []string{"v1"}}}
	groups := []map[string]any{}
	for version, kinds := range apiKinds {
		resources, root := []map[string]any{}, "/apis/"+version
		if version == "v1" {
			root = "/api/v1"
		} else {
			group, _, _ := strings.Cut(version, "/")
			groupVersion := map[string]string{"groupVersion": version, "version": strings.TrimPrefix(version, group+"/")}
			groups = append(groups, map[string]any{"name": group, "versions": []any{groupVersion}, "preferredVersion": groupVersion})
		}
		for name, kind := range kinds {
			resources = append(resources,
				map[string]any{"name": name, "kind": kind,
					"namespaced": name == "leases" || name == "pods" || name == "deployments" || name == "serviceaccounts", "verbs": []string{"list"}})
			list := json.RawMessage("[" + items[name] + "]")
			bodies[root+"/"+name] = map[string]any{"kind": kind + "List", "apiVersion": version, "metadata": map[string]any{}, "items": list}
		}
		bodies[root] = map[string]any{"kind": "APIResourceList", "groupVersion": version, "resources": resources}
	}
	bodies["/apis"] = map[string]any{"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		body, ok := bodies[withoutNamespace(r.URL.Path)]
		if !ok && strings.Contains(r.URL.Path, "/serviceaccounts/") { // a request for one object
			w.WriteHeader(http.StatusNotFound)
			_ = json.NewEncoder(w).Encode(map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Failure",
				"reason": "NotFound", "code": 404, "message": "none"})
			return
		}
		if !ok || denied != "" && strings.HasSuffix(r.URL.Path, "/"+denied) {
			w.WriteHeader(http.StatusForbidden)
			body = map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Forbidden", "code": 403, "message": "no"}
		}
		_ = json.NewEncoder(w).Encode(body)
	}))
	t.Cleanup(api.Close)
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	text := fmt.Sprintf("{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c, user: u}}],\n"+
		"clusters: [{name: c, cluster: {server: %q}}], users: [{name: u, user: {}}]}\n", api.URL)
	if err := os.WriteFile(kubeconfig, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return kubeconfig
}

// withoutNamespace converts the path of a list in one namespace into the path of the list in all namespaces. It returns
// other paths unchanged.
func withoutNamespace(path string) string {
	before, rest, ok := strings.Cut(path, "/namespaces/")
	_, resource, isList := strings.Cut(rest, "/")
	if !ok || !isList {
		return path
	}
	return before + "/" + resource
}

// TestNoControllerIsNoted: joiner explain node prints one note with the time since which no controller has been active.
// It prints no note if a controller is active, or if this is unknown.
func TestNoControllerIsNoted(t *testing.T) {
	t.Parallel()
	now := time.Now().UTC().Truncate(time.Second)
	stamp := func(t time.Time) string { return t.Format(time.RFC3339) }
	claim := `{"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "metadata": {"name": "web-1", "labels": {"karpenter.sh/nodepool": "web"}, "creationTimestamp": "` + stamp(now.Add(-2*time.Hour)) + `"},
		"spec": {"nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}}, "status": {"nodeName": "n1", "conditions": [{"type": "Initialized", "status": "True",
		"lastTransitionTime": "` + stamp(now.Add(-time.Hour)) + `"}]}}`
	lease := func(renewed time.Time) string {
		return `{"metadata": {"namespace": "kube-system", "name": "karpenter-leader-election"}, "spec": {"holderIdentity": "joiner-0", "leaseDurationSeconds": 15, "renewTime": "` +
			renewed.Format("2006-01-02T15:04:05.000000Z") + `"}}`
	}
	noElection := `{"metadata": {"namespace": "kube-system", "name": "joiner"}, "spec": {"selector": {"matchLabels": {"app": "joiner"}}, "template": {"spec": {"containers": [{"name": "controller",
		"env": [{"name": "DISABLE_LEADER_ELECTION", "value": "true"}]}]}}}}`
	ended := now.Add(-45 * time.Second) // the Lease was renewed a minute ago, for 15 seconds
	const row = "NODE  NODEPOOL  CAUSE      WHY\nn1    web       Undecided  no reason is known"
	note := "note: no controller has been active since " + ended.Format("2006-01-02 15:04:05Z") +
		" (its lease has ended): the causes may be outdated\n"
	for name, c := range map[string]struct {
		leases, deployments, denied string
		wantsNote                   bool
	}{
		"killed":                 {leases: lease(now.Add(-time.Minute)), wantsNote: true},
		"active":                 {leases: lease(now.Add(time.Hour))}, // renewed in the future, so valid in the whole test
		"no Lease":               {},
		"Leases are denied":      {leases: lease(now.Add(-time.Minute)), denied: "leases"},
		"Deployments are denied": {leases: lease(now.Add(-time.Minute)), denied: "deployments"},
		"no leader election":     {leases: lease(now.Add(-time.Minute)), deployments: noElection},
	} {
		for _, format := range []string{"wide", "json"} {
			t.Run(name+" "+format, func(t *testing.T) {
				t.Parallel()
				objects := map[string]string{"nodeclaims": claim, "leases": c.leases, "deployments": c.deployments}
				kubeconfig := listServer(t, objects, c.denied)
				var out, notes bytes.Buffer
				cmd := newExplainNode()
				cmd.SetOut(&out)
				cmd.SetErr(&notes)
				cmd.SetArgs([]string{"--all", "--kubeconfig", kubeconfig, "-o", format})
				if err := cmd.ExecuteContext(t.Context()); err != nil {
					t.Fatal(err)
				}
				wantOutput, wantNote := row+recheckNote+"\n", ""
				if c.wantsNote {
					wantOutput, wantNote = row+"\n", note
				}
				if notes.String() != wantNote {
					t.Errorf("standard error has %q, want %q", &notes, wantNote)
				}
				if format == "wide" {
					if out.String() != wantOutput {
						t.Errorf("output\n%s\nwant\n%s", &out, wantOutput)
					}
					return
				}
				var rows []output.NodeExplanation
				if err := json.Unmarshal(out.Bytes(), &rows); err != nil || len(rows) != 1 {
					t.Fatalf("%v, want one row: %s", err, &out)
				}
				if has := strings.Contains(out.String(), "noControllerSince"); has != c.wantsNote || has && !rows[0].NoControllerSince.Equal(ended) {
					t.Errorf("output %s, want noControllerSince: %v", &out, c.wantsNote)
				}
			})
		}
	}
}

package collector_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/joiner-sh/joiner/internal/diagnosis"
	"github.com/joiner-sh/joiner/internal/diagnosis/checks"
	"github.com/joiner-sh/joiner/internal/doctor/collector"
	"github.com/joiner-sh/joiner/internal/kube/evidence"
)

type object = map[string]any

// resources has, by kind, the API path and the resource name of the objects that apiServer serves.
var resources = map[string][2]string{
	"Namespace":          {"/api/v1", "namespaces"},
	"Pod":                {"/api/v1", "pods"},
	"Node":               {"/api/v1", "nodes"},
	"Event":              {"/api/v1", "events"},
	"ConfigMap":          {"/api/v1", "configmaps"},
	"ServiceAccount":     {"/api/v1", "serviceaccounts"},
	"Deployment":         {"/apis/apps/v1", "deployments"},
	"DaemonSet":          {"/apis/apps/v1", "daemonsets"},
	"ReplicaSet":         {"/apis/apps/v1", "replicasets"},
	"Lease":              {"/apis/coordination.k8s.io/v1", "leases"},
	"ClusterRole":        {"/apis/rbac.authorization.k8s.io/v1", "clusterroles"},
	"ClusterRoleBinding": {"/apis/rbac.authorization.k8s.io/v1", "clusterrolebindings"},
	"NodePool":           {"/apis/karpenter.sh/v1", "nodepools"},
	"NodeClaim":          {"/apis/karpenter.sh/v1", "nodeclaims"},
	"EC2NodeClass":       {"/apis/karpenter.k8s.aws/v1", "ec2nodeclasses"},
	"EndpointSlice":      {"/apis/discovery.k8s.io/v1", "endpointslices"},
}

// apiServer answers get and list requests as the API server does, with field selectors and pages.
type apiServer struct {
	mu      sync.Mutex
	objects map[string][]object // by resource path
	lists   []string            // the URLs of all list requests
	largest int                 // the largest number of objects in the answer to a list request
}

func newAPIServer(t *testing.T, objects ...object) (*apiServer, *evidence.Reader) {
	t.Helper()
	s := &apiServer{objects: map[string][]object{}}
	for i, o := range objects {
		r, ok := resources[o["kind"].(string)]
		if !ok {
			t.Fatalf("no resource of kind %s", o["kind"])
		}
		if meta := o["metadata"].(object); meta["uid"] == nil {
			meta["uid"] = fmt.Sprintf("uid-%d", i)
		}
		s.objects[r[0]+"/"+r[1]] = append(s.objects[r[0]+"/"+r[1]], o)
	}
	api := httptest.NewServer(s)
	t.Cleanup(api.Close)
	w, err := evidence.NewReader(&rest.Config{Host: api.URL, QPS: 1000, Burst: 1000})
	if err != nil {
		t.Fatal(err)
	}
	return s, w
}

func (s *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	answer := s.answer(r)
	if answer == nil {
		w.WriteHeader(http.StatusNotFound)
		answer = object{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404, "message": "none"}
	}
	_ = json.NewEncoder(w).Encode(answer)
}

func (s *apiServer) answer(r *http.Request) object {
	path, namespace := r.URL.Path, ""
	if found := discovery(path); found != nil {
		return found
	}
	if before, rest, ok := strings.Cut(path, "/namespaces/"); ok && strings.Contains(rest, "/") {
		namespace, rest, _ = strings.Cut(rest, "/")
		path = before + "/" + rest
	}
	for kind, res := range resources {
		root := res[0] + "/" + res[1]
		if path == root {
			return s.list(r, kind, root, namespace)
		}
		if name, ok := strings.CutPrefix(path, root+"/"); ok {
			for _, o := range s.objects[root] {
				if meta := o["metadata"].(object); meta["name"] == name && (namespace == "" || meta["namespace"] == namespace) {
					return o
				}
			}
		}
	}
	return nil
}

func (s *apiServer) list(r *http.Request, kind, root, namespace string) object {
	s.lists = append(s.lists, r.URL.String())
	var found []object
	for _, o := range s.objects[root] {
		if (namespace == "" || o["metadata"].(object)["namespace"] == namespace) && matches(o, r.URL.Query().Get("fieldSelector")) {
			found = append(found, o)
		}
	}
	meta := object{"resourceVersion": "1"}
	from, _ := strconv.Atoi(r.URL.Query().Get("continue"))
	found = found[min(from, len(found)):]
	if limit, _ := strconv.Atoi(r.URL.Query().Get("limit")); limit > 0 && len(found) > limit {
		found, meta["continue"] = found[:limit], strconv.Itoa(from+limit)
	}
	s.largest = max(s.largest, len(found))
	return object{"kind": kind + "List",
		"apiVersion": strings.TrimPrefix(strings.TrimPrefix(resources[kind][0], "/apis/"), "/api/"), "metadata": meta,
		"items": append([]object{}, found...)}
}

func matches(o object, selector string) bool {
	for term := range strings.SplitSeq(selector, ",") {
		field, want, ok := strings.Cut(term, "=")
		if !ok {
			continue
		}
		var value any = o
		for part := range strings.SplitSeq(field, ".") {
			value = value.(object)[part]
		}
		if value != want {
			return false
		}
	}
	return true
}

// discovery answers discovery requests; nil for other paths.
func discovery(path string) object {
	switch path {
	case "/api":
		return object{"kind": "APIVersions", "versions": []string{"v1"}}
	case "/apis":
		seen, groups := map[string]bool{}, []object{}
		for _, r := range resources {
			if version, ok := strings.CutPrefix(r[0], "/apis/"); ok && !seen[version] {
				seen[version] = true
				name, v, _ := strings.Cut(version, "/")
				groupVersion := object{"groupVersion": version, "version": v}
				groups = append(groups, object{"name": name, "versions": []object{groupVersion}, "preferredVersion": groupVersion})
			}
		}
		return object{"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}
	}
	var out []object
	for kind, r := range resources {
		if r[0] == path {
			isClusterScoped := slices.Contains([]string{"Namespace", "Node", "ClusterRole", "ClusterRoleBinding", "NodePool", "NodeClaim",
				"EC2NodeClass"}, kind)
			out = append(out, object{"name": r[1], "kind": kind, "namespaced": !isClusterScoped, "verbs": []string{"list", "get"}})
		}
	}
	if out == nil {
		return nil
	}
	return object{"kind": "APIResourceList", "groupVersion": strings.TrimPrefix(strings.TrimPrefix(path, "/apis/"), "/api/"), "resources": out}
}

func documents(t *testing.T, name string) []object {
	t.Helper()
	text, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	var out []object
	for part := range strings.SplitSeq(string(text), "\n---\n") {
		var o object
		if err := yaml.Unmarshal([]byte(part), &o); err != nil {
			t.Fatal(err)
		}
		out = append(out, o)
	}
	return out
}

// baseCluster returns a cluster with a controller in kube-system, a NodePool, and a NodeClaim whose launch lacks
// capacity.
func baseCluster(t *testing.T) []object {
	t.Helper()
	return documents(t, "cluster.yaml")
}

func collect(t *testing.T, w *evidence.Reader) diagnosis.Evidence {
	t.Helper()
	return collector.Collect(t.Context(), collector.Clients{Kube: w, NoAWS: "no AWS in this test", Cluster: "prod", Region: "us-east-1"})
}

// TestTenantInputs: objects that a tenant can create in its own namespace make no finding certain, lead to no finding
// about IAM, and are not named in any fix.
func TestTenantInputs(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"denial-event.yaml", "event.yaml", "deploys.yaml", "forged-events.yaml"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, w := newAPIServer(t, append(baseCluster(t), documents(t, name)...)...)
			e := collect(t, w)
			for _, f := range diagnosis.Actionable(checks.Diagnose(e)) {
				text, err := json.Marshal(f)
				if err != nil {
					t.Fatal(err)
				}
				isUncertainAboutPod := f.Subject == "pod tenant/app" && f.Certainty != diagnosis.Certain
				if !isUncertainAboutPod || strings.Contains(string(text), "pwned") || strings.Contains(string(text), "iam") {
					t.Errorf("the tenant's objects lead to %s; want only uncertain findings about its pod", text)
				}
			}
			if c := e.Controller; !c.Known() || c.Value.Namespace != "kube-system" ||
				c.Value.Role != "arn:aws:iam::111122223333:role/own" || c.Value.Settings["CLUSTER_NAME"] != "lab" {
				t.Errorf("the controller is %+v, want that in kube-system", c)
			}
		})
	}
}

// TestFlood: thousands of events and pods of one tenant hide neither the controller's own events nor pods in other
// namespaces. Lists are read in pages, and truncation is reported.
func TestFlood(t *testing.T) {
	t.Parallel()
	all := baseCluster(t)
	for i := range 2500 {
		all = append(all, object{"apiVersion": "v1", "kind": "Event",
			"metadata": object{"name": fmt.Sprintf("e%d", i), "namespace": "a-tenant"}, "type": "Warning", "reason": "Failed",
			"involvedObject": object{"kind": "Pod", "namespace": "a-tenant", "name": fmt.Sprintf("j%d", i),
				"apiVersion": "v1"}, "message": strings.Repeat("x", 100)})
	}
	for i := range 700 {
		all = append(all, object{"apiVersion": "v1", "kind": "Pod",
			"metadata": object{"name": fmt.Sprintf("p%d", i), "namespace": "a-tenant",
				"creationTimestamp": "2026-05-01T10:00:00Z"}, "status": object{"phase": "Pending"}})
	}
	all = append(all, documents(t, "others.yaml")...)
	s, w := newAPIServer(t, all...)
	e := collect(t, w)
	if !slices.ContainsFunc(e.Events.Value,
		func(v diagnosis.Event) bool { return v.Kind == "NodeClaim" && v.By == "joiner" && v.UID == "uid-claim" }) {
		t.Errorf("the controller's event is hidden: %v", e.Events)
	}
	for _, want := range []string{"kube-system/aws-node-x", "shop/web"} {
		i := slices.IndexFunc(e.Pods.Value, func(p diagnosis.Pod) bool { return p.String() == want })
		if i < 0 || len(e.Pods.Value[i].Events) != 1 {
			t.Errorf("%s or its event is missing", want)
		}
	}
	cut := strings.Join(e.Truncated(), "\n")
	// 700 pods of the tenant, and 3 of cluster.yaml and others.yaml
	if !strings.Contains(cut, "300 of 703 pods that do not run are shown") ||
		!strings.Contains(cut, "only the first 1000 warnings about pods of namespace a-tenant were read") {
		t.Errorf("the reported truncations are %q, want those of pods and warnings", cut)
	}
	if s.largest > 500 {
		t.Errorf("a page of a list has %d objects, want at most 500", s.largest)
	}
	for _, url := range s.lists {
		if strings.Contains(url, "/events") && (!strings.Contains(url, "/namespaces/") || !strings.Contains(url, "involvedObject.kind")) {
			t.Errorf("events of all namespaces or kinds are read: %s", url)
		}
	}
}

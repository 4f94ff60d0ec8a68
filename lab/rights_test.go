package lab_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	awsv1 "github.com/joiner-sh/joiner/api/aws/v1"
	"github.com/joiner-sh/joiner/internal/permissions"
	"github.com/joiner-sh/joiner/lab"
)

// apiRequests counts the recorded requests of the controllers to the API servers of all labs.
var apiRequests struct {
	sync.Mutex
	all map[lab.APIRequest]int
}

// recordRequests records the requests of a service account to a lab's API server for countRightsProblems, and
// returns them.
func recordRequests(l *lab.Lab, namespace, account string) map[lab.APIRequest]int {
	requests, err := l.ServiceAccounts.Requests(namespace, account)
	if err != nil {
		fmt.Println(err)
	}
	apiRequests.Lock()
	defer apiRequests.Unlock()
	if apiRequests.all == nil {
		apiRequests.all = map[lab.APIRequest]int{}
	}
	for request, n := range requests {
		apiRequests.all[request] += n
	}
	return requests
}

// checkNoDenials fails the test if the API server denied a request of the account.
func checkNoDenials(t *testing.T, l *lab.Lab, namespace, account string) {
	t.Helper()
	found, err := l.ServiceAccounts.Requests(namespace, account)
	if err != nil || len(found) == 0 {
		t.Fatalf("no recorded requests of %s/%s: %v", namespace, account, err)
	}
	for request, n := range found {
		if request.Refused {
			t.Errorf("the API server denied the controller %d times: %s %s of group %q, name %q, namespace %q", n, request.Verb,
				request.Resource, request.Group, request.Name, request.Namespace)
		}
	}
}

// rareRights maps rights that the tests use only sometimes to the situation in which a test uses them. A right is "verb
// group/resource".
var rareRights = map[string]string{
	"patch events.k8s.io/events":  "an event that repeats for six minutes is written again as a series",
	"get karpenter.sh/nodeclaims": "the controller reads a claim from the API server where its cache may be behind",
	"update /configmaps":          "an instance type is measured after the ConfigMap was created for another type",
	"delete /pods":                "a node's grace period ends before its pods have left",
}

// unusedRights maps rights that no lab test uses to the reason why the controller has them. Keys are as in rareRights.
var unusedRights = map[string]string{
	"patch karpenter.sh/nodeoverlays/status":                "the lab has no NodeOverlay whose status the controller sets; the tests of package controller cover this",
	"list /services":                                        "the lab has no default spread constraints; the tests of package kube cover them",
	"watch /services":                                       "as for list /services",
	"list /replicationcontrollers":                          "as for list /services",
	"watch /replicationcontrollers":                         "as for list /services",
	"list apps/replicasets":                                 "as for list /services",
	"watch apps/replicasets":                                "as for list /services",
	"list apps/statefulsets":                                "as for list /services",
	"watch apps/statefulsets":                               "as for list /services",
	"create apiextensions.k8s.io/customresourcedefinitions": "server-side apply of a missing definition needs this right; the audit log records it as a patch",
}

// countRightsProblems compares the requests of controllers, in all tests together, with the rights in package
// permissions. It prints and counts unused rights, used rights that unusedRights lists, and denied requests that
// package permissions does not allow. The result is only meaningful when all tests have run.
func countRightsProblems() int {
	apiRequests.Lock()
	defer apiRequests.Unlock()
	used, problems := map[string]bool{}, 0
	for a := range apiRequests.all {
		if a.Refused && !a.Listed {
			fmt.Printf("the API server denied the controller %s %s of group %q in namespace %q: add the right to package permissions, or remove the request\n", a.Verb, a.Resource, a.Group, a.Namespace)
			problems++
		}
		used[a.Verb+" "+a.Group+"/"+a.Resource] = true
	}
	allowed := map[string]bool{}
	for _, r := range permissions.Rules() {
		for _, resource := range r.Resources {
			for _, verb := range r.Verbs {
				allowed[verb+" "+r.Group+"/"+resource] = true
			}
		}
	}
	for _, right := range slices.Sorted(maps.Keys(allowed)) {
		switch reason := unusedRights[right]; {
		case strings.HasPrefix(right, "list ") && used["watch "+strings.TrimPrefix(right, "list ")]:
			// This API server streams existing objects to watches. With older API servers, clients list first, so the
			// right is needed.
		case rareRights[right] != "": // used or not
		case !used[right] && reason == "":
			fmt.Printf("no test used the controller's right to %s: if all tests ran, remove it from package permissions, or add it to unusedRights with the reason\n", right)
			problems++
		case used[right] && reason != "":
			fmt.Printf("the controller used its right to %s, although unusedRights lists it: %s\n", right, reason)
			problems++
		}
	}
	fmt.Printf("the controller used %d rights of %d\n", len(used), len(allowed))
	return problems
}

// eventually is like within, for conditions without errors.
func eventually(t *testing.T, l *lab.Lab, limit time.Duration, what string, ok func() bool) {
	t.Helper()
	within(t, l, limit, what, func(context.Context) (bool, error) { return ok(), nil })
}

// deleteClass deletes an EC2NodeClass that no controller manages any more.
func (d definitions) deleteClass(name string) {
	d.t.Helper()
	object := &awsv1.EC2NodeClass{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if err := d.l.Client.Delete(d.t.Context(), object); err != nil {
		d.t.Fatal(err)
	}
}

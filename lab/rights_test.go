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

// asked has the recorded requests of controllers to the API servers of all labs.
var asked struct {
	sync.Mutex
	all map[lab.Asked]int
}

// noteAsked records the requests of a service account to a lab's API server.
func noteAsked(l *lab.Lab, namespace, account string) map[lab.Asked]int {
	found, err := l.ServiceAccounts.Asked(namespace, account)
	if err != nil {
		fmt.Println(err)
	}
	asked.Lock()
	defer asked.Unlock()
	if asked.all == nil {
		asked.all = map[lab.Asked]int{}
	}
	for a, n := range found {
		asked.all[a] += n
	}
	return found
}

// noRefusals fails the test if the API server denied a request of the account.
func noRefusals(t *testing.T, l *lab.Lab, namespace, account string) {
	t.Helper()
	found, err := l.ServiceAccounts.Asked(namespace, account)
	if err != nil || len(found) == 0 {
		t.Fatalf("no recorded requests of %s/%s: %v", namespace, account, err)
	}
	for a, n := range found {
		if a.Refused {
			t.Errorf("%d times the controller was denied: %s %s of group %q, name %q, namespace %q", n, a.Verb, a.Resource,
				a.Group, a.Name, a.Namespace)
		}
	}
}

// rareRights maps rights that tests use only sometimes to the situation. A key is "verb group/resource".
var rareRights = map[string]string{
	"patch events.k8s.io/events":  "an event that repeats for six minutes is written again as a series",
	"get karpenter.sh/nodeclaims": "the server is asked where the cache may be behind",
	"update /configmaps":          "a type is measured after the ConfigMap was made for another",
	"delete /pods":                "a node's grace period ends before its pods have left",
}

// unusedRights maps rights that no lab test uses to the reason why the controller has them.
var unusedRights = map[string]string{
	"patch karpenter.sh/nodeoverlays/status":                "no test in the lab has NodeOverlays that count; the rig of package controller has",
	"list /services":                                        "no test in the lab has default spreads; those of package kube have",
	"watch /services":                                       "the same",
	"list /replicationcontrollers":                          "the same",
	"watch /replicationcontrollers":                         "the same",
	"list apps/replicasets":                                 "the same",
	"watch apps/replicasets":                                "the same",
	"list apps/statefulsets":                                "the same",
	"watch apps/statefulsets":                               "the same",
	"create apiextensions.k8s.io/customresourcedefinitions": "to apply one that is not there takes this right; the audit log calls it a patch",
}

// rightsProblems compares the requests of controllers, in all tests together, with the rights in package permissions.
// It returns the number of rights that no test used, and of denied requests. The result is only meaningful when all
// tests have run.
func rightsProblems() int {
	asked.Lock()
	defer asked.Unlock()
	used, problems := map[string]bool{}, 0
	for a := range asked.all {
		if a.Refused && !a.Listed {
			fmt.Printf("the controller was refused %s %s of group %q in namespace %q: add it to package permissions, or do without\n", a.Verb, a.Resource, a.Group, a.Namespace)
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
			// This API server streams existing objects to watches; with older ones, clients list first.
		case rareRights[right] != "":
		case !used[right] && reason == "":
			fmt.Printf("the controller may %s, and no test made use of it: take it out of package permissions, or say why in unusedRights\n", right)
			problems++
		case used[right] && reason != "":
			fmt.Printf("the controller does %s, although unusedRights says that it does not: %s\n", right, reason)
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

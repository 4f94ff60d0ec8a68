package lab_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/joiner-sh/joiner/lab"
	"github.com/joiner-sh/joiner/lab/component"
)

// theLab is the lab that the tests share. The first call of sharedLab starts it. Each test has its own namespace,
// pools and classes.
var theLab struct {
	once sync.Once
	lab  *lab.Lab
	err  error
}

// TestMain runs the tests. The test binary also runs as the programs of its own control plane, and as the lab that
// TestKilledLabLeavesNothing kills.
func TestMain(m *testing.M) {
	if code, ok := component.Run(os.Args[1:]); ok {
		os.Exit(code)
	}
	klog.SetLogger(klog.Logger{})
	ctrl.SetLogger(klog.Logger{})
	if len(os.Args) == 2 && os.Args[1] == killedLabArg {
		os.Exit(runLabToKill())
	}
	flag.Parse()
	code := m.Run()
	_ = os.RemoveAll(joinerBuild.dir)
	if theLab.lab != nil {
		isWholeRun := flag.Lookup("test.run").Value.String() == "" && flag.Lookup("test.skip").Value.String() == "" && !testing.Short()
		recordRequests(theLab.lab, "kube-system", lab.ControllerAccount)
		recordPermissions(theLab.lab)
		if problems := countPermissionProblems(theLab.lab) + countRightsProblems(); isWholeRun && code == 0 && problems > 0 {
			code = 1
		}
		theLab.lab.Close()
	}
	os.Exit(code)
}

func sharedLab(t *testing.T) *lab.Lab {
	t.Helper()
	theLab.once.Do(func() {
		began := time.Now()
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
		defer cancel()
		theLab.lab, theLab.err = lab.Start(ctx, lab.Options{})
		if theLab.err == nil {
			fmt.Printf("the lab is up after %.1f s\n", time.Since(began).Seconds())
		}
	})
	if theLab.err != nil {
		t.Fatalf("start the lab: %v", theLab.err)
	}
	return theLab.lab
}

func newLab(t *testing.T, o lab.Options) *lab.Lab {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	l, err := lab.Start(ctx, o)
	if err != nil {
		t.Fatalf("start a lab: %v", err)
	}
	t.Cleanup(l.Close)
	t.Cleanup(func() {
		recordRequests(l, "kube-system", lab.ControllerAccount)
		recordPermissions(l)
	})
	t.Cleanup(func() { killController(l) })
	return l
}

// parallelLab starts a lab for one test, which then runs in parallel with others. It is for tests that mostly wait.
// Tests that keep the CPU busy run earlier, one after the other, and mostly in the shared lab.
func parallelLab(t *testing.T, o lab.Options) *lab.Lab {
	t.Helper()
	t.Parallel()
	return newLab(t, o)
}

// within waits until ok returns true and no error. If that takes longer than limit, the test fails with a message that
// has what, the last error of ok and the lab's evidence.
func within(t *testing.T, l *lab.Lab, limit time.Duration, what string, ok func(context.Context) (bool, error)) {
	t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, limit, true, func(ctx context.Context) (bool, error) {
		select {
		case err := <-l.Failed():
			return false, err
		default:
		}
		done, err := ok(ctx)
		if ctx.Err() == nil || last == nil { // an error caused by the deadline is not informative
			last = err
		}
		return done && err == nil, nil
	})
	if err != nil {
		t.Fatalf("waited %s for %s: %v (last error: %v)\n%s", limit, what, err, last, l.Evidence(context.Background()))
	}
}

// nameOf returns the name of a test as a name for its Kubernetes objects.
func nameOf(t *testing.T) string {
	return strings.ToLower(strings.NewReplacer("/", "-", "_", "-").Replace(strings.TrimPrefix(t.Name(), "Test")))
}

// unusedPermissions has the permissions of the controller that no lab test uses, with the reason.
var unusedPermissions = map[string]string{
	"ec2:DescribePlacementGroups":        "no EC2NodeClass of these tests selects a placement group; the tests of package controller cover this",
	"arc-zonal-shift:GetManagedResource": "no controller of these tests follows zonal shifts; the tests of package controller cover this",
}

// usedPermissions counts, by action, the uses of permissions by the controllers of all labs.
var usedPermissions struct {
	sync.Mutex
	all map[string]int
}

func recordPermissions(l *lab.Lab) {
	usedPermissions.Lock()
	defer usedPermissions.Unlock()
	if usedPermissions.all == nil {
		usedPermissions.all = map[string]int{}
	}
	for action, n := range l.Emulator.Permissions(l.Role) {
		usedPermissions.all[action] += n
	}
}

// countPermissionProblems compares the calls that IAM allowed the controllers of all tests with their policies. It
// prints and counts the permissions that no test used, and those that were used although unusedPermissions lists
// them. The result is only meaningful when all tests have run. Calls that the policies do not allow need no check here:
// the emulated IAM denies them, and the denial fails a test.
func countPermissionProblems(l *lab.Lab) int {
	allowed, err := l.Roles.AllowedActions()
	if err != nil {
		fmt.Println(err)
		return 1
	}
	problems := 0
	usedPermissions.Lock()
	defer usedPermissions.Unlock()
	for _, action := range allowed {
		switch reason := unusedPermissions[action]; {
		case usedPermissions.all[action] == 0 && reason == "":
			fmt.Printf("no test used the permission %s of the controller: if all tests ran, remove it from package permissions, or add it to unusedPermissions with the reason\n", action)
			problems++
		case usedPermissions.all[action] > 0 && reason != "":
			fmt.Printf("%s is used, although unusedPermissions lists it: %s\n", action, reason)
			problems++
		}
	}
	fmt.Printf("the controller used %d permissions of %d\n", len(usedPermissions.all), len(allowed))
	return problems
}

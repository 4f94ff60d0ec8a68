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

// theLab is the lab that the tests share. The first test that needs it starts it. Each test has its own namespace,
// pools and classes.
var theLab struct {
	once sync.Once
	lab  *lab.Lab
	err  error
}

// TestMain lets the test binary also run as the programs of its own control plane, and as the lab that a test kills.
func TestMain(m *testing.M) {
	if code, ok := component.Run(os.Args[1:]); ok {
		os.Exit(code)
	}
	klog.SetLogger(klog.Logger{})
	ctrl.SetLogger(klog.Logger{})
	if len(os.Args) == 2 && os.Args[1] == sacrifice {
		os.Exit(beSacrificed())
	}
	flag.Parse()
	code := m.Run()
	_ = os.RemoveAll(built.dir)
	if theLab.lab != nil {
		isWhole := flag.Lookup("test.run").Value.String() == "" && flag.Lookup("test.skip").Value.String() == "" && !testing.Short()
		noteAsked(theLab.lab, "kube-system", lab.ControllerAccount)
		noteUsed(theLab.lab)
		if problems := permissionProblems(theLab.lab) + rightsProblems(); isWhole && code == 0 && problems > 0 {
			code = 1
		}
		theLab.lab.Close()
	}
	os.Exit(code)
}

// shared returns the lab that the tests share.
func shared(t *testing.T) *lab.Lab {
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

// own starts a lab for one test.
func own(t *testing.T, o lab.Options) *lab.Lab {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	l, err := lab.Start(ctx, o)
	if err != nil {
		t.Fatalf("start a lab: %v", err)
	}
	t.Cleanup(l.Close)
	t.Cleanup(func() {
		noteAsked(l, "kube-system", lab.ControllerAccount)
		noteUsed(l)
	})
	t.Cleanup(func() { killController(l) })
	return l
}

// beside starts a lab for one test, which then runs in parallel with others. Tests that mostly wait use it. Tests that
// keep both cores busy run before them, one after the other, and mostly in the shared lab.
func beside(t *testing.T, o lab.Options) *lab.Lab {
	t.Helper()
	t.Parallel()
	return own(t, o)
}

// within waits until ok returns true. When it does not in time, the test fails with the condition that it waited for
// and with the lab's evidence.
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
		t.Fatalf("waited %s for %s: %v (last: %v)\n%s", limit, what, err, last, l.Evidence(context.Background()))
	}
}

// nameOf returns a name for objects of this test.
func nameOf(t *testing.T) string {
	return strings.ToLower(strings.NewReplacer("/", "-", "_", "-").Replace(strings.TrimPrefix(t.Name(), "Test")))
}

// unused maps permissions of the controller that no lab test uses to the reason why it has them.
var unused = map[string]string{
	"ec2:DescribePlacementGroups":        "no EC2NodeClass of these tests selects a placement group; the rig of package controller has such classes",
	"arc-zonal-shift:GetManagedResource": "no controller of these tests follows zonal shifts; the rig of package controller does",
}

// used counts the recorded uses of permissions by controllers in all labs.
var used struct {
	sync.Mutex
	all map[string]int
}

// noteUsed records the permissions that the controller of a lab used.
func noteUsed(l *lab.Lab) {
	used.Lock()
	defer used.Unlock()
	if used.all == nil {
		used.all = map[string]int{}
	}
	for action, n := range l.Emulator.Permissions(l.Role) {
		used.all[action] += n
	}
}

// permissionProblems compares the calls that IAM allowed the controller, in all tests together, with its policies. It
// returns how many permissions no test used. The number is only meaningful when all tests have run. The emulated IAM
// denies calls that the policies do not allow, and such a denial already fails a test.
func permissionProblems(l *lab.Lab) int {
	allowed, err := l.Roles.Allowed()
	if err != nil {
		fmt.Println(err)
		return 1
	}
	problems := 0
	used.Lock()
	defer used.Unlock()
	for _, action := range allowed {
		switch reason := unused[action]; {
		case used.all[action] == 0 && reason == "":
			fmt.Printf("the controller is allowed %s, and no test made use of it: after all tests, take it out of package permissions, or say why in unused\n", action)
			problems++
		case used.all[action] > 0 && reason != "":
			fmt.Printf("%s is used, although unused says that it is not: %s\n", action, reason)
			problems++
		}
	}
	fmt.Printf("the controller used %d permissions of %d\n", len(used.all), len(allowed))
	return problems
}

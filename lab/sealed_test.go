package lab_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/joiner-sh/joiner/lab"
)

// TestSandboxedControllers runs the controllers of the chart as the kubelet would, but without what a cluster may lack:
// cluster DNS, instance metadata, Pod Identity, a writable root file system, a known user id, and Linux capabilities.
// The controllers must start and launch a node, on which a pod runs.
//
// Then the test kills the active controller, twice, after EC2 has launched an instance and before the controller has
// the response. The other controller must continue within the duration of the Lease, and launch no instance twice.
func TestSandboxedControllers(t *testing.T) {
	helm := os.Getenv(helmVariable)
	if helm == "" {
		t.Skip(helmVariable + " is not set to a Helm binary: make bin/helm builds one")
	}
	l := parallelLab(t, lab.Options{Bare: true})
	if err := l.Pods.CheckSupport(); err != nil {
		t.Skipf("pods cannot be run as processes here: %v", err)
	}
	user := 1_000_000 + rand.IntN(1_000_000) // as on OpenShift: an id that no image knows
	in := &installation{t: t, l: l, crds: definitionsOf(t, l), helm: helm}
	t.Cleanup(func() { recordRequests(l, chartNamespace, "joiner") })
	in.launchSystemNodes()
	in.makeNamespace()
	in.run("install", "joiner", chartFolder(t), "-n", chartNamespace, "--wait", "--timeout", "90s", "--set", "settings.clusterName="+l.Cluster,
		"--set", fmt.Sprintf("podSecurityContext.runAsUser=%d,podSecurityContext.runAsGroup=%d,podSecurityContext.fsGroup=%d", user, user, user))
	s := &sandboxedInstallation{installation: in, launches: &launchHolder{aws: l.Emulator}, pods: map[string]*lab.Pod{}, all: map[string]*lab.Pod{}}
	s.template = in.podTemplate()
	s.start("joiner-a", "joiner-b") // at the same time, so that both find the definitions missing
	s.checkCallsAreRecorded()
	name := newTestNamespace(t, l)
	apply(t, l, onePerNode(l, name, 1)...)
	awaitRunning(t, l, name, 1, time.Minute)
	for _, p := range s.pods {
		s.checkRestrictions(p)
	}

	for i, next := range []string{"joiner-c", "joiner-d"} {
		s.killDuringLaunch(name, i+2)
		s.start(next)
	}
	checkOneEach(t, l, name, 3)
	for _, p := range s.all {
		if calls := s.blockedCalls(p); len(calls) > 0 {
			t.Errorf("pod %s called blocked addresses: %v", p.Name, calls)
		}
	}
	checkNoDenials(t, l, chartNamespace, "joiner")
}

type sandboxedInstallation struct {
	*installation
	template corev1.PodTemplateSpec
	launches *launchHolder
	pods     map[string]*lab.Pod // running pods by name
	all      map[string]*lab.Pod // all pods that were ever started
}

// podTemplate returns the template of the chart's pods as the API server stores it, with all defaults.
func (in *installation) podTemplate() corev1.PodTemplateSpec {
	in.t.Helper()
	var d appsv1.Deployment
	if err := in.l.Client.Get(in.t.Context(), client.ObjectKey{Namespace: chartNamespace, Name: "joiner"}, &d); err != nil {
		in.t.Fatal(err)
	}
	template := d.Spec.Template
	template.Namespace = chartNamespace
	return template
}

// runPod starts a pod without waiting for it.
func (s *sandboxedInstallation) runPod(name, role string, env ...string) *lab.Pod {
	s.t.Helper()
	user := s.template.Spec.SecurityContext.RunAsUser
	p, err := s.l.Pods.Run(s.t.Context(), lab.PodRun{
		Pod: s.template, Name: name, User: int(*user), Path: s.crds.path, Role: role, Env: env, AWS: s.launches,
	})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(p.Kill)
	return p
}

// start starts pods of the Deployment and waits until their probes succeed.
func (s *sandboxedInstallation) start(names ...string) {
	s.t.Helper()
	for _, name := range names {
		p := s.runPod(name, lab.ControllerRole)
		s.pods[name], s.all[name] = p, p
	}
	for _, name := range names {
		if err := s.pods[name].WaitReady(s.t.Context()); err != nil {
			s.t.Fatalf("%v\nthe pod called %q, which the sandbox blocks", err, s.blockedCalls(s.pods[name]))
		}
	}
}

// blockedCalls returns the recorded calls of a pod, each with a line break.
func (s *sandboxedInstallation) blockedCalls(p *lab.Pod) []string {
	s.t.Helper()
	calls, err := p.BlockedCalls()
	if err != nil {
		s.t.Fatal(err)
	}
	return calls
}

// checkCallsAreRecorded checks that the sandbox records a DNS lookup and a call of instance metadata. Otherwise an
// empty list of blocked calls would prove nothing.
func (s *sandboxedInstallation) checkCallsAreRecorded() {
	s.t.Helper()
	for call, p := range map[string]*lab.Pod{
		"tcp 169.254.169.254:80":     s.runPod("joiner-regionless", ""),
		"udp 53 aws.example.invalid": s.runPod("joiner-by-name", lab.ControllerRole, "AWS_ENDPOINT_URL=http://aws.example.invalid."),
	} {
		within(s.t, s.l, 30*time.Second, "the call "+call+" to be recorded", func(context.Context) (bool, error) {
			calls, err := p.BlockedCalls()
			if err == nil && !slices.Contains(calls, call+"\n") {
				err = fmt.Errorf("recorded calls %q; the log ends with\n%s", calls, p.Tail(5))
			}
			return err == nil, err
		})
		p.Kill()
	}
}

// checkRestrictions checks in /proc that a pod's process has the user and the restrictions of the pod's spec.
func (s *sandboxedInstallation) checkRestrictions(p *lab.Pod) {
	s.t.Helper()
	fields, mounts, err := p.Status()
	if err != nil {
		s.t.Fatal(err)
	}
	user := int(*s.template.Spec.SecurityContext.RunAsUser)
	if id := os.Geteuid(); id != 0 {
		user = id // a user namespace maps this id to the pod's; /proc has the id outside the sandbox
	}
	ids := strings.TrimSuffix(strings.Repeat(fmt.Sprintf("%d\t", user), 4), "\t")
	for field, want := range map[string]string{
		"Uid": ids, "Gid": ids, "Groups": "", "CapEff": "0000000000000000", "CapPrm": "0000000000000000", "CapInh": "0000000000000000",
		"NoNewPrivs": "1",
	} {
		if field == "Gid" && os.Geteuid() != 0 || field == "Groups" && os.Geteuid() != 0 {
			continue // in a user namespace, /proc has the groups of this test
		}
		if fields[field] != want {
			s.t.Errorf("pod %s has %s %q, want %q", p.Name, field, fields[field], want)
		}
	}
	isReadOnly := false
	for line := range strings.Lines(mounts) {
		// a line of mountinfo: "id parent device root target options …"
		if f := strings.Fields(line); len(f) > 5 && f[4] == "/" {
			isReadOnly = slices.Contains(strings.Split(f[5], ","), "ro")
		}
	}
	if !isReadOnly || strings.Count(mounts, "\n") != 1 {
		s.t.Errorf("pod %s has these mounts, want only a read-only root file system:\n%s", p.Name, mounts)
	}
}

// killDuringLaunch scales the Deployment to want pods, each of which needs its own node. It kills the active controller
// once EC2 has launched an instance, and before the controller has the response. The other controller must take
// the Lease within its duration plus ten seconds, and continue with that instance.
func (s *sandboxedInstallation) killDuringLaunch(name string, want int) {
	s.t.Helper()
	leader, duration := s.lease()
	if s.pods[leader] == nil {
		s.t.Fatalf("pod %q holds the Lease, want one of %v", leader, slices.Collect(maps.Keys(s.pods)))
	}
	launched := s.launches.holdNext()
	scale(s.t, s.l, name, "one-per-node", want)
	select {
	case <-launched:
	case <-time.After(30 * time.Second):
		s.t.Fatalf("no instance was launched\n%s", s.l.Evidence(context.Background()))
	}
	if got := len(instancesOf(s.l, name)); got != want {
		s.t.Errorf("%d instances exist just before the controller is killed, want %d", got, want)
	}
	s.pods[leader].Kill()
	killed := time.Now()
	delete(s.pods, leader)
	within(s.t, s.l, duration+10*time.Second, "the other controller to take the lease", func(context.Context) (bool, error) {
		holder, _ := s.lease()
		return s.pods[holder] != nil, nil
	})
	s.t.Logf("%s was killed; the other controller took the Lease after %.1f s; the duration of the Lease is %s",
		leader, time.Since(killed).Seconds(), duration)
	awaitRunning(s.t, s.l, name, want, time.Minute)
	if got := len(instancesOf(s.l, name)); got != want {
		s.t.Errorf("%d instances were launched, want %d: one for each pod", got, want)
	}
}

// lease returns the name of the pod that holds the Lease, and the Lease's duration.
func (s *sandboxedInstallation) lease() (holder string, duration time.Duration) {
	s.t.Helper()
	var lease coordinationv1.Lease
	if err := s.l.Client.Get(s.t.Context(), client.ObjectKey{Namespace: chartNamespace, Name: "karpenter-leader-election"}, &lease); err != nil {
		s.t.Fatal(err)
	}
	holder, _, _ = strings.Cut(*lease.Spec.HolderIdentity, "_")
	return holder, time.Duration(*lease.Spec.LeaseDurationSeconds) * time.Second
}

// launchHolder forwards calls to AWS. After holdNext it forwards the next launch, but sends no response to it.
type launchHolder struct {
	aws  http.Handler
	next atomic.Pointer[chan struct{}] // closed when AWS has carried out the next launch; nil: the response is sent
}

// holdNext withholds the response to the next launch. It returns a channel that is closed when AWS has carried out the
// launch.
func (s *launchHolder) holdNext() <-chan struct{} {
	launched := make(chan struct{})
	s.next.Store(&launched)
	return launched
}

// ServeHTTP forwards a call.
func (s *launchHolder) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	body, err := io.ReadAll(q.Body)
	if err != nil {
		panic(http.ErrAbortHandler) // the connection broke during the request
	}
	q.Body = io.NopCloser(bytes.NewReader(body))
	if awsWrite(q, body) != "ec2:CreateFleet" {
		s.aws.ServeHTTP(w, q)
		return
	}
	launched := s.next.Swap(nil)
	if launched == nil {
		s.aws.ServeHTTP(w, q)
		return
	}
	s.aws.ServeHTTP(httptest.NewRecorder(), q)
	close(*launched)
	<-q.Context().Done() // ends when the controller is dead
	panic(http.ErrAbortHandler)
}

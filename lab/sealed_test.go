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

// TestSealed runs the controllers of the chart as the kubelet would, without things that a cluster may lack: cluster
// DNS, instance metadata, Pod Identity, a writable root file system, a known user id, any capability. They must start
// and launch a node, on which a pod runs.
//
// Then the test kills each of the two controllers after it has launched an instance and before it has the response. The
// other one must continue within the duration of the Lease, and launch no instance twice.
func TestSealed(t *testing.T) {
	helm := os.Getenv(helmVariable)
	if helm == "" {
		t.Skip(helmVariable + " is not set to a Helm binary: make bin/helm builds one")
	}
	l := beside(t, lab.Options{Bare: true})
	if err := l.Pods.Possible(); err != nil {
		t.Skipf("pods cannot be run as processes here: %v", err)
	}
	user := 1_000_000 + rand.IntN(1_000_000) // as on OpenShift: an id that no image knows
	in := &installation{t: t, l: l, d: definitionsOf(t, l), helm: helm}
	t.Cleanup(func() { noteAsked(l, chartHome, "joiner") })
	in.systemNodes()
	in.makeNamespace()
	in.run("install", "joiner", chartFolder(t), "-n", chartHome, "--wait", "--timeout", "90s", "--set", "settings.clusterName="+l.Cluster,
		"--set", fmt.Sprintf("podSecurityContext.runAsUser=%d,podSecurityContext.runAsGroup=%d,podSecurityContext.fsGroup=%d", user, user, user))
	s := &sealed{installation: in, silence: &silence{to: l.Emulator}, pods: map[string]*lab.Pod{}, all: map[string]*lab.Pod{}}
	s.template = in.podTemplate()
	s.start("joiner-a", "joiner-b") // at the same time, so that both find the definitions missing
	s.trapsWork()
	name := namespaced(t, l)
	apply(t, l, onePerNode(l, name, 1)...)
	allRun(t, l, name, 1, time.Minute)
	for _, p := range s.pods {
		s.hasNoRights(p)
	}

	for i, next := range []string{"joiner-c", "joiner-d"} {
		s.killedInFlight(name, i+2)
		s.start(next)
	}
	eachHasOne(t, l, name, 3)
	for _, p := range s.all {
		if strange := s.blockedCalls(p); len(strange) > 0 {
			t.Errorf("pod %s called blocked addresses: %v", p.Name, strange)
		}
	}
	noRefusals(t, l, chartHome, "joiner")
}

// sealed is an installation whose controllers run in sandboxes.
type sealed struct {
	*installation
	template corev1.PodTemplateSpec
	silence  *silence
	pods     map[string]*lab.Pod // running pods by name
	all      map[string]*lab.Pod // all pods that were started
}

// podTemplate returns the template of the chart's pods as the API server stores it, with all defaults.
func (in *installation) podTemplate() corev1.PodTemplateSpec {
	in.t.Helper()
	var d appsv1.Deployment
	if err := in.l.Client.Get(in.t.Context(), client.ObjectKey{Namespace: chartHome, Name: "joiner"}, &d); err != nil {
		in.t.Fatal(err)
	}
	template := d.Spec.Template
	template.Namespace = chartHome
	return template
}

// runPod starts a pod without waiting for it.
func (s *sealed) runPod(name, role string, env ...string) *lab.Pod {
	s.t.Helper()
	user := s.template.Spec.SecurityContext.RunAsUser
	p, err := s.l.Pods.Run(s.t.Context(), lab.PodRun{
		Pod: s.template, Name: name, User: int(*user), Path: s.d.path, Role: role, Env: env, AWS: s.silence,
	})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(p.Kill)
	return p
}

// start starts pods of the Deployment and waits until their probes succeed.
func (s *sealed) start(names ...string) {
	s.t.Helper()
	for _, name := range names {
		p := s.runPod(name, lab.ControllerRole)
		s.pods[name], s.all[name] = p, p
	}
	for _, name := range names {
		if err := s.pods[name].WaitReady(s.t.Context()); err != nil {
			s.t.Fatalf("%v\nit called %q, which the sandbox blocks", err, s.blockedCalls(s.pods[name]))
		}
	}
}

func (s *sealed) blockedCalls(p *lab.Pod) []string {
	s.t.Helper()
	strange, err := p.BlockedCalls()
	if err != nil {
		s.t.Fatal(err)
	}
	return strange
}

// trapsWork checks that a DNS lookup and a call of instance metadata are recorded. Otherwise an empty list would prove
// nothing.
func (s *sealed) trapsWork() {
	s.t.Helper()
	for what, p := range map[string]*lab.Pod{
		"tcp 169.254.169.254:80":     s.runPod("joiner-regionless", ""),
		"udp 53 aws.example.invalid": s.runPod("joiner-by-name", lab.ControllerRole, "AWS_ENDPOINT_URL=http://aws.example.invalid."),
	} {
		within(s.t, s.l, 30*time.Second, what+" to be called", func(context.Context) (bool, error) {
			strange, err := p.BlockedCalls()
			if err == nil && !slices.Contains(strange, what+"\n") {
				err = fmt.Errorf("recorded calls %q; the log ends with\n%s", strange, p.Tail(5))
			}
			return err == nil, err
		})
		p.Kill()
	}
}

// hasNoRights checks in /proc that a pod's process has the user and the restrictions of the pod's spec.
func (s *sealed) hasNoRights(p *lab.Pod) {
	s.t.Helper()
	fields, mounts, err := p.Status()
	if err != nil {
		s.t.Fatal(err)
	}
	user := int(*s.template.Spec.SecurityContext.RunAsUser)
	if outside := os.Geteuid(); outside != 0 {
		user = outside // the user id outside the sandbox
	}
	four := strings.TrimSuffix(strings.Repeat(fmt.Sprintf("%d\t", user), 4), "\t")
	for field, want := range map[string]string{
		"Uid": four, "Gid": four, "Groups": "", "CapEff": "0000000000000000", "CapPrm": "0000000000000000", "CapInh": "0000000000000000",
		"NoNewPrivs": "1",
	} {
		if field == "Gid" && os.Geteuid() != 0 || field == "Groups" && os.Geteuid() != 0 {
			continue
		}
		if fields[field] != want {
			s.t.Errorf("pod %s has %s %q, want %q", p.Name, field, fields[field], want)
		}
	}
	isReadOnly := false
	for line := range strings.Lines(mounts) {
		// "id parent device root where options …"
		if f := strings.Fields(line); len(f) > 5 && f[4] == "/" {
			isReadOnly = slices.Contains(strings.Split(f[5], ","), "ro")
		}
	}
	if !isReadOnly || strings.Count(mounts, "\n") != 1 {
		s.t.Errorf("the root file system of pod %s is not read-only:\n%s", p.Name, mounts)
	}
}

// killedInFlight kills the active controller after it has launched an instance and before it has the response. It
// checks that the other one takes over in time and continues with that instance. want is the number of pods then, each
// with a node.
func (s *sealed) killedInFlight(name string, want int) {
	s.t.Helper()
	leader, life := s.lease()
	if s.pods[leader] == nil {
		s.t.Fatalf("%q holds the lease, want one of %v", leader, slices.Collect(maps.Keys(s.pods)))
	}
	held := s.silence.next()
	scale(s.t, s.l, name, "one-per-node", want)
	select {
	case <-held:
	case <-time.After(30 * time.Second):
		s.t.Fatalf("no instance was launched\n%s", s.l.Evidence(context.Background()))
	}
	if now := len(instancesOf(s.l, name)); now != want {
		s.t.Errorf("%d instances when the controller was killed, want %d", now, want)
	}
	s.pods[leader].Kill()
	killed := time.Now()
	delete(s.pods, leader)
	within(s.t, s.l, life+10*time.Second, "the other controller to take the lease", func(context.Context) (bool, error) {
		holder, _ := s.lease()
		return s.pods[holder] != nil, nil
	})
	s.t.Logf("%s was killed; the other acts after %.1f s, the lease is for %s", leader, time.Since(killed).Seconds(), life)
	allRun(s.t, s.l, name, want, time.Minute)
	if now := len(instancesOf(s.l, name)); now != want {
		s.t.Errorf("%d instances were launched, want %d: one was launched twice", now, want)
	}
}

// lease returns the pod that holds the lease, and the lease's duration.
func (s *sealed) lease() (holder string, life time.Duration) {
	s.t.Helper()
	var lease coordinationv1.Lease
	if err := s.l.Client.Get(s.t.Context(), client.ObjectKey{Namespace: chartHome, Name: "karpenter-leader-election"}, &lease); err != nil {
		s.t.Fatal(err)
	}
	holder, _, _ = strings.Cut(*lease.Spec.HolderIdentity, "_")
	return holder, time.Duration(*lease.Spec.LeaseDurationSeconds) * time.Second
}

// silence forwards calls to AWS. On request it forwards the next launch but sends no response.
type silence struct {
	to   http.Handler
	held atomic.Pointer[chan struct{}]
}

// next withholds the response to the next launch, and returns a channel that is closed when the launch has been carried out.
func (s *silence) next() <-chan struct{} {
	held := make(chan struct{})
	s.held.Store(&held)
	return held
}

// ServeHTTP forwards a call.
func (s *silence) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	body, err := io.ReadAll(q.Body)
	if err != nil {
		panic(http.ErrAbortHandler) // the connection broke during the response
	}
	q.Body = io.NopCloser(bytes.NewReader(body))
	if awsWrite(q, body) != "ec2:CreateFleet" {
		s.to.ServeHTTP(w, q)
		return
	}
	held := s.held.Swap(nil)
	if held == nil {
		s.to.ServeHTTP(w, q)
		return
	}
	s.to.ServeHTTP(httptest.NewRecorder(), q)
	close(*held)
	<-q.Context().Done() // until the controller is dead
	panic(http.ErrAbortHandler)
}

package cli

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/kube/kubeclient"
	"github.com/joiner-sh/joiner/internal/kube/snapshot"
)

// pauseCluster returns a client of a cluster with these objects. The service accounts of the Deployments can write the
// status of NodeClaims, except for Deployments in the namespace tenant and Deployments named web.
func pauseCluster(t *testing.T, objects ...client.Object) client.Client {
	t.Helper()
	scheme, err := kubeclient.Scheme()
	if err != nil {
		t.Fatal(err)
	}
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "controller"},
		Rules: []rbacv1.PolicyRule{{APIGroups: []string{"karpenter.sh"}, Resources: []string{"nodeclaims/status"}, Verbs: []string{"patch"}}}}
	binding := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "controller"},
		RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: "controller"}}
	for _, o := range objects {
		if d, ok := o.(*appsv1.Deployment); ok && d.Namespace != "tenant" && d.Name != "web" { // tenants cannot write ClusterRoleBindings
			binding.Subjects = append(binding.Subjects, rbacv1.Subject{Kind: "ServiceAccount", Namespace: d.Namespace, Name: "default"})
		}
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(append(objects, role, binding)...).Build()
}

// deployment returns a Deployment whose label app.kubernetes.io/name is its own name.
func deployment(namespace, name string) *appsv1.Deployment {
	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name,
		Labels: map[string]string{"app.kubernetes.io/name": name}}}
}

func pausedPool(name, value string) *karpv1.NodePool {
	pool := &karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if value != "" {
		pool.Annotations = map[string]string{karpv1.AnnotationPaused: value}
	}
	return pool
}

func TestPauseAndResumeAll(t *testing.T) {
	t.Parallel()
	api := pauseCluster(t, deployment("autoscaling", "joiner"), deployment("karpenter", "karpenter"),
		pausedPool("web", "true"), pausedPool("batch", ""))
	pauseSwitch := kubeclient.PauseSwitch{Live: api, Namespace: "autoscaling"}
	var p pauseFlags
	for _, step := range []struct{ value, want, wantSwitch string }{
		{"true", "all NodePools, by ConfigMap autoscaling/joiner: paused, until joiner resume\n", "true"},
		{"2026-03-01T14:00:00Z", "all NodePools, by ConfigMap autoscaling/joiner: paused until 2026-03-01T14:00:00Z (before: until joiner resume)\n", "2026-03-01T14:00:00Z"},
		{"", "all NodePools, by ConfigMap autoscaling/joiner: resumed\nNodePool web has a pause of its own (joiner.sh/paused: \"true\"): joiner resume web\n", "false"},
		{"", "is not paused", "false"},
	} {
		var out bytes.Buffer
		if err := p.setAll(t.Context(), &out, api, step.value); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(out.String(), step.want) {
			t.Errorf("%q: printed %q, want %q", step.value, out.String(), step.want)
		}
		if got, err := pauseSwitch.Read(t.Context()); err != nil || got != step.wantSwitch {
			t.Errorf("%q: the ConfigMap has %q, want %q (%v)", step.value, got, step.wantSwitch, err)
		}
	}
}

func TestPauseFindsTheController(t *testing.T) {
	t.Parallel()
	otherNamespace := deployment("autoscaling", "joiner")
	otherNamespace.Spec.Template.Spec.Containers = []corev1.Container{{Name: "controller",
		Env: []corev1.EnvVar{{Name: "LEADER_ELECTION_NAMESPACE", Value: "leases"}}}}
	for name, c := range map[string]struct {
		namespace     string
		objects       []client.Object
		want, wantErr string
	}{
		"Joiner's Deployment":              {objects: []client.Object{deployment("a", "joiner"), deployment("b", "web")}, want: "a"},
		"set by LEADER_ELECTION_NAMESPACE": {objects: []client.Object{otherNamespace}, want: "leases"},
		"Karpenter's chart":                {objects: []client.Object{deployment("kube-system", "karpenter")}, want: "kube-system"},
		"two Deployments": {objects: []client.Object{deployment("a", "joiner"), deployment("b", "joiner")},
			wantErr: "namespaces a, b; choose one"},
		"tenant's Deployment too":    {objects: []client.Object{deployment("a", "joiner"), deployment("tenant", "joiner")}, want: "a"},
		"only a tenant's Deployment": {objects: []client.Object{deployment("tenant", "joiner")}, wantErr: "there is no Deployment of Joiner"},
		"no Deployment":              {wantErr: "there is no Deployment of Joiner"},
		"--namespace":                {namespace: "x", want: "x"},
	} {
		p := pauseFlags{namespace: c.namespace}
		got, err := p.findNamespace(t.Context(), pauseCluster(t, c.objects...))
		if got != c.want || (err == nil) != (c.wantErr == "") || err != nil && !strings.Contains(err.Error(), c.wantErr) {
			t.Errorf("%s: %q, %v; want %q, %q", name, got, err, c.want, c.wantErr)
		}
	}
}

func TestPauseOfPools(t *testing.T) {
	t.Parallel()
	api := pauseCluster(t, pausedPool("web", ""), pausedPool("batch", "true"))
	annotationOf := func(name string) (string, bool) {
		pool := &karpv1.NodePool{}
		if err := api.Get(t.Context(), client.ObjectKey{Name: name}, pool); err != nil {
			t.Fatal(err)
		}
		value, ok := pool.Annotations[karpv1.AnnotationPaused]
		return value, ok
	}
	var out bytes.Buffer
	if err := setPools(t.Context(), &out, api, []string{"web", "bacth"}, "true"); err == nil ||
		!strings.Contains(err.Error(), "there is no NodePool bacth (did you mean batch?)") {
		t.Errorf("a misspelt name: %v, want a hint at batch", err)
	}
	if _, ok := annotationOf("web"); ok {
		t.Error("web was paused although another name was misspelt")
	}
	if err := setPools(t.Context(), &out, api, []string{"web", "batch"}, "2026-03-01T14:00:00Z"); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"web", "batch"} {
		if got, _ := annotationOf(name); got != "2026-03-01T14:00:00Z" {
			t.Errorf("%s is paused with %q, want 2026-03-01T14:00:00Z", name, got)
		}
	}
	if err := setPools(t.Context(), &out, api, []string{"web"}, ""); err != nil {
		t.Fatal(err)
	}
	if got, ok := annotationOf("web"); ok {
		t.Errorf("web is still paused with %q", got)
	}
	if want := "NodePool web: paused until 2026-03-01T14:00:00Z\nNodePool batch: paused until 2026-03-01T14:00:00Z (before: until joiner resume)\nNodePool web: resumed\n"; out.String() != want {
		t.Errorf("printed %q, want %q", out.String(), want)
	}
}

// TestPauseWithoutReader: a pause in a namespace that no controller reads prints a note.
func TestPauseWithoutReader(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		namespace string
		objects   []client.Object
		want      string
	}{
		"right namespace": {namespace: "a", objects: []client.Object{deployment("a", "joiner")}},
		"wrong namespace": {namespace: "b", objects: []client.Object{deployment("a", "joiner")},
			want: "note: the controller reads ConfigMap a/joiner, not this one: use --namespace a, or leave it out\n"},
		"no controller": {namespace: "b", want: "note: there is no Deployment of Joiner: only a controller with LEADER_ELECTION_NAMESPACE=b reads this ConfigMap\n"},
		"no flag":       {objects: []client.Object{deployment("a", "joiner")}},
	} {
		for _, value := range []string{"true", ""} {
			var out bytes.Buffer
			p := pauseFlags{namespace: c.namespace}
			if err := p.setAll(t.Context(), &out, pauseCluster(t, c.objects...), value); err != nil {
				t.Fatal(err)
			}
			if _, note, _ := strings.Cut(out.String(), "\n"); note != c.want {
				t.Errorf("%s, value %q: note %q, want %q", name, value, note, c.want)
			}
		}
	}
}

// TestResumeWhileAllPaused: after the resume of one NodePool, a note says that all NodePools are still paused.
func TestResumeWhileAllPaused(t *testing.T) {
	t.Parallel()
	now := time.Now()
	for value, want := range map[string]string{
		"true":                                   "all NodePools are still paused, by ConfigMap a/joiner: joiner resume\n",
		now.Add(time.Hour).Format(time.RFC3339):  "all NodePools are still paused, by ConfigMap a/joiner: joiner resume\n",
		now.Add(-time.Hour).Format(time.RFC3339): "", // has ended
		"false":                                  "",
	} {
		api := pauseCluster(t, deployment("a", "joiner"))
		if err := (kubeclient.PauseSwitch{Live: api, Writer: api, Namespace: "a"}).Write(t.Context(), value); err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		if err := new(pauseFlags).noteAllPaused(t.Context(), &out, api); err != nil || out.String() != want {
			t.Errorf("%q: printed %q, %v; want %q", value, out.String(), err, want)
		}
	}
	var out bytes.Buffer
	if err := new(pauseFlags).noteAllPaused(t.Context(), &out, pauseCluster(t)); err != nil || out.Len() > 0 {
		t.Errorf("without a controller: printed %q, %v; want no output and no error", out.String(), err)
	}
}

// TestPauseReplacesPause: replacing another user's pause prints the previous value.
func TestPauseReplacesPause(t *testing.T) {
	t.Parallel()
	future, past := time.Now().Add(48*time.Hour).UTC().Format(time.RFC3339), time.Now().Add(-time.Hour).UTC().Format(time.RFC3339)
	for previous, want := range map[string]string{
		"":                     "",
		"false":                "",
		past:                   "",
		"true":                 " (before: until joiner resume)",
		future:                 " (before: until " + future + ")",
		"2999-01-01T00:00:00Z": "", // the pause does not change
	} {
		var out bytes.Buffer
		if err := setPools(t.Context(), &out, pauseCluster(t, pausedPool("web", previous)), []string{"web"}, "2999-01-01T00:00:00Z"); err != nil {
			t.Fatal(err)
		}
		if got := out.String(); got != "NodePool web: paused until 2999-01-01T00:00:00Z"+want+"\n" {
			t.Errorf("previous value %q: printed %q, want %q after the new time", previous, got, want)
		}
	}
	err := setPools(t.Context(), &bytes.Buffer{}, pauseCluster(t, pausedPool("web", "")), []string{""}, "true")
	if err == nil || err.Error() != `there is no NodePool ""` {
		t.Errorf("an empty name: error %v, want the name as \"\"", err)
	}
}

func TestPauseValue(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.FixedZone("", 3600))
	if got, err := new(pauseFlags).value(now); got != "true" || err != nil {
		t.Errorf("without --for: %q, %v; want true", got, err)
	}
	for length, want := range map[time.Duration]string{0: "", 2 * time.Hour: "2026-03-01T13:00:00Z", -time.Second: "", time.Nanosecond: ""} {
		p := pauseFlags{span: durationWithDays(length), hasEnd: true}
		if got, err := p.value(now); got != want || (err == nil) != (want != "") {
			t.Errorf("for %s: %q, %v; want %q (empty: an error)", length, got, err, want)
		}
	}
}

func TestBlockersArePrinted(t *testing.T) {
	t.Parallel()
	var b blockersFlags
	b.out = asTable
	var out bytes.Buffer
	err := b.print(&out, []snapshot.Blocker{
		{Kind: snapshot.NeverAllows, Budgets: []string{"a/b"}, Why: "maxUnavailable 0 never allows a disruption",
			Fix:       "set maxUnavailable to 1 or more",
			Workloads: []string{"Deployment a/web"}, Pods: []string{"a/1", "a/2", "a/3", "a/4", "a/5", "a/6", "a/7"}, Nodes: []string{"n"}},
		{Kind: snapshot.DoNotDisrupt, Why: "pods have the annotation karpenter.sh/do-not-disrupt", Pods: []string{"a/8"}, Nodes: []string{"m"}},
	})
	const want = `NeverAllows PodDisruptionBudget a/b: maxUnavailable 0 never allows a disruption
  owners Deployment a/web
  pods   7: a/1, a/2, a/3, a/4, a/5 and 2 more
  nodes  1: n
  fix    set maxUnavailable to 1 or more

AskedFor pods have the annotation karpenter.sh/do-not-disrupt
  pods   1: a/8
  nodes  1: m
`
	if out.String() != want {
		t.Errorf("printed\n%s\nwant\n%s", out.String(), want)
	}
	if found := (Findings{}); !errors.As(err, &found) || found.Count != 1 {
		t.Errorf("print returns %v, want one finding", err)
	}
	out.Reset()
	if err := b.print(&out, nil); err != nil || out.String() != "No pod or PodDisruptionBudget blocks the drain of a node.\n" {
		t.Errorf("no blockers: %q, %v; want a sentence", out.String(), err)
	}
}

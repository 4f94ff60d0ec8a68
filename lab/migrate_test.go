package lab_test

import (
	"context"
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	awsv1 "github.com/joiner-sh/joiner/api/aws/v1"
	karpenterv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/emulator/world"
	"github.com/joiner-sh/joiner/internal/migration"
	"github.com/joiner-sh/joiner/lab"
)

// TestMigration hands a cluster over from Karpenter to Joiner and back.
//
// Nodes that Karpenter has launched stay as they are, with their tags, labels and templates. New pods get nodes from
// Joiner. When a claim that Karpenter created is deleted, its instance is terminated. The objects that Joiner leaves
// behind are as Karpenter expects them.
func TestMigration(t *testing.T) {
	l := parallelLab(t, lab.Options{})
	joiner := program(t)
	name := newTestNamespace(t, l)
	karpenter := newEmulatedKarpenter(t, l, name)
	karpenter.launch(name+"-x7k2p", 0)
	karpenter.launch(name+"-m4c9z", 1)
	apply(t, l, deployment(name, "one-per-node", 2, "1200m", "1Gi", "test: "+name))
	awaitRunning(t, l, name, 2, time.Minute)
	before := poolStateOf(t, l, name)

	report := migrateCheck(t, l, joiner)
	wantFindings(t, report, name)
	for _, command := range report.Steps.Over[:2] { // the rest are Helm commands, see TestChart
		shellCommand(t, l, command)
	}
	c := restartController(t, l)
	scale(t, l, name, "one-per-node", 3)
	awaitRunning(t, l, name, 3, time.Minute)
	within(t, l, 90*time.Second, "the new claim's instance to have all its tags", func(ctx context.Context) (bool, error) {
		created, err := newClaims(ctx, l, name, before)
		return len(created) == 1 && created[0].Annotations[awsv1.AnnotationTagged] == "true", err
	})
	before.wantUnchanged(t, poolStateOf(t, l, name))

	deleted := deleteKarpenterClaim(t, l, name, before)
	c.Kill()
	delete(before.claims, deleted)
	checkUsableByKarpenter(t, l, karpenter, before)
	if after := migrateCheck(t, l, joiner); !after.Go {
		t.Errorf("after the switch back to Karpenter, a finding blocks a new migration: %+v", after.Findings[0])
	}
	shellCommand(t, l, report.Steps.Back[len(report.Steps.Back)-1])
	d, err := l.Kube.AppsV1().Deployments("kube-system").Get(t.Context(), "karpenter", metav1.GetOptions{})
	if err != nil || *d.Spec.Replicas != 2 {
		t.Errorf("want 2 replicas of Karpenter after the last command: %+v, error %v", d.Spec, err)
	}
}

// migrateCheck runs joiner migrate check, once to log its table and once for its JSON report, which it returns.
func migrateCheck(t *testing.T, l *lab.Lab, joiner string) migration.Report {
	t.Helper()
	printed, code, err := l.MigrateCheck(t.Context(), joiner)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("exit code %d\n%s", code, printed)
	data, _, err := l.MigrateCheck(t.Context(), joiner, "-o", "json")
	if err != nil {
		t.Fatal(err)
	}
	var report migration.Report
	if err := json.Unmarshal([]byte(data), &report); err != nil {
		t.Fatal(err)
	}
	if report.Go != (code == 0) {
		t.Errorf("exit code %d does not match the report's field go: %v", code, report.Go)
	}
	return report
}

// wantFindings checks that the report is complete, that no finding blocks the migration, and that both instances of
// Karpenter are adopted.
func wantFindings(t *testing.T, r migration.Report, name string) {
	t.Helper()
	for _, f := range r.Findings {
		// Only the checks definitions and dashboards may report a difference.
		if f.Weight == migration.Stops || f.Weight == migration.Unknown || f.Weight == migration.Differs &&
			f.Check != "definitions" && f.Check != "dashboards" {
			t.Errorf("unexpected finding: %+v", f)
		}
	}
	for _, want := range []string{"2 NodeClaims are taken over with their instances: nothing is replaced",
		"2 instances in EC2 are adopted", "nothing is drifted",
		"2 Nodes stay", "the role has all permissions", "all settings of Karpenter have an effect"} {
		if !slices.ContainsFunc(r.Findings, func(f migration.Finding) bool { return strings.Contains(f.Says, want) }) {
			t.Errorf("no finding about %s has %q: %+v", name, want, r.Findings)
		}
	}
}

func shellCommand(t *testing.T, l *lab.Lab, command string) {
	t.Helper()
	if _, err := exec.LookPath("kubectl"); err != nil {
		t.Skip("kubectl is not installed")
	}
	shell := exec.CommandContext(t.Context(), "bash", "-euc", command)
	shell.Env = append(os.Environ(), l.Environment()...)
	if out, err := shell.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", command, err, out)
	}
}

type poolState struct {
	claims    map[string]karpenterv1.NodeClaim // by name
	nodes     map[string]corev1.Node           // by name
	instances map[string]world.Instance        // by ID
	pods      map[string]string                // pod → node
}

// poolStateOf reads the state of the pool with the given name, and of the pods in the namespace with the same name.
func poolStateOf(t *testing.T, l *lab.Lab, name string) poolState {
	t.Helper()
	out := poolState{map[string]karpenterv1.NodeClaim{}, map[string]corev1.Node{}, map[string]world.Instance{}, map[string]string{}}
	var claims karpenterv1.NodeClaimList
	var nodes corev1.NodeList
	var pods corev1.PodList
	for _, list := range []client.ObjectList{&claims, &nodes} {
		if err := l.Client.List(t.Context(), list, client.MatchingLabels{karpenterv1.LabelNodePool: name}); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Client.List(t.Context(), &pods, client.InNamespace(name)); err != nil {
		t.Fatal(err)
	}
	for _, c := range claims.Items {
		out.claims[c.Name] = c
	}
	for _, n := range nodes.Items {
		out.nodes[n.Name] = n
	}
	for _, p := range pods.Items {
		out.pods[p.Name] = p.Spec.NodeName
	}
	for _, i := range instancesOf(l, name) {
		out.instances[i.ID] = i
	}
	return out
}

// wantUnchanged checks that the claims, nodes, instances and pods of s are unchanged in the later state. That may
// have further objects.
func (s poolState) wantUnchanged(t *testing.T, later poolState) {
	t.Helper()
	for name, was := range s.claims {
		is, ok := later.claims[name]
		if !ok || is.UID != was.UID || is.DeletionTimestamp != nil || !reflect.DeepEqual(is.Spec, was.Spec) ||
			!maps.Equal(is.Labels, was.Labels) ||
			!maps.Equal(withoutJoinerKeys(is.Annotations), withoutJoinerKeys(was.Annotations)) || !slices.Equal(is.Finalizers, was.Finalizers) ||
			is.StatusConditions().IsTrue(karpenterv1.ConditionDrifted) {
			t.Errorf("claim %s was %+v, is %+v, want no change", name, was, is)
		}
	}
	for name, was := range s.nodes {
		is, ok := later.nodes[name]
		if !ok || is.UID != was.UID || is.DeletionTimestamp != nil || !maps.Equal(is.Labels, was.Labels) ||
			!slices.Equal(is.Finalizers, was.Finalizers) || len(is.Spec.Taints) > 0 {
			t.Errorf("node %s was %+v %+v, is %+v %+v, want no change", name, was.ObjectMeta, was.Spec, is.ObjectMeta, is.Spec)
		}
	}
	for id, was := range s.instances {
		if is := later.instances[id]; is.State != world.Running || !maps.Equal(is.Tags, was.Tags) {
			t.Errorf("instance %s is %s with tags %v, want it running with the earlier tags %v", id, is.State, is.Tags, was.Tags)
		}
	}
	for name, was := range s.pods {
		if is := later.pods[name]; is != was {
			t.Errorf("pod %s was on %s, is on %q, want the same node", name, was, is)
		}
	}
}

// withoutJoinerKeys returns annotations without Joiner's own, which Karpenter does not read.
func withoutJoinerKeys(annotations map[string]string) map[string]string {
	out := maps.Clone(annotations)
	maps.DeleteFunc(out, func(key, _ string) bool { return strings.HasPrefix(key, "joiner.sh/") })
	return out
}

func newClaims(ctx context.Context, l *lab.Lab, name string, before poolState) ([]karpenterv1.NodeClaim, error) {
	var claims karpenterv1.NodeClaimList
	err := l.Client.List(ctx, &claims, client.MatchingLabels{karpenterv1.LabelNodePool: name})
	return slices.DeleteFunc(claims.Items, func(c karpenterv1.NodeClaim) bool { _, ok := before.claims[c.Name]; return ok }), err
}

// deleteKarpenterClaim deletes a claim that Karpenter created, and returns the claim's name. It waits until the claim
// and its instance are gone, all pods run, and the instances of the new claims are tagged.
func deleteKarpenterClaim(t *testing.T, l *lab.Lab, name string, before poolState) string {
	t.Helper()
	claim := before.claims[slices.Min(slices.Collect(maps.Keys(before.claims)))]
	if err := l.Client.Delete(t.Context(), &claim); err != nil {
		t.Fatal(err)
	}
	id := claim.Status.ProviderID[strings.LastIndexByte(claim.Status.ProviderID, '/')+1:]
	within(t, l, time.Minute, "the claim and its instance to be removed", func(ctx context.Context) (bool, error) {
		var left karpenterv1.NodeClaim
		err := l.Client.Get(ctx, client.ObjectKeyFromObject(&claim), &left)
		alive := slices.ContainsFunc(l.Instances(), func(i world.Instance) bool { return i.ID == id && i.Alive() })
		isDeleted := err != nil && client.IgnoreNotFound(err) == nil
		return isDeleted && !alive, client.IgnoreNotFound(err)
	})
	awaitRunning(t, l, name, 3, time.Minute)
	within(t, l, 90*time.Second, "the instances of both new claims to be tagged", func(ctx context.Context) (bool, error) {
		created, err := newClaims(ctx, l, name, before)
		return len(created) == 2 && !slices.ContainsFunc(created,
			func(c karpenterv1.NodeClaim) bool { return c.Annotations[awsv1.AnnotationTagged] != "true" }), err
	})
	return claim.Name
}

// checkUsableByKarpenter checks that Karpenter's claims keep their labels and annotations, that its pool and class keep
// their annotations, and that the new objects of Joiner have the fields that Karpenter reads.
func checkUsableByKarpenter(t *testing.T, l *lab.Lab, p *emulatedKarpenter, before poolState) {
	t.Helper()
	now := poolStateOf(t, l, p.name)
	for name, was := range before.claims {
		if is := now.claims[name]; !maps.Equal(withoutJoinerKeys(is.Annotations), withoutJoinerKeys(was.Annotations)) ||
			!maps.Equal(is.Labels, was.Labels) {
			t.Errorf("claim %s was %+v, is %+v, want no change", name, was.ObjectMeta, is.ObjectMeta)
		}
	}
	for _, object := range []client.Object{p.pool, p.class} {
		want := maps.Clone(object.GetAnnotations())
		if err := l.Client.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
			t.Fatal(err)
		}
		for key, value := range want {
			if got := object.GetAnnotations()[key]; got != value {
				t.Errorf("annotation %s of %T is %q, was %q", key, object, got, value)
			}
		}
	}
	for name, c := range now.claims {
		if _, old := before.claims[name]; !old && c.DeletionTimestamp == nil {
			checkFieldsOfKarpenter(t, p, c, now)
		}
	}
}

// checkFieldsOfKarpenter checks that a claim of Joiner, its Node and its instance have the labels, annotations,
// finalizers, owners, conditions and tags that Karpenter writes.
func checkFieldsOfKarpenter(t *testing.T, p *emulatedKarpenter, c karpenterv1.NodeClaim, now poolState) {
	t.Helper()
	for key, want := range map[string]string{
		karpenterv1.AnnotationNodePoolHash: p.poolHash, karpenterv1.AnnotationNodePoolHashVersion: poolHashVersion,
		awsv1.AnnotationHash: p.classHash, awsv1.AnnotationHashVersion: classHashVersion,
		awsv1.AnnotationTagged: "true", awsv1.AnnotationClusterNameTagged: "true",
	} {
		if c.Annotations[key] != want {
			t.Errorf("annotation %s of claim %s is %q, want %q", key, c.Name, c.Annotations[key], want)
		}
	}
	for _, key := range []string{karpenterv1.LabelNodePool, awsv1.LabelNodeClass, karpenterv1.LabelCapacityType,
		corev1.LabelInstanceTypeStable, corev1.LabelTopologyZone, corev1.LabelArchStable, corev1.LabelOSStable} {
		if c.Labels[key] == "" {
			t.Errorf("claim %s has no label %s", c.Name, key)
		}
	}
	isPool := func(o metav1.OwnerReference) bool { return o.Kind == "NodePool" && o.UID == p.pool.UID }
	if c.Annotations[awsv1.AnnotationInstanceProfile] == "" ||
		!slices.Contains(c.Finalizers, karpenterv1.FinalizerTermination) || !slices.ContainsFunc(c.OwnerReferences, isPool) {
		t.Errorf("claim %s: want the annotation of the instance profile, the finalizer and the pool as owner: %+v", c.Name, c.ObjectMeta)
	}
	if !c.StatusConditions().IsTrue(karpenterv1.ConditionLaunched, karpenterv1.ConditionRegistered, karpenterv1.ConditionInitialized) {
		t.Errorf("claim %s has the conditions %+v, want an initialized claim", c.Name, c.Status.Conditions)
	}
	node := now.nodes[c.Status.NodeName]
	isClaim := func(o metav1.OwnerReference) bool { return o.Kind == "NodeClaim" && o.UID == c.UID }
	if node.Spec.ProviderID != c.Status.ProviderID || node.Labels[karpenterv1.LabelRegistered] != "true" ||
		node.Labels[karpenterv1.LabelInitialized] != "true" ||
		node.Annotations[karpenterv1.AnnotationNodePoolHash] != p.poolHash ||
		!slices.Contains(node.Finalizers, karpenterv1.FinalizerTermination) || !slices.ContainsFunc(node.OwnerReferences, isClaim) {
		t.Errorf("node %s: want the provider ID, labels, pool hash, finalizer and owner of Karpenter's nodes: %+v %+v",
			node.Name, node.ObjectMeta, node.Spec)
	}
	want := p.tags()
	want["karpenter.sh/nodeclaim"], want["Name"] = c.Name, c.Status.NodeName
	instance := now.instances[c.Status.ProviderID[strings.LastIndexByte(c.Status.ProviderID, '/')+1:]]
	for key, value := range want {
		if instance.Tags[key] != value {
			t.Errorf("tag %s of instance %s is %q, want %q", key, instance.ID, instance.Tags[key], value)
		}
	}
}

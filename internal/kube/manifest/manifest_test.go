package manifest

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/joiner-sh/joiner/internal/kube/kubetest"
	"github.com/joiner-sh/joiner/internal/kube/snapshot"
	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/model/requirements"
)

func read(data []byte) (Manifests, error) {
	return ReadFiles([]string{"-"}, bytes.NewReader(data))
}

// checkOneLine fails unless every error that err joins is one line.
func checkOneLine(t *testing.T, err error) {
	t.Helper()
	if err == nil {
		return
	}
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		t.Fatalf("%v does not join errors", err)
	}
	for _, e := range joined.Unwrap() {
		if strings.ContainsAny(e.Error(), "\n\r") {
			t.Errorf("more than one line: %q", e)
		}
	}
}

// TestReadFiles reads the folder in each testdata/manifests/*.txtar and compares the result with its section "want".
// The comment before the sections describes the case. A line "read: a b" in the comment names the files to read; the
// default is the whole folder.
func TestReadFiles(t *testing.T) {
	t.Parallel()
	scenarios, err := filepath.Glob("testdata/manifests/*.txtar")
	if err != nil || len(scenarios) == 0 {
		t.Fatalf("no scenarios: %v", err)
	}
	for _, file := range scenarios {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			given, want, ok := strings.Cut(string(data), "-- want --\n")
			if !ok {
				t.Fatal("there is no section want")
			}
			dir := t.TempDir()
			paths, stdin := unpack(t, given, dir)
			m, err := ReadFiles(paths, bytes.NewReader(stdin))
			checkOneLine(t, err)
			got := strings.ReplaceAll(summary(m, err), dir+string(filepath.Separator), "")
			if *kubetest.Rewrite {
				if err := os.WriteFile(file, []byte(given+"-- want --\n"+got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// unpack writes the files of an archive (sections that begin with a line "-- name --") below dir and returns the paths
// to read.
func unpack(t *testing.T, archive, dir string) (paths []string, stdin []byte) {
	t.Helper()
	sections := strings.Split("\n"+archive, "\n-- ")
	for _, section := range sections[1:] {
		name, data, _ := strings.Cut(section, " --")
		data = strings.TrimPrefix(data, "\n")
		if data != "" {
			data = strings.TrimSuffix(data, "\n") + "\n"
		}
		if name == "stdin" {
			stdin = []byte(data)
			continue
		}
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(data), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for line := range strings.Lines(sections[0]) {
		names, ok := strings.CutPrefix(line, "read: ")
		if !ok {
			continue
		}
		for _, name := range strings.Fields(names) {
			if name != "-" {
				name = filepath.Join(dir, name)
			}
			paths = append(paths, name)
		}
	}
	if paths == nil {
		paths = []string{dir}
	}
	return paths, stdin
}

// summary describes the result, one line for each object, note and error.
func summary(m Manifests, err error) string {
	var b strings.Builder
	s := m.Snapshot(snapshot.View{Now: kubetest.Noon})
	for _, p := range s.Pools {
		fmt.Fprintf(&b, "pool %s %s\n", p.Name, p.Unusable)
	}
	for _, n := range s.Nodes {
		fmt.Fprintf(&b, "node %s requested %v\n", n.Name, n.Requested)
	}
	for _, d := range s.Daemons {
		fmt.Fprintf(&b, "daemon %s/%s %v\n", d.Namespace, d.Name, d.Requests)
	}
	for _, p := range s.Pods {
		fmt.Fprintf(&b, "pod %s of %q %v%s\n", p.ID(), p.Owner, p.Requests, firstOf(p.Required))
	}
	for _, kind := range slices.Sorted(maps.Keys(m.Skipped)) {
		fmt.Fprintf(&b, "skipped %s: %d\n", kind, m.Skipped[kind])
	}
	for _, kind := range slices.Sorted(maps.Keys(m.Unknown)) {
		fmt.Fprintf(&b, "strange %s: %d\n", kind, m.Unknown[kind])
	}
	for _, note := range m.Notes {
		fmt.Fprintf(&b, "note %s\n", note)
	}
	if err != nil {
		for line := range strings.Lines(err.Error() + "\n") {
			b.WriteString("error " + line)
		}
	}
	return b.String()
}

// firstOf describes the first alternative of a pod's required node affinity.
func firstOf(list []requirements.Requirements) string {
	if len(list) == 0 {
		return ""
	}
	return " on " + list[0].String()
}

// TestSettings: the result has the classes that NodePools name, with default settings for a class that is not among the
// manifests. An invalid amount is an error.
func TestSettings(t *testing.T) {
	t.Parallel()
	m, err := read([]byte(`
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: a}
spec: {template: {spec: {requirements: [], nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: full}}}}
---
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: b}
spec: {template: {spec: {requirements: [], nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: not-given}}}}
---
apiVersion: karpenter.k8s.aws/v1
kind: EC2NodeClass
metadata: {name: unused}
spec:
  role: r
  amiSelectorTerms: [{alias: al2@latest}]
  subnetSelectorTerms: [{id: subnet-1}]
  securityGroupSelectorTerms: [{id: sg-1}]
---
apiVersion: karpenter.k8s.aws/v1
kind: EC2NodeClass
metadata: {name: full}
spec:
  role: r
  amiSelectorTerms: [{alias: bottlerocket@latest}]
  subnetSelectorTerms: [{id: subnet-1}]
  securityGroupSelectorTerms: [{id: sg-1}]
  instanceStorePolicy: RAID0
  cpuOptions: {nestedVirtualization: enabled}
  connectionTracking: {udpTimeout: 30}
  blockDeviceMappings:
  - {deviceName: /dev/xvda, rootVolume: true, ebs: {volumeSize: 100Gi}}
  - {deviceName: /dev/xvdb, ebs: {snapshotID: snap-1}}
  - {deviceName: /dev/xvdc, ebs: {snapshotID: snap-2}}
  networkInterfaces:
  - {networkCardIndex: 0, deviceIndex: 0, interfaceType: interface}
  - {networkCardIndex: 1, deviceIndex: 1, interfaceType: efa-only}
  kubelet:
    maxPods: 42
    podsPerCore: 7
    kubeReserved: {cpu: 200m, memory: 1Gi}
    systemReserved: {ephemeral-storage: 2Gi}
    evictionHard: {memory.available: 5%, nodefs.available: 1Gi}
`))
	if err != nil {
		t.Fatal(err)
	}
	got, err := m.Settings()
	if err != nil {
		t.Fatal(err)
	}
	pods := int64(42)
	want := map[string]catalog.Settings{
		"not-given": {},
		"full": {
			Family: "Bottlerocket", PublishedImages: true, MaxPods: &pods, PodsPerCore: 7,
			KubeReserved:   map[string]int64{"cpu": 200, "memory": 1 << 30},
			SystemReserved: map[string]int64{"ephemeral-storage": 2 << 30},
			EvictionHard:   map[string]catalog.Threshold{"memory.available": {Percent: 5}, "nodefs.available": {Amount: 1 << 30}},
			Volumes: []catalog.Volume{{Device: "/dev/xvda", Root: true, Bytes: 100 << 30}, {Device: "/dev/xvdb"},
				{Device: "/dev/xvdc"}},
			InstanceStore:        "RAID0",
			Interfaces:           []catalog.Interface{{}, {Card: 1, Device: 1, EFAOnly: true}},
			NestedVirtualization: true,
			ConnectionTracking:   true,
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}

	m.Classes[1].Spec.Kubelet.KubeReserved["cpu"] = "much" // in the class full
	_, err = m.Settings()
	if err == nil || !strings.Contains(err.Error(), "ec2nodeclass full: spec.kubelet.kubeReserved") {
		t.Errorf("an invalid amount in kubeReserved gives the error %v, want one that names the field", err)
	}
}

// FuzzManifest reads any text. Every problem must be one line, and nothing may panic.
func FuzzManifest(f *testing.F) {
	for _, seed := range []string{
		"kind: Pod\napiVersion: v1\nmetadata: {name: a}\nspec: {containers: [{name: a, resources: {requests: {cpu: x}}}]}\n",
		"---\n--- {a: b}\n---\n\tx: [",
		`{"kind":"List","apiVersion":"v1","items":[{"kind":"Deployment","apiVersion":"apps/v1","metadata":{"name":"d"},"spec":{"replicas":3,"template":{"spec":{"containers":[{}]}}}}]}`,
		"[1, {kind: Node, apiVersion: v1}]",
		"kind: NodePool\napiVersion: karpenter.sh/v1\nmetadata: {generateName: x-}\nspec: {weight: -1, template: {spec: {requirements: [{key: a, operator: Gt}]}}}",
		"kind: StatefulSet\napiVersion: apps/v1\nmetadata: {name: s}\nspec: {replicas: 2, volumeClaimTemplates: [{metadata: {name: v}}], template: {spec: {containers: [{}]}}}",
		"kind: CronJob\napiVersion: batch/v1\nmetadata: {name: s}\nspec: {jobTemplate: {spec: {parallelism: 2, completions: 1}}}",
		"a: &a [*a]",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := read(data)
		checkOneLine(t, err)
		kubetest.Render(m.Snapshot(snapshot.View{Now: kubetest.Noon}))
		_, err = m.Settings()
		checkOneLine(t, err)
	})
}

// podManifest returns the manifest of a pod with additional fields in its spec and in its container, as JSON. The text
// spec ends with a comma, and container begins with one.
func podManifest(spec, container string) string {
	return fmt.Sprintf(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},"spec":{%s"containers":[{"name":"c","image":"x"%s}]}}`, spec, container)
}

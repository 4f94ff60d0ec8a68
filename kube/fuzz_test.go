package kube

import (
	"encoding/json"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// FuzzPod turns any pod that JSON can spell into a value: it may be refused, but nothing may break or be altered.
func FuzzPod(f *testing.F) {
	for _, seed := range []string{
		`{}`,
		`{"metadata":{"name":"p","annotations":{"karpenter.sh/do-not-disrupt":"-1h"},"ownerReferences":[{"kind":"DaemonSet"}]}}`,
		`{"spec":{"containers":[{"resources":{"requests":{"cpu":"9999999E","memory":"-1"}}},{"ports":[{"hostPort":-1}]}],"initContainers":[{"restartPolicy":"Always"}]}}`,
		`{"spec":{"affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"a","operator":"Gt","values":["9223372036854775807"]}]},{}]}}}}}`,
		`{"spec":{"volumes":[{"ephemeral":{}},{"persistentVolumeClaim":{"claimName":""}}],"resources":{"requests":{"cpu":"1"}}},"status":{"resources":{}}}`,
		`{"spec":{"nodeName":"n"},"status":{"containerStatuses":[{"resources":{"requests":{"cpu":"1u"}}}]}}`,
	} {
		f.Add([]byte(seed))
	}
	node := &corev1.Node{}
	node.Name = "n"
	f.Fuzz(func(t *testing.T, data []byte) {
		pod := &corev1.Pod{}
		if json.Unmarshal(data, pod) != nil {
			return
		}
		before := pod.DeepCopy()
		for _, live := range []bool{true, false} {
			s := Objects{Pods: []*corev1.Pod{pod}, Nodes: []*corev1.Node{node}}.Snapshot(View{Now: noon, Live: live})
			if s.Nodes[0].Requested.CPU > 1<<57 {
				t.Errorf("%v overflows", s.Nodes[0].Requested)
			}
			render(s)
		}
		if a, _ := json.Marshal(before); string(a) != string(marshal(t, pod)) {
			t.Error("the pod was altered")
		}
	})
}

func marshal(t *testing.T, v any) []byte {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// FuzzManifest reads anything: whatever is wrong with it is one line, and nothing breaks.
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
		render(m.Snapshot(View{Now: noon}))
		_, err = m.Settings()
		checkOneLine(t, err)
	})
}

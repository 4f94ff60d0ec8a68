package evidence

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/joiner-sh/joiner/internal/migration"
)

// TestMigrationInput converts objects that Karpenter has written. The result lacks the Deployment web, and the Nodes
// and NodeClaims that belong to no NodePool with an EC2NodeClass.
func TestMigrationInput(t *testing.T) {
	t.Parallel()
	objects, err := ReadManifests([]string{"-"}, strings.NewReader(karpenterManifest))
	if err != nil {
		t.Fatal(err)
	}
	installation, installed, err := MigrationInput(objects)
	if err != nil {
		t.Fatal(err)
	}
	want := migration.Installation{
		UID: "home",
		Pools: []migration.Pool{
			{Name: "apps", Class: "default", Hash: "1", HashVersion: "v3",
				Object: migration.Object{NotReady: "no class", Unknown: []string{"spec.shiny"}}},
			{Name: "auto", Class: "other", Foreign: true},
			{Name: "old",
				Object: migration.Object{Refused: []string{"it is written in the API v1beta1, which is not served any more; write it as v1"}}},
		},
		Claims: []migration.Claim{{Name: "apps-1", Pool: "apps", Class: "default", ProviderID: "aws:///a/i-1", Node: "n1",
			Drifted: "NodePoolDrifted",
			Expires: time.Date(2026, 1, 2, 1, 0, 0, 0, time.UTC), PoolHash: "1", PoolHashVersion: "v3", ClassHash: "2", ClassHashVersion: "v5"}},
		Nodes: []migration.Node{{Name: "n1", ProviderID: "aws:///a/i-1", Pool: "apps", Disrupted: true}},
	}
	if diff := cmp.Diff(want, installation); diff != "" {
		t.Errorf("the installation differs (-want +got):\n%s", diff)
	}
	wantInstalled := []InstalledController{{
		Controller: migration.Controller{Product: migration.Karpenter, Namespace: "karpenter", Name: "karpenter",
			Version: "1.14.1", Release: "karp", Replicas: 3,
			Account: "karpenter", Role: "arn:aws:iam::111122223333:role/k"},
		Args: []string{"--log-level=info"}, Environ: []string{"CLUSTER_NAME=prod"},
	}}
	if diff := cmp.Diff(wantInstalled, installed); diff != "" {
		t.Errorf("the installed controllers differ (-want +got):\n%s", diff)
	}
}

// TestMigrationInputError: an object that cannot be decoded gives a one-line error.
func TestMigrationInputError(t *testing.T) {
	t.Parallel()
	objects, err := ReadManifests([]string{"-"},
		strings.NewReader(`{apiVersion: karpenter.sh/v1, kind: NodeClaim, metadata: {name: broken}, spec: {taints: 3}}`))
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := MigrationInput(objects); err == nil || !strings.Contains(err.Error(), "NodeClaim broken") ||
		strings.Contains(err.Error(), "\n") {
		t.Errorf("the error is %v, want one line that names NodeClaim broken", err)
	}
}

const karpenterManifest = `
apiVersion: v1
kind: Namespace
metadata: {name: kube-system, uid: home}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: karpenter, namespace: karpenter, annotations: {eks.amazonaws.com/role-arn: "arn:aws:iam::111122223333:role/k"}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: karpenter, namespace: karpenter, labels: {app.kubernetes.io/name: karpenter}, annotations: {meta.helm.sh/release-name: karp}}
spec:
  replicas: 3
  selector: {matchLabels: {a: b}}
  template:
    metadata: {labels: {a: b}}
    spec:
      serviceAccountName: karpenter
      containers:
      - {name: sidecar, image: "proxy:1"}
      - name: controller
        image: public.ecr.aws/karpenter/controller:1.14.1@sha256:00
        args: [--log-level=info]
        env: [{name: CLUSTER_NAME, value: prod}, {name: MEMORY_LIMIT, valueFrom: {resourceFieldRef: {resource: limits.memory}}}]
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: karpenter}
---
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: apps, annotations: {karpenter.sh/nodepool-hash: "1", karpenter.sh/nodepool-hash-version: v3}}
spec:
  shiny: true
  template: {spec: {requirements: [], nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}}}
  disruption: {consolidateAfter: 0s, consolidationPolicy: WhenEmpty}
status:
  fresh: true
  conditions: [{type: Ready, status: "False", reason: NotReady, message: no class, lastTransitionTime: "2026-01-01T00:00:00Z"}]
---
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: auto}
spec:
  template: {spec: {requirements: [], nodeClassRef: {group: eks.amazonaws.com, kind: NodeClass, name: other}}}
  disruption: {consolidateAfter: 0s}
---
apiVersion: karpenter.sh/v1beta1
kind: NodePool
metadata: {name: old}
---
apiVersion: karpenter.sh/v1
kind: NodeClaim
metadata:
  name: apps-1
  creationTimestamp: "2026-01-01T01:00:00Z"
  labels: {karpenter.sh/nodepool: apps}
  annotations: {karpenter.sh/nodepool-hash: "1", karpenter.sh/nodepool-hash-version: v3, karpenter.k8s.aws/ec2nodeclass-hash: "2", karpenter.k8s.aws/ec2nodeclass-hash-version: v5}
spec: {expireAfter: 24h, requirements: [], nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}}
status:
  providerID: aws:///a/i-1
  nodeName: n1
  conditions: [{type: Drifted, status: "True", reason: NodePoolDrifted, lastTransitionTime: "2026-01-01T00:00:00Z"}]
---
apiVersion: karpenter.sh/v1
kind: NodeClaim
metadata: {name: auto-1, labels: {karpenter.sh/nodepool: auto}}
spec: {requirements: [], nodeClassRef: {group: eks.amazonaws.com, kind: NodeClass, name: other}}
---
apiVersion: v1
kind: Node
metadata: {name: n1, labels: {karpenter.sh/nodepool: apps}}
spec: {providerID: "aws:///a/i-1", taints: [{key: karpenter.sh/disrupted, effect: NoSchedule}]}
---
apiVersion: v1
kind: Node
metadata: {name: n2, labels: {karpenter.sh/nodepool: auto}}
---
apiVersion: v1
kind: Node
metadata: {name: n3}
`

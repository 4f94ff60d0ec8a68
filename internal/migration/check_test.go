package migration_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/joiner-sh/joiner/internal/migration"
)

var now = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

// healthy returns a cluster with Karpenter and no problems.
func healthy() Installation {
	return Installation{
		At: now, Cluster: "prod", UID: "uid-1",
		Controllers: []Controller{{Product: Karpenter, Namespace: "karpenter", Name: "karpenter", Version: "1.14.1", Release: "karp", Replicas: 3,
			Lease: "karpenter/karpenter-leader-election", Account: "karpenter", Queue: "prod"}},
		Definitions: []Definition{{Name: "nodepools.karpenter.sh", Says: "would be taken over"}},
		Pools:       []Pool{{Name: "apps", Class: "default", Hash: "1", HashVersion: "v3"}},
		Classes:     []Class{{Name: "default", Hash: "2", HashVersion: "v5"}},
		Claims: []Claim{{Name: "apps-1", Pool: "apps", Class: "default", ProviderID: "aws:///a/i-1", Node: "n1", Expires: now.Add(time.Hour),
			PoolHash: "1", PoolHashVersion: "v3", ClassHash: "2", ClassHashVersion: "v5"}},
		Nodes:       []Node{{Name: "n1", ProviderID: "aws:///a/i-1", Pool: "apps"}},
		Instances:   []Instance{{ID: "i-1", Owner: Legacy}, {ID: "i-9", Owner: Legacy, Ended: true}},
		Permissions: []Permission{{Statement: "Launch", Policy: "launch", Action: "ec2:CreateFleet", Allowed: true}},
	}
}

// TestHealthy: without problems only the dashboards differ, and everything that stays is reported.
func TestHealthy(t *testing.T) {
	t.Parallel()
	r := Check(healthy())
	for _, f := range r.Findings {
		if f.Weight != Stays && f.Subject != "Grafana dashboards of Karpenter" {
			t.Errorf("found %+v, want weight Stays", f)
		}
	}
	for _, want := range []string{"1 NodeClaim is taken over with its instance: nothing is replaced", "nothing is drifted",
		"queue prod", "1 instance in EC2 is adopted", "1 EC2NodeClass stays as it is"} {
		if !slices.ContainsFunc(r.Findings, func(f Finding) bool { return strings.Contains(f.Says, want) }) {
			t.Errorf("no finding says %q: %+v", want, r.Findings)
		}
	}
	if !r.Go {
		t.Error("Go is false, want true")
	}
	handover := strings.Join(r.Steps.Over, "\n")
	for _, want := range []string{"--namespace karpenter scale deployment/karpenter --replicas=0", "helm get values karp ",
		"serviceAccount.name=karpenter"} {
		if !strings.Contains(handover, want) {
			t.Errorf("the steps lack %q:\n%s", want, handover)
		}
	}
	if last := r.Steps.Back[len(r.Steps.Back)-1]; !strings.HasSuffix(last, "scale deployment/karpenter --replicas=3") {
		t.Errorf("the last step back is %q, want --replicas=3 for Karpenter", last)
	}
}

// TestFindings changes one thing of a healthy cluster at a time.
func TestFindings(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		change   func(*Installation)
		want     Weight
		wantSays string
		wantFix  string
	}{
		"Karpenter before v1": {func(in *Installation) { in.Controllers[0].Version = "0.37.8" }, Stops,
			"predates the v1 API", "upgrade Karpenter"},
		"a digest is no version": {func(in *Installation) { in.Controllers[0].Version = "sha256" }, Stays, "all settings", ""},
		"no lease": {func(in *Installation) { in.Controllers[0].Lease = "" }, Differs, "no leader election",
			"no pod of Karpenter is left"},
		"both are active": {func(in *Installation) {
			in.Controllers = append(in.Controllers,
				Controller{Product: Joiner, Namespace: "joiner", Name: "joiner", Replicas: 2, Lease: "joiner/karpenter-leader-election"})
		}, Stops, "both act", "--namespace joiner scale deployment/joiner --replicas=0"},
		"no controller": {func(in *Installation) { in.Controllers = nil }, Unknown, "no Deployment of Karpenter", "--values"},
		"wrong setting": {func(in *Installation) { in.Controllers[0].Problem = "BATCH_MAX_DURATION is 10" }, Stops, "would not start", ""},
		"ignored setting": {func(in *Installation) {
			in.Controllers[0].Ignored = []Ignored{{"--ignore-dra-requests", "false", "pods that request DRA devices are not scheduled"}}
		}, Differs, "is false: pods that request", ""},
		"Karpenter's image": {func(in *Installation) { in.Values = map[string]string{"controller.image.tag": "1.14.1"} },
			Differs, "Karpenter's image", "controller.image.repository="},
		"a misspelt value": {func(in *Installation) {
			in.UnknownValues = []UnknownValue{{Path: "controller.resource", Near: "controller.resources"}}
		}, Differs, "did you mean controller.resources?", "rename controller.resource to controller.resources"},
		"an unknown value": {func(in *Installation) { in.UnknownValues = []UnknownValue{{Path: "flavour"}} }, Differs,
			"no chart has this value", "remove flavour"},
		"dashboards": {func(*Installation) {}, Differs, "these panels stay empty: Pod Phase, ", "deploy/dashboards/joiner.json"},
		"Karpenter's name": {func(in *Installation) { in.Values = map[string]string{"fullnameOverride": "karpenter"} },
			Differs, "names of Karpenter's", "fullnameOverride=joiner"},
		"held definition": {func(in *Installation) { in.Definitions[0].Held = true }, Stops, "would be taken over", ""},
		"refused object": {func(in *Installation) { in.Pools[0].Refused = []string{"spec.weight: 200"} }, Stops,
			"spec.weight: 200", "correct it"},
		"unknown field": {func(in *Installation) { in.Classes[0].Unknown = []string{"spec.new"} }, Differs,
			"does not know spec.new", "take it out"},
		"not ready":      {func(in *Installation) { in.Classes[0].NotReady = "no subnets" }, Differs, "not ready now: no subnets", ""},
		"other provider": {func(in *Installation) { in.Pools[0].Foreign = true }, Stays, "neither Karpenter nor Joiner serves it", ""},
		"not launched": {func(in *Installation) { in.Claims[0].ProviderID = "" }, Stops, "would launch another instance",
			"wait --for=condition=Launched nodeclaim/apps-1"},
		"being deleted":          {func(in *Installation) { in.Claims[0].Deleting = true }, Differs, "being deleted", ""},
		"expired":                {func(in *Installation) { in.Claims[0].Expires = now.Add(-time.Second) }, Differs, "expireAfter", ""},
		"UID of another cluster": {func(in *Installation) { in.Claims[0].UID = "uid-2" }, Stops, "another cluster", "cluster-uid-"},
		"drifted": {func(in *Installation) { in.Claims[0].Drifted = "NodePoolDrifted" }, Differs,
			"(NodePoolDrifted)", "kubectl annotate nodepool apps joiner.sh/drift=observe"},
		"outdated hash": {func(in *Installation) { in.Claims[0].PoolHash = "7" }, Differs, "before the last change",
			"joiner.sh/drift=observe"},
		"hash of another version": {func(in *Installation) { in.Claims[0].PoolHash, in.Claims[0].PoolHashVersion = "7", "v2" },
			Stays, "nothing is drifted", ""},
		"Node without NodeClaim": {func(in *Installation) { in.Claims = nil }, Differs, "no NodeClaim", "by hand"},
		"tainted node":           {func(in *Installation) { in.Nodes[0].Disrupted = true }, Stops, "about to replace", "kubectl taint node n1"},
		"instance is gone":       {func(in *Installation) { in.Instances = in.Instances[1:] }, Differs, "no instance with the cluster's name", ""},
		"untagged instance": {func(in *Installation) { in.Instances[0].Owner = Untagged }, Stops, "never terminate it",
			"Key=karpenter.sh/nodepool,Value=apps"},
		"instance of a node group": {func(in *Installation) { in.Instances[0].Owner = OtherOwner }, Stops, "node group",
			"describe-instances --instance-ids i-1"},
		"instance of a cluster with the same name": {func(in *Installation) { in.Instances[0].Owner = SameName }, Stops, "never changes",
			"describe-instances --instance-ids i-1"},
		"instance without NodeClaim": {func(in *Installation) {
			in.Instances = append(in.Instances,
				Instance{ID: "i-2", Owner: Legacy})
		}, Differs, "Karpenter would remove it", "terminate-instances --instance-ids i-2"},
		"another instance of a cluster with the same name": {func(in *Installation) {
			in.Instances = append(in.Instances,
				Instance{ID: "i-2", Owner: SameName})
		}, Differs, "never changed", "a different name"},
		"not permitted": {func(in *Installation) { in.Permissions[0].Allowed = false }, Stops,
			"does not allow ec2:CreateFleet", "iam-policy"},
		"not permitted, not needed": {func(in *Installation) {
			in.Permissions = append(in.Permissions, Permission{Statement: "Shift", Policy: "reading", Action: "a:B", Optional: true})
		}, Differs, "needed only by a setting that is off", "reading"},
		"no access": {func(in *Installation) { in.Unseen = []Unseen{{What: "EC2", Why: "no credentials"}} }, Unknown, "no credentials", ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := healthy()
			test.change(&in)
			r := Check(in)
			i := slices.IndexFunc(r.Findings, func(f Finding) bool { return strings.Contains(f.Says, test.wantSays) })
			if i < 0 {
				t.Fatalf("no finding says %q: %+v", test.wantSays, r.Findings)
			}
			f := r.Findings[i]
			if f.Weight != test.want || !strings.Contains(f.Fix, test.wantFix) || r.Go != (test.want != Stops) {
				t.Errorf("found %+v, go: %v; want %s, a fix with %q, and go unless the weight is stops", f, r.Go, test.want, test.wantFix)
			}
			if f.Weight != Stays && i > 0 && r.Findings[0].Weight == Stays {
				t.Error("a finding with the weight Stays comes before a heavier one")
			}
		})
	}
}

// TestHidden: requested data that could not be read stops the migration.
func TestHidden(t *testing.T) {
	t.Parallel()
	in := healthy()
	in.Unseen = []Unseen{{What: "NodeClaims", Why: "you may not list them", Asked: true}, {What: "instances", Why: "no credentials"}}
	r := Check(in)
	if r.Go || !slices.Equal(r.Hidden, []string{"NodeClaims"}) {
		t.Errorf("go: %v, hidden: %v; want false, and only NodeClaims", r.Go, r.Hidden)
	}
}

// TestOrder: findings do not depend on the order of the input.
func TestOrder(t *testing.T) {
	t.Parallel()
	in := healthy()
	in.Claims = append(in.Claims, Claim{Name: "b"}, Claim{Name: "a"}, Claim{Name: "d"}, Claim{Name: "c"})
	in.Instances = append(in.Instances, Instance{ID: "i-5", Owner: Legacy}, Instance{ID: "i-4", Owner: Legacy})
	first := Check(in)
	slices.Reverse(in.Claims)
	slices.Reverse(in.Instances)
	if second := Check(in); !slices.Equal(first.Findings, second.Findings) {
		t.Errorf("found %+v, and %+v with the input in another order", first.Findings, second.Findings)
	}
	if f := first.Findings[0]; f.Subject != "NodeClaim a, b, c and 1 more" || f.Fix != "kubectl wait --for=condition=Launched nodeclaim/a nodeclaim/b nodeclaim/c nodeclaim/d --timeout=5m" {
		t.Errorf("the first finding is %+v, want the 4 NodeClaims without instance, sorted", f)
	}
}

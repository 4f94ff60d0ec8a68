package lab_test

import (
	"bufio"
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/joiner-sh/joiner/api/crds"
	karpenterv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/emulator/world"
)

// newFields maps a definition to the schema path of the field that installOlderDefinitions removes, as if only the
// current version had the field.
var newFields = map[string][]string{
	"nodepools.karpenter.sh":           {"status", "nodeClassObservedGeneration"},
	"nodeclaims.karpenter.sh":          {"status", "lastPodEventTime"},
	"ec2nodeclasses.karpenter.k8s.aws": {"spec", "context"},
}

// installOlderDefinitions installs definitions as of a previous version: with the previous revision, without the fields
// of newFields, and with a printer column that the current version does not have.
func (in *installation) installOlderDefinitions() {
	in.t.Helper()
	for _, m := range crds.Manifests() {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(m.YAML), &object.Object); err != nil {
			in.t.Fatal(err)
		}
		if earlier := crds.Revision() - 1; earlier > 0 { // definitions before the first revision have no such annotation
			annotations := object.GetAnnotations()
			annotations[crds.KeyRevision] = strconv.Itoa(earlier)
			object.SetAnnotations(annotations)
		}
		versions, _, err := unstructured.NestedSlice(object.Object, "spec", "versions")
		if err != nil {
			in.t.Fatal(err)
		}
		version := versions[0].(map[string]any)
		columns, _ := version["additionalPrinterColumns"].([]any)
		version["additionalPrinterColumns"] = append(columns, map[string]any{"name": "Once", "type": "string", "jsonPath": ".metadata.name"})
		if field := newFields[m.Name]; field != nil {
			unstructured.RemoveNestedField(version, "schema", "openAPIV3Schema", "properties", field[0], "properties", field[1])
		}
		if err := unstructured.SetNestedSlice(object.Object, versions, "spec", "versions"); err != nil {
			in.t.Fatal(err)
		}
		config := client.ApplyConfigurationFromUnstructured(object)
		if err := in.l.Client.Apply(in.t.Context(), config, client.FieldOwner("joiner"), client.ForceOwnership); err != nil {
			in.t.Fatal(err)
		}
	}
	for _, m := range crds.Manifests() {
		in.crds.until("definition "+m.Name+" to be served", m.Name, func(c *apiextensionsv1.CustomResourceDefinition) bool {
			return slices.ContainsFunc(c.Status.Conditions, func(condition apiextensionsv1.CustomResourceDefinitionCondition) bool {
				return condition.Type == apiextensionsv1.Established && condition.Status == apiextensionsv1.ConditionTrue
			})
		})
		// A definition in newFields must lack its field. For other definitions, hasNewField returns true.
		if in.hasNewField(in.crds.get(m.Name)) == (newFields[m.Name] != nil) {
			in.t.Fatalf("definition %s is not like that of an earlier version", m.Name)
		}
	}
}

// hasNewField reports whether a definition has its field of newFields. It returns true for definitions that newFields
// does not list.
func (in *installation) hasNewField(c *apiextensionsv1.CustomResourceDefinition) bool {
	field := newFields[c.Name]
	if field == nil {
		return true
	}
	_, ok := c.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties[field[0]].Properties[field[1]]
	return ok
}

// upgrade upgrades to the current chart, and checks that the definitions are updated and that no node is changed.
func (in *installation) upgrade(pool string) {
	in.t.Helper()
	in.awaitInstanceNames(pool)
	before, calls := in.fleetOf(pool), in.l.Emulator.Calls()
	if len(before) < 5 || calls["ec2:CreateFleet"] == 0 {
		in.t.Fatalf("want at least 5 entries in the fleet and a launch, got %d: %v, after these calls: %v", len(before), before, calls)
	}
	in.run("upgrade", "joiner", chartFolder(in.t), "-n", chartNamespace, "--wait", "--timeout", "90s",
		"--reset-then-reuse-values", "--set", "crds.apply=true", "--set", "logLevel=debug")
	in.stop()
	in.start()
	for _, m := range crds.Manifests() {
		in.crds.until("definition "+m.Name+" to be updated", m.Name, func(c *apiextensionsv1.CustomResourceDefinition) bool {
			columns := c.Spec.Versions[0].AdditionalPrinterColumns
			return c.Annotations[crds.KeyRevision] == strconv.Itoa(crds.Revision()) && in.hasNewField(c) &&
				!slices.ContainsFunc(columns, func(p apiextensionsv1.CustomResourceColumnDefinition) bool { return p.Name == "Once" })
		})
	}
	in.awaitReevaluation(pool)
	if d := cmp.Diff(before, in.fleetOf(pool)); d != "" {
		in.t.Errorf("the upgrade changed nodes (-before +after):\n%s", d)
	}
	// Launch calls are not compared, because they include dry runs. fleetOf shows new instances.
	if terminations := in.l.Emulator.Calls()["ec2:TerminateInstances"] - calls["ec2:TerminateInstances"]; terminations != 0 {
		in.t.Errorf("during the upgrade there were %d calls of TerminateInstances, want 0", terminations)
	}
}

// awaitReevaluation waits until a controller of the new version has reconciled each claim of a pool, and has determined
// how many of the pool's nodes may be disrupted.
func (in *installation) awaitReevaluation(pool string) {
	in.t.Helper()
	claims, _ := claimsOf(in.t, in.l, pool)
	within(in.t, in.l, 30*time.Second, "the new version to evaluate the nodes", func(context.Context) (bool, error) {
		for _, c := range in.podControllers {
			reconciles, _ := seriesOf(in.t, c.Metrics, "controller_runtime_reconcile_total", `controller="nodeclaim.lifecycle"`)
			_, hasBudget := seriesOf(in.t, c.Metrics, "karpenter_nodepools_allowed_disruptions", `nodepool="`+pool+`"`)
			if reconciles >= float64(len(claims)) && hasBudget {
				return true, nil
			}
		}
		return false, nil
	})
}

// seriesOf returns the sum of those series of a metric that have label, for example pool="a", on the metrics page at
// url. found is false if there is no such series.
func seriesOf(t *testing.T, url, name, label string) (sum float64, found bool) {
	t.Helper()
	response, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	lines := bufio.NewScanner(response.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line := lines.Text()
		if !strings.HasPrefix(line, name+"{") || !strings.Contains(line, label) {
			continue
		}
		value, err := strconv.ParseFloat(line[strings.LastIndexByte(line, ' ')+1:], 64)
		if err != nil {
			t.Fatalf("read metric %q: %v", line, err)
		}
		sum, found = sum+value, true
	}
	return sum, found
}

// withoutConditionTaints returns taints without those that Kubernetes sets for node conditions, which can change at any
// time.
func withoutConditionTaints(taints []corev1.Taint) []corev1.Taint {
	return slices.DeleteFunc(slices.Clone(taints), func(t corev1.Taint) bool { return strings.HasPrefix(t.Key, "node.kubernetes.io/") })
}

// awaitInstanceNames waits until each instance has its tag Name. The tag is the controller's last write after a node
// has joined.
func (in *installation) awaitInstanceNames(pool string) {
	in.t.Helper()
	within(in.t, in.l, time.Minute, "all instances to be named after their Nodes", func(context.Context) (bool, error) {
		all := instancesOf(in.l, pool)
		return len(all) > 0 && !slices.ContainsFunc(all, func(i world.Instance) bool { return i.Alive() && i.Tags["Name"] == "" }), nil
	})
}

// fleetOf returns what an upgrade must not change. For each claim of a pool: its IDs and those of its Node and
// instance, the taints, and whether the claim drifts. For each instance: whether it is alive, and its tag keys.
func (in *installation) fleetOf(pool string) map[string]string {
	in.t.Helper()
	claims, _ := claimsOf(in.t, in.l, pool)
	instances := instancesOf(in.l, pool)
	out := map[string]string{}
	for _, c := range claims {
		var node corev1.Node
		if err := in.l.Client.Get(in.t.Context(), client.ObjectKey{Name: c.Status.NodeName}, &node); err != nil {
			in.t.Fatal(err)
		}
		at := slices.IndexFunc(instances, func(i world.Instance) bool { return "aws:///"+i.Zone+"/"+i.ID == c.Status.ProviderID })
		if at < 0 {
			in.t.Fatalf("claim %s has no instance %s", c.Name, c.Status.ProviderID)
		}
		out[c.Name] = fmt.Sprint(c.UID, " ", c.Status.ProviderID, " deleted: ", c.DeletionTimestamp != nil, ", drifts: ",
			c.StatusConditions().IsTrue(karpenterv1.ConditionDrifted),
			"; node ", node.Name, " ", node.UID, " ", node.Spec.ProviderID, " deleted: ", node.DeletionTimestamp != nil,
			" taints: ", withoutConditionTaints(node.Spec.Taints),
			"; instance alive: ", instances[at].Alive())
	}
	for _, i := range instances {
		out[i.ID] = fmt.Sprint("alive: ", i.Alive(), " ", slices.Sorted(maps.Keys(i.Tags)))
	}
	return out
}

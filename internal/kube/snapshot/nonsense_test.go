package snapshot

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/joiner-sh/joiner/internal/kube/conversion"
)

// TestNonsense gives pods values that the API server rejects, or accepts although kube-scheduler cannot read them. Each
// value must be reported in one sentence that names the invalid field.
func TestNonsense(t *testing.T) {
	t.Parallel()
	many := strings.TrimSuffix(strings.Repeat(`"v",`, 10_000), ",")
	spread := func(more string) string {
		return `"topologySpreadConstraints":[{"topologyKey":"a","maxSkew":1,"whenUnsatisfiable":"DoNotSchedule"},` +
			`{"topologyKey":"zone","maxSkew":1,"whenUnsatisfiable":"DoNotSchedule",` + more + `}]`
	}
	avoids := func(term string) string {
		return `"affinity":{"podAntiAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[` + term + `]}}`
	}
	prefersPods := func(term string) string {
		return `"affinity":{"podAffinity":{"preferredDuringSchedulingIgnoredDuringExecution":[` + term + `]}}`
	}
	onNodes := func(expression string) string {
		return `"affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[` +
			expression + `]}]}}}`
	}
	const firstTerm = "its podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[0]"
	const firstPreference = "its podAffinity.preferredDuringSchedulingIgnoredDuringExecution[0]"
	for spec, want := range map[string]string{
		`"containers":[{"resources":{"requests":{"cpu":"-1"}}}]`:                "its containers[0].resources.requests.cpu is -1, less than nothing",
		`"containers":[{},{"resources":{"requests":{"memory":"9999999E"}}}]`:    "its containers[1].resources.requests.memory is 9999999E, more than any instance type has",
		`"initContainers":[{"resources":{"requests":{"x/y":"-1","a/b":"-2"}}}]`: "its initContainers[0].resources.requests.a/b is -2, less than nothing",
		`"overhead":{"cpu":"2P"}`:                    "its overhead.cpu is 2P, more than any instance type has",
		`"resources":{"requests":{"memory":"-1Gi"}}`: "its resources.requests.memory is -1Gi, less than nothing",

		onNodes(`{"key":"a","operator":"Nearly","values":["b"]}`): `its node affinity has a term that no node can satisfy: a Nearly ["b"]`,
		onNodes(`{"key":"a","operator":"Gt","values":["many"]}`):  `its node affinity has a term that no node can satisfy: a Gt ["many"]`,
		onNodes(`{"key":"a","operator":"In","values":[` + many +
			`]}`): "its node affinity has a term that no node can satisfy: a In with 10000 values",
		`"affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[` +
			strings.Repeat("{},", 999) + `{}]}}}`: "its required node affinity has 1000 terms, more than 256",

		spread(`"maxSkew":0`):                                 "its topologySpreadConstraints[1].maxSkew is 0, less than 1",
		spread(`"topologyKey":""`):                            `its topologySpreadConstraints[1].topologyKey is "", which is no label`,
		spread(`"topologyKey":"a/b/c"`):                       `its topologySpreadConstraints[1].topologyKey is "a/b/c", which is no label`,
		spread(`"minDomains":0`):                              "its topologySpreadConstraints[1].minDomains is 0, less than 1",
		spread(`"whenUnsatisfiable":"Maybe"`):                 `its topologySpreadConstraints[1].whenUnsatisfiable is "Maybe", neither DoNotSchedule nor ScheduleAnyway`,
		spread(`"nodeTaintsPolicy":"Ponder"`):                 `its topologySpreadConstraints[1].nodeTaintsPolicy is "Ponder", neither Honor nor Ignore`,
		spread(`"nodeAffinityPolicy":""`):                     `its topologySpreadConstraints[1].nodeAffinityPolicy is "", neither Honor nor Ignore`,
		spread(`"labelSelector":{"matchLabels":{"a":"b c"}}`): `its topologySpreadConstraints[1].labelSelector.matchLabels has "a": "b c", which no label can be`,
		spread(`"labelSelector":{"matchExpressions":[{"key":"a","operator":"In","values":[` + many + `]}]}`): "its topologySpreadConstraints[1].labelSelector.matchExpressions[0] is invalid: a In with 10000 values",
		`"topologySpreadConstraints":[` + strings.Repeat("{},", 99) +
			`{}]`: "its topologySpreadConstraints are 100, more than 64",

		avoids(`{"topologyKey":""}`): firstTerm + `.topologyKey is "", which is no label`,
		avoids(`{"topologyKey":"a","labelSelector":{"matchExpressions":[{"key":"a","operator":"Like","values":["b"]}]}}`): firstTerm + `.labelSelector.matchExpressions[0] is invalid: a Like ["b"]`,
		avoids(`{"topologyKey":"a","labelSelector":{"matchExpressions":[{"key":"a","operator":"In"}]}}`): firstTerm +
			`.labelSelector.matchExpressions[0] is invalid: a In []`,
		avoids(`{"topologyKey":"a","labelSelector":{"matchExpressions":[{"key":"a","operator":"Exists","values":["b"]}]}}`): firstTerm + `.labelSelector.matchExpressions[0] is invalid: a Exists ["b"]`,
		avoids(`{"topologyKey":"a","namespaceSelector":{"matchLabels":{"":"b"}}}`): firstTerm +
			`.namespaceSelector.matchLabels has "": "b", which no label can be`,
		prefersPods(`{"weight":0,"podAffinityTerm":{"topologyKey":"a"}}`): firstPreference +
			".weight is 0, not between 1 and 100",
		prefersPods(`{"weight":101,"podAffinityTerm":{"topologyKey":"a"}}`): firstPreference +
			".weight is 101, not between 1 and 100",
		prefersPods(`{"weight":1,"podAffinityTerm":{}}`): firstPreference +
			`.podAffinityTerm.topologyKey is "", which is no label`,
		avoids(strings.Repeat(`{},`, 99) +
			`{}`): "its podAntiAffinity has 100 terms, more than 64",

		`"resourceClaims":[{"name":"gpu"}]`: "it asks for devices by resource claim gpu, which this version does not plan for yet",
	} {
		got := conversion.PodValue(podWith(t, spec), referencesOf(Objects{}, View{Live: true}))
		if got.Unplannable != want {
			t.Errorf("%.200s\n got %q\nwant %q", spec, got.Unplannable, want)
		}
	}
}

// TestNonsenseLeavesTheRest: an invalid constraint of a pod does not affect its valid constraints of other kinds,
// whether the pod is pending or a resident (stays on its node).
func TestNonsenseLeavesTheRest(t *testing.T) {
	t.Parallel()
	pod := podWith(t, `"topologySpreadConstraints":[{"topologyKey":"","maxSkew":1,"whenUnsatisfiable":"DoNotSchedule"}],
		"affinity":{"podAntiAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[{"topologyKey":"rack","labelSelector":{}}]}}`)
	references := referencesOf(Objects{}, View{Live: true})
	value := conversion.PodValue(pod, references)
	if value.Unplannable == "" || len(value.AntiAffinity) != 1 || value.AntiAffinity[0].Key != "rack" {
		t.Errorf("the pod is %+v, want an anti-affinity for rack and a reason why it cannot be planned", value)
	}
	if terms := conversion.RequiredAntiAffinity(pod, references); len(terms) != 1 || terms[0].Key != "rack" {
		t.Errorf("the resident avoids %+v, want rack only", terms)
	}
	// As in kube-scheduler, an invalid term discards all terms of its kind.
	both := podWith(t, `"affinity":{"podAntiAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[{"topologyKey":"rack"},{"topologyKey":""}]}}`)
	if terms := conversion.RequiredAntiAffinity(both, references); terms != nil {
		t.Errorf("with an invalid second term, the resident avoids %+v, want nothing", terms)
	}
}

func podWith(t *testing.T, spec string) *corev1.Pod {
	t.Helper()
	pod := &corev1.Pod{}
	text := fmt.Sprintf(`{"metadata":{"namespace":"default","name":"p","labels":{"app":"web"}},"spec":{%s}}`, spec)
	if err := json.Unmarshal([]byte(text), pod); err != nil {
		t.Fatalf("%.200s: %v", spec, err)
	}
	return pod
}

package manifest

import (
	"strings"
	"testing"
)

// TestPodRules: for a pod that the API server would reject, the error names the field and the fix. A pod that is valid
// but probably a mistake gives a note, with the prefix "note: " here. Other pods give no error and no note.
func TestPodRules(t *testing.T) {
	t.Parallel()
	resources := func(text string) string { return podManifest("", `,"resources":`+text) }
	tolerates := func(text string) string { return podManifest(`"tolerations":[`+text+`],`, "") }
	spread := func(more string) string {
		return podManifest(`"topologySpreadConstraints":[{"topologyKey":"a","maxSkew":1,`+more+`}],`, "")
	}
	port := func(spec, text string) string { return podManifest(spec, `,"ports":[`+text+`]`) }
	const soft = `"preferredDuringSchedulingIgnoredDuringExecution"`
	for manifest, want := range map[string]string{
		tolerates(`{"key":"a","operator":"Exists","value":"b"}`):                        `spec.tolerations[0] (a): operator Exists allows no value, but the value is "b"; use operator Equal, or remove the value`,
		tolerates(`{"operator":"Equal","value":"b"}`):                                   "the key is missing; set it, or use operator Exists to tolerate all taints",
		tolerates(`{"value":"b"}`):                                                      "the key is missing",
		tolerates(`{"key":"a","operator":"Exist"}`):                                     `operator "Exist" is unknown; use Exists or Equal`,
		tolerates(`{"key":"a","effect":"NoSchedule","tolerationSeconds":3}`):            "tolerationSeconds requires effect NoExecute",
		tolerates(`{"key":"a","operator":"Exists","tolerationSeconds":3}`):              "tolerationSeconds requires effect NoExecute",
		tolerates(`{"operator":"Exists"}`):                                              "",
		tolerates(`{"key":"a","value":"b","effect":"NoExecute","tolerationSeconds":3}`): "",

		resources(`{"requests":{"cpu":"2"},"limits":{"cpu":"1"}}`):                             "spec.containers[0].resources.requests.cpu: 2 is more than its limit, 1",
		resources(`{"requests":{"cpu":"1"},"limits":{"cpu":"2"}}`):                             "",
		resources(`{"requests":{"cpu":"-1"}}`):                                                 "spec.containers[0].resources.requests.cpu: -1 is negative",
		resources(`{"limits":{"nvidia.com/gpu":"500m"}}`):                                      "spec.containers[0].resources.limits.nvidia.com/gpu: 500m must be a whole number",
		resources(`{"requests":{"nvidia.com/gpu":"1"},"limits":{"nvidia.com/gpu":"2"}}`):       "1 must equal its limit, 2",
		resources(`{"requests":{"nvidia.com/gpu":"1"}}`):                                       `note: container c: the API server rejects resources.requests.nvidia.com/gpu without an equal limit; set resources.limits.nvidia.com/gpu: "1"`,
		resources(`{"requests":{"cpu":"1","hugepages-2Mi":"512Mi"}}`):                          "note: container c: the API server rejects resources.requests.hugepages-2Mi without an equal limit",
		resources(`{"limits":{"nvidia.com/gpu":"1"}}`):                                         "",
		resources(`{"limits":{"gpu":"1"}}`):                                                    "resources.limits.gpu: unknown resource (did you mean nvidia.com/gpu?)",
		resources(`{"requests":{"mem":"1Gi"}}`):                                                "resources.requests.mem: unknown resource (did you mean memory?)",
		resources(`{"requests":{"CPU":"1"}}`):                                                  "(did you mean cpu?)",
		resources(`{"requests":{"fuse":"1"}}`):                                                 "unknown resource; an extended resource needs a domain",
		resources(`{"requests":{"memory":"512"}}`):                                             "note: container c: resources.requests.memory: 512 without a unit is bytes; did you mean 512Mi?",
		resources(`{"requests":{"memory":"512m"}}`):                                            "note: container c: resources.requests.memory: 512m is under one byte; did you mean 512Mi?",
		resources(`{"requests":{"memory":"134217728","ephemeral-storage":"1000","cpu":"1m"}}`): "",

		port("",
			`{"containerPort":80,"hostPort":70000}`): "spec.containers[0].ports[0].hostPort: 70000 is not between 1 and 65535",
		port(`"hostNetwork":true,`,
			`{"containerPort":80,"hostPort":8080}`): "hostPort: 8080 must equal containerPort, 80, because the pod uses hostNetwork",
		port(`"hostNetwork":true,`, `{"containerPort":8080,"hostPort":8080}`): "",
		port("", `{"containerPort":80,"hostPort":8080}`):                      "",

		podManifest(`"resources":{"requests":{"nvidia.com/gpu":"1"}},`, ""): "spec.resources: pod-level resources do not support nvidia.com/gpu; move it to the resources of a container",
		podManifest(`"resources":{"requests":{"cpu":"100m"}},`,
			`,"resources":{"requests":{"cpu":"2"}}`): "spec.resources.requests.cpu: 100m is less than the sum of the containers' requests, 2",
		podManifest(`"resources":{"requests":{"cpu":"3"}},`, `,"resources":{"requests":{"cpu":"2","memory":"1Gi"}}`): "",

		spread(`"whenUnsatisfiable":"ScheduleAnyway","minDomains":2`): "spec.topologySpreadConstraints[0].minDomains requires whenUnsatisfiable: DoNotSchedule",
		spread(`"whenUnsatisfiable":"DoNotSchedule","minDomains":0`):  "minDomains: 0 is less than 1",
		spread(`"whenUnsatisfiable":"DoNotSchedule","minDomains":2`):  "",

		podManifest(`"affinity":{"nodeAffinity":{`+soft+
			`:[{"weight":200,"preference":{"matchExpressions":[{"key":"a","operator":"Exists"}]}}]}},`, ""): "[0].weight: 200 is not between 1 and 100",
		podManifest(`"affinity":{"podAffinity":{`+soft+`:[{"podAffinityTerm":{"topologyKey":"a"}}]}},`,
			""): "[0].weight: 0 is not between 1 and 100",
		podManifest(`"affinity":{"podAffinity":{`+soft+`:[{"weight":100,"podAffinityTerm":{"topologyKey":"a"}}]}},`,
			""): "",
	} {
		m, err := read([]byte(manifest))
		checkOneLine(t, err)
		var got []string
		if err != nil {
			got = strings.Split(err.Error(), "\n")
		}
		for _, note := range m.Notes {
			got = append(got, "note: "+strings.TrimPrefix(note, "<stdin>:1: Pod default/p: "))
		}
		if text := strings.Join(got, "\n"); want == "" && text != "" || want != "" && (len(got) != 1 || !strings.Contains(text, want)) {
			t.Errorf("%s:\ngot %q\nwant %q", manifest, text, want)
		}
	}
}

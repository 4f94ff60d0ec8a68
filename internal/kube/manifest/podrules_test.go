package manifest

import (
	"strings"
	"testing"
)

// TestPodRules: of a pod that no API server lets in, the field is named and what to write; a valid one passes without a word.
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
		tolerates(`{"key":"a","operator":"Exists","value":"b"}`):                        `spec.tolerations[0] (a): operator Exists takes no value, and "b" is given; use Equal, or leave the value out`,
		tolerates(`{"operator":"Equal","value":"b"}`):                                   "the key is missing; write it, or operator: Exists",
		tolerates(`{"value":"b"}`):                                                      "the key is missing",
		tolerates(`{"key":"a","operator":"Exist"}`):                                     `operator "Exist" is unknown; use Exists or Equal`,
		tolerates(`{"key":"a","effect":"NoSchedule","tolerationSeconds":3}`):            "tolerationSeconds goes with effect NoExecute alone",
		tolerates(`{"key":"a","operator":"Exists","tolerationSeconds":3}`):              "tolerationSeconds goes with effect NoExecute alone",
		tolerates(`{"operator":"Exists"}`):                                              "",
		tolerates(`{"key":"a","value":"b","effect":"NoExecute","tolerationSeconds":3}`): "",

		resources(`{"requests":{"cpu":"2"},"limits":{"cpu":"1"}}`):                             "spec.containers[0].resources.requests.cpu: 2 is more than its limit, 1",
		resources(`{"requests":{"cpu":"1"},"limits":{"cpu":"2"}}`):                             "",
		resources(`{"requests":{"cpu":"-1"}}`):                                                 "spec.containers[0].resources.requests.cpu: -1 is negative",
		resources(`{"limits":{"nvidia.com/gpu":"500m"}}`):                                      "spec.containers[0].resources.limits.nvidia.com/gpu: 500m has to be a whole number",
		resources(`{"requests":{"nvidia.com/gpu":"1"},"limits":{"nvidia.com/gpu":"2"}}`):       "1 is less than its limit, 2, and has to equal it",
		resources(`{"requests":{"nvidia.com/gpu":"1"}}`):                                       `note: container c: resources.requests.nvidia.com/gpu needs a limit, without which the API server refuses the pod: write resources.limits.nvidia.com/gpu: "1"`,
		resources(`{"requests":{"cpu":"1","hugepages-2Mi":"512Mi"}}`):                          "note: container c: resources.requests.hugepages-2Mi needs a limit",
		resources(`{"limits":{"nvidia.com/gpu":"1"}}`):                                         "",
		resources(`{"limits":{"gpu":"1"}}`):                                                    "resources.limits.gpu: there is no such resource (is nvidia.com/gpu meant?)",
		resources(`{"requests":{"mem":"1Gi"}}`):                                                "resources.requests.mem: there is no such resource (is memory meant?)",
		resources(`{"requests":{"CPU":"1"}}`):                                                  "(is cpu meant?)",
		resources(`{"requests":{"fuse":"1"}}`):                                                 "there is no such resource; a resource that is not Kubernetes' own needs a domain",
		resources(`{"requests":{"memory":"512"}}`):                                             "note: container c: resources.requests.memory: 512 without a unit is bytes; is 512Mi meant?",
		resources(`{"requests":{"memory":"512m"}}`):                                            "note: container c: resources.requests.memory: 512m is under one byte; is 512Mi meant?",
		resources(`{"requests":{"memory":"134217728","ephemeral-storage":"1000","cpu":"1m"}}`): "",

		port("", `{"containerPort":80,"hostPort":70000}`):                     "spec.containers[0].ports[0].hostPort: 70000 is not between 1 and 65535",
		port(`"hostNetwork":true,`, `{"containerPort":80,"hostPort":8080}`):   "hostPort: 8080 has to equal containerPort, 80, since the pod has hostNetwork",
		port(`"hostNetwork":true,`, `{"containerPort":8080,"hostPort":8080}`): "",
		port("", `{"containerPort":80,"hostPort":8080}`):                      "",

		podManifest(`"resources":{"requests":{"nvidia.com/gpu":"1"}},`, ""):                                          "spec.resources: a pod as a whole cannot request nvidia.com/gpu: write it into resources of a container",
		podManifest(`"resources":{"requests":{"cpu":"100m"}},`, `,"resources":{"requests":{"cpu":"2"}}`):             "spec.resources.requests.cpu: 100m is less than what the containers request together, 2",
		podManifest(`"resources":{"requests":{"cpu":"3"}},`, `,"resources":{"requests":{"cpu":"2","memory":"1Gi"}}`): "",

		spread(`"whenUnsatisfiable":"ScheduleAnyway","minDomains":2`): "spec.topologySpreadConstraints[0].minDomains goes with whenUnsatisfiable: DoNotSchedule alone",
		spread(`"whenUnsatisfiable":"DoNotSchedule","minDomains":0`):  "minDomains: 0 is not at least 1",
		spread(`"whenUnsatisfiable":"DoNotSchedule","minDomains":2`):  "",

		podManifest(`"affinity":{"nodeAffinity":{`+soft+`:[{"weight":200,"preference":{"matchExpressions":[{"key":"a","operator":"Exists"}]}}]}},`, ""): "[0].weight: 200 is not between 1 and 100",
		podManifest(`"affinity":{"podAffinity":{`+soft+`:[{"podAffinityTerm":{"topologyKey":"a"}}]}},`, ""):                                             "[0].weight: 0 is not between 1 and 100",
		podManifest(`"affinity":{"podAffinity":{`+soft+`:[{"weight":100,"podAffinityTerm":{"topologyKey":"a"}}]}},`, ""):                                "",
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
			t.Errorf("%s:\n%s\nwant %s", manifest, text, want)
		}
	}
}

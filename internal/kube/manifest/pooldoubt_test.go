package manifest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/joiner-sh/joiner/internal/kube/kubetest"
	"github.com/joiner-sh/joiner/internal/kube/snapshot"
)

// poolManifest returns the manifest of a NodePool with these requirements, and with additional fields in its spec and
// in the spec of its template, as JSON.
func poolManifest(spec, template, requirements string) string {
	if !strings.Contains(template, "nodeClassRef") {
		template = `"nodeClassRef":{"group":"karpenter.k8s.aws","kind":"EC2NodeClass","name":"general"},` + template
	}
	if !strings.Contains(spec, `"disruption"`) {
		spec = `"disruption":{"consolidateAfter":"1m"},` + spec
	}
	return fmt.Sprintf(`{"apiVersion":"karpenter.sh/v1","kind":"NodePool","metadata":{"name":"general"},"spec":{%s"template":{"spec":{%s"requirements":[%s]}}}}`,
		spec, template, requirements)
}

// classManifest returns the manifest of an EC2NodeClass with additional fields in its spec, as JSON.
func classManifest(spec string) string {
	for _, field := range []string{
		`"role":"r"`, `"amiSelectorTerms":[{"alias":"al2023@latest"}]`, `"subnetSelectorTerms":[{"tags":{"a":"b"}}]`, `"securityGroupSelectorTerms":[{"tags":{"a":"b"}}]`,
	} {
		name, _, _ := strings.Cut(field, ":")
		if !strings.Contains(spec, name+":") {
			spec += "," + field
		}
	}
	return fmt.Sprintf(`{"apiVersion":"karpenter.k8s.aws/v1","kind":"EC2NodeClass","metadata":{"name":"general"},"spec":{%s}}`, strings.TrimPrefix(spec, ","))
}

// TestLikelyMeaning: for a wrong field or value of a NodePool or EC2NodeClass, the message names the likely meaning,
// and contains no regular expression.
func TestLikelyMeaning(t *testing.T) {
	t.Parallel()
	requirement := func(key, operator, values string) string {
		return poolManifest("", "", fmt.Sprintf(`{"key":%q,"operator":%q,"values":[%s]}`, key, operator, values))
	}
	disk := func(ebs string) string {
		return classManifest(`"blockDeviceMappings":[{"deviceName":"/dev/xvda","ebs":{` + ebs + `}}]`)
	}
	const noEffect = "does not select instances; nodes get the label unchanged: did you mean %s?"
	for manifest, want := range map[string]string{
		requirement("eks.amazonaws.com/instance-category", "In",
			`"m"`): fmt.Sprintf(noEffect, "karpenter.k8s.aws/instance-category"),
		requirement("topology.kubernetes.io/zone-id", "In",
			`"euw1-az1"`): fmt.Sprintf(noEffect, "topology.k8s.aws/zone-id"),
		requirement("topology.kubernetes.io/zones", "In",
			`"eu-west-1a"`): fmt.Sprintf(noEffect, "topology.kubernetes.io/zone"),
		requirement("node.kubernetes.io/instance-types", "In",
			`"m5.large"`): fmt.Sprintf(noEffect, "node.kubernetes.io/instance-type"),
		requirement("eks.amazonaws.com/capacityType", "In",
			`"SPOT"`): fmt.Sprintf(noEffect, "karpenter.sh/capacity-type"),
		requirement("karpenter.k8s.aws/instance-famly", "In",
			`"m5"`): "there is no such label (did you mean karpenter.k8s.aws/instance-family?)",
		requirement("team", "In", `"a"`):                                    "",
		requirement("node.kubernetes.io/team", "In", `"a"`):                 "",
		requirement("beta.kubernetes.io/instance-type", "In", `"m5.large"`): "",
		requirement("karpenter.k8s.aws/instance-family", "Exists",
			`"m5"`): "operator Exists ignores values: did you mean operator In?",
		requirement("kubernetes.io/arch", "In",
			`"amd64","x86_64"`): "(kubernetes.io/arch): no instance has the value x86_64: did you mean amd64?",
		requirement("karpenter.k8s.aws/instance-memory", "In",
			`"8"`): "no instance has the value 8: did you mean 8192?",
		requirement("karpenter.k8s.aws/instance-memory", "In",
			`"16GiB"`): "no instance has the value 16GiB: did you mean 16384?",
		requirement("karpenter.k8s.aws/instance-memory", "In", `"8192","512"`): "",
		requirement("karpenter.k8s.aws/instance-gpu-name", "In",
			`"A100"`): "no instance has the value A100: did you mean a100?",
		requirement("karpenter.k8s.aws/instance-gpu-name", "In", `"t4","a10g"`): "",
		poolManifest(`"limits":{"cpus":"10"},`, "",
			""): "spec.limits.cpus: no node has such a resource, so it limits nothing: did you mean cpu?",
		poolManifest(`"limits":{"gpu":"10"},`, "",
			""): "spec.limits.gpu: no node has such a resource, so it limits nothing: did you mean nvidia.com/gpu?",
		poolManifest(`"limits":{"cpu":"10","nvidia.com/gpu":"1"},`, "", ""): "",
		poolManifest("", `"kubelet":{"maxPods":20},`,
			""): "(it is spec.kubelet of the EC2NodeClass now)",
		poolManifest(`"disruption":{"consolidateAfter":"1m","expireAfter":"720h"},`, "",
			""): "(it is spec.template.spec.expireAfter now)",
		poolManifest("", `"nodeClassRef":{"apiVersion":"karpenter.k8s.aws/v1","kind":"EC2NodeClass","name":"general"},`,
			""): "nodeClassRef.apiVersion (write group: karpenter.k8s.aws)",
		poolManifest("", `"nodeClassRef":{"group":"karpenter.k8s.aws","kind":"AWSNodeTemplate","name":"general"},`, ""): "pool: there is no kind AWSNodeTemplate of karpenter.k8s.aws; write spec.template.spec.nodeClassRef.kind: EC2NodeClass",
		poolManifest("", `"nodeClassRef":{"group":"karpenter.k8s.aws","kind":"EC2NodeClass","name":"generl"},`,
			""): "EC2NodeClass generl is not among the manifests (did you mean general?)",
		poolManifest("", `"expireAfter":"30d",`,
			""): `"30d": must be a duration in h, m or s, for instance 720h, or Never (did you mean 720h?)`,
		poolManifest("", `"terminationGracePeriod":"1h30",`,
			""): `"1h30": must be a duration in h, m or s`,
		poolManifest(`"disruption":{"consolidateAfter":"5 minutes"},`, "",
			""): "(did you mean 5m?)",
		poolManifest(`"disruption":{"consolidateAfter":"1m","budgets":[{"nodes":"1","schedule":"0 9 * *"}]},`, "",
			""): "must be a cron line of five fields",
		poolManifest(`"disruption":{"consolidateAfter":"1m","budgets":[{"nodes":"110%"}]},`, "",
			""): "must be a number or a percentage, for instance 10 or 10%",
		poolManifest(`"disruption":{"consolidateAfter":"1m","budgets":[{"nodes":"1","schedule":"@daily","duration":"1d"}]},`, "", ""): `must be a duration in h and m, for instance 8h or 1h30m (did you mean 24h?)`,

		disk(`"volumeSize":"100GB"`):                                                                                                     `"100GB": must be an amount in Gi, Ti, G or T, for instance 100Gi (did you mean 100Gi?)`,
		disk(`"volumeSize":"100Gi","encrypted":true,"kmsKeyID":"not a key"`):                                                             ".kmsKeyID is not a key: write the ID of a KMS key, alias/NAME, or the ARN of either",
		disk(`"volumeSize":"100Gi","encrypted":true,"kmsKeyID":"alias/disks"`):                                                           "",
		disk(`"volumeSize":"100Gi","encrypted":true,"kmsKeyID":"arn:aws-cn:kms:cn-north-1:111122223333:alias/disks"`):                    "",
		disk(`"volumeSize":"100Gi","encrypted":true,"kmsKeyID":"arn:aws:kms:eu-west-1:111122223333:key/mrk-0123456789abcdef0123456789"`): "",
		disk(`"volumeSize":"100Gi","encrypted":true,"kmsKeyID":"1234abcd-12ab-34cd-56ef-1234567890ab"`):                                  "",
		disk(`"volumeSize":"100"`):                                              "(did you mean 100Gi?)",
		disk(`"volumeSize":"100Gi"`):                                            "",
		classManifest(`"securityGroupSelectorTerms":[]`):                        "spec.securityGroupSelectorTerms: give at least one term",
		classManifest(`"subnetSelectorTerms":[{"id":"sn-1"}]`):                  "must be an ID such as subnet-0123456789abcdef0",
		classManifest(`"kubelet":{"evictionHard":{"memory.available":"105%"}}`): "must be a percentage up to 100% or an amount",
		classManifest(`"capacityReservationSelectorTerms":[{"ownerID":"abc"}]`): "must be an AWS account of 12 digits",
		classManifest(`"launchTemplateName":"mine"`):                            "(custom launch templates are not supported: set the fields of the EC2NodeClass)",
		podManifest(`"runtimeClassName":"kata",`, ""):                           "RuntimeClass kata is not among the manifests; its pods are planned without its overhead, node selector and tolerations",
	} {
		text := manifest
		if strings.Contains(manifest, `"NodePool"`) && !strings.Contains(manifest, "AWSNodeTemplate") {
			text += "\n---\n" + classManifest("") // without the class there would be a note about it
		}
		m, err := read([]byte(text))
		checkOneLine(t, err)
		got := m.Notes
		if err != nil {
			got = append(got, err.Error())
		}
		for _, p := range m.Snapshot(snapshot.View{Now: kubetest.Noon}).Pools {
			if p.Unusable != "" {
				got = append(got, "pool: "+p.Unusable)
			}
		}
		all := strings.Join(got, "\n")
		if want == "" && all != "" || !strings.Contains(all, want) || strings.Contains(all, "should match") {
			t.Errorf("%s:\ngot %q\nwant %q, without \"should match\"", manifest, all, want)
		}
	}
}

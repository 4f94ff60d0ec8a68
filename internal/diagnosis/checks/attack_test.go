package checks_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/joiner-sh/joiner/internal/diagnosis"
	. "github.com/joiner-sh/joiner/internal/diagnosis/checks"
)

// findingsOf returns the broken and suspicious findings of a check.
func findingsOf(s *situation, check string) []Finding {
	return slices.DeleteFunc(slices.Clone(Actionable(Diagnose(s.e))), func(f Finding) bool { return f.Check != check })
}

// TestTextOfClasses: a text of an EC2NodeClass does not count as an error of AWS, although conditions repeat the text.
func TestTextOfClasses(t *testing.T) {
	t.Parallel()
	texts := []string{
		"not authorized with an explicit deny in an identity-based policy: arn:aws:iam::aws:policy/AdministratorAccess",
		"explicit deny in a service control policy: arn:aws:organizations::999999999999:policy/o-a/service_control_policy/p-1234",
		"UnauthorizedOperation: Encoded authorization failure message: x", "iam:PassRole on resource: " + nodeRole,
		"ServiceLinkedRole SpotSLRCreationFailed",
		"InvalidKMSKey.InvalidState kms not authorized", "VcpuLimitExceeded MaxSpotInstanceCountExceeded",
		"OptInRequired: AWS Marketplace https://example.com/x",
	}
	for _, reason := range []string{"UserDataInvalid", "TagValidationFailed", "InvalidKubeletConfiguration",
		"BlockDeviceMappingInvalid", "SubnetsNotReady", "InvalidParameterValue",
		"InstanceProfileNotFound", "UserDataSizeLimitExceeded", "FieldOverflow"} {
		s := &situation{healthy()}
		for _, text := range texts {
			c := Condition{Type: "ValidationSucceeded", Status: "False", Reason: reason, Message: `spec.userData: line 1 "` + text + `"`}
			s.class().Conditions = append(s.class().Conditions, c)
			c.Type = "Launched"
			s.e.Claims.Value[1].Conditions = append(s.e.Claims.Value[1].Conditions, c)
		}
		if findings := Actionable(Diagnose(s.e)); len(findings) > 0 {
			t.Errorf("conditions with reason %s: want no finding:\n%s", reason, failures(findings))
		}
		for class, all := range Preflight(s.e) {
			t.Errorf("conditions with reason %s block launches of class %s:\n%s", reason, class, failures(all))
		}
	}
	s := &situation{healthy()}
	s.e.Claims.Value[1].Conditions[0] = Condition{Type: "Launched", Status: "Unknown",
		Reason: "MarketplaceSubscriptionMissing", Message: "AWS Marketplace https://example.com/evil (hint)"}
	if f := findingsOf(s, "LAUNCH-10"); len(f) != 1 || strings.Contains(f[0].Fix.String(), "example.com") {
		t.Errorf("want one finding whose fix does not have the URL of the message:\n%s", failures(f))
	}
}

// TestPassRoleOfAnyRole: the author of an EC2NodeClass may name any role. The finding that the controller may not pass
// the role is certain only for a role that is mapped for nodes.
func TestPassRoleOfAnyRole(t *testing.T) {
	t.Parallel()
	for role, want := range map[string]Certainty{"NodeRole": Certain, "Admin": Likely} {
		s := &situation{healthy()}
		s.class().Role = role
		s.e.Instances.Value, s.e.Claims.Value = nil, nil
		arn := strings.Replace(nodeRole, "NodeRole", role, 1)
		s.e.Roles[role] = itemOf("iam:GetRole "+role, Role{ARN: arn, Trusts: []string{"ec2.amazonaws.com"}})
		s.e.PassRole[arn] = itemOf("iam:SimulatePrincipalPolicy", false)
		if f := findingsOf(s, "AUTH-8"); len(f) != 1 || f[0].Certainty != want {
			t.Errorf("role %s: want one finding with certainty %s:\n%s", role, want, failures(f))
		}
	}
}

// TestTaggedInstances: if only tags link an ended instance to the cluster, findings about the instance are not certain,
// and the EC2NodeClass in its tags is ignored.
func TestTaggedInstances(t *testing.T) {
	t.Parallel()
	ended := Instance{ID: "i-66", State: "terminated", Launched: noon, Class: "default", UID: "uid-1",
		StateReason: "Client.InvalidKMSKey.InvalidState: x"}
	s := &situation{healthy()}
	s.class().Keys = []string{"1234"}
	other := *s.class()
	other.Name, other.UID, other.Keys = "other", "uid-other", []string{"5678"}
	s.e.Classes.Value = append(s.e.Classes.Value, other)
	s.e.Instances.Value = append(s.e.Instances.Value, ended)
	if f := findingsOf(s, "LAUNCH-2"); len(f) != 1 || f[0].Certainty != Likely || strings.Contains(f[0].Fix.String(), "1234") {
		t.Errorf("want one finding, not certain and without a key ID:\n%s", failures(f))
	}
	s.e.Instances.Value[2].StateReason = "Client.x: AWS Marketplace"
	if f := findingsOf(s, "LAUNCH-10"); len(f) > 0 {
		t.Errorf("want no finding, because the class in a tag does not count:\n%s", failures(f))
	}
	// If neither the cluster's UID nor the NodeClaims are known, a tag proves nothing.
	s.e.Instances.Value[2].StateReason = ended.StateReason
	s.e.Claims, s.e.Identity = Item[[]Claim]{}, Item[ClusterIdentity]{}
	if f := findingsOf(s, "LAUNCH-2"); len(f) > 0 {
		t.Errorf("want no finding, because the cluster's UID is not known:\n%s", failures(f))
	}
}

// TestForgedProviderID: a kubelet may write the provider ID of another instance, here i-2, into its own Node.
func TestForgedProviderID(t *testing.T) {
	t.Parallel()
	forged := Node{Name: "ip-10-0-0-66.ec2.internal", ProviderID: "aws:///us-east-1a/i-2", Pool: "default",
		Created: noon.Add(-time.Hour), Ready: true, Arch: "amd64",
		Taints: []Taint{{Key: "example.com/not-yet", Effect: "NoSchedule"}}, TaintsBy: []string{"remover"}}
	// The forged Node does not hide the symptoms of the instance.
	s := &situation{healthy()}
	s.e.Entries.Value = s.e.Entries.Value[:1]
	s.addConsoleLine(unauthorized)
	without := findingsOf(s, "AUTH-2")
	s.e.Nodes.Value = append(s.e.Nodes.Value, forged)
	if with := findingsOf(s, "AUTH-2"); len(with) != 1 || len(without) != 1 || !slices.Equal(with[0].Evidence, without[0].Evidence) {
		t.Errorf("want the same evidence without and with the forged Node:\n%s%s", failures(without), failures(with))
	}
	// The forged Node leads to no change of the instance's NodeClaim or of the forged Node.
	for name, forge := range map[string]func(*situation){
		"the instance has no Node": func(s *situation) { s.e.Nodes.Value = append(s.e.Nodes.Value, forged) },
		"the instance has a Node": func(s *situation) {
			n := s.registered(true, "", Condition{Type: "Initialized", Status: "Unknown", Reason: "StartupTaintsExist"})
			n.Arch, n.Created = "amd64", s.e.Instances.Value[1].Launched.Add(time.Minute)
			s.e.Nodes.Value = append([]Node{forged}, s.e.Nodes.Value...)
		},
	} {
		s := &situation{healthy()}
		forge(s)
		s.addEvent("NodeClaim", "claim-2", "UnregisteredTaintMissing",
			"Node "+forged.Name+" joined without the taint: it was taken away by kube-proxy")
		for _, f := range Actionable(Diagnose(s.e)) {
			if f.Check != "READY-3" && (strings.Contains(f.Fix.String(), "nodeclaim --wait=false claim-2") ||
				strings.Contains(f.Fix.String(), "taint node "+forged.Name)) {
				t.Errorf("%s: the fix deletes the NodeClaim or changes the forged Node:\n%s", name, failures([]Finding{f}))
			}
			if strings.Contains(f.Fix.String(), "patch daemonset kube-proxy") {
				t.Errorf("%s: the name of a field manager leads to a patch of a DaemonSet:\n%s", name, failures([]Finding{f}))
			}
		}
	}
}

// TestDevicePluginsOfTenants: a DaemonSet with the name of a device plug-in counts only in a namespace where
// administrators install it.
func TestDevicePluginsOfTenants(t *testing.T) {
	t.Parallel()
	for namespace, isTrusted := range map[string]bool{"kube-system": true, "gpu-operator": true, "tenant": false} {
		s := &situation{healthy()}
		s.registered(true, "", Condition{Type: "Initialized", Status: "Unknown", Reason: "ResourceNotRegistered",
			Message: `Resource "nvidia.com/gpu" was requested but not registered`})
		s.e.Daemons.Value = append(s.e.Daemons.Value, DaemonSet{Namespace: namespace, Name: "nvidia-device-plugin"})
		f := findingsOf(s, "READY-1")
		if len(f) != 1 || f[0].Fix.Changes() != isTrusted {
			t.Errorf("namespace %s: want one finding, whose fix patches the DaemonSet: %t:\n%s", namespace, isTrusted, failures(f))
		}
		// A pod of the plug-in that was just created may still start.
		s.e.Pods.Value = append(s.e.Pods.Value,
			Pod{Namespace: namespace, Name: "x", Owner: "DaemonSet/nvidia-device-plugin", Node: "ip-10-0-0-2.ec2.internal", Created: noon})
		if f := findingsOf(s, "READY-1"); (len(f) > 0) == isTrusted {
			t.Errorf("namespace %s: the check waits for the new pod: %t, want %t", namespace, len(f) == 0, isTrusted)
		}
	}
}

// TestSingleSource: a finding is not certain if only one Node, one console or one event shows it.
func TestSingleSource(t *testing.T) {
	t.Parallel()
	for check, forge := range map[string]func(*situation){
		"CNI-1": func(s *situation) {
			s.e.Daemons.Value = s.e.Daemons.Value[1:]
			s.registered(false, "cni plugin not initialized", Condition{Type: "Initialized", Status: "Unknown"})
		},
		"CNI-2": func(s *situation) {
			s.e.Daemons.Value = s.e.Daemons.Value[:1]
			s.addConsoleLine("ipamd: dial tcp 10.100.0.1:443: i/o timeout")
		},
		"TAINT-1": func(s *situation) {
			s.addEvent("NodeClaim", "claim-1", "UnregisteredTaintMissing", "Node ip-10-0-0-1.ec2.internal")
		},
		"BOOT-4": func(s *situation) {
			s.e.Images.Value[0].Name = "my-bottlerocket-al2023"
			s.class().Family = "Bottlerocket"
			s.addConsoleLine("Unhandled unknown content-type")
		},
	} {
		s := &situation{healthy()}
		forge(s)
		if f := findingsOf(s, check); len(f) == 0 || slices.ContainsFunc(f, func(f Finding) bool { return f.Certainty == Certain }) {
			t.Errorf("%s: want findings that are not certain:\n%s", check, failures(f))
		}
	}
	// A forged console must not make the user remove a flag that protects the node.
	s := &situation{healthy()}
	s.addConsoleLine(`kubelet: failed to parse kubelet flag: unknown flag: --authorization-mode`)
	if f := findingsOf(s, "BOOT-9"); len(f) == 0 || strings.Contains(f[0].Fix.String(), "without-flag") {
		t.Errorf("want a fix that does not remove --authorization-mode:\n%s", failures(f))
	}
}

// TestLabelInUse: the fix for a pod that selects another value of a label does not replace the value that other pods
// select.
func TestLabelInUse(t *testing.T) {
	t.Parallel()
	s := &situation{healthy()}
	s.e.Pods.Value = append(s.e.Pods.Value, Pod{Namespace: "tenant", Name: "x", Selector: map[string]string{"team": "evil"}})
	if f := findingsOf(s, "ARCH-4"); len(f) != 1 || f[0].Fix.Changes() {
		t.Errorf("want one finding whose fix does not replace the label:\n%s", failures(f))
	}
}

package checks_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/joiner-sh/joiner/internal/diagnosis"
	. "github.com/joiner-sh/joiner/internal/diagnosis/checks"
)

// found returns the findings of a check that are not fine.
func found(s *situation, check string) []Finding {
	return slices.DeleteFunc(slices.Clone(Worst(Diagnose(s.e))), func(f Finding) bool { return f.Check != check })
}

// TestTextOfClasses: input of an EC2NodeClass's author is repeated in its conditions, and does not count as an answer of AWS.
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
		if worst := Worst(Diagnose(s.e)); len(worst) > 0 {
			t.Errorf("%s:\n%s", reason, failures(worst))
		}
		for class, all := range Preflight(s.e) {
			t.Errorf("%s: ahead of launches of %s:\n%s", reason, class, failures(all))
		}
	}
	s := &situation{healthy()}
	s.e.Claims.Value[1].Conditions[0] = Condition{Type: "Launched", Status: "Unknown",
		Reason: "MarketplaceSubscriptionMissing", Message: "AWS Marketplace https://example.com/evil (hint)"}
	if f := found(s, "LAUNCH-10"); len(f) != 1 || strings.Contains(f[0].Fix.String(), "example.com") {
		t.Errorf("the fix has a foreign address:\n%s", failures(f))
	}
}

// TestPassRoleOfAnyRole: the author of an EC2NodeClass may name any role. Allowing the controller to pass it is certain
// advice only for a role that is mapped for nodes.
func TestPassRoleOfAnyRole(t *testing.T) {
	t.Parallel()
	for role, want := range map[string]Certainty{"NodeRole": Certain, "Admin": Likely} {
		s := &situation{healthy()}
		s.class().Role = role
		s.e.Instances.Value, s.e.Claims.Value = nil, nil
		arn := strings.Replace(nodeRole, "NodeRole", role, 1)
		s.e.Roles[role] = has("iam:GetRole "+role, Role{ARN: arn, Trusts: []string{"ec2.amazonaws.com"}})
		s.e.PassRole[arn] = has("iam:SimulatePrincipalPolicy", false)
		if f := found(s, "AUTH-8"); len(f) != 1 || f[0].Certainty != want {
			t.Errorf("%s, want %s:\n%s", role, want, failures(f))
		}
	}
}

// TestTaggedInstances: an ended instance that only its tags link to the cluster makes nothing certain, and selects no class.
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
	if f := found(s, "LAUNCH-2"); len(f) != 1 || f[0].Certainty != Likely || strings.Contains(f[0].Fix.String(), "1234") {
		t.Errorf("findings from a tagged instance:\n%s", failures(f))
	}
	s.e.Instances.Value[2].StateReason = "Client.x: AWS Marketplace"
	if f := found(s, "LAUNCH-10"); len(f) > 0 {
		t.Errorf("a tag chooses the class whose image is replaced:\n%s", failures(f))
	}
	// The controller knows its EC2NodeClasses, but not its UID.
	s.e.Instances.Value[2].StateReason = ended.StateReason
	s.e.Claims, s.e.Home = Item[[]Claim]{}, Item[Home]{}
	if f := found(s, "LAUNCH-2"); len(f) > 0 {
		t.Errorf("the controller believes tags:\n%s", failures(f))
	}
}

// TestForgedProviderID: a kubelet may write the provider ID of another instance into its own Node.
func TestForgedProviderID(t *testing.T) {
	t.Parallel()
	forged := Node{Name: "ip-10-0-0-66.ec2.internal", ProviderID: "aws:///us-east-1a/i-2", Pool: "default",
		Created: noon.Add(-time.Hour), Ready: true, Arch: "amd64",
		Taints: []Taint{{Key: "example.com/not-yet", Effect: "NoSchedule"}}, TaintsBy: []string{"remover"}}
	// It does not hide the symptoms of the instance.
	s := &situation{healthy()}
	s.e.Entries.Value = s.e.Entries.Value[:1]
	s.says(unauthorized)
	without := found(s, "AUTH-2")
	s.e.Nodes.Value = append(s.e.Nodes.Value, forged)
	if with := found(s, "AUTH-2"); len(with) != 1 || len(without) != 1 || !slices.Equal(with[0].Evidence, without[0].Evidence) {
		t.Errorf("a forged Node hides the console:\n%s%s", failures(without), failures(with))
	}
	// It leads to no step about the instance, its NodeClaim or the Node itself.
	for name, forge := range map[string]func(*situation){
		"waiting for the Node": func(s *situation) { s.e.Nodes.Value = append(s.e.Nodes.Value, forged) },
		"with a Node": func(s *situation) {
			n := s.registered(true, "", Condition{Type: "Initialized", Status: "Unknown", Reason: "StartupTaintsExist"})
			n.Arch, n.Created = "amd64", s.e.Instances.Value[1].Launched.Add(time.Minute)
			s.e.Nodes.Value = append([]Node{forged}, s.e.Nodes.Value...)
		},
	} {
		s := &situation{healthy()}
		forge(s)
		s.event("NodeClaim", "claim-2", "UnregisteredTaintMissing",
			"Node "+forged.Name+" joined without the taint: it was taken away by kube-proxy")
		for _, f := range Worst(Diagnose(s.e)) {
			if f.Check != "READY-3" && (strings.Contains(f.Fix.String(), "nodeclaim --wait=false claim-2") ||
				strings.Contains(f.Fix.String(), "taint node "+forged.Name)) {
				t.Errorf("%s:\n%s", name, failures([]Finding{f}))
			}
			if strings.Contains(f.Fix.String(), "patch daemonset kube-proxy") {
				t.Errorf("%s: the name of a manager stops a DaemonSet:\n%s", name, failures([]Finding{f}))
			}
		}
	}
}

// TestDevicePluginsOfTenants: a DaemonSet with the name of a device plug-in counts only in a namespace where administrators install it.
func TestDevicePluginsOfTenants(t *testing.T) {
	t.Parallel()
	for namespace, isOurs := range map[string]bool{"kube-system": true, "gpu-operator": true, "tenant": false} {
		s := &situation{healthy()}
		s.registered(true, "", Condition{Type: "Initialized", Status: "Unknown", Reason: "ResourceNotRegistered",
			Message: `Resource "nvidia.com/gpu" was requested but not registered`})
		s.e.Daemons.Value = append(s.e.Daemons.Value, DaemonSet{Namespace: namespace, Name: "nvidia-device-plugin"})
		f := found(s, "READY-1")
		if len(f) != 1 || f[0].Fix.Changes() != isOurs {
			t.Errorf("%s:\n%s", namespace, failures(f))
		}
		s.e.Pods.Value = append(s.e.Pods.Value,
			Pod{Namespace: namespace, Name: "x", Owner: "DaemonSet/nvidia-device-plugin", Node: "ip-10-0-0-2.ec2.internal", Created: noon})
		if f := found(s, "READY-1"); len(f) > 0 == isOurs {
			t.Errorf("a pod of %s is waited for: %t", namespace, len(f) == 0)
		}
	}
}

// TestOneNodesWord: the claims of one Node, one console or an event in the namespace default are not certain.
func TestOneNodesWord(t *testing.T) {
	t.Parallel()
	for check, forge := range map[string]func(*situation){
		"CNI-1": func(s *situation) {
			s.e.Daemons.Value = s.e.Daemons.Value[1:]
			s.registered(false, "cni plugin not initialized", Condition{Type: "Initialized", Status: "Unknown"})
		},
		"CNI-2": func(s *situation) {
			s.e.Daemons.Value = s.e.Daemons.Value[:1]
			s.says("ipamd: dial tcp 10.100.0.1:443: i/o timeout")
		},
		"TAINT-1": func(s *situation) {
			s.event("NodeClaim", "claim-1", "UnregisteredTaintMissing", "Node ip-10-0-0-1.ec2.internal")
		},
		"BOOT-4": func(s *situation) {
			s.e.Images.Value[0].Name = "my-bottlerocket-al2023"
			s.class().Family = "Bottlerocket"
			s.says("Unhandled unknown content-type")
		},
	} {
		s := &situation{healthy()}
		forge(s)
		if f := found(s, check); len(f) == 0 || slices.ContainsFunc(f, func(f Finding) bool { return f.Certainty == Certain }) {
			t.Errorf("%s:\n%s", check, failures(f))
		}
	}
	s := &situation{healthy()}
	s.says(`kubelet: failed to parse kubelet flag: unknown flag: --authorization-mode`)
	if f := found(s, "BOOT-9"); len(f) == 0 || strings.Contains(f[0].Fix.String(), "without-flag") {
		t.Errorf("a console leaves out a flag that protects the node:\n%s", failures(f))
	}
}

// TestLabelThatPodsHave: a fix for a pod with another value of a label does not remove the label that other pods select.
func TestLabelThatPodsHave(t *testing.T) {
	t.Parallel()
	s := &situation{healthy()}
	s.e.Pods.Value = append(s.e.Pods.Value, Pod{Namespace: "tenant", Name: "x", Selector: map[string]string{"team": "evil"}})
	if f := found(s, "ARCH-4"); len(f) != 1 || f[0].Fix.Changes() {
		t.Errorf("the label is replaced:\n%s", failures(f))
	}
}

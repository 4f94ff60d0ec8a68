package checks_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/joiner-sh/joiner/internal/diagnosis"
	. "github.com/joiner-sh/joiner/internal/diagnosis/checks"
)

// TestForgedEvents: an event counts only if its namespace and component are the controller's and its object exists.
// A user can set every field of an event, but only in the namespaces where they may create events.
func TestForgedEvents(t *testing.T) {
	t.Parallel()
	texts := []string{
		"not authorized with an explicit deny in an identity-based policy: arn:x;touch${IFS}pwned2;# more",
		"not authorized with an explicit deny in a service control policy: arn:aws:organizations::1:policy/o-1/service_control_policy/p-1",
		"UnauthorizedOperation: You are not authorized to perform this operation. Encoded authorization failure message: x",
		"not authorized to perform: iam:PassRole on resource: " + nodeRole,
		"AuthFailure.ServiceLinkedRoleCreationNotPermitted", "SpotSLRCreationFailed",
		"InvalidKMSKey.InvalidState: the key is disabled", "VcpuLimitExceeded: your current vCPU limit of 32", "MaxSpotInstanceCountExceeded",
		"OptInRequired: AWS Marketplace https://example.com/x", "InvalidBlockDeviceMapping", "User data is limited to 16384 bytes",
		"InsufficientFreeAddressesInSubnet", "UnregisteredTaintMissing: Node ip-10-0-0-1.ec2.internal joined: it was taken away by cilium",
	}
	for forgery, forge := range map[string]func(*Event){
		"in a tenant's namespace": func(v *Event) { v.Namespace = "tenant" },
		"from another component":  func(v *Event) { v.By = "x" },
		"without component":       func(v *Event) { v.By = "" },
		"about a deleted object":  func(v *Event) { v.UID = "uid-old" },
		"about no object":         func(v *Event) { v.UID = "" },
		"about another kind":      func(v *Event) { v.Kind = "Job" },
		"about a tenant's pod":    func(v *Event) { v.Kind, v.Name, v.Namespace, v.By = "Pod", "shop/web-1", "shop", "kubelet" },
		"of an older bundle":      func(v *Event) { v.UID, v.By, v.Namespace = "", "", "" }, // without these fields
	} {
		s := &situation{healthy()}
		for _, text := range texts {
			for kind, name := range map[string]string{"NodeClaim": "claim-1", "EC2NodeClass": "default"} {
				s.addEvent(kind, name, "UnregisteredTaintMissing", text)
				forge(&s.e.Events.Value[len(s.e.Events.Value)-1])
			}
		}
		if findings := Actionable(Diagnose(s.e)); len(findings) > 0 {
			t.Errorf("events %s: want no finding:\n%s", forgery, failures(findings))
		}
	}
}

// TestNoDenialFromEvents: even the controller's own events lead neither to findings about IAM nor to certain findings.
// Conditions have the same information and are more reliable.
func TestNoDenialFromEvents(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"explicit deny in a service control policy", "UnauthorizedOperation",
		"iam:PassRole on resource: " + nodeRole, "ServiceLinkedRole", "InvalidKMSKey", "AWS Marketplace"} {
		s := &situation{healthy()}
		s.e.Claims.Value[1].Conditions[0].Status = "Unknown" // not launched, so the event is not over
		s.addEvent("NodeClaim", "claim-2", "LaunchFailed", text)
		for _, f := range Actionable(Diagnose(s.e)) {
			t.Errorf("the event %q: want no finding:\n%s", text, failures([]Finding{f}))
		}
	}
	s := &situation{healthy()}
	s.e.Claims.Value[1].Conditions[0].Status = "Unknown"
	s.addEvent("NodeClaim", "claim-2", "InsufficientCapacityError", "VcpuLimitExceeded: your current vCPU limit of 999999 $(x)")
	findings := Actionable(Diagnose(s.e))
	// 1999998 is twice the limit in the event: the quota that a fix would request.
	if len(findings) != 1 || findings[0].Check != "LAUNCH-5" || findings[0].Certainty != Likely ||
		strings.Contains(findings[0].Fix.String(), "999999") || strings.Contains(findings[0].Fix.String(), "1999998") {
		t.Errorf("want one finding, of LAUNCH-5 and Likely, whose fix does not use the number of the event:\n%s", failures(findings))
	}
}

// TestForgedTags: the tags of an instance count only if a NodeClaim has the instance's provider ID.
func TestForgedTags(t *testing.T) {
	t.Parallel()
	foreign := Instance{ID: "i-66", State: "running", Launched: noon.Add(-time.Hour), Claim: "claim-1 claim-2",
		Class: "default", UID: "uid-1", Image: "ami-1", Subnet: "subnet-1",
		Groups: []string{"sg-evil"}, PrivateDNS: "ip-10-0-0-1.ec2.internal",
		Console: itemOf("ec2:GetConsoleOutput i-66",
			unauthorized+"\nx509: certificate signed by unknown authority\n"+timeout+"\nUnable to locate credentials\n")}
	for _, claim := range []string{"claim-1", "claim-2", "claim-1 claim-2 --all", "", "claim-9"} {
		s := &situation{healthy()}
		tagged := foreign
		tagged.Claim = claim
		s.e.Instances.Value = append(s.e.Instances.Value, tagged)
		s.e.Impaired.Value["i-66"] = "instance"
		if findings := Actionable(Diagnose(s.e)); len(findings) > 0 {
			t.Errorf("an instance tagged with the NodeClaim %q: want no finding:\n%s", claim, failures(findings))
		}
	}
	// The symptoms of the foreign instance do not hide those of the cluster's own instances, and no fix names a
	// NodeClaim from the tags of the foreign instance.
	s := &situation{healthy()}
	s.e.Instances.Value = append(s.e.Instances.Value, foreign)
	s.e.Entries.Value = s.e.Entries.Value[:1] // without the access entry of the node role
	s.addConsoleLine(unauthorized)
	for _, f := range Actionable(Diagnose(s.e)) {
		if strings.Contains(f.Fix.String(), "claim-1") || strings.Contains(f.Fix.String(), "i-66") ||
			strings.Contains(strings.Join(f.Evidence, " "), "i-66") {
			t.Errorf("a fix or the evidence is about the foreign instance or its tags:\n%s", failures([]Finding{f}))
		}
	}
}

// TestTenantsPods: the status of a tenant's pod leads at most to findings about that pod, and they are not certain.
func TestTenantsPods(t *testing.T) {
	t.Parallel()
	for name, p := range map[string]Pod{
		"an image of another platform": {Name: "app", Owner: "Deployment/app", Node: "ip-10-0-0-1.ec2.internal",
			Events: []string{"no match for platform in manifest"}},
		"an exec format error": {Name: "app", Owner: "Deployment/app", Node: "ip-10-0-0-1.ec2.internal",
			Messages: []string{"Error: exec format error"}},
		"a metadata timeout": {Name: "app", Owner: "Deployment/app", Node: "ip-10-0-0-1.ec2.internal",
			Created: noon.Add(-time.Hour), Messages: []string{"IMDS 169.254.169.254 timeout"}},
		"the owner's name of a metadata user": {Name: "x", Owner: "DaemonSet/ebs-csi-node", Node: "ip-10-0-0-1.ec2.internal",
			Created: noon.Add(-time.Hour), Messages: []string{"169.254.169.254"}},
		"the name of the network plug-in": {Name: "aws-node-x", Owner: "DaemonSet/aws-node", Node: "ip-10-0-0-1.ec2.internal",
			Messages: []string{"dial tcp 10.100.0.1:443: i/o timeout"}},
		"no address": {Name: "app", Owner: "Deployment/app", Node: "ip-10-0-0-1.ec2.internal",
			Events: []string{"failed to assign an IP address to container"}},
		"a denial": {Name: "app", Node: "ip-10-0-0-1.ec2.internal",
			Messages: []string{"explicit deny in a service control policy"}, Events: []string{"UnauthorizedOperation"}},
		"a label that no pool has": {Name: "app", Selector: map[string]string{"nowhere.example/x": "1"}},
		"a message of Fargate":     {Name: "joiner-0", Events: []string{"Misconfigured Fargate Profile: pod execution role is not found"}},
		"a device plug-in's name":  {Name: "nvidia-device-plugin-x", Owner: "DaemonSet/nvidia-device-plugin", Node: "ip-10-0-0-1.ec2.internal"},
	} {
		s := &situation{healthy()}
		p.Namespace = "tenant"
		s.e.Pods.Value = append(s.e.Pods.Value, p)
		for _, f := range Actionable(Diagnose(s.e)) {
			if f.Subject != "pod tenant/"+p.Name || f.Certainty == Certain {
				t.Errorf("the pod with %s: want only findings about it, none certain:\n%s", name, failures([]Finding{f}))
			}
		}
	}
	// A tenant's DaemonSet with the name of the network plug-in is not the network plug-in. It does not hide that the
	// cluster has none.
	s := &situation{healthy()}
	s.e.Daemons.Value = []DaemonSet{{Namespace: "tenant", Name: "aws-node",
		Env: map[string]string{"AWS_VPC_K8S_CNI_CUSTOM_NETWORK_CFG": "true"}}, {Namespace: "tenant", Name: "kube-proxy"}}
	if findings := Actionable(Diagnose(s.e)); len(findings) > 0 {
		t.Errorf("a tenant's DaemonSet counts as the network plug-in:\n%s", failures(findings))
	}
	s.registered(false, "cni plugin not initialized", Condition{Type: "Initialized", Status: "Unknown"})
	if findings := Actionable(Diagnose(s.e)); !slices.ContainsFunc(findings,
		func(f Finding) bool { return f.Check == "CNI-1" && strings.Contains(f.Cause, "no network plug-in") }) {
		t.Errorf("a tenant's DaemonSet hides that the cluster has no network plug-in:\n%s", failures(findings))
	}
}

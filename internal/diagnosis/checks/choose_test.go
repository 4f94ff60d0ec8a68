package checks_test

import (
	"strings"
	"testing"

	. "github.com/joiner-sh/joiner/internal/diagnosis"
)

// addClass adds a working class with other security groups and subnets, and with the role.
func addClass(s *situation, name, role string) *Class {
	c := *s.class()
	c.Name, c.Role, c.Profile = name, role, "prod_"+name
	c.Groups, c.Subnets = []string{"sg-" + name}, []string{"subnet-" + name}
	s.e.Classes.Value = append(s.e.Classes.Value, c)
	arn := "arn:aws:iam::111122223333:role/" + role
	r := healthyRole()
	r.ARN = arn
	s.e.Roles[role] = itemOf("iam:GetRole", r)
	s.e.Profiles[c.Profile] = itemOf("iam:GetInstanceProfile", Profile{ARN: "arn", Role: arn})
	return &s.e.Classes.Value[len(s.e.Classes.Value)-1]
}

// TestChoices: a fix takes the role, security groups, subnets, NAT gateway or class that is used most. On a tie, the
// user chooses.
func TestChoices(t *testing.T) {
	t.Parallel()
	nodeGroupEntry := Entry{Principal: "arn:aws:iam::111122223333:role/AGroupRole", Type: "EC2_LINUX"}
	noRole := func(s *situation) { // AGroupRole precedes NodeRole: the order must not decide
		s.class().Role, s.class().Profile = "", "mine"
		s.e.Profiles["mine"] = itemOf("iam:GetInstanceProfile", Profile{ARN: "arn"})
		s.e.Entries.Value = append([]Entry{nodeGroupEntry}, s.e.Entries.Value...)
		s.e.Roles["AGroupRole"] = itemOf("iam:GetRole", Role{ARN: nodeGroupEntry.Principal, Trusts: []string{"ec2.amazonaws.com"}})
		s.e.NodeGroups.Value = []NodeGroup{{Name: "system", Role: nodeGroupEntry.Principal}}
	}
	badTag := func(s *situation) {
		unmatched("SecurityGroupsReady", "SecurityGroupsNotFound")(s)
		s.class().GroupTags = map[string]string{"karpenter.sh/discovry": "prod"}
	}
	for name, c := range map[string]struct {
		breaks      func(*situation)
		check, want string // ID of a check, whose fix must contain want
		not         string // text that the first line of the fix must not contain; empty: not checked
	}{
		"the mapped role that no node group has": {noRole, "AUTH-7", "--role-name NodeRole", "AGroupRole"},
		"the role of the other class": {func(s *situation) { noRole(s); addClass(s, "web", "WebRole") }, "AUTH-7",
			"--role-name WebRole", "AGroupRole"},
		"the role of the largest number of classes": {func(s *situation) {
			noRole(s)
			addClass(s, "web", "WebRole")
			addClass(s, "api", "ApiRole")
			addClass(s, "more", "WebRole")
		}, "AUTH-7", "--role-name WebRole", "ApiRole"},
		"two equally likely roles": {func(s *situation) {
			noRole(s)
			addClass(s, "web", "WebRole")
			addClass(s, "api", "ApiRole")
		}, "AUTH-7", "--role-name NODE_ROLE   # NODE_ROLE is one of: ApiRole or WebRole", "--role-name WebRole"},
		"the groups of the other class": {func(s *situation) { addClass(s, "web", "NodeRole"); badTag(s) }, "LAUNCH-8",
			`"securityGroupSelectorTerms":[{"id":"sg-web"}]`, "sg-cluster"},
		"a misspelt tag": {badTag, "LAUNCH-8",
			"# or select by the tag karpenter.sh/discovery, if karpenter.sh/discovry is a misspelling of it", ""},
		"two equally used sets of groups": {func(s *situation) {
			addClass(s, "web", "NodeRole")
			addClass(s, "api", "NodeRole")
			badTag(s)
		}, "LAUNCH-8", "kubectl edit ec2nodeclass default   # in spec.securityGroupSelectorTerms select the groups of other EC2NodeClasses: sg-api, or sg-web", "kubectl patch"},
		"the subnets of the other class": {func(s *situation) {
			addClass(s, "web", "NodeRole")
			unmatched("SubnetsReady", "SubnetsNotFound")(s)
		}, "LAUNCH-8", `"subnetSelectorTerms":[{"id":"subnet-web"}]`, "edit"},
		"two NAT gateways": {func(s *situation) {
			networkFaults()["NET-4"][1].breaks(s) // the default route leads to a deleted NAT gateway
			for _, id := range []string{"nat-8", "nat-9"} {
				s.e.Routes.Value = append(s.e.Routes.Value,
					RouteTable{ID: "rtb-" + id[4:], Subnets: []string{"subnet-" + id[4:]}, Routes: []Route{{To: "0.0.0.0/0", Target: id}}})
			}
		}, "NET-4", "--nat-gateway-id NAT_GATEWAY_ID", "nat-8"},
		"class with a similar name": {func(s *situation) {
			addClass(s, "batch-arm", "NodeRole")
			addClass(s, "web", "NodeRole")
			s.pool().Name, s.pool().Class = "other", "bach-arm"
		}, "LAUNCH-9", `"nodeClassRef":{"name":"batch-arm"}`, "edit"},
		"two equally likely classes": {func(s *situation) {
			addClass(s, "web", "NodeRole")
			s.pool().Name, s.pool().Class = "other", "zzzzzzzz"
		}, "LAUNCH-9", "kubectl edit nodepool other   # set spec.template.spec.nodeClassRef.name to one of: default, web", "patch"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &situation{healthy()}
			c.breaks(s)
			got := fixOf(s, c.check)
			if !strings.Contains(got, c.want) || c.not != "" && strings.Contains(strings.Split(got, "\n")[0], c.not) {
				t.Errorf("the fix is\n%s\nwant %s, and in its first line not %q", got, c.want, c.not)
			}
		})
	}
}

// TestClaimByProviderID: the fix for a broken instance deletes the NodeClaim that has the instance's provider ID, not a
// NodeClaim that is named only by the instance's tag.
func TestClaimByProviderID(t *testing.T) {
	t.Parallel()
	s := &situation{healthy()}
	s.e.Impaired.Value["i-2"] = "system"
	s.e.Instances.Value[1].Claim = s.e.Claims.Value[0].Name
	if got := fixOf(s, "BOOT-16"); !strings.HasPrefix(got, "kubectl delete nodeclaim --wait=false "+s.e.Claims.Value[1].Name+" ") {
		t.Errorf("the fix is %s, want kubectl delete nodeclaim of %s", got, s.e.Claims.Value[1].Name)
	}
}

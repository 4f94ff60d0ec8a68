package checks_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/joiner-sh/joiner/internal/diagnosis"
	. "github.com/joiner-sh/joiner/internal/diagnosis/checks"
)

const unauthorized = `[   31.7] kubelet[1893]: E0501 12:00:00.1 1893 kubelet_node_status.go:116] "Unable to register node with API server" err="Unauthorized" node="ip-10-0-0-2.ec2.internal"`

const timeout = `[   31.7] kubelet[1893]: E0501 12:00:00.1 1893 kubelet_node_status.go:116] "Unable to register node with API server" err="Post \"https://abc.eks.amazonaws.com/api/v1/nodes\": dial tcp 10.0.1.5:443: i/o timeout"`

// fault is a problem of the healthy cluster, and the finding that its check must return. The finding must come first,
// unless notTop is set.
type fault struct {
	breaks     func(*situation) // causes the problem
	cause      string           // part of the finding's cause
	fix        string           // part of the finding's fix
	notTop     bool             // another finding is the root cause and comes first
	suspicious bool             // the verdict is Suspicious; false: Broken
}

// faults returns the faults by the ID of their check.
func faults() map[string][]fault {
	all := map[string][]fault{}
	for _, part := range []map[string][]fault{authFaults(), networkFaults(), bootFaults(), planFaults(), launchFaults(),
		readyFaults(), fargateFaults(), leaderFaults()} {
		for id, f := range part {
			all[id] = append(all[id], f...)
		}
	}
	return all
}

func authFaults() map[string][]fault {
	noEntry := func(s *situation) { s.e.Entries.Value = s.e.Entries.Value[:1] }
	addRow := func(s *situation, m Mapping) { // to aws-auth, which then is the only mapping that the cluster reads
		noEntry(s)
		s.cluster().AuthMode = "CONFIG_MAP"
		s.e.AuthMap.Value.Roles = append(s.e.AuthMap.Value.Roles, m)
	}
	valid := Mapping{ARN: nodeRole, Username: "system:node:{{EC2PrivateDNSName}}", Groups: []string{"system:bootstrappers", "system:nodes"}}
	withRow := func(change func(*Mapping)) func(*situation) { // with a changed row for the node role
		return func(s *situation) {
			m := valid
			change(&m)
			addRow(s, m)
			s.addConsoleLine(unauthorized)
		}
	}
	return map[string][]fault{
		"AUTH-1": {{breaks: func(s *situation) { addRow(s, valid); s.cluster().AuthMode = "API"; s.addConsoleLine(unauthorized) },
			cause: "mapped in aws-auth only", fix: "aws eks create-access-entry"}},
		"AUTH-2": {
			{breaks: func(s *situation) { noEntry(s); s.addConsoleLine(unauthorized) }, cause: "NodeRole is not mapped",
				fix: "aws eks create-access-entry --cluster-name prod --region us-east-1 --principal-arn " + nodeRole + " --type EC2_LINUX"},
			{breaks: func(s *situation) { s.e.Entries.Value[1].Type = "STANDARD"; s.addConsoleLine(unauthorized) },
				cause: "of type STANDARD", fix: "aws eks delete-access-entry"},
			{breaks: func(s *situation) { s.e.Entries.Value[1].Principal = "arn:aws:iam::111122223333:role/team/NodeRole" },
				cause: "an entry applies to the whole ARN", fix: "delete-access-entry"},
		},
		"AUTH-3": {
			{breaks: func(s *situation) {
				noEntry(s)
				s.cluster().AuthMode, s.class().Family, s.e.Images.Value = "CONFIG_MAP", "Windows2022", nil
			}, cause: "aws-auth has no row for it", fix: "eks:kube-proxy-windows"},
			{breaks: func(s *situation) { noEntry(s); s.cluster().AuthMode = "CONFIG_MAP"; s.addConsoleLine(unauthorized) },
				cause: "aws-auth has no row for it", fix: "kubectl -n kube-system patch configmap aws-auth"},
			{breaks: withRow(func(m *Mapping) { m.Groups = []string{"system:masters"} }), cause: "groups lack system:nodes", fix: "patch configmap"},
			{breaks: withRow(func(m *Mapping) { m.Groups = []string{"system:nodes"} }), cause: "lack system:bootstrappers", fix: "patch configmap"},
			{breaks: withRow(func(m *Mapping) { m.Username = "system:node:{{EC2PrivateDnsName}}" }), cause: "does not fill in", fix: "patch configmap"},
			{breaks: withRow(func(m *Mapping) { m.Username = "node" }), cause: `username is "node"`, fix: "patch configmap"},
			{breaks: withRow(func(m *Mapping) { m.ARN = "arn:aws:iam::111122223333:role/team/a/NodeRole" }),
				cause: "has the role's path", fix: nodeRole},
			{breaks: withRow(func(m *Mapping) { m.ARN = "arn:aws:iam::999999999999:role/NodeRole" }), cause: "of another account", fix: nodeRole},
			{breaks: func(s *situation) {
				addRow(s, valid)
				s.e.AuthMap.Value = AuthMap{Raw: "- x", Problem: "line 1: not a list"}
			}, cause: "cannot be read", fix: "get configmap aws-auth -o yaml > aws-auth-before.yaml"},
			{breaks: func(s *situation) { addRow(s, valid); m := valid; m.Username = "x"; addRow(s, m) }, cause: "2 rows",
				fix: "patch configmap", suspicious: true},
		},
		"AUTH-4": {{breaks: func(s *situation) {
			r := s.e.Roles["NodeRole"]
			r.Value.Created = noon.Add(-time.Hour)
			s.e.Roles["NodeRole"] = r
			s.addConsoleLine(unauthorized)
		}, cause: "older than the role", fix: "delete-access-entry"}},
		"AUTH-5": {
			{breaks: func(s *situation) {
				addRow(s, Mapping{ARN: controllerRole, Username: valid.Username, Groups: valid.Groups})
				s.addConsoleLine(unauthorized)
			}, cause: "node role NodeRole is not mapped; the role that is mapped, Controller, is the controller's own",
				fix: "patch configmap aws-auth"},
			{breaks: func(s *situation) {
				s.e.Entries.Value[1].Principal = controllerRole
				s.e.Controller.Value.Role = ""
				s.addConsoleLine(unauthorized)
			}, cause: "a role that only pods can assume", fix: "aws eks create-access-entry"},
			{breaks: func(s *situation) { s.class().Role, s.class().Profile = "Controller", "" },
				cause: "is the role of the controller's pods", fix: `"role":"NodeRole"`},
		},
		"AUTH-6": {
			{breaks: func(s *situation) {
				s.e.Roles["NodeRole"] = itemOf("iam:GetRole", Role{ARN: nodeRole, Trusts: []string{"lambda.amazonaws.com"}})
			}, cause: "EC2 is not allowed to give", fix: "update-assume-role-policy"},
			{breaks: func(s *situation) {
				s.e.Roles["NodeRole"] = AbsentItem[Role]("iam:GetRole NodeRole", noon, Missing, "")
			},
				cause: "there is no role NodeRole", fix: "kubectl edit ec2nodeclass"},
			{breaks: func(s *situation) {
				s.e.Roles["NodeRole"] = itemOf("iam:GetRole", Role{ARN: nodeRole, Trusts: []string{"ec2.amazonaws.com"}})
			}, cause: "lacks AmazonEKSWorkerNodePolicy and AmazonEC2ContainerRegistryPullOnly", fix: "attach-role-policy"},
		},
		"AUTH-7": {
			{breaks: func(s *situation) {
				s.e.Profiles["prod_1"] = itemOf("iam:GetInstanceProfile", Profile{ARN: "arn", Role: controllerRole})
			}, cause: "has the role Controller", fix: "remove-role-from-instance-profile"},
			{breaks: func(s *situation) {
				s.e.Profiles["prod_1"] = itemOf("iam:GetInstanceProfile", Profile{ARN: "arn"})
				s.addConsoleLine("cloud-init: Unable to locate credentials. You can configure credentials")
			}, cause: "has no role", fix: "add-role-to-instance-profile"},
		},
		"AUTH-8": {{breaks: func(s *situation) {
			s.e.Instances.Value = nil
			s.e.PassRole[nodeRole] = itemOf("iam:SimulatePrincipalPolicy", false)
		}, cause: "is not allowed to pass", fix: "put-role-policy"},
			{breaks: func(s *situation) {
				s.class().Conditions = append(s.class().Conditions,
					Condition{Type: "ValidationSucceeded", Status: "False", Reason: "Unauthorized",
						Message: "not authorized to perform: iam:PassRole on resource: " + nodeRole})
			}, cause: "is not allowed to pass", fix: "put-role-policy"}},
		"AUTH-9": {{breaks: func(s *situation) { s.addConsoleLine(`node "i-0123" is not allowed to modify node "ip-10-0-0-2"`) },
			cause: "register under a name that differs", fix: "create-access-entry"},
			{breaks: func(s *situation) {
				m := valid
				m.Username = "system:node:{{SessionName}}"
				addRow(s, m)
			}, cause: "names nodes by session", fix: "patch configmap", suspicious: true}},
		"AUTH-10": {{breaks: func(s *situation) {
			s.e.Entries.Value[1].Principal = "arn:aws:iam::111122223333:role/GroupRole"
			s.e.NodeGroups.Value = []NodeGroup{{Name: "system", Role: "arn:aws:iam::111122223333:role/GroupRole"}}
		}, cause: "join with role GroupRole", fix: "GroupRole", notTop: true, suspicious: true}},
		"AUTH-11": {{breaks: func(s *situation) { s.addConsoleLine(unauthorized) }, cause: "mapping looks right", fix: "chronyc"},
			{breaks: func(s *situation) {
				s.e.Entries.Value[1].Created = noon.Add(-30 * time.Second)
				s.e.Roles["NodeRole"] = itemOf("iam:GetRole", healthyRole())
				s.addConsoleLine(unauthorized)
			}, cause: "30 seconds old", fix: "again", suspicious: true}},
	}
}

func healthyRole() Role { return healthy().Roles["NodeRole"].Value }

func networkFaults() map[string][]fault {
	return map[string][]fault{
		"NET-1": {
			{breaks: func(s *situation) { s.group().Out = nil; s.addConsoleLine(timeout) }, cause: "sg-node lets nothing out to port 443",
				fix: "authorize-security-group-egress"},
			{breaks: func(s *situation) {
				s.cluster().PrivateAccess = true
				s.e.Groups.Value[0].In = nil
				s.addConsoleLine(timeout)
			},
				cause: "does not let in port 443", fix: "--group-id sg-cluster"},
			{breaks: func(s *situation) { s.group().In = nil }, cause: "port 10250", fix: "--group-id sg-node", suspicious: true},
			{breaks: func(s *situation) {
				s.e.Groups.Value = append(s.e.Groups.Value, Group{ID: "sg-old", VPC: "vpc-1"})
				s.e.Instances.Value[1].Groups = []string{"sg-old"}
				s.addConsoleLine(timeout)
			}, cause: "sg-old lets nothing out", fix: "sg-old"},
		},
		"NET-2": {
			{breaks: func(s *situation) {
				s.e.VPC.Value.DNSSupport = false
				s.addConsoleLine("dial tcp: lookup abc.eks.amazonaws.com: no such host")
			}, cause: "DNS support switched off", fix: "--enable-dns-support"},
			{breaks: func(s *situation) { s.addConsoleLine("dial tcp: lookup abc.eks.amazonaws.com: no such host") },
				cause: "cannot resolve a name", fix: "--vpc-id vpc-1 --dhcp-options-id \"$(aws ec2 create-dhcp-options --region us-east-1"},
		},
		"NET-3": {{breaks: func(s *situation) { s.cluster().PublicCIDRs = []string{"203.0.113.0/24"}; s.addConsoleLine(timeout) },
			cause: "lets in only 203.0.113.0/24, but nodes call it from 198.51.100.7", fix: "endpointPrivateAccess=true"}},
		"NET-4": {
			{breaks: func(s *situation) {
				s.e.Routes.Value[0].Routes = s.e.Routes.Value[0].Routes[:1]
				s.e.Fargate.Value = nil
				s.addConsoleLine(timeout)
			}, cause: "subnet subnet-1 has no route out", fix: "create-route"},
			{breaks: func(s *situation) { s.e.Routes.Value[0].Routes[1].Blackhole = true; s.addConsoleLine(timeout) },
				cause: "which is gone", fix: "replace-route"},
			{breaks: func(s *situation) {
				s.e.Fargate.Value = nil
				s.e.Routes.Value[0].Routes[1].Target = "igw-1"
				s.addConsoleLine(timeout)
			}, cause: "no public address", fix: "associatePublicIPAddress"},
		},
		"NET-5": {{breaks: func(s *situation) { s.e.Subnets.Value[0].Free = 1 },
			cause: "its subnets are full: subnet-1 (1 free)", fix: "subnetSelectorTerms"}},
		"NET-6": {{breaks: func(s *situation) { s.e.Daemons.Value[0].Env["AWS_VPC_K8S_CNI_CUSTOM_NETWORK_CFG"] = "true" },
			cause: "custom networking", fix: "RESERVED_ENIS=1", suspicious: true}},
		"NET-8": {
			{breaks: func(s *situation) {
				n := &s.e.ACLs.Value[0]
				n.Entries = append([]ACLEntry{{Number: 90, Out: true, Deny: true, Protocol: "6", From: 443, To: 443, CIDR: "0.0.0.0/0"}}, n.Entries...)
				s.addConsoleLine(timeout)
			}, cause: "acl-1 of subnet subnet-1 lets nothing out to port 443", fix: "create-network-acl-entry --region us-east-1 --network-acl-id acl-1 --egress --rule-number 89 "},
			{breaks: func(s *situation) {
				s.e.ACLs.Value = []ACL{{ID: "acl-2", Subnets: []string{"subnet-1"},
					Entries: []ACLEntry{{Number: 100, Out: true, Protocol: "-1", CIDR: "0.0.0.0/0"},
						{Number: 100, Protocol: "6", From: 443, To: 443, CIDR: "0.0.0.0/0"}}}}
			}, cause: "lets no answers in", fix: "--ingress --rule-number 99 --protocol 6 --port-range From=1024,To=65535"},
		},
		"NET-7": {{breaks: func(s *situation) { s.addConsoleLine(timeout) }, cause: "network ACL", fix: "describe-network-acls"}},
	}
}

func bootFaults() map[string][]fault {
	line := func(text string) func(*situation) { return func(s *situation) { s.addConsoleLine(text) } }
	problem := func(id string) func(*situation) { return func(s *situation) { s.addProblem(id) } }
	return map[string][]fault{
		"BOOT-1": {{breaks: func(s *situation) {
			s.e.Controller.Value.Settings["CLUSTER_ENDPOINT"] = "https://old.eks.amazonaws.com"
			s.addConsoleLine("no such host")
		}, cause: "https://old.eks", fix: "CLUSTER_ENDPOINT-"}},
		"BOOT-2": {{breaks: line("x509: certificate signed by unknown authority"), cause: "does not trust",
			fix: "describe-cluster --name prod"},
			{breaks: problem("BOOT-2"), cause: "problem of BOOT-2", fix: "y"}},
		"BOOT-3": {{breaks: line("SignatureDoesNotMatch: Signature expired"), cause: "clock is wrong", fix: "169.254.169.123"}},
		"BOOT-4": {
			{breaks: func(s *situation) { s.class().Family = "AL2" },
				cause: "AMI family is AL2, and its image ami-1 is for AL2023", fix: `"amiFamily":"AL2023"`},
			{breaks: func(s *situation) {
				s.class().Family = "Custom"
				s.addConsoleLine("Unhandled unknown content-type (application/node.eks.aws) userdata: 'apiVersion'")
			}, cause: "does not understand", fix: "amiFamily"},
		},
		"BOOT-5": {{breaks: line("nodeadm: command not found"), cause: "has no nodeadm", fix: "al2023@latest"}},
		"BOOT-6": {{breaks: line("systemd[1]: Failed to start nodeadm-config.service - EKS Nodeadm Config."),
			cause: "nodeadm fails on the instance", fix: `"amiSelectorTerms":[{"alias":"al2023@latest"}]`},
			{breaks: func(s *situation) {
				s.class().DataBytes = 900
				s.addConsoleLine(`nodeadm-config[1522]: {"level":"fatal","msg":"Command failed","error":"could not merge"}`)
			}, cause: "nodeadm fails on the instance", fix: `"op":"remove","path":"/spec/userData"`}},
		"BOOT-7": {{breaks: line("Failed to apply settings: unknown field `max-pod`"), cause: "Bottlerocket refuses",
			fix: `"op":"remove","path":"/spec/userData"`}},
		"BOOT-8": {{breaks: func(s *situation) { s.cluster().Version = "1.32" }, cause: "for Kubernetes 1.33, which is newer",
			fix: "image for 1.32"},
			{breaks: func(s *situation) { s.cluster().Version = "1.37" }, cause: "more than 3 versions older", fix: "1.37"}},
		"BOOT-9": {{breaks: line("failed to parse kubelet flag: unknown flag: --no-such"), cause: "refuses a flag",
			fix: `"$(joiner correct default --cluster-name prod --without-flag no-such)"`},
			{breaks: line("failed to load kubelet config file"), cause: "refuses a flag or its configuration", fix: "edit"}},
		"BOOT-10": {{breaks: line("No entry for m9.large in /etc/eks/eni-max-pods.txt"), cause: "older than the instance type", fix: "maxPods"}},
		"BOOT-11": {{breaks: line("failed to run Kubelet: running with swap on is not supported"), cause: "has swap",
			fix: "--without-program swapon"}},
		"BOOT-17": {
			{breaks: line(`kubelet[1893]: E0501 "Unable to register node with API server" err="Post \"https://abc.eks.amazonaws.com/api/v1/nodes\": proxyconnect tcp: dial tcp 10.0.0.9:3128: i/o timeout"`), cause: "through a proxy", fix: "NO_PROXY"},
			{breaks: line(`kubelet[1893]: E0501 "Unable to register node with API server" err="Post \"https://abc.eks.amazonaws.com/api/v1/nodes\": Forbidden" node="ip-10-0-0-2"`), cause: "through a proxy", fix: "NO_PROXY"},
		},
		"BOOT-16": {{breaks: func(s *situation) { s.e.Impaired.Value["i-2"] = "system" },
			cause: "instance i-2 fails EC2's status checks: its host is broken", fix: "kubectl delete nodeclaim --wait=false claim-2"},
			{breaks: func(s *situation) {
				s.e.Impaired.Value["i-2"] = "instance"
				s.e.Instances.Value[1].Claim = "claim-1" // from a wrong tag, which does not count
			}, cause: "its operating system does not answer", fix: "kubectl delete nodeclaim --wait=false claim-2"}},
		"IMDS-2": {{breaks: func(s *situation) {
			s.class().NoMetadata = true
			s.addConsoleLine("DataSourceEc2.py[WARNING]: IMDS's HTTP endpoint is probably disabled")
		}, cause: "cannot read their metadata", fix: `{"httpEndpoint":"enabled"}`}},
		"BOOT-14": {{breaks: line("fork/exec /usr/bin/kubelet: no such file or directory"), cause: "has no kubelet", fix: "al2023@latest"}},
		"BOOT-15": {{breaks: line("fallocate: fallocate failed: No space left on device"), cause: "disk is full", fix: "volumeSize"}},
		"BOOT-12": {{breaks: line("Unable to locate credentials. You can configure credentials"), cause: "has no credentials",
			fix: "get-instance-profile"}},
		"BOOT-13": {{breaks: line("part-001: line 4: unexpected EOF while looking for matching `''"),
			cause: "script of the user data fails", fix: "render userdata"}},
		"TAINT-1": {{breaks: problem("TAINT-1"), cause: "problem of TAINT-1", fix: "y"},
			{breaks: func(s *situation) {
				s.addEvent("NodeClaim", "claim-1", "UnregisteredTaintMissing", "node ip-10-0-0-1 lacks it")
			}, cause: "registered without the taint", fix: "register-with-taints", suspicious: true}},
		"TAINT-2": {{breaks: problem("TAINT-2"), cause: "problem of TAINT-2", fix: "y"}},
		"TAINT-3": {{breaks: problem("TAINT-3"), cause: "problem of TAINT-3", fix: "y"}},
		"TAINT-4": {{breaks: func(s *situation) { s.e.Nodes.Value[0].Created = noon.Add(-100 * time.Hour) },
			cause: "older than its instance i-1", fix: "kubectl delete node ip-10-0-0-1.ec2.internal", suspicious: true},
			{breaks: func(s *situation) {
				s.e.Nodes.Value = append(s.e.Nodes.Value,
					Node{Name: "ip-10-0-0-2.ec2.internal", ProviderID: "aws:///us-east-1a/i-9", Created: noon.Add(-time.Hour), Ready: true})
			}, cause: "is the name of a Node which another instance left behind", fix: "kubectl delete nodeclaim --wait=false claim-2"}},
		"TAINT-5": {{breaks: func(s *situation) {
			s.addEvent("NodeClaim", "claim-1", "UnregisteredTaintMissing", "Node ip-10-0-0-1.ec2.internal")
			s.e.Nodes.Value[0].TaintsBy = []string{"kubelet", "cilium-operator"}
		}, cause: "cilium-operator removed the startup taint of the node", fix: "show-managed-fields", suspicious: true},
			{breaks: func(s *situation) {
				s.e.Daemons.Value = append(s.e.Daemons.Value, DaemonSet{Namespace: "kube-system", Name: "taint-cleaner"})
				s.addEvent("NodeClaim", "claim-1", "UnregisteredTaintMissing",
					"Node ip-10-0-0-1.ec2.internal joined without the taint: it was taken away by taint-cleaner")
			}, cause: "taint-cleaner removed the startup taint of the node", fix: "kubectl -n kube-system edit daemonset taint-cleaner", suspicious: true}},
		"ARCH-3": {{breaks: problem("ARCH-3"), cause: "problem of ARCH-3", fix: "y"},
			{breaks: line("/opt/agent: cannot execute binary file: Exec format error"), cause: "for an architecture other than", fix: "uname -m"}},
	}
}

// TestChecks: each check has at least one fault, and finds each of its faults with the right verdict, cause and fix.
func TestChecks(t *testing.T) {
	t.Parallel()
	all := faults()
	for _, c := range Checks() {
		if len(all[c.ID]) == 0 {
			t.Errorf("no fault tests %s", c.ID)
		}
	}
	for id, list := range all {
		for _, f := range list {
			t.Run(id+"/"+f.cause, func(t *testing.T) {
				t.Parallel()
				s := &situation{healthy()}
				f.breaks(s)
				found := Diagnose(s.e)
				i := slices.IndexFunc(found, func(g Finding) bool { return g.Check == id && strings.Contains(g.Cause, f.cause) })
				if i < 0 {
					t.Fatalf("no finding has the cause %q:\n%s", f.cause, failures(found))
				}
				got := found[i]
				if want := map[bool]Verdict{false: Broken, true: Suspicious}[f.suspicious]; got.Verdict != want {
					t.Errorf("the verdict is %s, want %s", got.Verdict, want)
				}
				if i > 0 && !f.notTop {
					t.Errorf("the finding is number %d, want 1:\n%s", i+1, failures(found))
				}
				if !strings.Contains(got.Fix.String(), f.fix) || f.fix == "" {
					t.Errorf("the fix is %q, want one that contains %q", got.Fix, f.fix)
				}
				if len(got.Evidence) == 0 && got.Follows == "" {
					t.Error("the finding has no evidence")
				}
				if got.Certainty == "" || got.Page != "docs/checks/"+id+".md" || got.Title == "" {
					t.Errorf("want a certainty, a title and the page docs/checks/%s.md: %+v", id, got)
				}
			})
		}
	}
}

// failures returns the findings that are not fine as text, one per line.
func failures(found []Finding) string {
	var b strings.Builder
	for _, f := range found {
		if f.Verdict != Fine {
			b.WriteString(string(f.Verdict) + " " + f.Check + " " + f.Subject + ": " + f.Cause + " (" + f.Follows + ")\n")
		}
	}
	return b.String()
}

package checks_test

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	. "github.com/joiner-sh/joiner/internal/diagnosis"
	. "github.com/joiner-sh/joiner/internal/diagnosis/checks"
)

// TestHealthy: a cluster without problems has only fine findings, in each authentication mode and AMI family.
func TestHealthy(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*situation){
		"access entries and aws-auth": func(*situation) {},
		"only access entries": func(s *situation) {
			s.cluster().AuthMode = "API"
			s.e.AuthMap = AbsentItem[AuthMap]("configmap kube-system/aws-auth", noon, Missing, "")
		},
		"only aws-auth": func(s *situation) {
			s.cluster().AuthMode, s.e.Entries.Value = "CONFIG_MAP", nil
			s.e.AuthMap.Value.Roles = append(s.e.AuthMap.Value.Roles,
				Mapping{ARN: nodeRole, Username: "system:node:{{EC2PrivateDNSName}}", Groups: []string{"system:bootstrappers", "system:nodes"}})
		},
		"private endpoint, without NAT gateway": func(s *situation) {
			s.cluster().PublicAccess, s.cluster().PrivateAccess = false, true
			s.e.Routes.Value[0].Routes = s.e.Routes.Value[0].Routes[:1]
			for _, service := range []string{"ec2", "ecr.api", "ecr.dkr", "s3", "sts"} {
				s.e.Endpoints.Value = append(s.e.Endpoints.Value, Endpoint{Service: "com.amazonaws.us-east-1." + service})
			}
		},
		"private endpoint, without NAT gateway and Fargate": func(s *situation) {
			s.cluster().PublicAccess, s.cluster().PrivateAccess = false, true
			s.e.Routes.Value[0].Routes = s.e.Routes.Value[0].Routes[:1]
			s.e.Fargate.Value = nil
			for _, service := range []string{"ec2", "ecr.api", "ecr.dkr", "s3"} { // not STS: nodes do not call it
				s.e.Endpoints.Value = append(s.e.Endpoints.Value, Endpoint{Service: "com.amazonaws.us-east-1." + service})
			}
		},
		"Windows": family("Windows2022", "Windows_Server-2022-English-Core-EKS_Optimized-1.33-2026.04.01", "amd64",
			Step{Name: "kubernetes.io/os In [windows]", Left: map[string]int{"amd64": 700}}),
		"Windows, in a pool that allows both architectures": func(s *situation) {
			family("Windows2022", "Windows_Server-2022-English-Core-EKS_Optimized-1.33-2026.04.01", "amd64",
				Step{Name: "kubernetes.io/arch In [amd64, arm64]", Left: map[string]int{"amd64": 700}})(s)
			s.pool().Requirements[0].Values = []string{"amd64", "arm64"}
		},
		"Windows, in aws-auth": func(s *situation) {
			family("Windows2019", "Windows_Server-2019-English-Full-EKS_Optimized-1.33-2026.04.01", "amd64",
				Step{Name: "no requirement on types", Left: map[string]int{"amd64": 700}})(s)
			s.pool().Requirements = nil
			s.cluster().AuthMode, s.e.Entries.Value = "CONFIG_MAP", nil
			s.e.AuthMap.Value.Roles = append(s.e.AuthMap.Value.Roles,
				Mapping{ARN: nodeRole, Username: "system:node:{{EC2PrivateDNSName}}",
					Groups: []string{"system:bootstrappers", "system:nodes", "eks:kube-proxy-windows"}})
		},
		"Bottlerocket": family("Bottlerocket", "bottlerocket-aws-k8s-1.33-x86_64-v1.40.0-f7c26a8d", "amd64",
			Step{Name: "kubernetes.io/arch In [amd64]", Left: map[string]int{"amd64": 800}}),
		"ARM": family("AL2023", "amazon-eks-node-al2023-arm64-standard-1.33-v20260401", "arm64",
			Step{Name: "kubernetes.io/arch In [arm64]", Left: map[string]int{"arm64": 400}}),
		"custom image": func(s *situation) {
			family("Custom", "golden-4711", "arm64", Step{Name: "kubernetes.io/arch In [arm64]", Left: map[string]int{"arm64": 400}})(s)
			s.class().DataBytes = 4000
		},
		"a DaemonSet pod that was created a minute ago": func(s *situation) {
			s.e.Pods.Value[0] = Pod{Namespace: "kube-system", Name: "ebs-csi-node-x", Owner: "DaemonSet/ebs-csi-node",
				Node: "ip-10-0-0-1.ec2.internal", Created: noon.Add(-time.Minute)}
		},
		"a pod selects a label of a node group": func(s *situation) {
			s.e.Pods.Value[0].Selector = map[string]string{"team": "b"}
			s.e.Nodes.Value[0].Labels = map[string]string{"team": "b"}
		},
		"a Node and its instance are created in the same second": func(s *situation) {
			s.e.Nodes.Value[0].Created = s.e.Instances.Value[0].Launched.Truncate(time.Second)
			s.e.Instances.Value[0].Launched = s.e.Nodes.Value[0].Created.Add(900 * time.Millisecond)
		},
		"not installed yet": func(s *situation) {
			s.e.Controller = AbsentItem[Controller]("deployments named joiner or karpenter", noon, Missing, "")
			s.e.Lease = AbsentItem[Lease]("leases", noon, Missing, "")
			s.e.Instances.Value, s.e.Claims.Value, s.e.Nodes.Value = nil, nil, nil
		},
		"another controller has taken over": func(s *situation) {
			s.killController(time.Minute)
			s.e.Claims.Value[0].Created = noon.Add(-10 * time.Second) // created by the other controller
		},
		"controller stopped a minute ago, without work": func(s *situation) {
			s.killController(time.Minute)
			s.e.Lease.Value.Holder = ""
			s.addUnfinishedWork()
			s.e.Claims.Value, s.e.Instances.Value, s.e.Pods.Value = s.e.Claims.Value[:1], s.e.Instances.Value[:1], nil
		},
		"controller works without leader election, and the Lease is of an earlier controller": func(s *situation) {
			s.killController(time.Hour)
			s.e.Claims.Value[0].Created = noon.Add(-2 * time.Hour)
		},
		"controller runs without leader election": func(s *situation) {
			s.killController(time.Hour)
			s.controllerPod().Ready, s.controllerPod().Phase = true, "Running"
			s.e.Controller.Value.Settings["DISABLE_LEADER_ELECTION"] = "1" // counts as true
			s.addUnfinishedWork()
		},
		"controller stopped, and only another autoscaler's pod waits": func(s *situation) {
			s.killController(time.Hour)
			s.e.Lease.Value.Holder = ""
			s.addUnfinishedWork()
			s.e.Controller.Value.Others = []string{"karpenter/karpenter"}
			s.e.Claims.Value, s.e.Instances.Value, s.e.Pods.Value = s.e.Claims.Value[:1], s.e.Instances.Value[:1], s.e.Pods.Value[:1]
			s.e.Pods.Value[0].Namespace, s.e.Pods.Value[0].Owner = "karpenter", "Deployment/karpenter"
		},
		"controller stopped an hour ago, without work": func(s *situation) {
			s.killController(time.Hour)
			s.e.Lease.Value.Holder = ""
			s.addUnfinishedWork()
			s.e.Claims.Value, s.e.Instances.Value, s.e.Pods.Value = s.e.Claims.Value[:1], s.e.Instances.Value[:1], nil
		},
		"controller killed, and all NodePools and NodeClaims deleted": func(s *situation) {
			s.killController(time.Hour)
			s.e.Claims.Value, s.e.Pools.Value, s.e.Classes.Value, s.e.Instances.Value, s.e.Nodes.Value, s.e.Pods.Value = nil, nil, nil, nil, nil, nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &situation{healthy()}
			change(s)
			// Before the installation, findings may be unknown.
			if text := failures(Diagnose(s.e)); text != "" && name != "not installed yet" || len(Actionable(Diagnose(s.e))) > 0 {
				t.Error(text)
			}
		})
	}
}

// family changes the AMI family of the class, its image, and the architecture that its NodePool launches.
func family(name, image, arch string, step Step) func(*situation) {
	return func(s *situation) {
		s.class().Family, s.pool().Steps = name, []Step{step}
		s.pool().Requirements[0].Values = []string{arch}
		s.e.Images.Value[0].Name, s.e.Images.Value[0].Architecture = image, arch
		s.e.Nodes.Value[0].Arch = arch
		if strings.HasPrefix(name, "Windows") {
			s.e.Entries.Value[1].Type = "EC2_WINDOWS"
		}
	}
}

// TestNothingKnown: without evidence, the verdict of all findings is Unknown.
func TestNothingKnown(t *testing.T) {
	t.Parallel()
	empty := Evidence{Format: Format, At: noon, Name: "prod", Region: "us-east-1"}
	for _, f := range Diagnose(empty) {
		if f.Verdict == Unknown && f.Cause == "" {
			t.Errorf("the unknown finding of %s has no cause", f.Check)
		}
		if f.Verdict != Unknown {
			t.Errorf("%s is %s although nothing is known: %s", f.Check, f.Verdict, f.Cause)
		}
	}
}

// TestDenied: if a permission is missing, a check that needs it names it. Most other checks still find no problem.
func TestDenied(t *testing.T) {
	t.Parallel()
	for check, tt := range map[string]struct {
		deny func(*Evidence)
		want string // permission
	}{
		"AUTH-2": {func(e *Evidence) {
			e.Entries = AbsentItem[[]Entry]("eks:ListAccessEntries", noon, Denied, "eks:ListAccessEntries")
		}, "eks:ListAccessEntries"},
		"AUTH-1": {func(e *Evidence) {
			e.Cluster = AbsentItem[Cluster]("eks:DescribeCluster", noon, Denied, "eks:DescribeCluster")
		}, "eks:DescribeCluster"},
		"AUTH-6": {func(e *Evidence) {
			e.Roles = map[string]Item[Role]{"NodeRole": AbsentItem[Role]("iam:GetRole", noon, Denied, "iam:GetRole")}
		}, "iam:GetRole"},
		"AUTH-8": {func(e *Evidence) {
			e.Instances.Value = nil
			e.PassRole = map[string]Item[bool]{nodeRole: AbsentItem[bool]("iam", noon, Denied, "iam:SimulatePrincipalPolicy")}
		}, "iam:SimulatePrincipalPolicy"},
		"NET-1": {func(e *Evidence) { e.Groups = AbsentItem[[]Group]("ec2", noon, Denied, "ec2:DescribeSecurityGroups") },
			"ec2:DescribeSecurityGroups"},
		"NET-4": {func(e *Evidence) { e.Routes = AbsentItem[[]RouteTable]("ec2", noon, Denied, "ec2:DescribeRouteTables") },
			"ec2:DescribeRouteTables"},
		"BOOT-9": {func(e *Evidence) {
			e.Instances.Value[1].Console = AbsentItem[string]("ec2", noon, Denied, "ec2:GetConsoleOutput")
		}, "ec2:GetConsoleOutput"},
		"FG-3": {func(e *Evidence) {
			e.Controller.Value.Pods[0].Ready = false
			e.Fargate = AbsentItem[[]FargateProfile]("eks", noon, Denied, "eks:ListFargateProfiles")
		}, "eks:ListFargateProfiles"},
	} {
		t.Run(check, func(t *testing.T) {
			t.Parallel()
			e := healthy()
			tt.deny(&e)
			found := Diagnose(e)
			i := slices.IndexFunc(found, func(f Finding) bool { return f.Check == check })
			if found[i].Verdict != Unknown || !strings.Contains(found[i].Cause, tt.want) ||
				!strings.Contains(found[i].Fix.String(), "deploy/iam/doctor.json") {
				t.Errorf("want an unknown finding that names %s: %+v", tt.want, found[i])
			}
			if findings := Actionable(found); len(findings) > 0 {
				t.Errorf("a missing permission leads to broken or suspicious findings:\n%s", failures(findings))
			}
			if n := len(slices.DeleteFunc(slices.Clone(found), func(f Finding) bool { return f.Verdict != Fine })); n < 25 {
				t.Errorf("%d findings are fine, want at least 25", n)
			}
		})
	}
}

// TestTwoAtOnce: two causes are both found. The cause with an observed symptom comes first.
func TestTwoAtOnce(t *testing.T) {
	t.Parallel()
	s := &situation{healthy()}
	s.group().Out = nil
	s.e.Entries.Value = s.e.Entries.Value[:1]
	s.addConsoleLine(timeout)
	findings := Actionable(Diagnose(s.e))
	if len(findings) != 2 || findings[0].Check != "NET-1" || findings[1].Check != "AUTH-2" {
		t.Errorf("want the security group, then the mapping:\n%s", failures(findings))
	}
	// With the security group alone, no finding mentions the mapping.
	s = &situation{healthy()}
	s.group().Out = nil
	s.addConsoleLine(timeout)
	if findings := Actionable(Diagnose(s.e)); len(findings) != 1 || findings[0].Check != "NET-1" {
		t.Errorf("want the security group alone:\n%s", failures(findings))
	}
}

// TestPairs: two faults in different layers are both found.
func TestPairs(t *testing.T) {
	t.Parallel()
	all := faults()
	pairs := [][2]string{{"NET-1", "AUTH-4"}, {"NET-4", "AUTH-2"}, {"AUTH-6", "NET-5"}, {"BOOT-4", "AUTH-2"},
		{"LAUNCH-2", "AUTH-2"}, {"ARCH-4", "AUTH-5"},
		{"BOOT-8", "NET-2"}, {"FG-2", "AUTH-2"}, {"ID-1", "NET-1"}, {"TAINT-1", "AUTH-3"}, {"CNI-1", "NET-5"}, {"ARCH-2", "LAUNCH-6"}}
	for _, pair := range pairs {
		t.Run(pair[0]+"+"+pair[1], func(t *testing.T) {
			t.Parallel()
			s := &situation{healthy()}
			all[pair[0]][0].breaks(s)
			all[pair[1]][0].breaks(s)
			findings := Actionable(Diagnose(s.e))
			for _, id := range pair {
				if !slices.ContainsFunc(findings, func(f Finding) bool { return f.Check == id }) {
					t.Errorf("%s is not found:\n%s", id, failures(findings))
				}
			}
		})
	}
}

// TestSameBytes: the findings do not depend on the order of the items in the evidence.
func TestSameBytes(t *testing.T) {
	t.Parallel()
	s := &situation{healthy()}
	for _, id := range []string{"AUTH-2", "NET-1", "ARCH-4", "FG-2"} {
		faults()[id][0].breaks(s)
	}
	want, err := json.Marshal(Diagnose(s.e))
	if err != nil {
		t.Fatal(err)
	}
	for range 20 {
		e := s.e
		e.Groups.Value, e.Entries.Value, e.Instances.Value = shuffled(e.Groups.Value), shuffled(e.Entries.Value), shuffled(e.Instances.Value)
		e.Claims.Value, e.Pods.Value, e.Images.Value = shuffled(e.Claims.Value), shuffled(e.Pods.Value), shuffled(e.Images.Value)
		got, err := json.Marshal(Diagnose(e))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), string(got)); diff != "" {
			t.Fatalf("the findings differ (-want +got):\n%s", diff)
		}
	}
}

func shuffled[T any](list []T) []T {
	list = slices.Clone(list)
	rand.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	return list
}

// TestReadConsole: lines of real logs show the right symptoms.
func TestReadConsole(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]Symptom{
		unauthorized: Unauthorized,
		timeout:      TimedOut,
		`kubelet[4321]: E1 csi_plugin.go:295] Failed to initialize CSINode: error updating CSINode annotation: timed out waiting for the condition; caused by: Unauthorized`:                     Unauthorized,
		`nodes "ip-10-0-0-2" is forbidden: node "i-0abc" is not allowed to modify node "ip-10-0-0-2"`:                                                                                            OtherName,
		`dial tcp: lookup ABC.gr7.us-east-1.eks.amazonaws.com on 10.0.0.2:53: no such host`:                                                                                                      NoSuchHost,
		`tls: failed to verify certificate: x509: certificate signed by unknown authority`:                                                                                                       Untrusted,
		`{"level":"fatal","msg":"Command failed","error":"operation error EC2: DescribeInstances, get identity: get credentials: failed to refresh cached credentials, no EC2 IMDS role found"}`: NoCredentials,
		`nodeadm: operation error EC2: DescribeInstances, api error UnauthorizedOperation: You are not authorized to perform this operation.`:                                                    NotPermitted,
		`cloud-init[1]: __init__.py[WARNING]: Unhandled unknown content-type (application/node.eks.aws) userdata: 'apiVersion: node'`:                                                            UnknownPart,
		`nodeadm: {"level":"fatal","msg":"Command failed","error":"could not find NodeConfig within UserData"}`:                                                                                  UnknownPart,
		`/var/lib/cloud/instance/scripts/part-001: line 3: /opt/agent: cannot execute binary file: Exec format error`:                                                                            OtherArch,
		`"command failed" err="failed to load kubelet config file, path: /etc/kubernetes/kubelet/config.json"`:                                                                                   KubeletConfig,
		`[   12.0] systemd[1]: Started kubelet.service - Kubernetes Kubelet.`:                                                                                                                    "",
	} {
		got := ReadConsole("[    0.1] Linux version\n" + line + "\n" + line + "\n")
		switch {
		case want == "" && len(got) > 0:
			t.Errorf("%s: got %v, want no symptom", line, got)
		case want != "" && (len(got) != 1 || got[0].Symptom != want || got[0].Count != 2 || got[0].Line != strings.TrimSpace(line)):
			t.Errorf("%s: got %+v, want the symptom %q twice", line, got, want)
		}
	}
}

// TestOthersConsoles: a symptom on an instance that does not belong to this cluster leads to no finding.
func TestOthersConsoles(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*situation, *Instance){
		"another cluster's UID": func(_ *situation, i *Instance) { i.UID = "uid-2" },
		"another cluster's NodeClaim, and no UID": func(s *situation, i *Instance) {
			i.UID, i.Claim, s.e.Claims.Value = "", "theirs-1", s.e.Claims.Value[:1]
		},
	} {
		s := &situation{healthy()}
		s.addConsoleLine(`kubelet[1893]: err="x509: certificate signed by unknown authority"`)
		if fixOf(s, "BOOT-2") == "" {
			t.Fatal("the symptom on an instance of this cluster leads to no finding")
		}
		change(s, &s.e.Instances.Value[1])
		if fix := fixOf(s, "BOOT-2"); fix != "" {
			t.Errorf("%s: the fix is %s, want no finding", name, fix)
		}
	}
}

// TestProblemEvidence: the evidence of a problem of user data is its position and the corrected line.
func TestProblemEvidence(t *testing.T) {
	t.Parallel()
	s := &situation{healthy()}
	s.addProblem("TAINT-2")
	for _, f := range Diagnose(s.e) {
		if f.Check == "TAINT-2" && f.Verdict == Broken {
			if !slices.Equal(f.Evidence, []string{"line 3", "the line should be: y"}) {
				t.Errorf("the evidence is %q, want the position and the corrected line", f.Evidence)
			}
			return
		}
	}
	t.Error("TAINT-2 is not broken")
}

// TestKubernetesPermission: the fix for a missing permission of Kubernetes is a ClusterRole, not an IAM policy.
func TestKubernetesPermission(t *testing.T) {
	t.Parallel()
	s := &situation{healthy()}
	s.e.Lease = AbsentItem[Lease]("leases", noon, Denied, "to get and list leases")
	found := Diagnose(s.e)
	i := slices.IndexFunc(found, func(f Finding) bool { return f.Check == "RUN-1" })
	if got := found[i]; got.Verdict != Unknown ||
		!strings.Contains(got.Cause, "the permission to get and list leases is missing") ||
		!strings.Contains(got.Fix.String(), "clusterrole") || strings.Contains(got.Fix.String(), "iam") {
		t.Errorf("want an unknown finding with a ClusterRole as fix: %+v", got)
	}
}

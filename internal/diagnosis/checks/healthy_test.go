package checks_test

import (
	"time"

	. "github.com/joiner-sh/joiner/internal/diagnosis"
)

// noon is the time at which the evidence was collected.
var noon = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

const (
	nodeRole       = "arn:aws:iam::111122223333:role/NodeRole"
	controllerRole = "arn:aws:iam::111122223333:role/Controller"
	executionRole  = "arn:aws:iam::111122223333:role/FargateRole"
)

func itemOf[T any](source string, v T) Item[T] { return KnownItem(source, noon, v) }

// healthy returns the evidence of a cluster without problems in the mode API_AND_CONFIG_MAP. Instance i-1 has joined;
// instance i-2 was launched a minute ago and has not joined yet.
func healthy() Evidence {
	return Evidence{
		Format: Format, At: noon, Name: "prod", Region: "us-east-1", Account: "111122223333",
		Cluster: itemOf("eks:DescribeCluster prod",
			Cluster{ARN: "arn:aws:eks:us-east-1:111122223333:cluster/prod", Status: "ACTIVE", Version: "1.33",
				Endpoint: "https://abc.eks.amazonaws.com", CA: "Q0E=", Issuer: "https://oidc.example.com/id/A", VPC: "vpc-1", Group: "sg-cluster",
				AuthMode: "API_AND_CONFIG_MAP", PublicAccess: true, ServiceCIDR: "10.100.0.0/16", Created: noon.Add(-1000 * time.Hour)}),
		Caller: itemOf("sts:GetCallerIdentity", "arn:aws:iam::111122223333:user/jane"),
		Entries: itemOf("eks:ListAccessEntries", []Entry{{Principal: executionRole, Type: "FARGATE_LINUX", Created: noon.Add(-90 * time.Hour)},
			{Principal: nodeRole, Type: "EC2_LINUX", Username: "system:node:{{EC2PrivateDNSName}}",
				Groups: []string{"system:nodes"}, Created: noon.Add(-90 * time.Hour)}}),
		NodeGroups: itemOf("eks:ListNodegroups", []NodeGroup{}),
		Fargate: itemOf("eks:ListFargateProfiles",
			[]FargateProfile{{Name: "joiner", Status: "ACTIVE", Role: executionRole, Subnets: []string{"subnet-1"},
				Selectors: []FargateSelector{{Namespace: "karpenter"}}, Created: noon.Add(-80 * time.Hour)}}),
		Roles: map[string]Item[Role]{
			"NodeRole": itemOf("iam:GetRole NodeRole", Role{ARN: nodeRole, Trusts: []string{"ec2.amazonaws.com"}, Created: noon.Add(-100 * time.Hour),
				Policies: []string{"arn:aws:iam::aws:policy/AmazonEKSWorkerNodePolicy", "arn:aws:iam::aws:policy/AmazonEC2ContainerRegistryPullOnly"}}),
			"Controller": itemOf("iam:GetRole Controller",
				Role{ARN: controllerRole, Trusts: []string{"arn:aws:iam::111122223333:oidc-provider/oidc.example.com/id/A"}}),
			"FargateRole": itemOf("iam:GetRole FargateRole", Role{ARN: executionRole, Trusts: []string{"eks-fargate-pods.amazonaws.com"},
				Policies: []string{"arn:aws:iam::aws:policy/AmazonEKSFargatePodExecutionRolePolicy"}}),
		},
		Profiles: map[string]Item[Profile]{"prod_1": itemOf("iam:GetInstanceProfile prod_1",
			Profile{ARN: "arn:aws:iam::111122223333:instance-profile/prod_1", Role: nodeRole})},
		PassRole: map[string]Item[bool]{nodeRole: itemOf("iam:SimulatePrincipalPolicy", true)},
		VPC:      itemOf("ec2:DescribeVpcAttribute", VPC{ID: "vpc-1", DNSSupport: true, DNSHostnames: true}),
		Subnets:  itemOf("ec2:DescribeSubnets", []Subnet{{ID: "subnet-1", VPC: "vpc-1", Zone: "us-east-1a", Free: 200, HostnameType: "ip-name"}}),
		Routes: itemOf("ec2:DescribeRouteTables", []RouteTable{{ID: "rtb-1", Subnets: []string{"subnet-1"},
			Routes: []Route{{To: "10.0.0.0/16", Target: "local"}, {To: "0.0.0.0/0", Target: "nat-1"}}}}),
		ACLs: itemOf("ec2:DescribeNetworkAcls",
			[]ACL{{ID: "acl-1", Default: true, Entries: []ACLEntry{{Number: 100, Protocol: "-1", CIDR: "0.0.0.0/0"},
				{Number: 100, Out: true, Protocol: "-1", CIDR: "0.0.0.0/0"}, {Number: 32767, Deny: true, Protocol: "-1",
					CIDR: "0.0.0.0/0"}, {Number: 32767, Out: true, Deny: true, Protocol: "-1", CIDR: "0.0.0.0/0"}}}}),
		Endpoints: itemOf("ec2:DescribeVpcEndpoints", []Endpoint{}),
		Groups: itemOf("ec2:DescribeSecurityGroups", []Group{
			{ID: "sg-cluster", VPC: "vpc-1", In: []Rule{{Protocol: "-1", Groups: []string{"sg-cluster", "sg-node"}}},
				Out: []Rule{{Protocol: "-1", CIDRs: []string{"0.0.0.0/0"}}}},
			{ID: "sg-node", VPC: "vpc-1", In: []Rule{{Protocol: "-1", Groups: []string{"sg-cluster", "sg-node"}}},
				Out:  []Rule{{Protocol: "-1", CIDRs: []string{"0.0.0.0/0"}}},
				Tags: map[string]string{"kubernetes.io/cluster/prod": "owned"}}}),
		NATAddresses: itemOf("ec2:DescribeNatGateways", []string{"198.51.100.7"}),
		Images: itemOf("ec2:DescribeImages",
			[]Image{{ID: "ami-1", Name: "amazon-eks-node-al2023-x86_64-standard-1.33-v20260401", Architecture: "amd64",
				State: "available", SnapshotGiB: 20}}),
		Instances: itemOf("ec2:DescribeInstances", []Instance{
			{ID: "i-1", Type: "m5.large", State: "running", Launched: noon.Add(-time.Hour), Claim: "claim-1", Class: "default",
				UID: "uid-1", Image: "ami-1",
				Subnet: "subnet-1", Groups: []string{"sg-node"}, PrivateDNS: "ip-10-0-0-1.ec2.internal"},
			{ID: "i-2", Type: "m5.large", State: "running", Launched: noon.Add(-time.Minute), Claim: "claim-2", Class: "default",
				UID: "uid-1", Image: "ami-1",
				Subnet: "subnet-1", Groups: []string{"sg-node"}, PrivateDNS: "ip-10-0-0-2.ec2.internal",
				Console: itemOf("ec2:GetConsoleOutput i-2",
					"[    0.000000] Linux version 6.1\n[   10.1] cloud-init[2211]: Cloud-init v. 22.2.2 running\n")}}),
		Impaired: itemOf("ec2:DescribeInstanceStatus", map[string]string{}),
		Identity: itemOf("namespace kube-system",
			ClusterIdentity{UID: "uid-1", Endpoint: "https://abc.eks.amazonaws.com", CA: "CA", Issuer: "https://oidc.example.com/id/A", DNSReady: true}),
		AuthMap: itemOf("configmap kube-system/aws-auth", AuthMap{Raw: "- rolearn: " + executionRole + "\n  username: system:node:{{SessionName}}\n  groups: [system:bootstrappers, system:nodes, system:node-proxier]\n",
			Roles: []Mapping{{ARN: executionRole, Username: "system:node:{{SessionName}}",
				Groups: []string{"system:bootstrappers", "system:nodes", "system:node-proxier"}}}}),
		Controller: itemOf("deployment karpenter/joiner",
			Controller{Namespace: "karpenter", ServiceAccount: "joiner", Role: controllerRole, RoleSource: "annotation",
				Settings: map[string]string{"AWS_REGION": "us-east-1"},
				Pods: []ControllerPod{{Name: "joiner-0", Scheduler: "fargate-scheduler", Node: "fargate-ip-10-0-0-9",
					Phase: "Running", Ready: true, Created: noon.Add(-70 * time.Hour),
					Tolerates: []Taint{{Key: "eks.amazonaws.com/compute-type"}}}}}),
		Lease: itemOf("lease karpenter/karpenter-leader-election",
			Lease{Namespace: "karpenter", Name: "karpenter-leader-election", Holder: "joiner-0_1",
				Renewed: noon.Add(-2 * time.Second), Seconds: 15}),
		Classes: itemOf("EC2NodeClasses",
			[]Class{{Name: "default", UID: "uid-default", Family: "AL2023", Role: "NodeRole", Profile: "prod_1", Images: []string{"ami-1"},
				Subnets: []string{"subnet-1"}, Groups: []string{"sg-node"}, HopLimit: 1}}),
		Pools: itemOf("NodePools", []Pool{{Name: "default", UID: "uid-pool", Class: "default", Labels: map[string]string{"team": "a"},
			Requirements: []Requirement{{Key: "kubernetes.io/arch", Operator: "In", Values: []string{"amd64"}}},
			Startup:      []Taint{{Key: "example.com/not-yet", Effect: "NoSchedule"}},
			Steps:        []Step{{Name: "kubernetes.io/arch In [amd64]", Left: map[string]int{"amd64": 800}}}}}),
		Claims: itemOf("NodeClaims", []Claim{
			{Name: "claim-1", UID: "uid-claim-1", Pool: "default", Class: "default", ProviderID: "aws:///us-east-1a/i-1",
				Created: noon.Add(-time.Hour),
				Conditions: []Condition{{Type: "Launched", Status: "True"}, {Type: "Registered", Status: "True"},
					{Type: "Initialized", Status: "True"}}},
			{Name: "claim-2", UID: "uid-claim-2", Pool: "default", Class: "default", ProviderID: "aws:///us-east-1a/i-2",
				Created: noon.Add(-time.Minute),
				Conditions: []Condition{{Type: "Launched", Status: "True", Since: noon.Add(-time.Minute)},
					{Type: "Registered", Status: "Unknown", Reason: "NodeNotFound", Message: "Node not registered with cluster"}}}}),
		Nodes: itemOf("nodes", []Node{{Name: "ip-10-0-0-1.ec2.internal", ProviderID: "aws:///us-east-1a/i-1", Pool: "default",
			Created: noon.Add(-59 * time.Minute), Ready: true, Arch: "amd64",
			TaintsBy: []string{"kubelet", "joiner"}}}),
		Pods: itemOf("pods that do not run",
			[]Pod{{Namespace: "shop", Name: "web-1", Owner: "ReplicaSet/web-7d4", Selector: map[string]string{"team": "a"},
				Created:  noon.Add(-time.Minute),
				Messages: []string{"0/1 nodes are available: 1 Insufficient cpu."}}}),
		Daemons: itemOf("daemonsets", []DaemonSet{{Namespace: "kube-system", Name: "aws-node", Host: true, Desired: 1, Ready: 1,
			Env: map[string]string{"ENABLE_PREFIX_DELEGATION": "false"}},
			{Namespace: "kube-system", Name: "kube-proxy", Host: true, Desired: 1, Ready: 1}}),
		Events:   itemOf("events", []Event{}),
		UserData: itemOf("spec.userData of EC2NodeClasses", []UserDataProblem{}),
	}
}

func (s *situation) addConsoleLine(line string) *situation {
	i := &s.e.Instances.Value[1]
	i.Console.Value += line + "\n"
	return s
}

// situation is the evidence of healthy, which a test changes. Its methods change or return parts of it.
type situation struct{ e Evidence }

func (s *situation) class() *Class                 { return &s.e.Classes.Value[0] }
func (s *situation) pool() *Pool                   { return &s.e.Pools.Value[0] }
func (s *situation) group() *Group                 { return &s.e.Groups.Value[1] } // of nodes: sg-node
func (s *situation) cluster() *Cluster             { return &s.e.Cluster.Value }
func (s *situation) controllerPod() *ControllerPod { return &s.e.Controller.Value.Pods[0] }

// addProblem adds a problem of user data that the check with this ID reports.
func (s *situation) addProblem(id string) {
	s.e.UserData.Value = append(s.e.UserData.Value,
		UserDataProblem{Class: "default", ID: id, Sentence: "problem of " + id, Certainty: Certain, Where: "line 3", Fix: "y"})
}

// addEvent adds an event of the controller about an object of healthy. Names of objects that healthy lacks are allowed.
func (s *situation) addEvent(kind, name, reason, message string) {
	uid := map[string]string{"NodePool": "uid-pool"}[kind]
	if uid == "" {
		uid = "uid-" + name
	}
	s.e.Events.Value = append(s.e.Events.Value,
		Event{Kind: kind, Name: name, Namespace: "default", UID: uid, By: "joiner", Reason: reason, Message: message, Last: noon})
}

// launchedAgo sets the launch of i-2 to d before noon.
func (s *situation) launchedAgo(d time.Duration) {
	s.e.Claims.Value[1].Conditions[0].Since = noon.Add(-d)
	s.e.Instances.Value[1].Launched = noon.Add(-d)
}

// registered makes i-2 a registered node, of architecture arm64 for the checks ARCH. condition, usually
// the reason why the node is not initialized, replaces other conditions of its NodeClaim.
func (s *situation) registered(ready bool, message string, condition Condition) *Node {
	s.e.Claims.Value[1].Conditions = []Condition{{Type: "Launched", Status: "True"},
		{Type: "Registered", Status: "True", Since: noon.Add(-10 * time.Minute)}, condition}
	s.e.Instances.Value[1].Launched = noon.Add(-11 * time.Minute)
	s.e.Nodes.Value = append(s.e.Nodes.Value,
		Node{Name: "ip-10-0-0-2.ec2.internal", ProviderID: "aws:///us-east-1a/i-2", Pool: "default", Created: noon.Add(-10 * time.Minute),
			Ready: ready, Message: message, Arch: "arm64"})
	return &s.e.Nodes.Value[1]
}

// pending makes the controller's pod wait. node is empty if the pod is not scheduled.
func (s *situation) pending(scheduler, node string, messages ...string) *ControllerPod {
	p := s.controllerPod()
	p.Scheduler, p.Node, p.Phase, p.Ready, p.Messages = scheduler, node, "Pending", false, messages
	return p
}

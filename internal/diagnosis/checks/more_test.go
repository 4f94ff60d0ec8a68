package checks_test

import (
	"time"

	. "github.com/joiner-sh/joiner/internal/diagnosis"
)

func planFaults() map[string][]fault {
	return map[string][]fault{
		"ID-1": {
			{breaks: func(s *situation) { s.e.Identity.Value.Issuer = "https://oidc.example.com/id/B" },
				cause: "is not the cluster of the kubeconfig", fix: "list-clusters"},
			{breaks: func(s *situation) { s.e.Identity.Value.CA = "another" },
				cause: "is not the cluster of the kubeconfig", fix: "list-clusters"},
			{breaks: func(s *situation) { s.e.Cluster = AbsentItem[Cluster]("eks:DescribeCluster prod", noon, Missing, "") },
				cause: "there is no EKS cluster named prod", fix: "list-clusters"},
		},
		"ID-3": {{breaks: func(s *situation) { s.e.Instances.Value[1].UID = "uid-2" },
			cause: "the cluster with uid uid-2 has 1 instance",
			fix:   "create-tags --region us-east-1 --resources i-2 --tags Key=eks:eks-cluster-name,Value=prod-uid-2", suspicious: true}},
		"ID-4": {{breaks: func(s *situation) {
			s.e.Instances.Value[1].UID, s.e.Instances.Value[1].Claim = "", "gone"
			s.e.Claims.Value = s.e.Claims.Value[:1]
		}, cause: "an instance is tagged with the cluster name prod", fix: "terminate-instances", suspicious: true}},
		"ID-7": {{breaks: func(s *situation) {
			s.e.Instances.Value[1].State, s.e.Instances.Value[1].StateReason = "terminated", "Client.UserInitiatedShutdown: User initiated shutdown"
		}, cause: "i-2 was terminated from outside", fix: "cloudtrail", suspicious: true}},
		"ID-8": {{breaks: func(s *situation) {
			s.e.Groups.Value = append(s.e.Groups.Value, Group{ID: "sg-firewall", VPC: "vpc-1"})
			s.e.Instances.Value[0].Groups = []string{"sg-firewall", "sg-node"}
		}, cause: "instances of EC2NodeClass default have the security group sg-firewall", fix: "securityGroupSelectorTerms", suspicious: true}},
		"ID-9": {
			{breaks: func(s *situation) { s.group().Tags = map[string]string{"kubernetes.io/cluster/other": "owned"} },
				cause: "belongs to cluster other", fix: "narrow", suspicious: true},
			{breaks: func(s *situation) { s.class().Subnets = []string{"subnet-1", "subnet-x"} },
				cause: "subnet-x is not in the cluster's VPC", fix: `{"subnetSelectorTerms":[{"id":"subnet-1"}]}`},
		},
		"ARCH-1": {
			{breaks: func(s *situation) {
				s.pool().Steps = []Step{{Name: "karpenter.k8s.aws/instance-family In [m5]", Left: map[string]int{"amd64": 8}},
					{Name: "kubernetes.io/arch In [arm64]"}}
				s.pool().Requirements = []Requirement{{Key: "kubernetes.io/arch", Operator: "In", Values: []string{"arm64"}}}
			}, cause: "after the requirement kubernetes.io/arch In [arm64]; before it there were 8 types", fix: "loosen"},
			{breaks: func(s *situation) {
				s.pool().Requirements[0].Values = []string{"arm64", "amd64"}
			}, cause: "no arm64 instance type is left", fix: "add types", suspicious: true},
		},
		"ARCH-2": {
			{breaks: func(s *situation) {
				s.pool().Requirements[0].Values = []string{"arm64"}
				s.pool().Steps[0].Left = map[string]int{"arm64": 100}
			}, cause: "launch arm64 instances, and none of its images", fix: "image for arm64"},
			{breaks: func(s *situation) {
				s.pool().Requirements[0].Values = []string{"amd64", "arm64"}
				s.pool().Steps[0].Left = map[string]int{"arm64": 100, "amd64": 100}
			}, cause: "launch arm64 instances, and none of its images", fix: "image for arm64", suspicious: true},
		},
		"ARCH-4": {{breaks: func(s *situation) { s.e.Pods.Value[0].Selector = map[string]string{"pod-type": "armapp"} }, cause: "pod-type=armapp, and no NodePool", fix: `kubectl patch nodepool default --type merge -p '{"spec":{"template":{"metadata":{"labels":{"pod-type":"armapp"}}}}}'`}},
		"ARCH-5": {{breaks: func(s *situation) {
			s.registered(true, "", Condition{Type: "Initialized", Status: "True"})
			s.e.Pods.Value[0].Node = "ip-10-0-0-2.ec2.internal"
			s.e.Pods.Value[0].Messages = []string{"no match for platform in manifest: not found"}
		}, cause: "no variant for arm64", fix: "nodeSelector"}},
		"ARCH-6": {{breaks: func(s *situation) {
			s.registered(true, "", Condition{Type: "Initialized", Status: "True"})
			s.pool().Requirements = nil
			s.pool().Steps[0].Left["arm64"] = 200
			s.e.Images.Value = append(s.e.Images.Value,
				Image{ID: "ami-2", Name: "amazon-eks-node-al2023-arm64-standard-1.33-v1", Architecture: "arm64"})
			s.class().Images = []string{"ami-1", "ami-2"}
			s.e.Pods.Value[0].Node = "ip-10-0-0-2.ec2.internal"
			s.e.Pods.Value[0].Messages = []string{"exec /app: exec format error"}
		}, cause: "amd64 and arm64, the cheaper first", fix: `{"key":"kubernetes.io/arch","operator":"In","values":["amd64"]}`, suspicious: true,
			notTop: true}},
		"ARCH-7": {{breaks: func(s *situation) {
			s.pool().Requirements = append(s.pool().Requirements,
				Requirement{Key: "karpenter.k8s.aws/instance-family", Operator: "In", Values: []string{"a1", "m7g"}})
		}, cause: "allows A1 instances", fix: "exclude a1", suspicious: true}},
	}
}

func launchFaults() map[string][]fault {
	failLaunch := func(message string) func(*situation) {
		return func(s *situation) {
			s.e.Claims.Value[1].Conditions[0] = Condition{Type: "Launched", Status: "Unknown", Reason: "LaunchFailed", Message: message}
		}
	}
	return map[string][]fault{
		"LAUNCH-1": {{breaks: func(s *situation) {
			s.class().Role, s.class().Profile = "", "mine"
			s.e.Profiles["mine"] = AbsentItem[Profile]("iam:GetInstanceProfile mine", noon, Missing, "")
		}, cause: "instance profile mine does not exist", fix: "create-instance-profile"}},
		"LAUNCH-2": {{breaks: func(s *situation) {
			s.e.Instances.Value[1].State, s.e.Instances.Value[1].StateReason = "terminated", "Client.InternalError: Client error on launch"
		}, cause: "cannot use the KMS key", fix: "--key-id KEY_ID --grantee-principal " + controllerRole},
			{breaks: func(s *situation) {
				s.class().Keys = []string{"1234"}
				s.e.Instances.Value[1].State, s.e.Instances.Value[1].StateReason = "terminated",
					"Client.InvalidKMSKey.InvalidState: The KMS key provided is in an incorrect state"
			}, cause: "the key is disabled", fix: "aws kms enable-key --region us-east-1 --key-id 1234\nkubectl delete nodeclaim --wait=false claim-2"}},
		"LAUNCH-3": {{breaks: failLaunch("AuthFailure.ServiceLinkedRoleCreationNotPermitted: The provided credentials do not have permission"), cause: "AWSServiceRoleForEC2Spot", fix: "create-service-linked-role"}},
		"LAUNCH-4": {{breaks: failLaunch("UnauthorizedOperation: You are not authorized to perform this operation. Encoded authorization failure message: abc"), cause: "a policy does not let", fix: "decode-authorization-message"},
			{breaks: failLaunch("RunInstancesAuthCheckFailed: User: x is not authorized to perform: ec2:RunInstances on resource: y with an explicit deny in a service control policy: " +
				"arn:aws:organizations::999999999999:policy/o-a/service_control_policy/p-1234. Encoded authorization failure message: abc"),
				cause: "a service control policy", fix: "aws organizations detach-policy --policy-id p-1234 --target-id 111122223333"},
			{breaks: failLaunch("ec2:CreateFleet: not authorized with an explicit deny in a service control policy"),
				cause: "a service control policy", fix: "list-policies-for-target"},
			{breaks: failLaunch("User: x is not authorized to perform: ec2:CreateFleet on resource: y with an explicit deny in an identity-based policy: arn:aws:iam::111122223333:policy/frozen."),
				cause: "denies launching", fix: "aws iam detach-role-policy --role-name Controller --policy-arn arn:aws:iam::111122223333:policy/frozen "}},
		"LAUNCH-5": {{breaks: failLaunch("VcpuLimitExceeded: You have requested more vCPU capacity than your current vCPU limit of 32"), cause: "quota of vCPUs", fix: "request-service-quota-increase --region us-east-1 --service-code ec2 --quota-code L-1216C47A --desired-value 64"},
			{breaks: failLaunch("MaxSpotInstanceCountExceeded: Max spot instance count exceeded"), cause: "quota of spot vCPUs",
				fix: "L-34B43A08 --desired-value 256"}},
		"LAUNCH-10": {{breaks: func(s *situation) { s.e.Images.Value[0].State = "pending" }, cause: "image ami-1 is pending",
			fix: `{"amiFamily":null,"amiSelectorTerms":[{"alias":"al2023@latest"}]}`},
			{breaks: failLaunch("OptInRequired: In order to use this AWS Marketplace product you need to accept terms and subscribe. To do so please visit https://aws.amazon.com/marketplace/pp?sku=abc (hint)"),
				cause: "a product of the AWS Marketplace", fix: "https://aws.amazon.com/marketplace/pp?sku=abc"}},
		"LAUNCH-6": {{breaks: func(s *situation) { s.class().RootGiB = 10 }, cause: "10 GiB is smaller than the 20 GiB",
			fix: `"path":"/spec/blockDeviceMappings/0/ebs/volumeSize","value":"20Gi"`},
			{breaks: failLaunch("InvalidBlockDeviceMapping: bad"), cause: "refuses the block device", fix: "blockDeviceMappings"}},
		"LAUNCH-7": {{breaks: func(s *situation) { s.class().DataBytes = 20000 }, cause: "20000 bytes, and EC2 takes 16384", fix: "shorten"},
			{breaks: failLaunch("InvalidUserData: User data is limited to 16384 bytes"), cause: "limit of 16384", fix: "shorten"}},
		"LAUNCH-8": {
			{breaks: unmatched("SubnetsReady", "SubnetsNotFound"), cause: "selects no subnet", fix: "select subnets with more addresses"},
			{breaks: func(s *situation) {
				unmatched("SubnetsReady", "SubnetsNotFound")(s)
				s.e.Subnets.Value = append(s.e.Subnets.Value, Subnet{ID: "subnet-9", VPC: "vpc-1", Zone: "b", Free: 1000})
				s.e.Routes.Value = append(s.e.Routes.Value,
					RouteTable{ID: "rtb-9", Subnets: []string{"subnet-9"}, Routes: []Route{{To: "0.0.0.0/0", Target: "nat-1"}}})
			}, cause: "selects no subnet", fix: `"subnetSelectorTerms":[{"id":"subnet-9"}]`},
			{breaks: unmatched("SecurityGroupsReady", "SecurityGroupsNotFound"), cause: "selects no security group",
				fix: `"securityGroupSelectorTerms":[{"id":"sg-cluster"}]`},
			{breaks: unmatched("AMIsReady", "AMINotFound"), cause: "selects no image", fix: `"alias":"al2023@latest"`},
		},
		"LAUNCH-9": {{breaks: func(s *situation) { s.pool().Class = "other" },
			cause: "names the EC2NodeClass other, which does not exist", fix: `"nodeClassRef":{"name":"default"}`}},
	}
}

// unmatched adds a condition to the class which reports that a selector matches nothing.
func unmatched(condition, reason string) func(*situation) {
	return func(s *situation) {
		s.class().Conditions = append(s.class().Conditions, Condition{Type: condition, Status: "False", Reason: reason, Message: "found nothing"})
	}
}

func readyFaults() map[string][]fault {
	notInitialized := Condition{Type: "Initialized", Status: "Unknown", Reason: "NodeNotReady", Message: "Node status is NotReady"}
	return map[string][]fault{
		"CNI-1": {{breaks: func(s *situation) {
			s.registered(false, "container runtime network not ready: NetworkPluginNotReady message:cni plugin not initialized", notInitialized)
		}, cause: "network plug-in has not started", fix: "logs daemonset/aws-node"},
			{breaks: func(s *situation) {
				s.registered(false, "cni plugin not initialized", notInitialized)
				s.e.Daemons.Value = s.e.Daemons.Value[1:]
			}, cause: "no network plug-in", fix: "addon-name vpc-cni"}},
		"CNI-2": {{breaks: func(s *situation) {
			s.registered(false, "cni plugin not initialized", notInitialized)
			s.e.Pods.Value[0] = Pod{Namespace: "kube-system", Name: "aws-node-x", Owner: "DaemonSet/aws-node",
				Node: "ip-10-0-0-2.ec2.internal", Host: true, Messages: []string{"dial tcp 10.100.0.1:443: i/o timeout"}}
		}, cause: "cannot reach the API server's service address", fix: "kube-proxy", notTop: true}},
		"IMDS-1": {{breaks: func(s *situation) {
			s.e.Pods.Value[0] = Pod{Namespace: "kube-system", Name: "ebs-csi-node-x", Owner: "DaemonSet/ebs-csi-node",
				Node: "ip-10-0-0-1.ec2.internal", Messages: []string{"could not get instance metadata: 169.254.169.254 timeout"}}
		}, cause: "needs the metadata service", fix: `"httpPutResponseHopLimit":2`},
			{breaks: func(s *situation) {
				s.e.Pods.Value[0] = Pod{Namespace: "kube-system", Name: "ebs-csi-node-x", Owner: "DaemonSet/ebs-csi-node",
					Node: "ip-10-0-0-1.ec2.internal", Created: noon.Add(-time.Hour)}
			}, cause: "does not start: it needs the metadata service", fix: "HopLimit", suspicious: true},
			{breaks: func(s *situation) {
				s.e.Pods.Value[0] = Pod{Namespace: "kube-system", Name: "ebs-csi-node-x", Owner: "DaemonSet/ebs-csi-node",
					Node: "ip-10-0-0-1.ec2.internal", Created: noon, Events: []string{"could not get metadata from IMDS"}}
			}, cause: "needs the metadata service", fix: `"httpPutResponseHopLimit":2`}},
		"READY-1": {{breaks: func(s *situation) {
			s.registered(true, "", Condition{Type: "Initialized", Status: "Unknown", Reason: "ResourceNotRegistered",
				Message: `Resource "nvidia.com/gpu" was requested but not registered`})
		}, cause: "no device plug-in for it runs on the node", fix: "k8s-device-plugin"}},
		"READY-2": {{breaks: func(s *situation) {
			n := s.registered(true, "", Condition{Type: "Initialized", Status: "Unknown", Reason: "StartupTaintsExist"})
			n.Taints = []Taint{{Key: "example.com/not-yet", Effect: "NoSchedule"}}
		}, cause: "the startup taint example.com/not-yet", fix: "get pods"}},
		"READY-3": {{breaks: func(s *situation) { s.launchedAgo(10 * time.Minute) }, cause: "launched 10m0s ago", fix: "get-console-output", suspicious: true},
			{breaks: func(s *situation) { s.registered(false, "PLEG is not healthy", notInitialized) }, cause: "registered 10m0s ago",
				fix: "describe nodeclaim", suspicious: true}},
	}
}

func fargateFaults() map[string][]fault {
	const beforeProfile = -81 * time.Hour // from noon; the Fargate profile of healthy was created 80 hours before noon
	const untolerated = "0/2 nodes are available: 2 node(s) had untolerated taint {eks.amazonaws.com/compute-type: fargate}."
	const notInAuthConfig = "Misconfigured Fargate Profile: fargate profile joiner blocked for new launches due to: Pod execution role is not found in auth config or does not have all required permissions for launching fargate pods."
	return map[string][]fault{
		"FG-1": {{breaks: func(s *situation) {
			s.pending("default-scheduler", "", untolerated)
			s.e.Fargate.Value[0].Selectors[0].Namespace = "kube-system"
		}, cause: "no Fargate profile selects", fix: "create-fargate-profile"},
			{breaks: func(s *situation) { s.e.Fargate.Value[0].Status = "CREATING" }, cause: "is CREATING",
				fix: "wait fargate-profile-active", suspicious: true}},
		"FG-2": {{breaks: func(s *situation) {
			s.pending("default-scheduler", "", untolerated).Created = noon.Add(beforeProfile)
		}, cause: "before Fargate profile joiner was active", fix: "kubectl -n karpenter delete pod joiner-0"},
			{breaks: func(s *situation) { // one command deletes all replicas, even if kube-scheduler's message does not mention Fargate
				s.pending("default-scheduler", "", "no nodes available to schedule pods").Created = noon.Add(beforeProfile)
				replica := *s.controllerPod()
				replica.Name = "joiner-1"
				s.e.Controller.Value.Pods = append(s.e.Controller.Value.Pods, replica)
			}, cause: "before Fargate profile joiner was active", fix: "kubectl -n karpenter delete pod joiner-0 joiner-1"},
			{breaks: func(s *situation) {
				s.pending("default-scheduler", "", "0/1 nodes are available: 1 Too many pods.")
			}, cause: "was not assigned to Fargate when it was created", fix: "kubectl -n karpenter delete pod joiner-0"}},
		"FG-3": {{breaks: func(s *situation) {
			s.pending("fargate-scheduler", "", notInAuthConfig)
			s.e.Entries.Value, s.e.AuthMap.Value = s.e.Entries.Value[1:], AuthMap{}
		}, cause: "FargateRole of Fargate profile joiner is not mapped", fix: "--type FARGATE_LINUX\nkubectl -n karpenter delete pod joiner-0"},
			{breaks: func(s *situation) { s.e.Entries.Value[0].Type = "EC2_LINUX" }, cause: "must be FARGATE_LINUX", fix: "delete-access-entry"},
			{breaks: func(s *situation) {
				s.e.Roles["FargateRole"] = itemOf("iam:GetRole", Role{ARN: executionRole, Trusts: []string{"eks.amazonaws.com"}})
			}, cause: "does not trust Fargate", fix: "update-assume-role-policy"},
			{breaks: func(s *situation) {
				s.pending("fargate-scheduler", "", notInAuthConfig)
				s.e.Roles["FargateRole"] = itemOf("iam:GetRole", Role{ARN: executionRole, Trusts: []string{"eks-fargate-pods.amazonaws.com"}})
			}, cause: "lacks AmazonEKSFargatePodExecutionRolePolicy", fix: "attach-role-policy"},
			{breaks: func(s *situation) {
				s.pending("fargate-scheduler", "", notInAuthConfig)
				s.cluster().AuthMode = "CONFIG_MAP"
				s.e.Classes.Value, s.e.AuthMap.Value = nil, AuthMap{}
			}, cause: "is not mapped", fix: "system:node-proxier"}},
		"FG-4": {{breaks: func(s *situation) {
			s.e.Subnets.Value = append(s.e.Subnets.Value, Subnet{ID: "subnet-2", VPC: "vpc-1", Public: true})
			s.e.Routes.Value = append(s.e.Routes.Value,
				RouteTable{ID: "rtb-2", Subnets: []string{"subnet-2"}, Routes: []Route{{To: "0.0.0.0/0", Target: "igw-1"}}})
			s.e.Fargate.Value[0].Subnets = []string{"subnet-2"}
		}, cause: "subnet-2 of Fargate profile joiner is public", fix: "create-fargate-profile"}},
		"FG-5": {{breaks: func(s *situation) {
			s.pending("fargate-scheduler", "fargate-ip-1")
			s.e.Controller.Value.RoleSource = "pod identity"
		}, cause: "relies on Pod Identity", fix: "annotate serviceaccount joiner"},
			{breaks: func(s *situation) {
				s.pending("fargate-scheduler", "fargate-ip-1", "panic: missing region")
				s.e.Controller.Value.Settings = nil
			}, cause: "does not know its region", fix: "AWS_REGION=us-east-1"}},
		"FG-6": {{breaks: func(s *situation) {
			s.pending("fargate-scheduler", "fargate-ip-1", "lookup sts.us-east-1.amazonaws.com: i/o timeout")
			s.e.Identity.Value.DNSReady = false
		}, cause: "needs cluster DNS", fix: `"dnsPolicy":"Default"`}},
		"FG-7": {{breaks: func(s *situation) {
			s.pending("default-scheduler", "", "0/2 nodes are available: 2 Too many pods.")
			s.e.Fargate.Value = nil
		}, cause: "own pod has no node", fix: "describe pod"}},
		"FG-8": {{breaks: func(s *situation) {
			s.pending("default-scheduler", "", untolerated).Tolerates = nil
			s.e.Controller.Value.Tolerates = nil
		}, cause: "do not tolerate", fix: `patch deployment joiner --type json -p '[{"op":"add","path":"/spec/template/spec/tolerations","value":[{"effect":"NoSchedule","key":`},
			{breaks: func(s *situation) { // kube-scheduler 1.36 does not name the taint
				s.pending("default-scheduler", "", "0/1 nodes are available: 1 node(s) had untolerated taint(s).").Tolerates = nil
				s.e.Nodes.Value = append(s.e.Nodes.Value,
					Node{Name: "fargate-ip-10-0-0-9", Ready: true,
						Taints: []Taint{{Key: "eks.amazonaws.com/compute-type", Value: "fargate", Effect: "NoSchedule"}}})
			}, cause: "do not tolerate", fix: "patch deployment joiner"},
			{breaks: func(s *situation) {
				s.pending("default-scheduler", "", untolerated).Tolerates = nil
				s.e.Controller.Value.Deployment, s.e.Controller.Value.Tolerates = "scaler", []Taint{{Key: "CriticalAddonsOnly"}}
			}, cause: "do not tolerate", fix: `patch deployment scaler --type json -p '[{"op":"add","path":"/spec/template/spec/tolerations/-","value":{"effect":`}},
	}
}

// killController changes the evidence as if the controller had been killed the given time before noon: it has not
// renewed the Lease since then, and has no running pod.
func (s *situation) killController(ago time.Duration) {
	s.e.Lease.Value.Renewed = noon.Add(-ago)
	s.controllerPod().Ready, s.controllerPod().Phase = false, "Succeeded"
}

// addUnfinishedWork leaves unfinished work of an inactive controller: all times that a controller writes are hours ago,
// the second NodeClaim has no instance, and a pod has waited for an hour.
func (s *situation) addUnfinishedWork() {
	for i := range s.e.Claims.Value {
		c := &s.e.Claims.Value[i]
		c.Created = noon.Add(-5 * time.Hour)
		for k := range c.Conditions {
			c.Conditions[k].Since = noon.Add(-4 * time.Hour)
		}
	}
	s.e.Instances.Value = s.e.Instances.Value[:1]
	s.e.Instances.Value[0].Launched, s.e.Nodes.Value[0].Created = noon.Add(-5*time.Hour), noon.Add(-5*time.Hour+time.Minute)
	s.e.Claims.Value[1].ProviderID, s.e.Claims.Value[1].Conditions = "", nil
	s.e.Pods.Value[0].Created = noon.Add(-time.Hour)
}

func leaderFaults() map[string][]fault {
	inactive := func(change func(*situation)) func(*situation) { // no controller is active, and change
		return func(s *situation) {
			s.killController(2 * time.Hour)
			s.addUnfinishedWork()
			change(s)
		}
	}
	noDeployment := func(s *situation) {
		s.e.Controller = AbsentItem[Controller]("deployments and serviceaccounts named joiner or karpenter", noon, Missing, "")
	}
	return map[string][]fault{"RUN-1": {
		{breaks: inactive(noDeployment), cause: "no controller has been active since 2026-05-01 10:00:15",
			fix: "CLUSTER_NAME=prod AWS_REGION=us-east-1 joiner controller"},
		{breaks: inactive(func(s *situation) { s.e.Controller.Value.Deployment, s.e.Controller.Value.Pods = "joiner", nil }),
			cause: "no controller has been active since", fix: "kubectl -n karpenter scale deployment joiner --replicas=2"},
		{breaks: inactive(func(s *situation) { // a controller that is scaled to zero releases the Lease
			s.e.Lease.Value.Holder, s.e.Lease.Value.Seconds = "", 1
			s.e.Claims.Value = s.e.Claims.Value[:1]
		}), cause: "pods get no nodes", fix: "joiner"},
		{breaks: inactive(func(s *situation) {
			s.pending("default-scheduler", "ip-10-0-0-1.ec2.internal", "CrashLoopBackOff: back-off")
		}), cause: "no controller has been active", fix: "kubectl -n karpenter describe pod joiner-0"},
		// Without work, a Lease that was not released is suspicious.
		{breaks: inactive(func(s *situation) { s.e.Claims.Value, s.e.Pods.Value = s.e.Claims.Value[:1], nil }),
			cause: "no controller seems to have been active since", fix: "joiner controller", suspicious: true},
		{breaks: inactive(func(s *situation) { s.e.Controller = AbsentItem[Controller]("deployments", noon, Denied, "to list") }),
			cause: "no controller seems to have been active since", fix: "joiner controller", suspicious: true},
		{breaks: inactive(func(s *situation) { s.controllerPod().Ready, s.controllerPod().Phase = true, "Running" }),
			cause: "pod joiner-0 runs, but does not renew the lease", fix: "kubectl -n karpenter logs joiner-0", suspicious: true},
		{breaks: inactive(func(s *situation) { // with two controllers, the user decides which one should be active
			s.e.Controller.Value.Deployment, s.e.Controller.Value.Pods, s.e.Controller.Value.Others = "joiner", nil,
				[]string{"kube-system/karpenter"}
		}), cause: "no controller has been active since", fix: "kubectl -n karpenter get deployment joiner   # and kube-system/karpenter"},
		{breaks: inactive(func(s *situation) { // the controller was uninstalled before its NodeClaims were deleted
			s.e.Lease.Value.Holder, s.e.Lease.Value.Seconds, s.e.Pools.Value, s.e.Pods.Value = "", 1, nil, nil
			s.e.Claims.Value = s.e.Claims.Value[:1]
			s.e.Claims.Value[0].Deleting = true
			noDeployment(s)
		}), cause: "no controller has been active since", fix: "joiner controller"},
		{breaks: inactive(func(s *situation) { noDeployment(s); s.e.Name, s.e.Region = "", "" }), cause: "no controller has been active since",
			fix: "CLUSTER_NAME=NAME AWS_REGION=REGION joiner controller"},
		{breaks: func(s *situation) {
			s.e.Lease = AbsentItem[Lease]("leases", noon, Missing, "")
			noDeployment(s)
			s.e.Claims.Value, s.e.Instances.Value, s.e.Pods.Value[0].Created = nil, nil, noon.Add(-time.Hour)
		}, cause: "no controller has ever processed them", fix: "docs/installation.md", suspicious: true},
	}}
}

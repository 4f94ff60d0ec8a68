package controlplane

import (
	"fmt"
	"path/filepath"
	"strings"
	"time"
)

// ServiceCIDR is the address range of Services: the default of EKS for a VPC in 10.0.0.0/8. ServiceCIDR6 is a range in
// the format that EKS assigns to an IPv6 cluster.
const (
	ServiceCIDR  = "172.20.0.0/16"
	ServiceCIDR6 = "fd30:1c53:5f8a::/108"
)

// controllers returns the list of the controllers that kube-controller-manager runs: workloads, garbage collection,
// node lifecycle, service accounts, disruption budgets, Services and volumes. The list omits controllers that need a
// cloud, sign certificates or scale by metrics.
func controllers() string {
	return strings.Join([]string{
		"cronjob-controller", "daemonset-controller", "deployment-controller", "job-controller",
		"replicaset-controller", "replicationcontroller-controller", "statefulset-controller",
		"garbage-collector-controller", "namespace-controller", "pod-garbage-collector-controller", "ttl-after-finished-controller",
		"node-lifecycle-controller", "taint-eviction-controller", "disruption-controller",
		"serviceaccount-controller", "serviceaccount-token-controller", "root-ca-certificate-publisher-controller",
		"clusterrole-aggregation-controller", "resourcequota-controller",
		"endpointslice-controller",
		"persistentvolume-binder-controller", "persistentvolumeclaim-protection-controller", "persistentvolume-protection-controller",
	}, ",")
}

// apiServerArgs returns the arguments of kube-apiserver. For a small computer, they disable profiling and API priority
// and fairness. They disable the endpoint reconciler, because Endpoints do not allow a loopback address.
func (c *ControlPlane) apiServerArgs(etcdURL string, port int, o Options) []string {
	args := []string{
		"--etcd-servers=" + etcdURL,
		"--bind-address=127.0.0.1",
		fmt.Sprintf("--secure-port=%d", port),
		"--advertise-address=" + o.advertiseAddress(),
		"--endpoint-reconciler-type=none",
		"--cert-dir=" + c.dir,
		"--tls-cert-file=" + c.file("apiserver.crt"),
		"--tls-private-key-file=" + c.file("apiserver.key"),
		"--client-ca-file=" + c.file("ca.crt"),
		"--service-account-issuer=" + o.Issuer,
		"--service-account-signing-key-file=" + c.file("service-accounts.key"),
		"--service-account-key-file=" + c.file("service-accounts.key"),
		"--service-cluster-ip-range=" + o.ServiceCIDR,
		"--authorization-mode=Node,RBAC",
		"--enable-admission-plugins=NodeRestriction",
		"--allow-privileged",
		"--enable-priority-and-fairness=false",
		"--max-requests-inflight=0",
		"--max-mutating-requests-inflight=0",
		"--profiling=false",
		"--event-ttl=1h",
		"--audit-policy-file=" + c.file("audit.yaml"),
		"--audit-log-path=" + c.AuditLog(),
		"--audit-log-maxsize=0",
	}
	if o.TokenWebhook != "" {
		args = append(args,
			"--authentication-token-webhook-config-file="+o.TokenWebhook,
			"--authentication-token-webhook-version=v1",
			"--authentication-token-webhook-cache-ttl="+o.TokenCache.String(),
		)
	}
	if o.NodeProxy != "" {
		args = append(args, "--egress-selector-config-file="+c.file("egress.yaml"))
	}
	return args
}

// controllerManagerArgs returns the arguments of kube-controller-manager. The request limits are higher than the
// defaults, for clusters of a thousand nodes.
func (c *ControlPlane) controllerManagerArgs() []string {
	return []string{
		"--kubeconfig=" + c.file("controller-manager.kubeconfig"),
		"--leader-elect=false",
		"--secure-port=0",
		"--controllers=" + controllers(),
		"--use-service-account-credentials",
		"--service-account-private-key-file=" + c.file("service-accounts.key"),
		"--root-ca-file=" + c.file("ca.crt"),
		"--kube-api-qps=500",
		"--kube-api-burst=1000",
		"--concurrent-gc-syncs=5",
		"--profiling=false",
	}
}

func (c *ControlPlane) schedulerArgs() []string {
	return []string{"--config=" + c.file("scheduler.yaml"), "--secure-port=0"}
}

// schedulerConfig returns the configuration of kube-scheduler. With the default request rate, binding 500 pods would
// take ten seconds.
func (c *ControlPlane) schedulerConfig() []byte {
	return []byte(`apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection:
  leaderElect: false
enableProfiling: false
clientConnection:
  kubeconfig: ` + c.file("scheduler.kubeconfig") + `
  qps: 500
  burst: 1000
`)
}

// egressConfig returns the configuration with which the API server connects to nodes, pods and Services through a proxy
// on a Unix socket.
func egressConfig(socket string) []byte {
	return []byte(`apiVersion: apiserver.k8s.io/v1beta1
kind: EgressSelectorConfiguration
egressSelections:
- name: cluster
  connection:
    proxyProtocol: HTTPConnect
    transport: {uds: {udsName: ` + socket + `}}
`)
}

// auditPolicy returns the audit policy: the API server logs the calls of service accounts, except those of Kubernetes'
// own controllers. The log has metadata only, no bodies. A watch is logged as soon as it starts.
func auditPolicy() []byte {
	return []byte(`apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
  users:
  - system:serviceaccount:kube-system:lab-controller
  - system:serviceaccount:kube-system:joiner
  - system:serviceaccount:kube-system:karpenter
- level: None
  userGroups: ["system:serviceaccounts:kube-system"]
- level: Metadata
  userGroups: ["system:serviceaccounts"]
- level: None
`)
}

// AuditLog returns the path of the audit log, which has one line per call of a service account.
func (c *ControlPlane) AuditLog() string { return filepath.Join(c.dir, "audit.log") }

func (c *ControlPlane) file(name string) string { return filepath.Join(c.dir, name) }

// Options configure the control plane.
type Options struct {
	// Issuer is the issuer of service account tokens, in the format of EKS's OIDC issuer URL.
	Issuer string
	// TokenWebhook is the path of the kubeconfig of the webhook that authenticates bearer tokens. Empty disables
	// webhook authentication.
	TokenWebhook string
	// TokenCache is how long the API server caches a response of the webhook.
	TokenCache time.Duration
	// ServiceCIDR is the address range of Services, which also sets the IP family of the cluster. Empty selects the
	// constant ServiceCIDR.
	ServiceCIDR string
	// NodeProxy is the path of a socket with a proxy (HTTP CONNECT) to the nodes. Empty makes the API server connect
	// directly, which fails because it cannot resolve the nodes' names.
	NodeProxy string
	// Start is the timeout until the control plane is ready. Zero is two minutes.
	Start time.Duration
}

// advertiseAddress returns the address that the API server advertises, in the IP family of Services. No client uses
// this address.
func (o Options) advertiseAddress() string {
	if strings.Contains(o.ServiceCIDR, ":") {
		return "2600:1f18:63f7:b900::1"
	}
	return "10.0.0.1"
}

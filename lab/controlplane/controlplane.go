// Package controlplane runs a real Kubernetes control plane on this computer.
//
// In: a folder, a certificate authority and an authentication webhook.
// Out: a ready API server with scheduler and controllers, and an administrator's kubeconfig.
// Never: a fixed port, a need for root, or a process that outlives this one.
package controlplane

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/joiner-sh/joiner/lab/pki"
	"github.com/joiner-sh/joiner/lab/process"
)

// ControlPlane is a running control plane.
type ControlPlane struct {
	URL        string       // URL of the API server: https://127.0.0.1:PORT
	CA         []byte       // the authority's certificate, PEM
	Admin      *rest.Config // credentials of an administrator, without client-side rate limits
	Kubeconfig string       // path of the administrator's kubeconfig

	dir       string
	authority *pki.Authority
	group     *process.Group
	etcd      *embed.Etcd
	failed    chan error // unexpected ends of programs

	mu        sync.Mutex
	apiServer *process.Process // nil while the API server is stopped
	apiSpec   process.Spec     // starts the API server again
}

// Start starts the programs of the control plane as children of group, and etcd in this process. The children run self,
// the lab's own program. Start returns once the API server is ready and the controllers have started. Start writes
// files to dir.
func Start(ctx context.Context, self, dir string, group *process.Group, authority *pki.Authority, o Options) (*ControlPlane, error) {
	o.ServiceCIDR = cmp.Or(o.ServiceCIDR, ServiceCIDR)
	if o.Start == 0 {
		o.Start = 2 * time.Minute
	}
	ctx, cancel := context.WithTimeoutCause(ctx, o.Start, fmt.Errorf("not ready after %s", o.Start))
	defer cancel()
	c := &ControlPlane{CA: authority.PEM, dir: dir, authority: authority, group: group, failed: make(chan error, 8)}
	if err := c.writeFiles(o); err != nil {
		return nil, err
	}
	etcd, etcdURL, err := startEtcd(ctx, dir)
	if err != nil {
		return nil, err
	}
	c.etcd = etcd
	if err := c.startPrograms(ctx, self, etcdURL, o); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

func (c *ControlPlane) startPrograms(ctx context.Context, self, etcdURL string, o Options) error {
	apiServer, err := c.startAPIServer(ctx, self, etcdURL, o)
	if err != nil {
		return err
	}
	manager, err := c.group.Start(process.Spec{
		Name: "kube-controller-manager",
		Path: self,
		Args: append([]string{"kube-controller-manager"}, c.controllerManagerArgs()...),
		Env:  relaxedGC(),
	})
	if err != nil {
		return err
	}
	scheduler, err := c.group.Start(process.Spec{
		Name: "kube-scheduler", Path: self, Args: append([]string{"kube-scheduler"}, c.schedulerArgs()...), Env: relaxedGC(),
	})
	if err != nil {
		return err
	}
	c.watchAPIServer(apiServer)
	for _, p := range []*process.Process{manager, scheduler} {
		go func() {
			<-p.Done()
			c.failed <- p.Err()
		}()
	}
	return c.waitForControllers(ctx, manager)
}

// watchAPIServer records p as the API server's process. If p ends without StopAPIServer, Failed reports an error.
func (c *ControlPlane) watchAPIServer(p *process.Process) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.apiServer = p
	go func() {
		<-p.Done()
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.apiServer == p {
			c.failed <- p.Err()
		}
	}()
}

// StopAPIServer kills the API server. etcd keeps running, with the data.
func (c *ControlPlane) StopAPIServer() {
	c.mu.Lock()
	p := c.apiServer
	c.apiServer = nil
	c.mu.Unlock()
	if p != nil {
		p.Kill()
	}
}

// StartAPIServer restarts a stopped API server at the same address, and returns once it is ready.
func (c *ControlPlane) StartAPIServer(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, time.Minute, errors.New("not ready after a minute"))
	defer cancel()
	p, err := c.group.Start(c.apiSpec)
	if err != nil {
		return err
	}
	if err := c.waitForAPIServer(ctx, p); err != nil {
		p.Kill()
		return err
	}
	c.watchAPIServer(p)
	return nil
}

// startAPIServer starts the API server on a free port. If another program takes the port first, it tries two more.
func (c *ControlPlane) startAPIServer(ctx context.Context, self, etcdURL string, o Options) (*process.Process, error) {
	for attempt := 1; ; attempt++ {
		port, err := freePort()
		if err != nil {
			return nil, err
		}
		if err := c.writeKubeconfigs(fmt.Sprintf("https://127.0.0.1:%d", port)); err != nil {
			return nil, err
		}
		c.apiSpec = process.Spec{
			Name: "kube-apiserver",
			Path: self,
			Args: append([]string{"kube-apiserver"}, c.apiServerArgs(etcdURL, port, o)...),
			Env:  relaxedGC(),
		}
		p, err := c.group.Start(c.apiSpec)
		if err != nil {
			return nil, err
		}
		err = c.waitForAPIServer(ctx, p)
		if err == nil {
			return p, nil
		}
		p.Kill()
		if attempt == 3 || !strings.Contains(err.Error(), "address already in use") {
			return nil, err
		}
	}
}

// relaxedGC returns environment variables for a program of the control plane. GOGC=300 lets a heap grow to four times
// the live data before a garbage collection. In a small cluster GOGC=300 costs little memory, and saves CPU time when
// five hundred pods are created. GOMEMLIMIT makes collections frequent above 6 GiB. Without it, 400 pods of 800 kB each
// make the API server use more than 24 GiB.
func relaxedGC() []string { return []string{"GOGC=300", "GOMEMLIMIT=6GiB"} }

// Failed returns a channel that receives an error when a program of the control plane ends unexpectedly.
func (c *ControlPlane) Failed() <-chan error { return c.failed }

// Close stops etcd. It does not stop the other programs: the caller closes their group, before Close.
func (c *ControlPlane) Close() {
	if c.etcd != nil {
		c.etcd.Close()
	}
}

func (c *ControlPlane) waitForAPIServer(ctx context.Context, p *process.Process) error {
	client, err := kubernetes.NewForConfig(c.Admin)
	if err != nil {
		return fmt.Errorf("make client: %w", err)
	}
	var last error
	err = wait.PollUntilContextCancel(ctx, 50*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		if err := p.Err(); err != nil {
			return false, err
		}
		_, last = client.Discovery().RESTClient().Get().AbsPath("/readyz").DoRaw(ctx)
		return last == nil, nil
	})
	if err == nil || p.Err() != nil {
		return err
	}
	return fmt.Errorf("kube-apiserver: %w (last response of /readyz: %w)\n%s", context.Cause(ctx), last, p.Tail(15))
}

// waitForControllers waits for the default service account, which the controller manager creates. Without it, no pod
// can be created. p is the process of the controller manager.
func (c *ControlPlane) waitForControllers(ctx context.Context, p *process.Process) error {
	client, err := kubernetes.NewForConfig(c.Admin)
	if err != nil {
		return fmt.Errorf("make client: %w", err)
	}
	err = wait.PollUntilContextCancel(ctx, 50*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		select {
		case err := <-c.failed:
			return false, err
		default:
		}
		_, err := client.CoreV1().ServiceAccounts("default").Get(ctx, "default", metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		return err == nil, err
	})
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return fmt.Errorf("kube-controller-manager: %w\n%s", context.Cause(ctx), p.Tail(15))
	}
	return err
}

// writeFiles writes the files that do not depend on the API server's port.
func (c *ControlPlane) writeFiles(o Options) error {
	// The non-loopback IPs are the first addresses of ServiceCIDR and ServiceCIDR6, for the Service kubernetes.
	serving, err := c.authority.IssueServer("kube-apiserver", "127.0.0.1", "localhost", "172.20.0.1", "fd30:1c53:5f8a::1",
		"kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local")
	if err != nil {
		return err
	}
	signingKey, err := pki.NewSigningKey()
	if err != nil {
		return err
	}
	for name, data := range map[string][]byte{
		"ca.crt":               c.authority.PEM,
		"apiserver.crt":        serving.Cert,
		"apiserver.key":        serving.Key,
		"service-accounts.key": signingKey,
		"scheduler.yaml":       c.schedulerConfig(),
		"audit.yaml":           auditPolicy(),
		"egress.yaml":          egressConfig(o.NodeProxy),
	} {
		if err := os.WriteFile(c.file(name), data, 0o600); err != nil {
			return fmt.Errorf("write %s: %w", name, err)
		}
	}
	return nil
}

// writeKubeconfigs writes the clients' kubeconfigs for the API server at url, and sets URL, Kubeconfig and Admin.
func (c *ControlPlane) writeKubeconfigs(url string) error {
	c.URL = url
	for _, access := range []struct {
		file, user string
		groups     []string
	}{
		{"controller-manager.kubeconfig", "system:kube-controller-manager", nil},
		{"scheduler.kubeconfig", "system:kube-scheduler", nil},
		{"kubeconfig", "kubernetes-admin", []string{"system:masters"}},
	} {
		pair, err := c.authority.IssueClient(access.user, access.groups...)
		if err != nil {
			return err
		}
		if err := clientcmd.WriteToFile(Kubeconfig(url, c.CA, pair), c.file(access.file)); err != nil {
			return fmt.Errorf("write %s: %w", access.file, err)
		}
		if access.file != "kubeconfig" {
			continue
		}
		c.Kubeconfig = c.file(access.file)
		c.Admin = &rest.Config{
			Host:            url,
			TLSClientConfig: rest.TLSClientConfig{CAData: c.CA, CertData: pair.Cert, KeyData: pair.Key},
			QPS:             -1,
			UserAgent:       "joiner-lab",
		}
	}
	return nil
}

// Kubeconfig returns a kubeconfig with an API server's URL, the certificate of its authority, and a client certificate.
func Kubeconfig(url string, ca []byte, pair pki.Pair) clientcmdapi.Config {
	return clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"lab": {Server: url, CertificateAuthorityData: ca}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"lab": {ClientCertificateData: pair.Cert, ClientKeyData: pair.Key}},
		Contexts:       map[string]*clientcmdapi.Context{"lab": {Cluster: "lab", AuthInfo: "lab"}},
		CurrentContext: "lab",
	}
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("find a free port: %w", err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

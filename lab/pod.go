package lab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/joiner-sh/joiner/lab/process"
	"github.com/joiner-sh/joiner/lab/sandbox"
)

// Addresses in a pod's sandbox.
const (
	apiServerAddress = "172.20.0.1"  // address of the Service "kubernetes": the first address for Services
	awsAddress       = "10.0.255.10" // address of the endpoint in the VPC for all AWS APIs
)

// PodRun describes how to run a pod's first container as a process of this computer.
type PodRun struct {
	Pod  corev1.PodTemplateSpec // template of the pod, with its namespace
	Name string                 // name of the pod, which is also its host name and the name of its log
	User int                    // user ID; the image has no account for this ID
	Path string                 // path of the program that replaces the program of the image

	// Role is the name of an IAM role. The pod's environment has the role's access keys and the region, as if from a
	// Secret; empty: no keys. If the pod's service account is annotated with a role, the pod also gets the annotated
	// role, through its service account token.
	Role string
	// Env is added to the environment of the pod's container.
	Env []string
	// AWS serves the calls to AWS; nil: the lab's emulator.
	AWS http.Handler
}

// Pod is a pod's first container running as a process in a sandbox. The sandbox has an unprivileged user and a
// read-only root. Its network leads only to the API server and AWS, by their addresses.
type Pod struct {
	*process.Process

	container    corev1.Container
	blockedCalls string           // path of the file of blocked calls, see sandbox.Spec
	inbound      map[int32]string // paths of sockets, by container port
	servers      []io.Closer      // servers of the outbound addresses, see forward
}

// CheckSupport returns an error if this computer cannot run a pod as a process.
func (pods *Pods) CheckSupport() error { return sandbox.CheckSupport(pods.lab.Self) }

// Run starts a pod's first container. The container has what the kubelet would provide: the files of its service
// account and the variables with the API server's address. The container has no Pod Identity agent, no instance
// metadata and no DNS server, although /etc/resolv.conf names one.
func (pods *Pods) Run(ctx context.Context, r PodRun) (*Pod, error) {
	folder := filepath.Join(pods.lab.Home, "pods", r.Name)
	if err := os.RemoveAll(folder); err != nil {
		return nil, fmt.Errorf("make the folder of pod %s: %w", r.Name, err)
	}
	p := &Pod{
		container:    r.Pod.Spec.Containers[0],
		blockedCalls: filepath.Join(pods.lab.Home, "logs", r.Name+".blocked-calls"),
		inbound:      map[int32]string{},
	}
	files, err := pods.files(ctx, r)
	if err != nil {
		return nil, err
	}
	roleFiles, roleEnv, err := pods.lab.ServiceAccounts.webhookAdditions(ctx, r.Pod.Namespace, r.Pod.Spec.ServiceAccountName)
	if err != nil {
		return nil, err
	}
	maps.Copy(files, roleFiles)
	root := filepath.Join(folder, "root")
	if err := writeTree(root, files); err != nil {
		return nil, fmt.Errorf("make the root of pod %s: %w", r.Name, err)
	}
	if err := copyProgram(r.Path, filepath.Join(root, "joiner")); err != nil {
		return nil, fmt.Errorf("make the root of pod %s: %w", r.Name, err)
	}
	env, err := pods.env(r)
	if err != nil {
		return nil, err
	}
	env = append(env, roleEnv...)
	spec := sandbox.Spec{
		Root: root, Program: "/joiner", Args: p.container.Args, Env: env, User: r.User, Host: r.Name,
		Outbound: map[string]string{apiServerAddress + ":443": filepath.Join(folder, "api"), awsAddress + ":80": filepath.Join(folder, "aws")},
		Inbound:  map[string]string{}, BlockedCalls: p.blockedCalls,
	}
	for _, port := range p.container.Ports {
		p.inbound[port.ContainerPort] = filepath.Join(folder, strconv.Itoa(int(port.ContainerPort)))
		spec.Inbound[p.inbound[port.ContainerPort]] = fmt.Sprintf("127.0.0.1:%d", port.ContainerPort)
	}
	if err := pods.forward(p, r, folder); err != nil {
		return nil, err
	}
	args, err := spec.Save(filepath.Join(folder, "cell.json"))
	if err == nil {
		p.Process, err = pods.lab.group.Start(process.Spec{Name: r.Name, Path: pods.lab.Self, Args: args, Attr: sandbox.Isolate})
	}
	if err != nil {
		p.closeServers()
		return nil, err
	}
	go func() {
		<-p.Done()
		p.closeServers()
	}()
	return p, nil
}

// files returns the files that the kubelet adds to a container, by path: /etc/resolv.conf, and those of the pod's
// service account.
func (pods *Pods) files(ctx context.Context, r PodRun) (map[string]string, error) {
	token, err := pods.lab.ServiceAccounts.serviceToken(ctx, r.Pod.Namespace, r.Pod.Spec.ServiceAccountName, "")
	if err != nil {
		return nil, err
	}
	const folder = "var/run/secrets/kubernetes.io/serviceaccount/"
	return map[string]string{
		folder + "token": token, folder + "ca.crt": string(pods.lab.plane.CA), folder + "namespace": r.Pod.Namespace,
		"etc/resolv.conf": "nameserver " + pods.lab.ClusterDNS() + "\nsearch " + r.Pod.Namespace +
			".svc.cluster.local svc.cluster.local cluster.local\noptions ndots:5\n",
	}, nil
}

// env returns a container's environment, without the variables that EKS's webhook for service accounts adds. The
// container inherits no variables from this process.
func (pods *Pods) env(r PodRun) ([]string, error) {
	env := []string{"PATH=/", "HOSTNAME=" + r.Name, "KUBERNETES_SERVICE_HOST=" + apiServerAddress,
		"KUBERNETES_SERVICE_PORT=443", "AWS_ENDPOINT_URL=http://" + awsAddress}
	if r.Role != "" {
		session, err := pods.lab.Roles.assume(r.Role)
		if err != nil {
			return nil, err
		}
		env = append(env, "AWS_REGION="+pods.lab.Region, "AWS_ACCESS_KEY_ID="+session.AccessKey,
			"AWS_SECRET_ACCESS_KEY="+session.SecretKey, "AWS_SESSION_TOKEN="+session.Token)
	}
	c := r.Pod.Spec.Containers[0]
	for _, e := range c.Env {
		value := e.Value
		if from := e.ValueFrom; from != nil {
			if from.ResourceFieldRef == nil || from.ResourceFieldRef.Resource != "limits.memory" {
				return nil, fmt.Errorf("run pod %s: the lab does not support valueFrom of variable %s, except limits.memory", r.Name, e.Name)
			}
			value = strconv.FormatInt(c.Resources.Limits.Memory().Value(), 10)
		}
		env = append(env, e.Name+"="+value)
	}
	return append(env, r.Env...), nil
}

// forward serves the sockets of the sandbox's outbound addresses until closeServers is called.
func (pods *Pods) forward(p *Pod, r PodRun, folder string) error {
	if r.AWS == nil {
		r.AWS = pods.lab.Emulator
	}
	toAWS, err := net.Listen("unix", filepath.Join(folder, "aws"))
	if err != nil {
		return fmt.Errorf("open the socket to AWS: %w", err)
	}
	server := &http.Server{Handler: r.AWS}
	go func() { _ = server.Serve(toAWS) }()
	p.servers = append(p.servers, server)
	toAPIServer, err := net.Listen("unix", filepath.Join(folder, "api"))
	if err != nil {
		p.closeServers()
		return fmt.Errorf("open the socket to the API server: %w", err)
	}
	p.servers = append(p.servers, toAPIServer)
	go sandbox.Forward(toAPIServer, "tcp", strings.TrimPrefix(pods.lab.plane.URL, "https://"))
	return nil
}

func (p *Pod) closeServers() {
	for _, s := range p.servers {
		_ = s.Close()
	}
}

// BlockedCalls returns the pod's calls to addresses that the sandbox does not forward, for example "udp 53 example.com"
// or "tcp 169.254.169.254:80". Each call ends with a newline.
func (p *Pod) BlockedCalls() ([]string, error) {
	text, err := os.ReadFile(p.blockedCalls)
	if err != nil {
		return nil, fmt.Errorf("read the blocked calls of pod %s: %w", p.Name, err)
	}
	return slices.Collect(strings.Lines(string(text))), nil
}

// Get sends a GET request to a port of the container, by the port's name.
func (p *Pod) Get(ctx context.Context, port, path string) (status int, body string, err error) {
	at := slices.IndexFunc(p.container.Ports, func(c corev1.ContainerPort) bool { return c.Name == port })
	if at < 0 {
		return 0, "", fmt.Errorf("pod %s has no port %s", p.Name, port)
	}
	socket := p.inbound[p.container.Ports[at].ContainerPort]
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}}
	defer transport.CloseIdleConnections()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://pod"+path, nil)
	if err != nil {
		return 0, "", err
	}
	response, err := (&http.Client{Transport: transport, Timeout: 2 * time.Second}).Do(request)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return response.StatusCode, string(text), err
}

// WaitReady waits until the pod's liveness probe and then its readiness probe succeed. It sends the requests of the
// probes every 50 ms, up to a minute for each probe, and ignores the probes' own delays and limits.
func (p *Pod) WaitReady(ctx context.Context) error {
	for _, probe := range []*corev1.Probe{p.container.LivenessProbe, p.container.ReadinessProbe} {
		if probe == nil || probe.HTTPGet == nil {
			return fmt.Errorf("the liveness or readiness probe of pod %s is missing or is not an HTTP probe", p.Name)
		}
		err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
			if err := p.Err(); err != nil {
				return false, err
			}
			status, _, err := p.Get(ctx, probe.HTTPGet.Port.StrVal, probe.HTTPGet.Path)
			return err == nil && status == http.StatusOK, nil
		})
		if err != nil && p.Err() == nil {
			return fmt.Errorf("wait for pod %s: %w\n%s", p.Name, err, p.Tail(15))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Status returns the kernel's data about the container's process: the fields of /proc/PID/status by name, and its
// mounts.
func (p *Pod) Status() (fields map[string]string, mounts string, err error) {
	// The process of the sandbox has one child: the container's program.
	children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", p.PID(), p.PID()))
	if err != nil {
		return nil, "", fmt.Errorf("find the process of pod %s: %w", p.Name, err)
	}
	pid := strings.TrimSpace(string(children))
	if pid == "" {
		return nil, "", errors.New("pod " + p.Name + " has no process")
	}
	text, err := os.ReadFile("/proc/" + pid + "/status")
	if err != nil {
		return nil, "", err
	}
	fields = map[string]string{}
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		fields[name] = strings.TrimSpace(value)
	}
	text, err = os.ReadFile("/proc/" + pid + "/mountinfo")
	return fields, string(text), err
}

func writeTree(root string, files map[string]string) error {
	for name, text := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

func copyProgram(from, to string) error {
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, data, 0o755)
}

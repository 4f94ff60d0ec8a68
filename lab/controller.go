package lab

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/joiner-sh/joiner/internal/emulator/world"
	"github.com/joiner-sh/joiner/internal/emulator/world/identity"
	"github.com/joiner-sh/joiner/lab/process"
)

// Controller is a running controller, Joiner's or Karpenter's, whose cluster is the lab's.
type Controller struct {
	*process.Process
	Metrics string // URL of its metrics
	Probes  string // base URL of /healthz and /readyz
}

// BinaryVariable is the name of the environment variable with the path of a joiner program that is already built.
const BinaryVariable = "JOINER_BINARY"

// BuildJoiner returns the path of the joiner program: the value of BinaryVariable if it is set. Otherwise BuildJoiner
// builds the program in dir, from the checkout that contains the working folder.
func BuildJoiner(ctx context.Context, dir string) (string, error) {
	if path := os.Getenv(BinaryVariable); path != "" {
		return filepath.Abs(path)
	}
	root, err := moduleRoot()
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "joiner")
	build := exec.CommandContext(ctx, "go", "build", "-o", path, "./cmd/joiner")
	build.Dir = root
	build.Env = append(os.Environ(), "CGO_ENABLED=0") // as in the image
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build joiner: %w\n%s", err, out)
	}
	return path, nil
}

// moduleRoot returns the folder of the module that contains cmd/joiner: the working folder or a folder above it.
func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("find the source of joiner: %w", err)
	}
	for {
		mod, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && bytes.HasPrefix(mod, []byte("module github.com/joiner-sh/joiner\n")) {
			return dir, nil
		}
		if parent := filepath.Dir(dir); parent != dir {
			dir = parent
			continue
		}
		return "", errors.New("find the source of joiner: the working folder is not inside a checkout; name the program with --joiner")
	}
}

// RunController starts `joiner controller` from the program at path and returns once the controller is healthy. In AWS,
// the controller has the role Lab.Role with the IAM policies of package permissions. In the cluster, it has the service
// account ControllerAccount with the RBAC rules of the same package. settings are further environment variables, as
// NAME=value.
func (l *Lab) RunController(ctx context.Context, path string, settings ...string) (*Controller, error) {
	if err := l.Roles.permitSettings(settings); err != nil {
		return nil, err
	}
	env, err := l.controllerEnv()
	if err != nil {
		return nil, err
	}
	return l.runProgram(ctx, process.Spec{Name: "joiner", Path: path, Args: []string{"controller"}, Env: env}, settings)
}

// RunKarpenter starts Karpenter's own controller from the program at path and returns once the controller is healthy.
// The controller has the administrator's credentials for the cluster and AWS. settings are further environment
// variables, as NAME=value.
func (l *Lab) RunKarpenter(ctx context.Context, path string, settings ...string) (*Controller, error) {
	env := append(l.Environment(), "CLUSTER_NAME="+l.Cluster, "DISABLE_LEADER_ELECTION=true", "AWS_EC2_METADATA_DISABLED=true")
	return l.runProgram(ctx, process.Spec{Name: "karpenter", Path: path, Env: env}, settings)
}

func (l *Lab) runProgram(ctx context.Context, spec process.Spec, settings []string) (*Controller, error) {
	metrics, err := freePort()
	if err != nil {
		return nil, err
	}
	probes, err := freePort()
	if err != nil {
		return nil, err
	}
	spec.Env = append(spec.Env, fmt.Sprintf("METRICS_PORT=%d", metrics), fmt.Sprintf("HEALTH_PROBE_PORT=%d", probes))
	spec.Env = append(spec.Env, settings...)
	p, err := l.group.Start(spec)
	if err != nil {
		return nil, err
	}
	c := &Controller{
		Process: p,
		Metrics: fmt.Sprintf("http://127.0.0.1:%d/metrics", metrics),
		Probes:  fmt.Sprintf("http://127.0.0.1:%d", probes),
	}
	if err := c.waitHealthy(ctx); err != nil {
		p.Kill()
		return nil, err
	}
	return c, nil
}

// controllerEnv returns the environment that a controller has in a pod, with the controller's IAM role. The AWS
// settings of this process do not apply to the controller.
func (l *Lab) controllerEnv() ([]string, error) {
	return l.envOf(l.Role, append(l.selfManagedSettings(), "LEADER_ELECTION_NAMESPACE=kube-system",
		"KUBECONFIG="+l.ServiceAccounts.controllerConfig)...)
}

// envOf returns the variables of a program that uses an IAM role. more are further variables, as NAME=value.
func (l *Lab) envOf(role string, more ...string) ([]string, error) {
	session, err := l.Roles.assume(role)
	if err != nil {
		return nil, err
	}
	env := append([]string{"KUBECONFIG=" + l.Kubeconfig, "CLUSTER_NAME=" + l.Cluster}, more...)
	for _, variable := range os.Environ() { // clear AWS settings that the program inherits
		if name, _, _ := strings.Cut(variable, "="); strings.HasPrefix(name, "AWS_") {
			env = append(env, name+"=")
		}
	}
	return append(env,
		"AWS_ENDPOINT_URL="+l.Endpoint,
		"AWS_REGION="+l.Region,
		"AWS_ACCESS_KEY_ID="+session.AccessKey,
		"AWS_SECRET_ACCESS_KEY="+session.SecretKey,
		"AWS_SESSION_TOKEN="+session.Token,
		"AWS_EC2_METADATA_DISABLED=true",
		"AWS_CONFIG_FILE=/dev/null",
		"AWS_SHARED_CREDENTIALS_FILE=/dev/null",
	), nil
}

func (r *Roles) assume(role string) (identity.Session, error) {
	var session identity.Session
	var err error
	r.lab.Emulator.Do(func(w *world.World, now time.Time) {
		session, err = w.Account(r.lab.Account).AssumeRole(now, role, "joiner", 12*time.Hour)
	})
	if err != nil {
		return session, fmt.Errorf("assume role %s: %w", role, err)
	}
	return session, nil
}

// waitHealthy waits, for up to a minute, until the controller is healthy. It returns an error if the controller ends.
func (c *Controller) waitHealthy(ctx context.Context) error {
	client := &http.Client{Timeout: 2 * time.Second}
	err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		if err := c.Err(); err != nil {
			return false, err
		}
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, c.Probes+"/healthz", nil)
		if err != nil {
			return false, err
		}
		response, err := client.Do(r)
		if err != nil {
			return false, nil
		}
		defer response.Body.Close()
		return response.StatusCode == http.StatusOK, nil
	})
	if err != nil && c.Err() == nil {
		return fmt.Errorf("wait for the controller: %w\n%s", err, c.Tail(15))
	}
	return err
}

// Environment returns the variables that a shell needs to use the lab: NAME=value, sorted.
func (l *Lab) Environment() []string {
	env := []string{
		"KUBECONFIG=" + l.Kubeconfig,
		"AWS_ENDPOINT_URL=" + l.Endpoint,
		"AWS_REGION=" + l.Region,
		"AWS_DEFAULT_REGION=" + l.Region, // version 1 of the AWS command line reads only this name
		"AWS_ACCESS_KEY_ID=" + l.Account,
		"AWS_SECRET_ACCESS_KEY=lab",
	}
	slices.Sort(env)
	return env
}

func freePort() (int, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("find a free port: %w", err)
	}
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port, nil
}

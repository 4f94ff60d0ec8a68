// Package instance boots an emulated instance from its user data.
//
// In: an instance with its image and type, and the AWS APIs that it can call.
// Out: the settings of its kubelet, or nil if no kubelet starts; and the console output.
// Never: a program or a file of this computer, or a network call.
package instance

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"time"

	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/lab/kubelet"
)

// Instance is an instance to boot.
type Instance struct {
	ID             string        // "i-0…"
	Region         string        // AWS region
	Zone           string        // name of the availability zone
	PrivateIP      string        // IPv4 address
	PrivateDNSName string        // "ip-10-0-0-12.ec2.internal"
	IPv6           string        // empty without an IPv6 address
	UserData       []byte        // as returned by the metadata service, decoded from base64
	NoMetadata     bool          // the metadata service is switched off
	RootGiB        int64         // size of the volume that holds pods and images
	Image          Image         // image of the instance
	Facts          catalog.Facts // data of the instance type
}

// Image is the AMI of an instance.
type Image struct {
	Name         string   // "bottlerocket-aws-k8s-1.31-x86_64-v1.53.0-0123abcd"
	Family       string   // AMI family as in an EC2NodeClass: "AL2", "AL2023", …
	Architecture string   // "x86_64" or "arm64"
	Version      string   // Kubernetes minor version: "1.31"
	Flaws        []string // FlawNoNodeadm…; empty for a working image
}

// Services are the services that an instance can call.
type Services interface {
	// Credentials returns nil if the metadata service has credentials for the instance. Otherwise it returns an error
	// with the reason.
	Credentials() error
	// Cluster describes an EKS cluster. It calls EKS with the instance's credentials.
	Cluster(name string) (Cluster, error)
}

// Cluster is the description of a cluster that EKS returns to an instance.
type Cluster struct {
	Endpoint string // URL of the API server
	CA       string // PEM certificate of the authority, in base64
	CIDR     string // address range of Services
}

// scriptTimeout is the timeout for all scripts of one instance.
const scriptTimeout = 10 * time.Second

// boot is the boot of one instance.
type boot struct {
	Instance
	services  Services
	say       func(string)  // prints a line of the console
	startedAt time.Time     // when the boot started
	hasSwap   bool          // a script has enabled swap
	kubelet   *kubeletStart // nil until the image's bootstrap starts the kubelet
}

// kubeletStart has the command line and files with which a kubelet is started.
type kubeletStart struct {
	args   []string
	config []byte // KubeletConfiguration in JSON or YAML; can be empty
	server string // server of the kubeconfig
	proxy  string // host and port of the proxy to the server; empty: no proxy
	ca     []byte // PEM

	environment map[string]string // environment variables that a NodeConfig sets for the kubelet
}

// Boot runs the user data as the image would, and returns the settings of the kubelet. It returns nil if no kubelet
// starts; the console then contains the reason. Boot calls say with each line of the console. The caller sets the
// settings that the lab determines, such as Token and Reach.
//
// If user data makes the lab's code panic, the instance fails to boot, and the console contains the panic.
func Boot(ctx context.Context, i Instance, services Services, say func(string)) (settings *kubelet.Settings) {
	ctx, cancel := context.WithTimeout(ctx, scriptTimeout)
	defer cancel()
	b := &boot{Instance: i, services: services, say: say, startedAt: time.Now()}
	defer func() {
		if cause := recover(); cause != nil {
			settings = nil
			b.say(firstBytes(fmt.Appendf(nil, "lab: the boot panics: %v at %s", cause, debug.Stack()), 4000))
		}
	}()
	b.sayKernel()
	switch {
	case i.NoMetadata:
		b.bootWithoutMetadata()
	case i.Image.Family == "Bottlerocket":
		b.bootBottlerocket()
	default:
		b.bootCloudInit(ctx)
	}
	if b.kubelet == nil {
		return nil
	}
	settings, err := b.startKubelet()
	var crash kubeletPanic
	if errors.As(err, &crash) {
		b.logUnit("kubelet[1893]", "panic: "+crash.Error())
		b.logUnit("kubelet[1893]", "goroutine 1 [running]:")
		b.logUnit("systemd[1]", "kubelet.service: Main process exited, code=exited, status=2/INVALIDARGUMENT")
		b.logUnit("systemd[1]", "kubelet.service: Failed with result 'exit-code'.")
		return nil
	}
	if err != nil {
		b.logUnit("kubelet[1893]", fmt.Sprintf("E%s    1893 run.go:72] \"command failed\" err=%q",
			time.Now().UTC().Format("0102 15:04:05.000000"), err))
		b.logUnit("systemd[1]", "kubelet.service: Main process exited, code=exited, status=1/FAILURE")
		b.logUnit("systemd[1]", "kubelet.service: Failed with result 'exit-code'.")
		return nil
	}
	return settings
}

// bootCloudInit boots an image with cloud-init.
func (b *boot) bootCloudInit(ctx context.Context) {
	b.logCloudInit("Cloud-init v. 22.2.2 running 'init' at %s. Up %.2f seconds.", timestamp(), b.uptime())
	b.logCloudInit("ci-info: | eth0 | True | %s | 255.255.255.0 | global |", b.PrivateIP)
	parts, err := splitUserData(b.UserData)
	if err != nil {
		b.logCloudInit("util.py[WARNING]: Failed to read user data: %v", err)
	}
	switch b.Image.Family {
	case "AL2", "Custom", "":
		b.bootAL2(ctx, parts)
	case "AL2023":
		b.bootAL2023(ctx, parts)
	default:
		b.logCloudInit("the lab cannot boot an image of family %s", b.Image.Family)
	}
	b.logCloudInit("Cloud-init v. 22.2.2 finished at %s. Datasource DataSourceEc2.  Up %.2f seconds", timestamp(), b.uptime())
}

// runShell runs the shell parts in their order, as cloud-init's scripts-user module does.
func (b *boot) runShell(ctx context.Context, parts []part, scripts *scriptRunner) {
	failed := 0
	for _, p := range parts {
		if p.kind != kindShell {
			continue
		}
		if err := scripts.run(ctx, "/var/lib/cloud/instance/scripts/"+p.name, p.body); err != nil {
			failed++
			b.logCloudInit("util.py[WARNING]: Failed running /var/lib/cloud/instance/scripts/%s [%v]", p.name, err)
		}
	}
	if failed > 0 {
		b.logCloudInit("cc_scripts_user.py[WARNING]: Failed to run module scripts-user (scripts in /var/lib/cloud/instance/scripts)")
	}
}

// warnUnsupportedParts prints cloud-init's warning for each part whose content type cloud-init does not support. more
// has the additional content types that the image supports.
func (b *boot) warnUnsupportedParts(parts []part, more ...string) {
	for _, p := range parts {
		switch {
		case p.kind == kindShell, strings.HasPrefix(p.kind, "text/cloud-"), strings.HasPrefix(p.kind, "text/x-include"): // supported
		case p.kind == kindNotMultipart:
			b.logCloudInit("__init__.py[WARNING]: Unhandled non-multipart (text/x-not-multipart) userdata: '%s...'", firstBytes(p.body, 24))
		case !contains(more, p.kind):
			b.logCloudInit("__init__.py[WARNING]: Unhandled unknown content-type (%s) userdata: '%s...'", p.kind, firstBytes(p.body, 24))
		}
	}
}

func contains(list []string, s string) bool {
	for _, l := range list {
		if l == s {
			return true
		}
	}
	return false
}

// firstBytes returns the first n bytes of data, with line breaks escaped.
func firstBytes(data []byte, n int) string {
	if len(data) > n {
		data = data[:n]
	}
	return strings.ReplaceAll(string(data), "\n", "\\n")
}

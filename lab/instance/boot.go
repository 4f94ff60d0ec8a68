// Package instance boots an emulated instance from its user data.
//
// In: an instance, its image and type, and what it can reach.
// Out: how its kubelet was started, or nothing; and what all of it printed to the console.
// Never: a program of this computer run, a file of it read or written, or a network call.
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

// Instance is what boots.
type Instance struct {
	ID             string // "i-0…"
	Region         string
	Zone           string
	PrivateIP      string
	PrivateDNSName string // "ip-10-0-0-12.ec2.internal"
	IPv6           string // empty without one
	UserData       []byte // as the metadata service gives it
	NoMetadata     bool   // the metadata service is switched off
	RootGiB        int64  // size of the volume that holds pods and images
	Image          Image
	Facts          catalog.Facts // of the instance's type
}

// Image is what the instance boots from.
type Image struct {
	Name         string   // "bottlerocket-aws-k8s-1.31-x86_64-v1.53.0-0123abcd"
	Family       string   // "AL2", "AL2023", …, in the words of an EC2NodeClass
	Architecture string   // "x86_64" or "arm64"
	Version      string   // of its Kubernetes: "1.31"
	Flaws        []string // FlawNoNodeadm…; of those that it has not, none is here
}

// Surroundings are what an instance finds around it.
type Surroundings interface {
	// Credentials says why the metadata service has no credentials for the
	// instance, nil if it has.
	Credentials() error
	// Cluster describes an EKS cluster, with the instance's credentials.
	Cluster(name string) (Cluster, error)
}

// Cluster is what an instance can learn of its cluster from EKS.
type Cluster struct {
	Endpoint string
	CA       string // base64 of PEM
	CIDR     string // of services
}

// limit is how long the scripts of one instance may run here, whatever they do.
const limit = 10 * time.Second

// boot is one instance on its way up.
type boot struct {
	Instance
	around  Surroundings
	say     func(string)
	born    time.Time
	swap    bool   // a script has switched it on
	kubelet *start // what the image's bootstrap has set the kubelet to; nil until it has
}

// start is how a kubelet is started.
type start struct {
	args   []string
	config []byte // KubeletConfiguration, JSON or YAML; empty when there is none
	server string // of its kubeconfig
	proxy  string // that it asks for the server: host and port; empty: none
	ca     []byte // PEM

	environment map[string]string // of the kubelet, by the NodeConfig
}

// Boot runs the user data as the image would and returns how the kubelet
// starts. It returns nil when no kubelet starts; say, called with each line
// of the console, has then said why. Token, Reach and the like are left to the caller.
//
// Users write user data: if the code of the lab panics on it, the instance fails to boot, and the console has the panic.
func Boot(ctx context.Context, i Instance, around Surroundings, say func(string)) (settings *kubelet.Settings) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	b := &boot{Instance: i, around: around, say: say, born: time.Now()}
	defer func() {
		if broken := recover(); broken != nil {
			settings = nil
			b.say(firstBytes(fmt.Appendf(nil, "lab: the boot panics: %v at %s", broken, debug.Stack()), 4000))
		}
	}()
	b.sayKernel()
	switch {
	case i.NoMetadata:
		b.noMetadata()
	case i.Image.Family == "Bottlerocket":
		b.bootBottlerocket()
	default:
		b.bootCloudInit(ctx)
	}
	if b.kubelet == nil {
		return nil
	}
	settings, err := b.startKubelet()
	var crash panicked
	if errors.As(err, &crash) {
		b.unit("kubelet[1893]", "panic: "+crash.Error())
		b.unit("kubelet[1893]", "goroutine 1 [running]:")
		b.unit("systemd[1]", "kubelet.service: Main process exited, code=exited, status=2/INVALIDARGUMENT")
		b.unit("systemd[1]", "kubelet.service: Failed with result 'exit-code'.")
		return nil
	}
	if err != nil {
		b.unit("kubelet[1893]", fmt.Sprintf("E%s    1893 run.go:72] \"command failed\" err=%q",
			time.Now().UTC().Format("0102 15:04:05.000000"), err))
		b.unit("systemd[1]", "kubelet.service: Main process exited, code=exited, status=1/FAILURE")
		b.unit("systemd[1]", "kubelet.service: Failed with result 'exit-code'.")
		return nil
	}
	return settings
}

// bootCloudInit boots an image that has cloud-init take its user data apart.
func (b *boot) bootCloudInit(ctx context.Context) {
	b.cloudInit("Cloud-init v. 22.2.2 running 'init' at %s. Up %.2f seconds.", stamp(), b.up())
	b.cloudInit("ci-info: | eth0 | True | %s | 255.255.255.0 | global |", b.PrivateIP)
	parts, err := split(b.UserData)
	if err != nil {
		b.cloudInit("util.py[WARNING]: Failed to read user data: %v", err)
	}
	switch b.Image.Family {
	case "AL2", "Custom", "":
		b.bootAL2(ctx, parts)
	case "AL2023":
		b.bootAL2023(ctx, parts)
	default:
		b.cloudInit("the lab does not know how an image of family %s boots", b.Image.Family)
	}
	b.cloudInit("Cloud-init v. 22.2.2 finished at %s. Datasource DataSourceEc2.  Up %.2f seconds", stamp(), b.up())
}

// runShell runs the shell parts in order, as cloud-init's scripts-user module does.
func (b *boot) runShell(ctx context.Context, parts []part, box *sandbox) {
	failed := 0
	for _, p := range parts {
		if p.kind != kindShell {
			continue
		}
		if err := box.run(ctx, "/var/lib/cloud/instance/scripts/"+p.name, p.body); err != nil {
			failed++
			b.cloudInit("util.py[WARNING]: Failed running /var/lib/cloud/instance/scripts/%s [%v]", p.name, err)
		}
	}
	if failed > 0 {
		b.cloudInit("cc_scripts_user.py[WARNING]: Failed to run module scripts-user (scripts in /var/lib/cloud/instance/scripts)")
	}
}

// refuseParts says which parts the image's cloud-init does not understand.
func (b *boot) refuseParts(parts []part, known ...string) {
	for _, p := range parts {
		switch {
		case p.kind == kindShell, strings.HasPrefix(p.kind, "text/cloud-"), strings.HasPrefix(p.kind, "text/x-include"):
		case p.kind == kindPlain:
			b.cloudInit("__init__.py[WARNING]: Unhandled non-multipart (text/x-not-multipart) userdata: '%s...'", firstBytes(p.body, 24))
		case !contains(known, p.kind):
			b.cloudInit("__init__.py[WARNING]: Unhandled unknown content-type (%s) userdata: '%s...'", p.kind, firstBytes(p.body, 24))
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

func firstBytes(data []byte, n int) string {
	if len(data) > n {
		data = data[:n]
	}
	return strings.ReplaceAll(string(data), "\n", "\\n")
}

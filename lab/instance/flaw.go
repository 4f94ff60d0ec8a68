package instance

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// The flaws that an image can have. Instances of an EC2NodeClass that selects such an image never join.
const (
	FlawNoNodeadm     = "no-nodeadm"     // nodeadm does not exist, as in an image that is based on plain Amazon Linux 2023
	FlawLockedNodeadm = "locked-nodeadm" // nodeadm cannot be executed, for example because a hardened image mounts /usr/bin with noexec
	FlawNoBootstrap   = "no-bootstrap"   // /etc/eks/bootstrap.sh does not exist
	FlawNoKubelet     = "no-kubelet"     // the kubelet does not exist
	FlawNoContainerd  = "no-containerd"  // containerd does not exist
	FlawWrongClock    = "wrong-clock"    // no time service runs, and the clock is hours off
	FlawOldTable      = "old-table"      // eni-max-pods.txt is older than the instance type and does not list it
)

// Flaws returns all flaws.
func Flaws() []string {
	return []string{FlawNoNodeadm, FlawLockedNodeadm, FlawNoBootstrap, FlawNoKubelet, FlawNoContainerd, FlawWrongClock, FlawOldTable}
}

// has reports whether the image has the flaw.
func (i Image) has(flaw string) bool { return slices.Contains(i.Flaws, flaw) }

// lacksNodeadm reports whether nodeadm cannot be started, and then prints the lines of systemd about it. Source:
// https://github.com/awslabs/amazon-eks-ami/issues/2123.
func (b *boot) lacksNodeadm() bool {
	why := "No such file or directory"
	switch {
	case b.Image.has(FlawLockedNodeadm):
		why = "Permission denied"
	case !b.Image.has(FlawNoNodeadm):
		return false
	}
	for _, unit := range []string{"nodeadm-config", "nodeadm-run"} {
		b.unit("systemd[1]", unit+".service: Failed to locate executable /usr/bin/nodeadm: "+why)
		b.unit("(nodeadm)[1748]", unit+".service: Failed at step EXEC spawning /usr/bin/nodeadm: "+why)
		b.unit("systemd[1]", unit+".service: Main process exited, code=exited, status=203/EXEC")
		b.unit("systemd[1]", "Failed to start "+unit+".service - EKS Nodeadm.")
	}
	return true
}

// errNoKubelet is nodeadm's error if it cannot read the kubelet's version.
var errNoKubelet = errors.New("fork/exec /usr/bin/kubelet: no such file or directory")

// errNoContainerd is nodeadm's error if it cannot read containerd's version. Source:
// nodeadm/internal/containerd/version.go of amazon-eks-ami.
var errNoContainerd = errors.New(`exec: "containerd": executable file not found in $PATH`)

// errExpired is AWS's response to a request with an old signature time.
var errExpired = errors.New("https response error StatusCode: 400, RequestID: 5f3c1a0e-8f0c-4a9a-b6a4-0d9b1c7e2f11, api error RequestExpired: Request has expired.")

// describe emulates the image's call of ec2:DescribeInstances, with which it looks up the name of the node. It returns
// the error of the call.
func (b *boot) describe() error {
	if err := b.around.Credentials(); err != nil {
		return fmt.Errorf("get identity: get credentials: failed to refresh cached credentials, no EC2 IMDS role found: %w", err)
	}
	if b.Image.has(FlawWrongClock) {
		return errExpired
	}
	return nil
}

// noMetadata boots an image without the metadata service: the instance has no user data, no credentials and no name.
// Source: cloudinit/sources/DataSourceEc2.py; the client of the metadata service in the AWS SDK for Go.
func (b *boot) noMetadata() {
	const failed = "operation error ec2imds: GetUserData, http response error StatusCode: 403, request to EC2 IMDS failed"
	switch b.Image.Family {
	case "Bottlerocket":
		b.unit("early-boot-config[1325]", "Provider error: Failed to fetch user data: IMDS request failed: Error retrieving response: Response status 403 Forbidden when GETting http://169.254.169.254/2021-07-15/user-data")
		b.failed("Bottlerocket userdata configuration system", "early-boot-config", "Bottlerocket initial configuration complete", "Kubelet")
		return
	case "AL2023":
		b.cloudInit("DataSourceEc2.py[WARNING]: IMDS's HTTP endpoint is probably disabled")
		b.nodeadm("nodeadm-config", "fatal", "Command failed", fmt.Sprintf(`"error":%q`, failed))
		b.unit("systemd[1]", "Failed to start nodeadm-config.service - EKS Nodeadm Config.")
	default:
		b.cloudInit("DataSourceEc2.py[WARNING]: IMDS's HTTP endpoint is probably disabled")
	}
	b.cloudInit("Cloud-init v. 22.2.2 finished at %s. Datasource DataSourceNone.  Up %.2f seconds", stamp(), b.up())
	b.cloudInit("cc_final_message.py[WARNING]: Used fallback datasource")
}

// architectureOf returns the architecture that the name of a file or an address contains, by EC2's name. It is empty if
// the name contains no architecture.
func architectureOf(name string) string {
	name = strings.ToLower(name)
	for _, known := range [][2]string{{"arm64", "arm64"}, {"aarch64", "arm64"}, {"amd64", "x86_64"}, {"x86_64", "x86_64"},
		{"x86-64", "x86_64"}} {
		if strings.Contains(name, known[0]) {
			return known[1]
		}
	}
	return ""
}

// executable is the beginning of a downloaded program in the emulated files. The program's architecture follows.
const executable = "\x7fELF "

package instance

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// The flaws that an image can have. An instance of an image with a flaw does not join.
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

func (i Image) has(flaw string) bool { return slices.Contains(i.Flaws, flaw) }

// reportMissingNodeadm reports whether nodeadm does not exist or cannot be executed. If so, it prints the error
// messages of systemd.
// Source: https://github.com/awslabs/amazon-eks-ami/issues/2123.
func (b *boot) reportMissingNodeadm() bool {
	reason := "No such file or directory"
	switch {
	case b.Image.has(FlawLockedNodeadm):
		reason = "Permission denied"
	case !b.Image.has(FlawNoNodeadm):
		return false
	}
	for _, unit := range []string{"nodeadm-config", "nodeadm-run"} {
		b.logUnit("systemd[1]", unit+".service: Failed to locate executable /usr/bin/nodeadm: "+reason)
		b.logUnit("(nodeadm)[1748]", unit+".service: Failed at step EXEC spawning /usr/bin/nodeadm: "+reason)
		b.logUnit("systemd[1]", unit+".service: Main process exited, code=exited, status=203/EXEC")
		b.logUnit("systemd[1]", "Failed to start "+unit+".service - EKS Nodeadm.")
	}
	return true
}

// errNoKubelet is nodeadm's error if it cannot read the kubelet's version.
var errNoKubelet = errors.New("fork/exec /usr/bin/kubelet: no such file or directory")

// errNoContainerd is nodeadm's error if it cannot read containerd's version. Source:
// nodeadm/internal/containerd/version.go of amazon-eks-ami.
var errNoContainerd = errors.New(`exec: "containerd": executable file not found in $PATH`)

// errExpired is AWS's response to a request whose signature has a time in the past.
var errExpired = errors.New("https response error StatusCode: 400, RequestID: 5f3c1a0e-8f0c-4a9a-b6a4-0d9b1c7e2f11, api error RequestExpired: Request has expired.")

// describeInstances emulates the call of ec2:DescribeInstances with which the image finds out the name of the node. It
// returns the error of the call.
func (b *boot) describeInstances() error {
	if err := b.services.Credentials(); err != nil {
		return fmt.Errorf("get identity: get credentials: failed to refresh cached credentials, no EC2 IMDS role found: %w", err)
	}
	if b.Image.has(FlawWrongClock) {
		return errExpired
	}
	return nil
}

// bootWithoutMetadata boots the image while the metadata service is switched off: the instance has no user data, no
// credentials and no name. Source: cloudinit/sources/DataSourceEc2.py; the client of the metadata service in the AWS
// SDK for Go.
func (b *boot) bootWithoutMetadata() {
	const imdsError = "operation error ec2imds: GetUserData, http response error StatusCode: 403, request to EC2 IMDS failed"
	switch b.Image.Family {
	case "Bottlerocket":
		b.logUnit("early-boot-config[1325]", "Provider error: Failed to fetch user data: IMDS request failed: Error retrieving response: Response status 403 Forbidden when GETting http://169.254.169.254/2021-07-15/user-data")
		b.logFailedUnit("Bottlerocket userdata configuration system", "early-boot-config",
			"Bottlerocket initial configuration complete", "Kubelet")
		return
	case "AL2023":
		b.logCloudInit("DataSourceEc2.py[WARNING]: IMDS's HTTP endpoint is probably disabled")
		b.logNodeadm("nodeadm-config", "fatal", "Command failed", fmt.Sprintf(`"error":%q`, imdsError))
		b.logUnit("systemd[1]", "Failed to start nodeadm-config.service - EKS Nodeadm Config.")
	default:
		b.logCloudInit("DataSourceEc2.py[WARNING]: IMDS's HTTP endpoint is probably disabled")
	}
	b.logCloudInit("Cloud-init v. 22.2.2 finished at %s. Datasource DataSourceNone.  Up %.2f seconds", timestamp(), b.uptime())
	b.logCloudInit("cc_final_message.py[WARNING]: Used fallback datasource")
}

// architectureOf returns the architecture that name contains, as EC2 spells the architecture. name is a file name or a
// URL. The result is empty if name contains no architecture.
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

// executablePrefix is the beginning of a downloaded program in the emulated file system. The program's architecture
// follows the prefix.
const executablePrefix = "\x7fELF "

package instance

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"strings"
)

// kubeletConfigAL2 is the path of the kubelet's configuration in an image of Amazon Linux 2.
const kubeletConfigAL2 = "/etc/kubernetes/kubelet/kubelet-config.json"

// bootAL2 boots Amazon Linux 2. Only the scripts of the user data start the kubelet, by calling /etc/eks/bootstrap.sh.
func (b *boot) bootAL2(ctx context.Context, parts []part) {
	b.warnUnsupportedParts(parts)
	scripts := b.newScriptRunner()
	if data, err := json.MarshalIndent(imageConfig(), "", "  "); err == nil {
		scripts.files.content[kubeletConfigAL2] = data
	}
	if !b.Image.has(FlawNoBootstrap) {
		scripts.programs["/etc/eks/bootstrap.sh"] = func(args []string, _ io.Reader, stdout, stderr io.Writer) int {
			return b.runBootstrap(scripts.files, args, stdout, stderr)
		}
	}
	b.runShell(ctx, parts, scripts)
	if b.kubelet == nil {
		return
	}
	b.kubelet.proxy = proxyFor(scripts.files.kubeletEnvironment(), b.kubelet.server)
	b.logUnit("systemd[1]", "Started Kubernetes Kubelet.")
}

// bootstrapFlags are the options of bootstrap.sh, all of which take a value. The script accepts an option and its value
// only as separate words: it ignores "--kubelet-extra-args=…" as a positional argument. Source: files/bootstrap.sh of
// amazon-eks-ami.
var bootstrapFlags = map[string]bool{
	"--use-max-pods": true, "--b64-cluster-ca": true, "--apiserver-endpoint": true, "--kubelet-extra-args": true,
	"--enable-docker-bridge": true, "--aws-api-retry-attempts": true, "--docker-config-json": true,
	"--containerd-config-file": true, "--pause-container-account": true, "--pause-container-version": true,
	"--dns-cluster-ip": true, "--ip-family": true, "--service-ipv6-cidr": true, "--enable-local-outpost": true,
	"--cluster-id": true, "--mount-bpf-fs": true, "--local-disks": true, "--container-runtime": true,
}

// runBootstrap emulates /etc/eks/bootstrap.sh. It returns the exit code.
func (b *boot) runBootstrap(f *files, args []string, stdout, stderr io.Writer) int {
	flags, cluster, problem := parseBootstrap(args)
	if problem != "" {
		fmt.Fprintln(stderr, problem)
		return 1
	}
	endpoint, ca := flags["--apiserver-endpoint"], flags["--b64-cluster-ca"]
	if err := b.services.Credentials(); err != nil {
		for range 3 { // the default of --aws-api-retry-attempts
			fmt.Fprintln(stderr, "Unable to locate credentials. You can configure credentials by running \"aws configure\".")
		}
		fmt.Fprintln(stderr, "PrivateDnsName is not available. Exited with error on line 563")
		return 1
	}
	if b.Image.has(FlawWrongClock) {
		fmt.Fprintln(stderr, "An error occurred (RequestExpired) when calling the DescribeInstances operation: Request has expired.")
		fmt.Fprintln(stderr, "PrivateDnsName is not available. Exited with error on line 563")
		return 1
	}
	if flags["--use-max-pods"] == "true" && b.Image.has(FlawOldTable) {
		fmt.Fprintf(stderr, "No entry for %s in /etc/eks/eni-max-pods.txt\n", b.Facts.Name)
		fmt.Fprintln(stderr, "Exited with error on line 507")
		return 1
	}
	if b.Image.has(FlawNoKubelet) {
		fmt.Fprintln(stderr, "Failed to execute operation: No such file or directory")
		fmt.Fprintln(stderr, "Failed to start kubelet.service: Unit not found.")
		return 5
	}
	if endpoint == "" || ca == "" {
		c, err := b.services.Cluster(cluster)
		if err != nil {
			fmt.Fprintln(stderr, err)
			fmt.Fprintln(stderr, "Exited with error on line 451")
			return 255
		}
		endpoint, ca = c.Endpoint, c.CA
	}
	pem, err := base64.StdEncoding.DecodeString(ca)
	if err != nil {
		fmt.Fprintln(stderr, "base64: invalid input")
		fmt.Fprintln(stderr, "Exited with error on line 470")
		return 1
	}
	address, err := b.nodeIP(flags["--ip-family"] == "ipv6")
	if err != nil {
		fmt.Fprintln(stderr, "Exited with error on line 553")
		return 1
	}
	config, err := b.al2Config(f, flags)
	if err != nil {
		fmt.Fprintln(stderr, err)
		return 1
	}
	started := &kubeletStart{
		config: config, server: endpoint, ca: pem,
		args: append([]string{"--cloud-provider=external", "--hostname-override=" + b.PrivateDNSName, "--node-ip=" + address},
			b.extraArgs(flags["--kubelet-extra-args"])...),
	}
	if b.kubelet == nil { // otherwise an earlier call has started the kubelet, and "systemctl start" has no effect
		b.kubelet = started
	}
	fmt.Fprintln(stdout, "Created symlink from /etc/systemd/system/multi-user.target.wants/kubelet.service to /etc/systemd/system/kubelet.service.")
	fmt.Fprintln(stdout, "nvidia-smi not found")
	return 0
}

// extraArgs returns the kubelet arguments that result from extra, the value of --kubelet-extra-args. bootstrap.sh
// writes the value into a line Environment='KUBELET_EXTRA_ARGS=…' of a systemd unit. systemd splits the value into
// words. A single quote in the value makes the line invalid, and systemd ignores invalid lines.
func (b *boot) extraArgs(extra string) []string {
	if strings.Contains(extra, "'") {
		b.logUnit("systemd[1]",
			"/etc/systemd/system/kubelet.service.d/30-kubelet-extra-args.conf:2: Invalid syntax, ignoring: KUBELET_EXTRA_ARGS="+extra)
		return nil
	}
	return splitWords(extra)
}

// parseBootstrap parses the arguments of bootstrap.sh. problem is the script's error message; empty: none.
func parseBootstrap(args []string) (flags map[string]string, cluster, problem string) {
	flags = map[string]string{"--use-max-pods": "true", "--ip-family": "ipv4"}
	var positional []string
	for i := 0; i < len(args); i++ {
		if !bootstrapFlags[args[i]] {
			positional = append(positional, args[i])
			continue
		}
		if i+1 == len(args) {
			return nil, "", "/etc/eks/bootstrap.sh: line 55: $2: unbound variable"
		}
		flags[args[i]] = args[i+1]
		i++
	}
	if len(positional) == 0 {
		return nil, "", "CLUSTER_NAME is not defined"
	}
	return flags, positional[0], ""
}

// al2Config returns the kubelet's configuration: the file of the image, which earlier scripts may have changed, with
// the changes of bootstrap.sh.
func (b *boot) al2Config(f *files, flags map[string]string) ([]byte, error) {
	data, _ := f.read(kubeletConfigAL2)
	var config map[string]any
	if err := json.Unmarshal(data, &config); err != nil {
		return nil, fmt.Errorf("parse error: %w", err)
	}
	maps.Copy(config, b.instanceConfig())
	if flags["--use-max-pods"] == "true" {
		config["maxPods"] = b.addressablePods()
	}
	config["clusterDNS"] = []string{cmp.Or(flags["--dns-cluster-ip"], b.defaultDNS())}
	data, err := json.Marshal(config)
	if err != nil {
		return nil, fmt.Errorf("write kubelet configuration: %w", err)
	}
	return data, nil
}

// defaultDNS returns the address that the image uses for cluster DNS if the user data has none. The address depends on
// the instance's own address, as EKS's default for the Service range does.
func (b *boot) defaultDNS() string {
	if strings.HasPrefix(b.PrivateIP, "10.") {
		return "172.20.0.10"
	}
	return "10.100.0.10"
}

// imageConfig returns the kubelet settings that both Amazon Linux images have on every instance.
func imageConfig() map[string]any {
	return map[string]any{
		"apiVersion":               "kubelet.config.k8s.io/v1beta1",
		"kind":                     "KubeletConfiguration",
		"address":                  "0.0.0.0",
		"clusterDomain":            "cluster.local",
		"cgroupDriver":             "systemd",
		"containerRuntimeEndpoint": "unix:///run/containerd/containerd.sock",
		"registerNode":             true,
	}
}

// instanceConfig returns the kubelet settings that the bootstrap of both Amazon Linux images derives from the instance.
func (b *boot) instanceConfig() map[string]any {
	return map[string]any{
		"providerID":   "aws:///" + b.Zone + "/" + b.ID,
		"kubeReserved": b.kubeReserved(b.addressablePods()),
		"evictionHard": map[string]string{"memory.available": "100Mi", "nodefs.available": "10%", "nodefs.inodesFree": "5%"},
	}
}

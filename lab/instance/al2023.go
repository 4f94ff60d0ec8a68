package instance

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/netip"
	"strings"

	"sigs.k8s.io/yaml"
)

// nodeConfig has the fields of a NodeConfig that the lab's nodeadm uses. Source:
// https://awslabs.github.io/amazon-eks-ami/nodeadm/doc/api/.
type nodeConfig struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Spec       struct {
		Cluster struct {
			Name                 string `json:"name"`
			APIServerEndpoint    string `json:"apiServerEndpoint"`
			CertificateAuthority string `json:"certificateAuthority"`
			CIDR                 string `json:"cidr"`
		} `json:"cluster"`
		Instance struct {
			Environment map[string]map[string]string `json:"environment"` // by service
		} `json:"instance"`
		Kubelet struct {
			Config map[string]any `json:"config"`
			Flags  []string       `json:"flags"`
		} `json:"kubelet"`
		FeatureGates map[string]bool `json:"featureGates"` // feature gates of nodeadm
	} `json:"spec"`
}

// bootAL2023 boots Amazon Linux 2023. nodeadm configures the kubelet from the NodeConfig parts before the scripts run,
// and starts the kubelet after the scripts.
func (b *boot) bootAL2023(ctx context.Context, parts []part) {
	b.warnUnsupportedParts(parts, kindNodeConfig)
	var configured *kubeletStart
	isNodeadmMissing := b.reportMissingNodeadm()
	if !isNodeadmMissing {
		configured = b.nodeadmConfig(parts)
	}
	scripts := b.newScriptRunner()
	scripts.programs["/etc/eks/bootstrap.sh"] = func(_ []string, _ io.Reader, _, stderr io.Writer) int {
		fmt.Fprintln(stderr, "\n!!!!!!!!!!\n!!!!!!!!!! ERROR: bootstrap.sh has been removed from AL2023-based EKS AMIs.\n!!!!!!!!!!\n!!!!!!!!!! EKS nodes are now initialized by nodeadm.\n!!!!!!!!!!")
		return 1
	}
	b.runShell(ctx, parts, scripts)
	if isNodeadmMissing {
		return
	}
	if configured == nil {
		b.logUnit("systemd[1]", "nodeadm-run.service: Main process exited, code=exited, status=1/FAILURE")
		b.logUnit("systemd[1]", "Failed to start nodeadm-run.service - EKS Nodeadm Run.")
		return
	}
	b.kubelet = configured
	environment := configured.environment // systemd drop-ins written by scripts override these variables
	maps.Copy(environment, scripts.files.kubeletEnvironment())
	b.kubelet.proxy = proxyFor(environment, configured.server)
	b.logNodeadm("nodeadm-run", "info", "Starting daemon..", `"name":"kubelet"`)
	b.logUnit("systemd[1]", "Started kubelet.service - Kubernetes Kubelet.")
}

// nodeadmConfig emulates the unit nodeadm-config, which configures the kubelet. It returns nil if the unit fails.
func (b *boot) nodeadmConfig(parts []part) *kubeletStart {
	b.logNodeadm("nodeadm-config", "info", "Loading configuration..", `"configSource":"imds://user-data"`)
	config, err := mergeNodeConfigs(parts)
	if err == nil {
		err = config.check()
	}
	if err == nil {
		b.logNodeadm("nodeadm-config", "info", "Fetching instance details..", "")
		err = b.describeSelf()
	}
	var s *kubeletStart
	if err == nil {
		s, err = b.nodeadmStart(config)
	}
	if err != nil {
		b.logNodeadm("nodeadm-config", "fatal", "Command failed", fmt.Sprintf(`"error":%q`, err))
		b.logUnit("systemd[1]", "nodeadm-config.service: Main process exited, code=exited, status=1/FAILURE")
		b.logUnit("systemd[1]", "Failed to start nodeadm-config.service - EKS Nodeadm Config.")
		return nil
	}
	return s
}

// describeSelf emulates nodeadm's call of ec2:DescribeInstances, which gets the node's name. The error is nodeadm's.
func (b *boot) describeSelf() error {
	if err := b.describeInstances(); err != nil {
		return fmt.Errorf("operation error EC2: DescribeInstances, %w", err)
	}
	return nil
}

// mergeNodeConfigs merges the NodeConfig parts in their order; a later part overrides an earlier part.
func mergeNodeConfigs(parts []part) (*nodeConfig, error) {
	var merged map[string]any
	for _, p := range parts {
		body := p.body
		isUntypedConfig := p.kind == kindNotMultipart && strings.Contains(string(body), "node.eks.aws/")
		if p.kind != kindNodeConfig && !isUntypedConfig {
			continue
		}
		var next map[string]any
		if err := yaml.Unmarshal(body, &next); err != nil {
			return nil, fmt.Errorf("could not parse NodeConfig: %w", err)
		}
		if merged == nil {
			merged = next
			continue
		}
		mergeInto(merged, next)
	}
	if merged == nil {
		return nil, errors.New("could not find NodeConfig within UserData")
	}
	data, err := json.Marshal(merged)
	if err != nil {
		return nil, fmt.Errorf("could not parse NodeConfig: %w", err)
	}
	config := &nodeConfig{}
	if err := json.Unmarshal(data, config); err != nil {
		return nil, fmt.Errorf("could not parse NodeConfig: %w", err)
	}
	if config.Kind != "NodeConfig" || !strings.HasPrefix(config.APIVersion, "node.eks.aws/") {
		return nil, fmt.Errorf("no kind %q is registered for version %q", config.Kind, config.APIVersion)
	}
	return config, nil
}

// mergeInto merges from into to, key by key. It appends lists with the key "flags", and replaces other lists. Joiner's
// merge is in internal/node/userdata/nodeadm. The lab's is separate, so that a bug in one of the two makes a test fail.
func mergeInto(to, from map[string]any) {
	for key, value := range from {
		switch v := value.(type) {
		case map[string]any:
			if old, ok := to[key].(map[string]any); ok {
				mergeInto(old, v)
				continue
			}
		case []any:
			if old, ok := to[key].([]any); ok && key == "flags" {
				to[key] = append(old, v...)
				continue
			}
		}
		to[key] = value
	}
}

// check returns nodeadm's error if the description of the cluster is incomplete.
func (c *nodeConfig) check() error {
	switch cluster := c.Spec.Cluster; {
	case cluster.Name == "":
		return errors.New("Name is missing in cluster configuration")
	case cluster.APIServerEndpoint == "":
		return errors.New("Apiserver endpoint is missing in cluster configuration")
	case cluster.CertificateAuthority == "":
		return errors.New("Certificate authority is missing in cluster configuration")
	case cluster.CIDR == "":
		return errors.New("CIDR is missing in cluster configuration")
	}
	return nil
}

// nodeadmStart returns the kubelet's command line and files for the NodeConfig, or nodeadm's error.
func (b *boot) nodeadmStart(c *nodeConfig) (*kubeletStart, error) {
	switch {
	case b.Image.has(FlawNoContainerd):
		return nil, errNoContainerd
	case b.Image.has(FlawNoKubelet):
		return nil, errNoKubelet
	}
	ca, err := base64.StdEncoding.DecodeString(c.Spec.Cluster.CertificateAuthority)
	if err != nil {
		return nil, fmt.Errorf("could not parse certificateAuthority: %w", err)
	}
	cidr, err := netip.ParsePrefix(c.Spec.Cluster.CIDR)
	if err != nil {
		return nil, fmt.Errorf("could not parse cidr: %w", err)
	}
	config := imageConfig()
	maps.Copy(config, b.instanceConfig())
	config["maxPods"] = b.addressablePods()
	config["clusterDNS"] = []string{dnsOf(cidr)}
	mergeInto(config, c.Spec.Kubelet.Config)
	data, err := json.Marshal(config)
	if err != nil {
		return nil, fmt.Errorf("write kubelet configuration: %w", err)
	}
	address, err := b.nodeIP(cidr.Addr().Is6())
	if err != nil {
		return nil, err
	}
	environment := map[string]string{}
	for _, service := range []string{"default", "kubelet"} {
		maps.Copy(environment, c.Spec.Instance.Environment[service])
	}
	name := b.PrivateDNSName
	if c.Spec.FeatureGates["InstanceIdNodeName"] {
		name = b.ID
	}
	args := []string{"--cloud-provider=external", "--hostname-override=" + name, "--node-ip=" + address}
	return &kubeletStart{
		config: data, server: c.Spec.Cluster.APIServerEndpoint, ca: ca, environment: environment,
		args: append(args, splitWords(strings.Join(c.Spec.Kubelet.Flags, " "))...),
	}, nil
}

// nodeIP returns the node's address in the IP family of the cluster. It returns the metadata service's error if the
// cluster uses IPv6 and the instance has no IPv6 address.
func (b *boot) nodeIP(isIPv6 bool) (string, error) {
	switch {
	case !isIPv6:
		return b.PrivateIP, nil
	case b.IPv6 == "":
		return "", errors.New("operation error ec2imds: GetMetadata, http response error StatusCode: 404, request to EC2 IMDS failed (network/interfaces/macs/…/ipv6s)")
	}
	return b.IPv6, nil
}

// dnsOf returns the address of cluster DNS on EKS: the tenth address of the service range.
func dnsOf(cidr netip.Prefix) string {
	addr := cidr.Masked().Addr()
	for range 10 {
		addr = addr.Next()
	}
	return addr.String()
}

func (b *boot) logNodeadm(unit, level, message, fields string) {
	if fields != "" {
		fields = "," + fields
	}
	b.logUnit(unit+"[1522]", fmt.Sprintf(`{"level":%q,"msg":%q%s}`, level, message, fields))
}

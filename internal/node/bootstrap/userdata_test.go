package bootstrap_test

import (
	"errors"
	"flag"
	"io"
	"maps"
	"mime"
	"mime/multipart"
	"net/mail"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/pelletier/go-toml/v2"
	"mvdan.cc/sh/v3/syntax"
	"sigs.k8s.io/yaml"

	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/model/requirements"
	"github.com/joiner-sh/joiner/internal/node/bootstrap"
)

var rewrite = flag.Bool("rewrite", false, "rewrite the golden files")

func ptr[T any](v T) *T { return &v }

// minimalNode returns a node with only the settings that the controller always has.
func minimalNode(family string) bootstrap.Node {
	return bootstrap.Node{
		Family: family,
		Cluster: bootstrap.Cluster{
			Name: "prod", Endpoint: "https://ABCD.gr7.eu-west-1.eks.amazonaws.com", CA: "Q0E=",
			ServiceCIDR: "10.100.0.0/16", DNS: "10.100.0.10",
		},
		Kubelet: bootstrap.Kubelet{MaxPods: ptr[int64](29)},
		Labels: requirements.Labels{
			"karpenter.sh/nodepool": "apps", "karpenter.sh/capacity-type": "spot", "nodegroup": "karpenter",
			"kubernetes.io/arch": "amd64", "topology.kubernetes.io/zone": "eu-west-1a", "node-restriction.kubernetes.io/team": "a",
		},
	}
}

// fullNode returns a node with all settings that the AMI family supports.
func fullNode(family string) bootstrap.Node {
	n := minimalNode(family)
	n.Taints = []requirements.Taint{
		{Key: "team", Value: "ml", Effect: requirements.NoSchedule},
		{Key: "team", Value: "ml", Effect: requirements.NoExecute},
		{Key: "example.com/warm-up", Effect: requirements.NoSchedule},
	}
	n.InstanceStore = catalog.RAID0
	n.ImageName = "bottlerocket-aws-k8s-1.33-x86_64-v1.42.0-abcdef" // before v1.46.0: needs a list of directories
	n.Kubelet = bootstrap.Kubelet{
		ClusterDNS: []string{"10.0.1.100", "10.0.1.101"}, MaxPods: ptr[int64](42),
		SystemReserved: map[string]string{"memory": "200Mi", "cpu": "100m"}, KubeReserved: map[string]string{"cpu": "90m"},
		EvictionHard: map[string]string{"nodefs.available": "10%", "memory.available": "5%"},
		EvictionSoft: map[string]string{"memory.available": "1Gi"}, EvictionSoftGracePeriod: map[string]string{"memory.available": "1m30s"},
		EvictionMaxPodGracePeriod: ptr[int64](60), ImageGCHighThresholdPercent: ptr[int64](85),
		ImageGCLowThresholdPercent: ptr[int64](80), CPUCFSQuota: ptr(true),
	}
	if family != catalog.AL2023 {
		n.Kubelet.ClusterDNS = n.Kubelet.ClusterDNS[:1]
		return n
	}
	n.Kubelet.More = map[string]string{
		"shutdownGracePeriod": `"30s"`, "memorySwap": `{"swapBehavior":"LimitedSwap"}`, "podPidsLimit": "-1", "featureGates": `{"A":true}`,
	}
	return n
}

func withUserData(n bootstrap.Node, userData string) bootstrap.Node {
	n.UserData = userData
	return n
}

const script = "#!/bin/bash\necho \"$(date): hello\" > /etc/motd\n"

const powershell = "<powershell>\r\nWrite-Host \"hello\"\r\n</powershell>\r\n<persist>false</persist>\r\n"

const nodeConfig = `apiVersion: node.eks.aws/v1alpha1
kind: NodeConfig
spec:
  kubelet:
    config:
      maxPods: 5
`

const mimeMessage = "MIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=\"BOUNDARY\"\r\n\r\n" +
	"--BOUNDARY\r\nContent-Type: text/x-shellscript; charset=\"us-ascii\"\r\n\r\n#!/bin/bash\r\necho one\r\n\r\n" +
	"--BOUNDARY\r\nContent-Type: text/cloud-config; charset=\"us-ascii\"\r\nX-Merge: yes\r\n\r\n#cloud-config\r\npackages: [htop]\r\n--BOUNDARY--\r\n"

const settings = `# the user's
motd = "not a setting of kubernetes"

[settings.host-containers.admin]
enabled = true # for debugging

[settings.kubernetes]
"api-server" = 'https://wrong.example.com'
allowed-unsafe-sysctls = [
  "net.core.somaxconn", # a comment with ] in it
]
node-labels = { "a.example.com/x" = "1", nodegroup = "mine" }
node-taints.mine = ["x:NoSchedule"]

[[settings.container-registry.mirrors]]
registry = "docker.io"
endpoint = ["https://a", "https://b"]

[[settings.container-registry.mirrors]]
registry = "quay.io"

[settings.kernel.sysctl]
"vm.max_map_count" = """
262144"""
`

func TestUserData(t *testing.T) {
	t.Parallel()
	for name, n := range map[string]bootstrap.Node{
		"al2023":                minimalNode(catalog.AL2023),
		"al2023-full":           fullNode(catalog.AL2023),
		"al2023-script":         withUserData(minimalNode(catalog.AL2023), script),
		"al2023-nodeconfig":     withUserData(minimalNode(catalog.AL2023), nodeConfig),
		"al2023-mime":           withUserData(minimalNode(catalog.AL2023), mimeMessage),
		"al2":                   minimalNode(catalog.AL2),
		"al2-full":              fullNode(catalog.AL2),
		"al2-script":            withUserData(minimalNode(catalog.AL2), script),
		"al2-mime":              withUserData(minimalNode(catalog.AL2), mimeMessage),
		"bottlerocket":          minimalNode(catalog.Bottlerocket),
		"bottlerocket-full":     fullNode(catalog.Bottlerocket),
		"bottlerocket-settings": withUserData(minimalNode(catalog.Bottlerocket), settings),
		"windows-full":          fullNode(catalog.Windows2022),
		"windows-commands":      withUserData(minimalNode(catalog.Windows2022), "Set-TimeZone 'UTC'\r\nGet-Date"),
		"windows-batch":         withUserData(minimalNode(catalog.Windows2019), "<script>\r\necho hi\r\n</script>"),
		"custom":                withUserData(minimalNode(catalog.Custom), "#!/bin/sh\r\nexec /opt/join  \n"),
		"custom-empty":          minimalNode(catalog.Custom),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := bootstrap.UserData(n)
			if err != nil {
				t.Fatal(err)
			}
			again, _ := bootstrap.UserData(n)
			if string(got) != string(again) {
				t.Errorf("the second call returns other user data:\n%s", again)
			}
			checkReadable(t, n.Family, string(got))
			golden(t, name, string(got))
		})
	}
}

// typicalUserData has user data as users write it, by AMI family.
var typicalUserData = map[string]string{
	catalog.AL2023:       nodeConfig,
	catalog.AL2:          script,
	catalog.Bottlerocket: settings,
	catalog.Custom:       script,
	catalog.Windows2019:  powershell,
	catalog.Windows2022:  powershell,
	catalog.Windows2025:  powershell,
}

// nodeOf returns a node with the labels, image and settings of a typical NodeClaim for this architecture.
func nodeOf(family, arch string) bootstrap.Node {
	n := minimalNode(family)
	n.Labels["kubernetes.io/arch"] = arch
	n.Labels["karpenter.k8s.aws/instance-family"] = map[string]string{"amd64": "m5", "arm64": "m7g"}[arch]
	n.ImageName = map[string]string{"amd64": "bottlerocket-aws-k8s-1.33-x86_64-v1.46.0-0a1b2c3d",
		"arm64": "bottlerocket-aws-k8s-1.33-aarch64-v1.46.0-0a1b2c3d"}[arch]
	n.InstanceStore = catalog.RAID0
	n.Kubelet.EvictionHard = map[string]string{"memory.available": "5%"}
	n.Taints = []requirements.Taint{{Key: "team", Value: "ml", Effect: requirements.NoSchedule}}
	return n
}

// TestFamilies compares with golden files: each family on each of its architectures, with and without the user's data.
func TestFamilies(t *testing.T) {
	t.Parallel()
	for family, userData := range typicalUserData {
		architectures := []string{"amd64", "arm64"}
		if strings.HasPrefix(family, "Windows") {
			architectures = architectures[:1]
		}
		for _, arch := range architectures {
			for suffix, text := range map[string]string{"": "", "-own": userData} {
				name := strings.ToLower(family) + "-" + arch + suffix
				got, err := bootstrap.UserData(withUserData(nodeOf(family, arch), text))
				if err != nil {
					t.Errorf("%s: %v", name, err)
					continue
				}
				checkReadable(t, family, string(got))
				golden(t, filepath.Join("families", name), string(got))
			}
		}
	}
}

// golden compares got with a golden file in testdata, or writes the file with -rewrite.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name+".golden")
	if *rewrite {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got; -rewrite updates it):\n%s", file, diff)
	}
}

// checkReadable checks that other parsers accept the user data.
func checkReadable(t *testing.T, family, text string) {
	t.Helper()
	switch family {
	case catalog.Bottlerocket:
		var v map[string]any
		if err := toml.Unmarshal([]byte(text), &v); err != nil {
			t.Errorf("not TOML: %v\n%s", err, text)
		}
	case catalog.Windows2019, catalog.Windows2022, catalog.Windows2025:
		if strings.Count(text, "<powershell>") != 1 || strings.Count(text, "</powershell>") != 1 || strings.Contains(text, "\r") {
			t.Errorf("not one block of PowerShell:\n%s", text)
		}
	case catalog.AL2, catalog.AL2023:
		for kind, body := range parts(t, text) {
			switch {
			case strings.HasPrefix(kind, "application/node.eks.aws"):
				var v map[string]any
				if err := yaml.UnmarshalStrict([]byte(body), &v); err != nil {
					t.Errorf("not YAML: %v\n%s", err, body)
				}
			case strings.HasPrefix(kind, "text/x-shellscript"):
				if _, err := syntax.NewParser().Parse(strings.NewReader(body), "user-data"); err != nil {
					t.Errorf("not a shell script: %v\n%s", err, body)
				}
			}
		}
	}
}

func parts(t *testing.T, text string) map[string]string {
	t.Helper()
	m, err := mail.ReadMessage(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	_, params, err := mime.ParseMediaType(m.Header.Get("Content-Type"))
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	r := multipart.NewReader(m.Body, params["boundary"])
	for {
		p, err := r.NextPart()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(p)
		if err != nil {
			t.Fatal(err)
		}
		out[p.Header.Get("Content-Type")] = string(body)
	}
}

func TestUserDataErrors(t *testing.T) {
	t.Parallel()
	al2023, windows2022, windows2025 := minimalNode(catalog.AL2023), minimalNode(catalog.Windows2022), minimalNode(catalog.Windows2025)
	noCIDR := minimalNode(catalog.AL2023)
	noCIDR.Cluster.ServiceCIDR = ""
	noEndpoint := minimalNode(catalog.AL2)
	noEndpoint.Cluster.Endpoint = ""
	quoted := minimalNode(catalog.AL2)
	quoted.Labels = requirements.Labels{"a": "x' --rotate-certificates=false '"}
	eviction := minimalNode(catalog.AL2)
	eviction.Kubelet.EvictionHard = map[string]string{"memory.available": "5% --v=9"}
	perCore := minimalNode(catalog.Bottlerocket)
	perCore.Kubelet.PodsPerCore = ptr[int64](2)
	more := minimalNode(catalog.AL2)
	more.Kubelet.More = map[string]string{"seccompDefault": "true", "podPidsLimit": "5"}
	noJSON := minimalNode(catalog.AL2023)
	noJSON.Kubelet.More = map[string]string{"seccompDefault": "true\nflags: [x]"}
	twoDNS := minimalNode(catalog.Windows2019)
	twoDNS.Kubelet.ClusterDNS = []string{"10.0.1.100", "10.0.1.101"}
	long := strings.Repeat("# long\n", 3000) // 21000 bytes, more than MaxBytes
	for name, c := range map[string]struct {
		node bootstrap.Node
		want string
	}{
		"service CIDR":             {noCIDR, "service CIDR is not known"},
		"endpoint":                 {noEndpoint, "endpoint is not known"},
		"a quote":                  {quoted, "cannot be written as a flag"},
		"a space":                  {eviction, "cannot be written as a flag"},
		"pods per core":            {perCore, "podsPerCore"},
		"unknown family":           {minimalNode("AL3"), "unknown AMI family"},
		"more settings":            {more, "AL2 does not support podPidsLimit, seccompDefault"},
		"invalid JSON":             {noJSON, "spec.kubelet.seccompDefault"},
		"two DNS servers":          {twoDNS, "spec.kubelet.clusterDNS"},
		"open PowerShell":          {withUserData(windows2022, "<powershell>\nhostname"), "without the other"},
		"two blocks":               {withUserData(windows2022, "<powershell>a</powershell><powershell>b</powershell>"), "more than one"},
		"closed before opened":     {withUserData(windows2022, "</powershell>a<powershell>"), "before"},
		"a task list":              {withUserData(windows2025, "version: 1.1\ntasks:\n- task: executeScript\n"), "EC2Launch v2"},
		"not a message":            {withUserData(al2023, "MIME-Version: 1.0\nContent-Type: text/plain\n\nhello"), "want multipart/mixed"},
		"half a message":           {withUserData(minimalNode(catalog.AL2), strings.TrimSuffix(mimeMessage, "--BOUNDARY--\r\n")), "read part"},
		"half a table":             {withUserData(minimalNode(catalog.Bottlerocket), "[settings"), "line 1"},
		"half a string":            {withUserData(minimalNode(catalog.Bottlerocket), "a = 1\nb = \"x\n"), "line 2"},
		"no value":                 {withUserData(minimalNode(catalog.Bottlerocket), "a =\n"), "has no value"},
		"a script":                 {withUserData(minimalNode(catalog.Bottlerocket), "echo hello\n"), "line 1"},
		"long, al2023":             {withUserData(al2023, long), "16384"},
		"long, custom":             {withUserData(minimalNode(catalog.Custom), long), "16384"},
		"two settings on one line": {withUserData(minimalNode(catalog.Bottlerocket), `a = "x" b = 2`), "after the value"},
	} {
		_, err := bootstrap.UserData(c.node)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one with %q", name, err, c.want)
		}
		if c.want == "16384" && !errors.Is(err, bootstrap.ErrTooLong) {
			t.Errorf("%s: %v is not ErrTooLong", name, err)
		}
	}
}

// TestBoundary: a part that contains the usual boundary must not end the message early.
func TestBoundary(t *testing.T) {
	t.Parallel()
	body := "#!/bin/sh\ncat <<X\n--//\n--//--\nX\n"
	got, err := bootstrap.UserData(withUserData(minimalNode(catalog.AL2023), body))
	if err != nil {
		t.Fatal(err)
	}
	bodies := parts(t, string(got))
	if len(bodies) != 2 || bodies[`text/x-shellscript; charset="us-ascii"`] != strings.TrimSuffix(body, "\n") {
		t.Errorf("the message has the parts %q, want a NodeConfig and the whole script", slices.Sorted(maps.Keys(bodies)))
	}
}

// TestBottlerocketMerge: the user's settings stay, except those that Joiner must set.
func TestBottlerocketMerge(t *testing.T) {
	t.Parallel()
	got, err := bootstrap.UserData(withUserData(minimalNode(catalog.Bottlerocket), settings))
	if err != nil {
		t.Fatal(err)
	}
	var v struct {
		Motd     string
		Settings struct {
			HostContainers map[string]map[string]bool `toml:"host-containers"`
			Kubernetes     struct {
				APIServer string              `toml:"api-server"`
				Sysctls   []string            `toml:"allowed-unsafe-sysctls"`
				Labels    map[string]string   `toml:"node-labels"`
				Taints    map[string][]string `toml:"node-taints"`
				MaxPods   int                 `toml:"max-pods"`
			}
			Registry struct {
				Mirrors []struct{ Registry string }
			} `toml:"container-registry"`
			Kernel struct{ Sysctl map[string]string }
		}
	}
	if err := toml.Unmarshal(got, &v); err != nil {
		t.Fatal(err)
	}
	k := v.Settings.Kubernetes
	wantLabels := map[string]string{"a.example.com/x": "1", "nodegroup": "karpenter", "karpenter.sh/nodepool": "apps",
		"karpenter.sh/capacity-type": "spot", "karpenter.sh/do-not-sync-taints": "true"}
	if diff := cmp.Diff(wantLabels, k.Labels); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string][]string{"karpenter.sh/unregistered": {":NoExecute"}}, k.Taints); diff != "" {
		t.Errorf("taints (-want +got):\n%s", diff)
	}
	if k.APIServer != "https://ABCD.gr7.eu-west-1.eks.amazonaws.com" || k.MaxPods != 29 || len(k.Sysctls) != 1 {
		t.Errorf("settings of kubernetes: %+v, want Joiner's API server, 29 pods and one sysctl", k)
	}
	if len(v.Settings.Registry.Mirrors) != 2 || !v.Settings.HostContainers["admin"]["enabled"] ||
		v.Settings.Kernel.Sysctl["vm.max_map_count"] != "262144" || v.Motd == "" {
		t.Errorf("settings of the user are lost: %s", got)
	}
}

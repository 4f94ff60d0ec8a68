package instance

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"errors"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

// rocketSettings is user data for Bottlerocket as Karpenter renders it. "Q0E=" is "CA" in base64.
const rocketSettings = `
[settings.kubernetes]
api-server = "https://127.0.0.1:6443"
cluster-certificate = "Q0E="
cluster-name = "demo"
cluster-dns-ip = "10.100.0.10"
max-pods = 29

[settings.kubernetes.node-labels]
"karpenter.sh/nodepool" = "default"

[settings.kubernetes.node-taints]
"karpenter.sh/unregistered" = [":NoExecute"]
`

// TestBottlerocket checks that settings take effect in the kubelet.
func TestBottlerocket(t *testing.T) {
	t.Parallel()
	unregistered := corev1.Taint{Key: "karpenter.sh/unregistered", Effect: corev1.TaintEffectNoExecute}
	labels := map[string]string{"karpenter.sh/nodepool": "default"}
	tests := map[string]struct {
		userData     string
		wantTaints   []corev1.Taint
		wantCPU      string // allocatable CPU; empty: 1930m, that is 2000m minus the default kube-reserved
		wantPods     int64  // 0: 29
		wantNodeName string
	}{
		"user data of Karpenter": {userData: rocketSettings},
		"compressed":             {userData: gzipped(t, rocketSettings)},
		"taints as text and as list": {
			userData: strings.Replace(rocketSettings, `[":NoExecute"]`,
				"[\":NoExecute\"]\nteam = \"a:NoSchedule\"\nx = [\"1:NoSchedule\", \"2:NoExecute\"]", 1),
			wantTaints: []corev1.Taint{
				unregistered, {Key: "team", Value: "a", Effect: corev1.TaintEffectNoSchedule},
				{Key: "x", Value: "1", Effect: corev1.TaintEffectNoSchedule}, {Key: "x", Value: "2", Effect: corev1.TaintEffectNoExecute},
			},
		},
		"other settings, and a table outside of settings": {
			userData: rocketSettings + "[settings.kernel.sysctl]\n\"user.max_user_namespaces\" = \"16384\"\n[settings.host-containers.admin]\nenabled = true\n[notes]\nby = \"me\"\n",
		},
		"system-reserved": {
			userData: rocketSettings + "[settings.kubernetes.system-reserved]\ncpu = \"130m\"\n", wantCPU: "1800m",
		},
		"kube-reserved with one resource": {
			userData: rocketSettings + "[settings.kubernetes.kube-reserved]\ncpu = \"200m\"\n", wantCPU: "1800m",
		},
		"percentage as text": {
			userData: strings.Replace(rocketSettings, "max-pods = 29", "max-pods = 17\nlog-level = 4\nimage-gc-high-threshold-percent = 90\nimage-gc-low-threshold-percent = \"80\"", 1),
			wantPods: 17,
		},
		"no max-pods": {userData: strings.Replace(rocketSettings, "max-pods = 29\n", "", 1)},
		"hostname-override": {
			userData:     strings.Replace(rocketSettings, "max-pods = 29", "hostname-override = \"mine.example.com\"", 1),
			wantNodeName: "mine.example.com",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, console := bootWith(t, "Bottlerocket", tt.userData, fakeServices{})
			if s == nil {
				t.Fatalf("no kubelet starts:\n%s", console)
			}
			if tt.wantTaints == nil {
				tt.wantTaints = []corev1.Taint{unregistered}
			}
			got := map[string]any{
				"taints": s.Taints, "labels": s.Labels, "cpu": s.Allocatable.Cpu().String(), "pods": s.Allocatable.Pods().Value(),
				"name": s.NodeName, "provider id": s.ProviderID, "external": s.ExternalCloud, "server": s.Server, "ca": string(s.CA),
			}
			want := map[string]any{
				"taints": tt.wantTaints, "labels": labels, "cpu": cmp.Or(tt.wantCPU, "1930m"), "pods": cmp.Or(tt.wantPods, 29),
				"name": cmp.Or(tt.wantNodeName, "ip-192-168-1-7.ec2.internal"), "provider id": "aws:///us-east-1a/i-0123456789abcdef0",
				"external": true, "server": "https://127.0.0.1:6443", "ca": "CA",
			}
			if diff := gocmp.Diff(want, got); diff != "" {
				t.Errorf("kubelet (-want +got):\n%s\n%s", diff, console)
			}
		})
	}
}

// TestBottlerocketRefusesUserData checks that the boot fails with one invalid setting, with user data that has no
// settings, and without credentials.
func TestBottlerocketRefusesUserData(t *testing.T) {
	t.Parallel()
	withLine := func(line string) string { return strings.Replace(rocketSettings, "max-pods = 29", line, 1) }
	const patch = "Error PATCHing '/settings?tx=bottlerocket-launch': Status 400 when PATCHing /settings?tx=bottlerocket-launch: Json deserialize error: "
	tests := map[string]struct {
		userData string
		services fakeServices
		want     []string // texts of the console
	}{
		"unknown setting": {
			userData: withLine("max-podz = 29"),
			want: []string{patch + "unknown field `max-podz`, expected one of `allowed-unsafe-sysctls`, `api-server`",
				"Dependency failed for Kubelet"},
		},
		"unknown table": {
			userData: rocketSettings + "[settings.kubelet]\nmax-pods = 3\n",
			want:     []string{patch + "unknown field `kubelet`, expected one of `autoscaling`"},
		},
		"sysctl as number": {userData: rocketSettings + "[settings.kernel.sysctl]\n\"net.core.somaxconn\" = 1048576\n",
			want: []string{patch + "invalid type: integer `1048576`, expected a string"}},
		"invalid lockdown": {userData: rocketSettings + "[settings.kernel]\nlockdown = \"strict\"\n",
			want: []string{patch + "unknown variant `strict`, expected one of `none`"}},
		"credentials as table": {
			userData: rocketSettings + "[settings.container-registry.credentials]\n\"a.example.com\" = { auth = \"QTpi\" }\n",
			want:     []string{patch + "invalid type: map, expected a sequence"}},
		"invalid base64": {userData: rocketSettings + "[settings.host-containers.admin]\nuser-data = \"not base64!\"\n",
			want: []string{patch + "Unable to deserialize into ValidBase64"}},
		"unknown container setting": {userData: rocketSettings + "[settings.bootstrap-containers.a]\nimage = \"x\"\n",
			want: []string{patch + "unknown field `image`"}},
		"kernel parameter is not a list": {userData: rocketSettings + "[settings.boot.kernel-parameters]\nconsole = \"tty0\"\n",
			want: []string{patch + "invalid type: string \"tty0\", expected a sequence"}},
		"time-servers is not a list": {userData: rocketSettings + "[settings.ntp]\ntime-servers = \"a\"\n",
			want: []string{patch + "invalid type: string \"a\", expected a sequence"}},
		"number as text": {userData: withLine(`max-pods = "29"`),
			want: []string{patch + "invalid type: string \"29\", expected u32"}},
		"percentage above 100": {userData: withLine(`image-gc-high-threshold-percent = "900"`),
			want: []string{patch + "invalid value: integer `900`, expected a percentage"}},
		"number too large": {userData: withLine("log-level = 256"),
			want: []string{patch + "invalid value: integer `256`, expected u8"}},
		"quantity as number": {userData: rocketSettings + "[settings.kubernetes.system-reserved]\ncpu = 1\n",
			want: []string{patch + "invalid type: integer `1`, expected a string"}},
		"taint without effect": {userData: strings.Replace(rocketSettings, ":NoExecute", "NoExecute", 1),
			want: []string{patch + "Unable to deserialize into KubernetesTaintValue: Invalid value 'NoExecute'"}},
		"empty host name": {userData: withLine(`hostname-override = ""`),
			want: []string{patch + "Unable to deserialize into ValidLinuxHostname: Invalid value ''"}},
		"shell script": {
			userData: "#!/bin/bash\n/etc/eks/bootstrap.sh demo\n",
			want: []string{"Provider error: Unable to serialize settings from instance user data: Error parsing TOML user data",
				"[FAILED] Failed to start Bottlerocket userdata configuration system."},
		},
		"MIME, as for Amazon Linux": {userData: al2Script, want: []string{"Error parsing TOML user data"}},
		"no settings":               {userData: "[kubernetes]\nmax-pods = 3\n", want: []string{"TOML data did not contain 'settings' section"}},
		"empty user data": {userData: "",
			want: []string{`Failed to access variable in strict mode Some("settings.kubernetes.api-server")`, "Dependency failed for Kubelet"}},
		"no credentials": {
			userData: rocketSettings, services: fakeServices{credentialsErr: errors.New("it has no instance profile")},
			want: []string{"EC2 error: Error describing instance 'i-0123456789abcdef0': it has no instance profile"},
		},
		"reserved Kubernetes label": {
			userData: strings.Replace(rocketSettings, "karpenter.sh/nodepool", "node-role.kubernetes.io/worker", 1),
			want:     []string{"unknown 'kubernetes.io' or 'k8s.io' labels specified with --node-labels"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, console := bootWith(t, "Bottlerocket", tt.userData, tt.services)
			if s != nil {
				t.Errorf("a kubelet starts with the labels %v, want no kubelet", s.Labels)
			}
			for _, want := range append(tt.want, "Welcome to Bottlerocket OS 1.53.0 (aws-k8s-1.36)!") {
				if !strings.Contains(console, want) {
					t.Errorf("the console does not contain %q", want)
				}
			}
			// With a reserved label, the kubelet starts and fails.
			kubeletRuns := strings.Contains(console, "Started Kubelet") && !strings.Contains(console, "kubelet.service: Failed")
			if kubeletRuns || strings.Contains(console, "cloud-init") {
				t.Errorf("the console shows cloud-init or a running kubelet, want neither")
			}
			if t.Failed() {
				t.Logf("console:\n%s", console)
			}
		})
	}
}

func gzipped(t *testing.T, text string) string {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

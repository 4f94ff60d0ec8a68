package instance

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/joiner-sh/joiner/internal/diagnosis"
)

// TestFlaws checks that an image with a flaw starts no kubelet, and that its console contains the symptom that joiner
// doctor detects.
func TestFlaws(t *testing.T) {
	t.Parallel()
	withFlaw := func(flaw string) func(*Instance) { return func(i *Instance) { i.Image.Flaws = []string{flaw} } }
	shebang := "#!/bin/bash -e\n"
	tests := map[string]struct {
		family, userData string
		alter            func(*Instance)
		wantConsole      string
		wantSymptom      diagnosis.Symptom
	}{
		"no nodeadm": {"AL2023", nodeConfigPart, withFlaw(FlawNoNodeadm),
			"nodeadm-config.service: Failed at step EXEC spawning /usr/bin/nodeadm: No such file or directory", diagnosis.NodeadmAbsent},
		"nodeadm not executable": {"AL2023", nodeConfigPart, withFlaw(FlawLockedNodeadm),
			"nodeadm-config.service: Failed at step EXEC spawning /usr/bin/nodeadm: Permission denied", diagnosis.NodeadmAbsent},
		"no containerd, nodeadm": {"AL2023", nodeConfigPart, withFlaw(FlawNoContainerd),
			`exec: \"containerd\": executable file not found in $PATH`, diagnosis.NodeadmFailed},
		"no kubelet, nodeadm": {"AL2023", nodeConfigPart, withFlaw(FlawNoKubelet),
			"fork/exec /usr/bin/kubelet: no such file or directory", diagnosis.KubeletAbsent},
		"no kubelet, bootstrap.sh": {"AL2", al2Script, withFlaw(FlawNoKubelet),
			"Failed to start kubelet.service: Unit not found.", diagnosis.KubeletAbsent},
		"no bootstrap.sh": {"AL2", al2Script, withFlaw(FlawNoBootstrap),
			"/etc/eks/bootstrap.sh: No such file or directory", diagnosis.ScriptAbsent},
		"wrong clock, nodeadm": {"AL2023", nodeConfigPart, withFlaw(FlawWrongClock),
			"api error RequestExpired: Request has expired.", diagnosis.ClockWrong},
		"wrong clock, bootstrap.sh": {"AL2", al2Script, withFlaw(FlawWrongClock),
			"An error occurred (RequestExpired) when calling the DescribeInstances operation", diagnosis.ClockWrong},
		"instance type newer than the image": {"Custom",
			shebang + "/etc/eks/bootstrap.sh demo --apiserver-endpoint https://127.0.0.1:6443 --b64-cluster-ca Q0E=\n",
			withFlaw(FlawOldTable), "No entry for m5.large in /etc/eks/eni-max-pods.txt", diagnosis.UnknownType},
		"program for another architecture": {"Custom", shebang + "curl -sSLo /usr/local/bin/yq https://example.com/yq_linux_arm64\n" +
			"chmod +x /usr/local/bin/yq\nyq --version\n/etc/eks/bootstrap.sh demo\n",
			nil, "yq: cannot execute binary file: Exec format error", diagnosis.OtherArch},
		"swap": {"Custom", shebang + "fallocate -l 2G /swapfile\nmkswap /swapfile\nswapon /swapfile\n" +
			"/etc/eks/bootstrap.sh demo --apiserver-endpoint https://127.0.0.1:6443 --b64-cluster-ca Q0E=\n",
			nil, "running with swap on is not supported", diagnosis.SwapOn},
		"disk too small": {"Custom", shebang + "fallocate -l 100G /var/cache/models\n/etc/eks/bootstrap.sh demo\n",
			nil, "fallocate failed: No space left on device", diagnosis.DiskFull},
		"metadata service disabled, AL2023": {"AL2023", nodeConfigPart, func(i *Instance) { i.NoMetadata = true },
			"IMDS's HTTP endpoint is probably disabled", diagnosis.NoMetadata},
		"metadata service disabled, AL2": {"AL2", al2Script, func(i *Instance) { i.NoMetadata = true },
			"IMDS's HTTP endpoint is probably disabled", diagnosis.NoMetadata},
		"metadata service disabled, Bottlerocket": {"Bottlerocket", "", func(i *Instance) { i.NoMetadata = true },
			"IMDS request failed", diagnosis.NoMetadata},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			alter := []func(*Instance){}
			if test.alter != nil {
				alter = append(alter, test.alter)
			}
			s, console := bootWith(t, test.family, test.userData, fakeServices{}, alter...)
			if s != nil || !strings.Contains(console, test.wantConsole) {
				t.Errorf("a kubelet started: %t, want false and %q in the console:\n%s", s != nil, test.wantConsole, console)
			}
			if !slices.ContainsFunc(diagnosis.ReadConsole(console), func(r diagnosis.ConsoleSymptom) bool { return r.Symptom == test.wantSymptom }) {
				t.Errorf("doctor does not detect %q in:\n%s", test.wantSymptom, console)
			}
		})
	}
}

// TestDownloads checks that a downloaded program for the instance's architecture runs. Without credentials, the same
// script starts no kubelet.
func TestDownloads(t *testing.T) {
	t.Parallel()
	script := "#!/bin/bash -e\ncurl -sSL --output /usr/local/bin/yq https://example.com/yq_linux_amd64\n/usr/local/bin/yq --version\n" +
		"/etc/eks/bootstrap.sh demo --apiserver-endpoint https://127.0.0.1:6443 --b64-cluster-ca Q0E=\n"
	if s, console := bootWith(t, "Custom", script, fakeServices{}); s == nil {
		t.Errorf("no kubelet started:\n%s", console)
	}
	if s, console := bootWith(t, "Custom", script, fakeServices{credentialsErr: errors.New("no role")}); s != nil {
		t.Errorf("a kubelet started without credentials:\n%s", console)
	}
}

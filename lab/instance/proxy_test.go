package instance

import (
	"strings"
	"testing"
)

// TestProxy checks which proxy the kubelet uses for the API server, depending on where user data sets HTTPS_PROXY and
// NO_PROXY, and on their values.
func TestProxy(t *testing.T) {
	t.Parallel()
	const begin, call = "#!/bin/bash\nmkdir -p /etc/systemd/system/kubelet.service.d\n", "/etc/eks/bootstrap.sh demo --apiserver-endpoint https://abc.gr7.us-east-1.eks.amazonaws.com --b64-cluster-ca Q0E=\n"
	dropIn := func(lines string) string {
		return begin + "cat <<EOF > /etc/systemd/system/kubelet.service.d/proxy.conf\n[Service]\n" + lines + "\nEOF\n" + call
	}
	config := strings.Replace(nodeConfigPart, "spec:\n",
		"spec:\n  instance:\n    environment:\n      default:\n        HTTPS_PROXY: http://10.0.0.9:3128\n", 1)
	for name, c := range map[string]struct{ family, data, want string }{
		"no proxy": {"Custom", begin + call, ""},
		"Environment in a drop-in": {"Custom",
			dropIn(`Environment="HTTPS_PROXY=http://u:p@10.0.0.9:3128" "NO_PROXY=10.0.0.0/8,localhost"`), "10.0.0.9:3128"},
		"variable in lower case": {"Custom", dropIn("Environment=https_proxy=http://10.0.0.9:3128"), "10.0.0.9:3128"},
		"the domain in NO_PROXY": {"Custom", dropIn(`Environment="HTTPS_PROXY=http://10.0.0.9:3128" "NO_PROXY=.eks.amazonaws.com"`), ""},
		"a star in NO_PROXY":     {"Custom", dropIn(`Environment="HTTPS_PROXY=http://10.0.0.9:3128" "NO_PROXY=*"`), ""},
		"EnvironmentFile in a drop-in": {"Custom",
			"#!/bin/bash\necho 'HTTPS_PROXY=http://10.0.0.9:3128' >> /etc/environment\n" +
				strings.TrimPrefix(dropIn("EnvironmentFile=-/etc/environment"), "#!/bin/bash\n"), "10.0.0.9:3128"},
		"a file without a drop-in": {"Custom", begin + "echo 'HTTPS_PROXY=http://10.0.0.9:3128' >> /etc/environment\n" + call, ""},
		"NodeConfig":               {"AL2023", config, "10.0.0.9:3128"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			settings, console := bootWith(t, c.family, c.data, fakeServices{})
			if settings == nil {
				t.Fatalf("no kubelet started:\n%s", console)
			}
			if settings.Proxy != c.want {
				t.Errorf("the proxy is %q, want %q", settings.Proxy, c.want)
			}
		})
	}
}

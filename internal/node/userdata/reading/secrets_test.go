package reading_test

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/node/userdata"
	"github.com/joiner-sh/joiner/internal/node/userdata/reading"
)

// secret is planted in every place of user data that may contain a secret, in the forms of all families.
const secret = "hunter2-S3cr3t/Passw0rd"

// planted is valid and invalid user data. The tests replace SECRET with secret.
var planted = map[string]struct{ family, body string }{
	"variables":       {catalog.Custom, "#!/bin/bash\nexport TOKEN=SECRET\nPASSWORD='SECRET'\n/etc/eks/bootstrap.sh prod --kubelet-extra-args='--bootstrap-token=SECRET'\n"},
	"arguments":       {catalog.Custom, "#!/bin/bash\n/etc/eks/bootstrap.sh SECRET --unknown=SECRET SECRET --kubelet-extra-args '--SECRET --nope=SECRET SECRET --node-labels=SECRET --register-with-taints=SECRET,SECRET:SECRET'\n"},
	"option values":   {catalog.Custom, "#!/bin/bash\n/etc/eks/bootstrap.sh --SECRET=SECRET --docker-config-json 'SECRET' --b64-cluster-ca SECRET --apiserver-endpoint https://user:SECRET@x --kubelet-extra-args --token SECRET\n"},
	"a proxy":         {catalog.Custom, "#!/bin/bash\ncat <<EOF > /etc/systemd/system/kubelet.service.d/proxy.conf\n[Service]\nEnvironment=\"HTTPS_PROXY=http://user:SECRET@proxy\" \"NO_PROXY=SECRET\"\nEOF\n/etc/eks/bootstrap.sh prod\n"},
	"YAML of a proxy": {catalog.AL2023, nodeConfigHead + "instance: {environment: {default: {HTTPS_PROXY: \"http://user:SECRET@proxy\", NO_PROXY: SECRET}, SECRET: SECRET}}\n"},
	"TOML of a proxy": {catalog.Bottlerocket, "[settings.network]\nhttps-proxy = \"http://user:SECRET@proxy\"\nno-proxy = \"SECRET\"\n"},
	"outside quotes":  {catalog.Custom, "#!/bin/bash\n/etc/eks/bootstrap.sh prod --kubelet-extra-args \"--node-labels=\"a=b SECRET --storage-driver-password=SECRET\" --max-pods=5\"\n"},
	"single quotes":   {catalog.Custom, "#!/bin/bash\n/etc/eks/bootstrap.sh prod --kubelet-extra-args \"--storage-driver-password='SECRET' --max-pods=5\"\n"},
	"broken shell":    {catalog.Custom, "#!/bin/bash\ncurl -H 'Authorization: SECRET' \"https://SECRET\nif then SECRET fi\n"},
	"here-document":   {catalog.Custom, "#!/bin/bash\ncat <<EOF > /etc/x\nSECRET\n"},
	"set -u":          {catalog.Custom, "#!/bin/bash -eu\necho SECRET$MISSING\n/etc/eks/bootstrap.sh prod\n"},
	"no script":       {catalog.Custom, "SECRET\nSECRET=SECRET\n"},
	"MIME":            {catalog.Custom, "MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=\"SECRET\"\n\n--X\nX-Token: SECRET\n\nSECRET\n"},
	"a part's type":   {catalog.Custom, "MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=X\n\n--X\nContent-Type: SECRET/SECRET\nSECRET\n\nSECRET\n--X--\n"},
	"cloud-config":    {catalog.Custom, "#cloud-config\npassword: SECRET\nSECRET: [SECRET\nruncmd: {SECRET: SECRET}\n"},
	"runcmd":          {catalog.Custom, "#cloud-config\nruncmd:\n- export A=SECRET; /etc/eks/bootstrap.sh prod --SECRET \"SECRET\n"},
	"not a list":      {catalog.Custom, "#cloud-config\nruncmd: SECRET\nwrite_files: SECRET\n"},
	"YAML":            {catalog.AL2023, nodeConfigHead + "cluster: \"SECRET\n"},
	"YAML keys":       {catalog.AL2023, "apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\nSECRET: SECRET\nSECRET: 1\nspec:\n  SECRET: a\n  kubelet: {SECRET: SECRET}\n"},
	"YAML shape":      {catalog.AL2023, nodeConfigHead + "kubelet:\n    flags: SECRET\n"},
	"YAML base64":     {catalog.AL2023, nodeConfigHead + "cluster:\n    certificateAuthority: \"SECRET!\"\n"},
	"YAML kind":       {catalog.AL2023, "apiVersion: SECRET\nkind: NodeConfig\nspec: SECRET\n"},
	"YAML gates":      {catalog.AL2023, nodeConfigHead + "featureGates: {SECRET: SECRET}\n  kubelet: {config: {SECRET: SECRET, registerWithTaints: [{key: SECRET, value: SECRET, effect: SECRET}]}}\n"},
	"tab in YAML":     {catalog.AL2023, "apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\n\tspec: SECRET\n"},
	"TOML":            {catalog.Bottlerocket, "[settings.kubernetes]\nbootstrap-token = SECRET\n"},
	"TOML keys":       {catalog.Bottlerocket, "[settings.kubernetes]\n\"SECRET\" = \"SECRET\"\nlog-level = \"SECRET\"\nimage-gc-high-threshold-percent = \"SECRET\"\n"},
	"TOML tables":     {catalog.Bottlerocket, "[settings.\"SECRET\"]\na = \"SECRET\"\n[settings.kubernetes.node-taints]\n\"SECRET\" = [\"SECRET\"]\n[settings.kubernetes.node-labels]\n\"SECRET\" = \"SECRET\"\n"},
	"not TOML":        {catalog.Bottlerocket, "#!/bin/bash\nexport TOKEN=SECRET\n"},
	"broken TOML":     {catalog.Bottlerocket, "[settings\nSECRET SECRET\n"},
	"PowerShell":      {catalog.Windows2022, "<powershell>\n$p = 'SECRET'\nStart-EKSBootstrap.ps1 -EKSClusterName SECRET -SECRET SECRET -KubeletExtraArgs '--SECRET=SECRET SECRET'\n</powershell>\n"},
	"no end tag":      {catalog.Windows2022, "<powershell>\nSECRET\n"},
}

// TestSecrets: no problem contains a part of the secret, in upper or lower case.
func TestSecrets(t *testing.T) {
	t.Parallel()
	pieces := regexp.MustCompile(`(?i)hunter2|s3cr3t|passw0rd`)
	for name, c := range planted {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			body := strings.ReplaceAll(c.body, "SECRET", secret)
			for _, in := range append(systems, userdata.Input{Family: c.family}) {
				in.Own, in.Cluster, in.Endpoint, in.Version = body, "prod", "https://x", "1.33"
				for _, p := range reading.Read(in).Problems {
					if text := fmt.Sprintf("%s %+v", p, p); pieces.MatchString(text) {
						t.Errorf("%s: a problem contains a part of the secret: %s", in.Family, text)
					}
				}
			}
		})
	}
}

// TestSecretsInCorpus appends a secret to each line of the corpus, in four forms: no problem contains the secret.
func TestSecretsInCorpus(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/corpus/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	const plain = "hunter2S3cr3t"
	for _, file := range files {
		s := parse(t, file)
		lines := strings.SplitAfter(s.body, "\n")
		for i := range lines {
			for _, suffix := range []string{" " + plain + "\n", " --token=" + plain + "\n", plain + "=1\n", " '" + plain + "\n"} {
				head := append(slices.Clone(lines[:i]), strings.TrimSuffix(lines[i], "\n")+suffix)
				in := s.input
				in.Own = strings.Join(append(head, lines[i+1:]...), "")
				for _, p := range reading.Read(in).Problems {
					// Where the secret is read as the cluster's name, a problem may contain it.
					if text := fmt.Sprintf("%s %+v", p, p); strings.Contains(text, plain) && !strings.Contains(text, "cluster "+plain) {
						t.Errorf("%s, line %d with %q: a problem contains the secret: %s", file, i+1, suffix, text)
					}
				}
			}
		}
	}
}

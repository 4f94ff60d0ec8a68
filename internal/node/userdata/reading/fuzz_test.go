package reading_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/node/userdata"
	"github.com/joiner-sh/joiner/internal/node/userdata/reading"
)

// systems are the AMI families and images for which the tests read user data. Each test sets Own, the user data.
var systems = []userdata.Input{
	{Family: catalog.Custom}, {Family: catalog.AL2}, {Family: catalog.AL2023}, {Family: catalog.Bottlerocket}, {Family: catalog.Windows2022},
	{Family: catalog.Custom, Image: "amazon-eks-node-al2023-x86_64-standard-1.33-v20260601", Arch: "amd64", Cluster: "prod", Version: "1.33"},
	{Family: catalog.Custom, Image: "bottlerocket-aws-k8s-1.33-x86_64-v1.46.0-abcdef01"},
	{Family: catalog.Custom, Image: "Windows_Server-2022-English-Core-EKS_Optimized-1.33-2026.06.10", Arch: "arm64"},
}

// FuzzRead: for every family, any user data is read in time, and a second reading has the same result.
func FuzzRead(f *testing.F) {
	files, err := filepath.Glob("testdata/corpus/*.txt")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		f.Add(parse(f, file).body)
	}
	for _, text := range hostile() {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, body string) {
		if len(body) > userdata.MaxInput {
			return // Read rejects it unread
		}
		for _, in := range systems {
			in.Own = body
			first := readInTime(t, in)
			if second := formatReading(reading.Read(in)); first != second {
				t.Fatalf("two readings differ:\n%s\n%s", first, second)
			}
		}
	})
}

// hostile returns user data that expands to much more than its size, is deeply nested, or is malformed.
func hostile() map[string]string {
	repeat := func(s string, n int) string { return strings.Repeat(s, n) }
	call := "/etc/eks/bootstrap.sh prod --kubelet-extra-args "
	return map[string]string{
		"brackets":                  "#!/bin/bash\n" + repeat("(", 15000),
		"braces":                    "#!/bin/bash\n" + repeat("{ ", 8000),
		"substitutions":             "#!/bin/bash\necho " + repeat("$(", 8000),
		"quotes":                    "#!/bin/bash\necho " + repeat("\"$(\"", 4000),
		"backquotes":                "#!/bin/bash\necho " + repeat("`\\", 6000),
		"ifs":                       "#!/bin/bash\n" + repeat("if ", 5000),
		"nots":                      "#!/bin/bash\n" + repeat("! ", 8000) + "true",
		"a sequence":                "#!/bin/bash\n" + call + "{1..999999999}\n",
		"alternatives":              "#!/bin/bash\n" + call + repeat("{a,b}", 3000) + "\n",
		"doubling":                  "#!/bin/bash\na=xxxxxxxxxx\n" + repeat("a=$a$a\n", 1500) + call + "$a\n",
		"many uses of one variable": "#!/bin/bash\na=" + repeat("x", 4000) + "\n" + call + repeat("$a", 5000) + "\n",
		"replaced":                  "#!/bin/bash\na=" + repeat("x", 4000) + "\n" + repeat("b=${a//x/$a}\n", 700) + call + "$b\n",
		"recursion":                 "#!/bin/bash\nf() { f; f; f; }\nf\n" + call + "x\n",
		"mutual recursion":          "#!/bin/bash\n" + repeat("f() { g; g; g; g; g; g; g; g; }\ng() { f; f; f; f; f; f; f; f; }\n", 2) + "f\n",
		"arithmetic":                "#!/bin/bash\na=a\necho $((a)) $((2**62**62)) $((1<<99))\n" + call + "$((1/0))\n",
		"a user's home":             "#!/bin/bash\n" + call + "~nobody/x\n",
		"here-documents":            "#!/bin/bash\n" + repeat("cat <<A\n", 1500),
		"parts":                     "MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=X\n\n" + repeat("--X\n\n", 3000) + "--X--\n",
		"a boothook that begins with an empty line": mimeOf("text/cloud-boothook", "\necho hello\n"),
		"a boothook without interpreter":            mimeOf("text/cloud-boothook", "#!\necho hello\n"),
		"messages":                                  repeat("Content-Type: multipart/mixed; boundary=X\n\n--X\n", 300),
		"YAML of aliases":                           "apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\na: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: &f [*e,*e,*e,*e,*e,*e,*e,*e,*e]\ng: [*f,*f,*f,*f,*f,*f,*f,*f,*f]\n",
		"deep YAML":                                 "apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\nspec: " + repeat("[", 15000),
		"deep YAML tables":                          "apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\nspec: " + repeat("{a: ", 4000),
		"deep TOML":                                 "[settings.kubernetes]\nmax-pods = " + repeat("[", 15000),
		"deep TOML tables":                          "[settings.kubernetes]\nmax-pods = " + repeat("{a=", 5000),
		"a long key":                                "[settings." + repeat("a.", 7000) + "b]\n",
		"PowerShell": "<powershell>\n$a = 'xxxxxxxx'\n" + repeat("$a = \"$a$a\"\n", 1000) +
			"Start-EKSBootstrap.ps1 -EKSClusterName \"" + repeat("$a", 2000) + "\"\n</powershell>\n",
		"one long word": "#!/bin/bash\n/etc/eks/bootstrap.sh prod --" + repeat("x", 15000) + "\n",
		"many flags":    "#!/bin/bash\n" + call + "'" + repeat("--a=b ", 2500) + "'\n",
		"cloud-config":  "#cloud-config\nruncmd:\n" + repeat("- (\n", 3000),
	}
}

func mimeOf(contentType, body string) string {
	return "MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=X\n\n--X\nContent-Type: " + contentType + "\n\n" + body + "\n--X--\n"
}

// readInTime reads user data, and fails if that takes more than 10 s: the controller reads each EC2NodeClass again and
// again.
func readInTime(t *testing.T, in userdata.Input) string {
	t.Helper()
	start := time.Now()
	out := formatReading(reading.Read(in))
	if took := time.Since(start); took > 10*time.Second {
		t.Fatalf("%s: reading takes %s, want at most 10s", in.Family, took)
	}
	return out
}

// TestHostile: hostile user data is read in at most 10 s, and the reading has at most 2 MiB.
func TestHostile(t *testing.T) {
	t.Parallel()
	for name, body := range hostile() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, in := range systems {
				in.Own = body
				start := time.Now()
				if out := readInTime(t, in); len(out) > 1<<21 {
					t.Errorf("%s: a reading of %d bytes from %d bytes of user data, want at most 2 MiB", in.Family, len(out), len(body))
				}
				if took := time.Since(start); took > time.Second {
					t.Logf("%s %s: %s", in.Family, in.Image, took)
				}
			}
		})
	}
}

// TestGzipBomb: gzip that unpacks to more than the limit is rejected, and not unpacked.
func TestGzipBomb(t *testing.T) {
	t.Parallel()
	// The gzip of 64 MiB is longer than EC2's limit.
	bomb := transform(t, strings.Repeat("\x00", 1<<26), "gzip")
	r := reading.Read(userdata.Input{Family: catalog.Custom, Own: bomb})
	if len(r.Problems) == 0 || r.Problems[0].Harm != userdata.NeverJoins {
		t.Fatalf("problems %v, want the first to have the harm NeverJoins", r.Problems)
	}
	// 1 MiB is four times MaxUnpacked.
	aboveLimit := reading.Read(userdata.Input{Family: catalog.Custom, Own: transform(t, strings.Repeat("a", 1<<20), "gzip")})
	if p, fatal := aboveLimit.Fatal(); !fatal || p.Kind != userdata.NotUnpackable {
		t.Errorf("gzip of 1 MiB: problems %v, want a fatal NotUnpackable first", aboveLimit.Problems)
	}
}

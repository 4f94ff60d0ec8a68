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

var systems = []userdata.Input{
	{Family: catalog.Custom}, {Family: catalog.AL2}, {Family: catalog.AL2023}, {Family: catalog.Bottlerocket}, {Family: catalog.Windows2022},
	{Family: catalog.Custom, Image: "amazon-eks-node-al2023-x86_64-standard-1.33-v20260601", Arch: "amd64", Cluster: "prod", Version: "1.33"},
	{Family: catalog.Custom, Image: "bottlerocket-aws-k8s-1.33-x86_64-v1.46.0-abcdef01"},
	{Family: catalog.Custom, Image: "Windows_Server-2022-English-Core-EKS_Optimized-1.33-2026.06.10", Arch: "arm64"},
}

// FuzzRead: every family reads any user data in time, with the same result twice.
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
		if len(body) > 1<<16 {
			return
		}
		for _, in := range systems {
			in.Own = body
			first := readInTime(t, in)
			if second := write(reading.Read(in)); first != second {
				t.Fatalf("two readings differ:\n%s\n%s", first, second)
			}
		}
	})
}

// hostile returns user data that expands to much more than its size, or is deeply nested.
func hostile() map[string]string {
	many := func(s string, n int) string { return strings.Repeat(s, n) }
	call := "/etc/eks/bootstrap.sh prod --kubelet-extra-args "
	return map[string]string{
		"brackets":                  "#!/bin/bash\n" + many("(", 15000),
		"braces":                    "#!/bin/bash\n" + many("{ ", 8000),
		"substitutions":             "#!/bin/bash\necho " + many("$(", 8000),
		"quotes":                    "#!/bin/bash\necho " + many("\"$(\"", 4000),
		"backquotes":                "#!/bin/bash\necho " + many("`\\", 6000),
		"ifs":                       "#!/bin/bash\n" + many("if ", 5000),
		"nots":                      "#!/bin/bash\n" + many("! ", 8000) + "true",
		"a sequence":                "#!/bin/bash\n" + call + "{1..999999999}\n",
		"sequences":                 "#!/bin/bash\n" + call + many("{a,b}", 3000) + "\n",
		"doubling":                  "#!/bin/bash\na=xxxxxxxxxx\n" + many("a=$a$a\n", 1500) + call + "$a\n",
		"many uses of one variable": "#!/bin/bash\na=" + many("x", 4000) + "\n" + call + many("$a", 5000) + "\n",
		"replaced":                  "#!/bin/bash\na=" + many("x", 4000) + "\n" + many("b=${a//x/$a}\n", 700) + call + "$b\n",
		"recursion":                 "#!/bin/bash\nf() { f; f; f; }\nf\n" + call + "x\n",
		"mutual recursion":          "#!/bin/bash\n" + many("f() { g; g; g; g; g; g; g; g; }\ng() { f; f; f; f; f; f; f; f; }\n", 2) + "f\n",
		"arithmetic":                "#!/bin/bash\na=a\necho $((a)) $((2**62**62)) $((1<<99))\n" + call + "$((1/0))\n",
		"a user's home":             "#!/bin/bash\n" + call + "~nobody/x\n",
		"here-documents":            "#!/bin/bash\n" + many("cat <<A\n", 1500),
		"parts":                     "MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=X\n\n" + many("--X\n\n", 3000) + "--X--\n",
		"a boothook that begins with an empty line": mimeOf("text/cloud-boothook", "\necho hello\n"),
		"a boothook without interpreter":            mimeOf("text/cloud-boothook", "#!\necho hello\n"),
		"messages":                                  many("Content-Type: multipart/mixed; boundary=X\n\n--X\n", 300),
		"YAML of aliases":                           "apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\na: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: &f [*e,*e,*e,*e,*e,*e,*e,*e,*e]\ng: [*f,*f,*f,*f,*f,*f,*f,*f,*f]\n",
		"deep YAML":                                 "apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\nspec: " + many("[", 15000),
		"deep YAML tables":                          "apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\nspec: " + many("{a: ", 4000),
		"deep TOML":                                 "[settings.kubernetes]\nmax-pods = " + many("[", 15000),
		"deep TOML tables":                          "[settings.kubernetes]\nmax-pods = " + many("{a=", 5000),
		"a long key":                                "[settings." + many("a.", 7000) + "b]\n",
		"PowerShell": "<powershell>\n$a = 'xxxxxxxx'\n" + many("$a = \"$a$a\"\n", 1000) +
			"Start-EKSBootstrap.ps1 -EKSClusterName \"" + many("$a", 2000) + "\"\n</powershell>\n",
		"one long word": "#!/bin/bash\n/etc/eks/bootstrap.sh prod --" + many("x", 15000) + "\n",
		"many flags":    "#!/bin/bash\n" + call + "'" + many("--a=b ", 2500) + "'\n",
		"cloud-config":  "#cloud-config\nruncmd:\n" + many("- (\n", 3000),
	}
}

// mimeOf returns MIME user data with one part.
func mimeOf(contentType, body string) string {
	return "MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=X\n\n--X\nContent-Type: " + contentType + "\n\n" + body + "\n--X--\n"
}

// readInTime reads user data, and fails if that takes long, because every NodeClass is read again and again.
func readInTime(t *testing.T, in userdata.Input) string {
	t.Helper()
	began := time.Now()
	out := write(reading.Read(in))
	if took := time.Since(began); took > 10*time.Second {
		t.Fatalf("%s: reading takes %s", in.Family, took)
	}
	return out
}

// TestHostile: user data that expands without limit is read at little cost.
func TestHostile(t *testing.T) {
	t.Parallel()
	for name, body := range hostile() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, in := range systems {
				in.Own = body
				began := time.Now()
				if out := readInTime(t, in); len(out) > 1<<21 {
					t.Errorf("%s: %d bytes result from %d", in.Family, len(out), len(body))
				}
				if took := time.Since(began); took > time.Second {
					t.Logf("%s %s: %s", in.Family, in.Image, took)
				}
			}
		})
	}
}

// TestBomb: gzip that unpacks to more than the limit is rejected, and not unpacked.
func TestBomb(t *testing.T) {
	t.Parallel()
	bomb := packed(t, strings.Repeat("\x00", 1<<26), "gzip")
	r := reading.Read(userdata.Input{Family: catalog.Custom, Own: bomb})
	if len(r.Problems) == 0 || r.Problems[0].Harm != userdata.NeverJoins {
		t.Fatalf("problems %v", r.Problems)
	}
	small := reading.Read(userdata.Input{Family: catalog.Custom, Own: packed(t, strings.Repeat("a", 1<<20), "gzip")})
	if p, fatal := small.Fatal(); !fatal || p.Kind != userdata.NotUnpackable {
		t.Errorf("a mebibyte in a few bytes: %v", small.Problems)
	}
}

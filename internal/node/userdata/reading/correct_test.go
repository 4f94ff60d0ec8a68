package reading

import (
	"strings"
	"testing"

	"github.com/joiner-sh/joiner/internal/node/userdata"
	"github.com/joiner-sh/joiner/internal/node/userdata/kubelet"
)

// TestCorrect: problems that need no decision of the user are fixed, and nothing else is changed.
func TestCorrect(t *testing.T) {
	t.Parallel()
	const head, call, taint = "#!/bin/bash\nexport TOKEN=verysecret\n", "/etc/eks/bootstrap.sh prod",
		"--register-with-taints=karpenter.sh/unregistered:NoExecute"
	correct := head + call + " --kubelet-extra-args '" + taint + "'\n"
	proxied := func(line string) string {
		return strings.Replace(correct, call, "cat <<EOF > /etc/systemd/system/kubelet.service.d/proxy.conf\n[Service]\n"+line+"\nEOF\n"+call, 1)
	}
	// T1dO is base64 of OWN, the cluster's authority, and T1RIRVI= of OTHER.
	tests := map[string]struct{ family, data, want string }{
		"no problem": {"Custom", correct, correct},
		"no taint":   {"Custom", head + call + "\n", correct},
		"an equals sign": {"Custom",
			head + call + " --kubelet-extra-args='--register-with-taints=\"karpenter.sh/unregistered:NoExecute\"'\n", correct},
		"no quotes": {"Custom", head + call + " --kubelet-extra-args --v=2 " + taint + "\n",
			head + call + " --kubelet-extra-args '--v=2 " + taint + "'\n"},
		"former name": {"Custom",
			head + call + " --kubelet-extra-args '--register-with-taints=karpenter.sh/uninitialized:NoExecute'\n", correct},
		"two flags": {"Custom",
			head + call + " --kubelet-extra-args '" + taint + " --register-with-taints=a=b:NoSchedule'\n",
			head + call + " --kubelet-extra-args '" + taint + ",a=b:NoSchedule'\n"},
		"removed flag":    {"Custom", head + call + " --kubelet-extra-args '--container-runtime=remote " + taint + "'\n", correct},
		"an unknown gate": {"Custom", head + call + " --kubelet-extra-args '--feature-gates=NoSuchGateAtAll=true " + taint + "'\n", correct},
		"a gate among others": {"Custom",
			head + call + " --kubelet-extra-args '--feature-gates=AllAlpha=false,NoSuchGateAtAll=true,AllBeta=true " + taint + "'\n",
			head + call + " --kubelet-extra-args '--feature-gates=AllAlpha=false,AllBeta=true " + taint + "'\n"},
		"another cluster": {"Custom", strings.Replace(correct, "prod", "staging", 1), correct},
		"no cluster":      {"Custom", strings.Replace(correct, " prod", "", 1), correct},
		"another authority": {"Custom", strings.Replace(correct, " prod", " prod --b64-cluster-ca T1RIRVI=", 1),
			strings.Replace(correct, " prod", " prod --b64-cluster-ca T1dO", 1)},
		"open quote":     {"Custom", strings.Replace(correct, "NoExecute'", "NoExecute", 1), correct},
		"CR LF":          {"Custom", strings.ReplaceAll(correct, "\n", "\r\n"), correct},
		"no interpreter": {"Custom", strings.TrimPrefix(correct, "#!/bin/bash\n"), correct},
		"an early end":   {"Custom", strings.Replace(correct, call, "exit 0\n"+call, 1), strings.Replace(correct, call, "true\n"+call, 1)},
		"nothing joins":  {"Custom", head, correct},
		"flags in a variable: no fix": {"Custom", head + call + " --kubelet-extra-args \"$ARGS\"\n",
			head + call + " --kubelet-extra-args \"$ARGS\"\n"},
		"program for another architecture": {"Custom",
			strings.Replace(correct, call, "curl -O https://example.com/agent-arm64\n"+call, 1),
			strings.Replace(correct, call, "curl -O https://example.com/agent-amd64\n"+call, 1)},
		"misspelled setting": {"Bottlerocket", "[settings.kubernetes]\nmax-pod = 20\n", "[settings.kubernetes]\nmax-pods = 20\n"},
		"setting of a wrong type": {"Bottlerocket", "[settings.kubernetes]\nmax-pods = true\nevent-qps = 5\n",
			"[settings.kubernetes]\nevent-qps = 5\n"},
		"missing bracket":             {"Bottlerocket", "[settings.kubernetes\nmax-pods = 20\n", "[settings.kubernetes]\nmax-pods = 20\n"},
		"script in place of settings": {"Bottlerocket", "#!/bin/bash\necho hello\n", ""},
		"proxy with NO_PROXY": {"Custom",
			proxied(`Environment="HTTPS_PROXY=http://u:verysecret@p:3128" "NO_PROXY=10.0.0.0/8"`),
			proxied(`Environment="HTTPS_PROXY=http://u:verysecret@p:3128" "NO_PROXY=10.0.0.0/8,.eks.amazonaws.com"`)},
		"proxy without NO_PROXY": {"Custom", proxied(`Environment="HTTPS_PROXY=http://u:verysecret@p:3128"`), proxied("Environment=\"HTTPS_PROXY=http://u:verysecret@p:3128\"\nEnvironment=\"NO_PROXY=.eks.amazonaws.com\"")},
		"partly fixed": {"Custom", head + "exit 0\n" + call + " --kubelet-extra-args \"$ARGS\"\n",
			head + "true\n" + call + " --kubelet-extra-args \"$ARGS\"\n"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := userdata.Input{Family: test.family, Cluster: "prod", CA: "T1dO", Arch: "amd64", Own: test.data}
			read := func(own string) []userdata.Problem {
				candidate := in
				candidate.Own = own
				if test.family != "Custom" {
					if p, ok := MergeProblem(candidate); ok {
						return []userdata.Problem{p}
					}
				}
				return Read(candidate).Problems
			}
			if got := Correct(in, read); got != test.want {
				t.Errorf("corrected to\n%s\nwant\n%s\nproblems before %v, after %v", got, test.want, read(test.data), read(got))
			}
		})
	}
}

// TestCorrectRestricted: restricted to one check, Correct does not fix problems of other checks.
func TestCorrectRestricted(t *testing.T) {
	t.Parallel()
	in := userdata.Input{Family: "Custom", Arch: "amd64",
		Own: "#!/bin/bash\ncurl -O https://example.com/agent-arm64\n/etc/eks/bootstrap.sh prod\n"}
	read := func(own string) []userdata.Problem {
		candidate := in
		candidate.Own = own
		return Read(candidate).Problems
	}
	if got := Correct(in, read, "TAINT-1"); !strings.Contains(got, "agent-arm64") || !strings.Contains(got, kubelet.StartupFlag) {
		t.Errorf("restricted to TAINT-1, the script is corrected to\n%s\nwant only the taint added", got)
	}
}

// TestShorten: a script that is too long loses its comments, and does the same.
func TestShorten(t *testing.T) {
	t.Parallel()
	own := "#!/bin/bash\n" + strings.Repeat("# no program reads this comment\n", 600) + "echo hello   # twice\n"
	in := userdata.Input{Family: "AL2023", Own: own}
	got := Correct(in, func(own string) []userdata.Problem {
		if len(own) > userdata.MaxBytes {
			return []userdata.Problem{{Kind: userdata.TooLong, Certainty: userdata.Certain, Harm: userdata.NeverJoins}}
		}
		return nil
	})
	if got != "#!/bin/bash\necho hello\n" {
		t.Errorf("the script is shortened to %q, want it without comments", got)
	}
}

// TestApplyCorrection: only the settings that the console output names are changed.
func TestApplyCorrection(t *testing.T) {
	t.Parallel()
	own := "#!/bin/bash\nset -e\nfetch-the-agent --now\nswapon /swapfile && echo on\n/etc/eks/bootstrap.sh prod --kubelet-extra-args '--feature-gates=No=true " + kubelet.StartupFlag + "'\n"
	for name, test := range map[string]struct {
		change   Correction
		old, new string
	}{
		"a flag":     {Correction{Flag: "feature-gates"}, "--feature-gates=No=true ", ""},
		"a program":  {Correction{Program: "swapon"}, "swapon /swapfile", "true"},
		"a failure":  {Correction{IgnoreFailureOf: "fetch-the-agent"}, "--now", "--now || true"},
		"max-pods":   {Correction{MaxPods: 29}, "--kubelet-extra-args '", "--use-max-pods false --kubelet-extra-args '--max-pods=29 "},
		"not called": {Correction{Program: "mkswap"}, "", ""},
	} {
		if got, want := ApplyCorrection(userdata.Input{Family: "Custom", Own: own, Cluster: "prod"}, test.change),
			strings.Replace(own, test.old, test.new, 1); got != want {
			t.Errorf("%s: corrected to\n%s\nwant\n%s", name, got, want)
		}
	}
	config := "apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\nspec:\n  kubelet:\n    flags:\n    - --v=2\n    - --max-pods=-5\n"
	if got := ApplyCorrection(userdata.Input{Family: "AL2023", Own: config},
		Correction{Flag: "max-pods"}); got != strings.Replace(config, "    - --max-pods=-5\n", "", 1) {
		t.Errorf("the NodeConfig is corrected to\n%s\nwant it without --max-pods", got)
	}
}

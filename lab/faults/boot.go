package faults

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	awsv1 "github.com/joiner-sh/joiner/api/aws/v1"
	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/emulator/world"
	"github.com/joiner-sh/joiner/internal/emulator/world/ekscluster"
	"github.com/joiner-sh/joiner/lab"
)

// healthyArgs are the arguments of bootstrap.sh with which an instance of a custom AMI registers its node with the
// startup taint.
const healthyArgs = "--kubelet-extra-args '--register-with-taints=karpenter.sh/unregistered:NoExecute'"

// bootstrapCluster matches a call of bootstrap.sh with a cluster name.
var bootstrapCluster = regexp.MustCompile(`bootstrap\.sh ([0-9A-Za-z][0-9A-Za-z_-]*)`)

func withoutCluster(text string) string {
	return bootstrapCluster.ReplaceAllString(text, "bootstrap.sh")
}

func withOtherCluster(text string) string {
	return bootstrapCluster.ReplaceAllString(text, "bootstrap.sh ${1}-blue")
}

func bootFaults() []Fault {
	withArgs := func(name, what, check, cause, args string) Fault { // args replaces healthyArgs
		return Fault{Name: name, What: "custom image: " + what, Check: check, Cause: cause,
			Break: breakUserData(func(text string) string { return strings.Replace(text, healthyArgs, args, 1) })}
	}
	broken := func(name, what, check, cause string, change func(string) string) Fault {
		return Fault{Name: name, What: "custom image: " + what, Check: check, Cause: cause, Break: breakUserData(change)}
	}
	replace := func(old, with string) func(string) string {
		return func(text string) string { return strings.Replace(text, old, with, 1) }
	}
	suspicious := func(f Fault) Fault {
		f.ExpectSuspicious = true
		return f
	}
	return append(familyFaults(),
		withArgs("taint-missing", "the user data registers nodes without the startup taint", "TAINT-1",
			"taint karpenter.sh/unregistered", ""),
		withArgs("taint-of-other-effect", "the startup taint has the effect NoSchedule", "TAINT-1", "taint",
			strings.Replace(healthyArgs, "NoExecute", "NoSchedule", 1)),
		withArgs("taint-of-other-key", "the startup taint is misspelt", "TAINT-1", "taint",
			strings.Replace(healthyArgs, "unregistered", "unregisterd", 1)),
		withArgs("extra-args-with-equals", "--kubelet-extra-args=… is a single word, and bootstrap.sh ignores it", "TAINT-2",
			"only with its value as the next word",
			strings.Replace(healthyArgs, "args '", "args='", 1)),
		withArgs("extra-args-without-quotes", "the kubelet's arguments are not quoted, so bootstrap.sh uses only the first word",
			"TAINT-2", "takes one word only",
			"--kubelet-extra-args --node-labels=a=b --register-with-taints=karpenter.sh/unregistered:NoExecute"),
		withArgs("taints-given-twice", "--register-with-taints is given twice, and the kubelet uses the last value", "TAINT-2",
			"given again later", strings.Replace(healthyArgs, "NoExecute'", "NoExecute --register-with-taints=a=b:PreferNoSchedule'", 1)),
		broken("quote-left-open", "a quote is not closed", "TAINT-2", "the quote that is opened here is never closed",
			replace("NoExecute'", "NoExecute")),
		broken("script-ends-early", "the script exits before it starts the kubelet", "TAINT-2",
			"before it starts the kubelet", replace("/etc/eks", "exit 0\n/etc/eks")),
		broken("windows-line-ends", "the script has Windows line endings", "TAINT-2",
			"lines end with carriage returns", func(text string) string { return strings.ReplaceAll(text, "\n", "\r\n") }),
		broken("no-shebang", "the script does not begin with #!", "BOOT-7", "it is not a shell script", replace("#!/bin/bash\n", "")),
		broken("cluster-name-missing", "bootstrap.sh is called without the cluster's name", "TAINT-2",
			"without the name of the cluster", withoutCluster),
		suspicious(broken("kubelet-flag-removed", "the kubelet gets a flag that was removed", "TAINT-3",
			"no longer has the flag --container-runtime", replace("args '", "args '--container-runtime=remote "))),
		broken("label-that-kubelets-may-not-set", "the kubelet gets a label that it is not allowed to set", "TAINT-3",
			"not allowed to set the label", replace("args '", "args '--node-labels=node-role.kubernetes.io/worker=x ")),
		broken("taint-that-cannot-be-read", "the kubelet gets an invalid taint", "TAINT-3", "cannot be read",
			replace("unregistered:NoExecute", "unregistered:NoExecute,a=b=c:NoSuch")),
		suspicious(broken("nothing-starts-the-kubelet", "the user data does not start a kubelet", "BOOT-7",
			"only the image determines how it reads its user data", func(string) string { return "#!/bin/bash\necho hello\n" })),
		suspicious(broken("proxy-for-the-api-server", "the kubelet gets a proxy, and NO_PROXY has networks instead of names",
			"BOOT-17", "the kubelet calls the API server through a proxy", withProxy)),
		broken("other-cluster", "the user data names another cluster", "BOOT-7",
			"the node asks for a token of the wrong cluster", withOtherCluster),
	)
}

// withProxy adds lines that configure a proxy for the kubelet, as AWS's example of user data does. NO_PROXY contains
// the addresses of the VPC, but not the name of the API server. The password is fictitious.
func withProxy(text string) string {
	const unit = "/etc/systemd/system/kubelet.service.d/http-proxy.conf"
	const lines = "cat <<EOF > /etc/environment\nHTTPS_PROXY=http://squid:hunter2@10.255.0.9:3128\nNO_PROXY=10.0.0.0/8,localhost,169.254.169.254,.internal\nEOF\n" +
		"mkdir -p /etc/systemd/system/kubelet.service.d\ncat <<EOF > " + unit +
		"\n[Service]\nEnvironmentFile=/etc/environment\nEOF\nsystemctl daemon-reload\n"
	return strings.Replace(text, "/etc/eks/bootstrap.sh", lines+"/etc/eks/bootstrap.sh", 1)
}

// familyFaults are faults of user data that Joiner merges with generated user data.
func familyFaults() []Fault {
	withUserData := func(f Fault, alias, text string) Fault {
		f.Break = func(_ context.Context, s *Scene) error {
			s.Class.Spec.AMISelectorTerms, s.Class.Spec.UserData = []awsv1.AMISelectorTerm{{Alias: alias}}, &text
			return nil
		}
		return f
	}
	const al2023, bottlerocket = "al2023@latest", "bottlerocket@latest"
	return []Fault{
		withUserData(Fault{
			Name:  "nodeconfig-malformed",
			What:  "AL2023: the NodeConfig in the user data is not valid YAML",
			Check: "TAINT-3",
			Cause: "is not a NodeConfig",
		},
			al2023, "apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\nspec:\n  kubelet:\n   config:\n  maxPods: [\n"),
		withUserData(Fault{
			Name:  "settings-malformed",
			What:  "Bottlerocket: the user data is not valid TOML",
			Check: "TAINT-3",
			Cause: "it is not valid TOML from here on",
		},
			bottlerocket, "[settings.kubernetes\nevent-qps = 20\n"),
		withUserData(Fault{
			Name:  "setting-out-of-range",
			What:  "Bottlerocket: a setting has an invalid value",
			Check: "TAINT-3",
			Cause: "image-gc-high-threshold-percent must be a number",
		},
			bottlerocket, "[settings.kubernetes]\nimage-gc-high-threshold-percent = 500\n"),
		withUserData(Fault{Name: "setting-that-is-none", What: "Bottlerocket: a setting is misspelt", Check: "TAINT-3", Cause: "event-qp"},
			bottlerocket, "[settings.kubernetes]\nevent-qp = 20\n"),
		withUserData(Fault{
			Name:  "script-for-bottlerocket",
			What:  "Bottlerocket: the user data is a shell script",
			Check: "BOOT-7",
			Cause: "Bottlerocket runs no scripts",
		},
			bottlerocket, "#!/bin/bash\necho hello\n"),
		withUserData(Fault{
			Name:  "kubelet-setting-unknown",
			What:  "AL2023: the NodeConfig sets a label that kubelets are not allowed to set",
			Check: "TAINT-3",
			Cause: "is not allowed to set the label",
		},
			al2023, "apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\nspec:\n  kubelet:\n    flags:\n    - --node-labels=node-role.kubernetes.io/worker=x\n"),
		withUserData(Fault{
			Name:  "user-data-too-long",
			What:  "the user data is longer than EC2 accepts",
			Check: "LAUNCH-7",
			Cause: "and EC2 takes 16384",
		},
			al2023, "#!/bin/bash\n"+strings.Repeat("# a comment that no program reads on an instance\n", 400)),
	}
}

// useCustomImage returns a Break function that gives the scene a custom AMI. change gets working user data, and returns
// the scene's user data.
func useCustomImage(change func(string) string) func(context.Context, *Scene) error {
	return func(_ context.Context, s *Scene) error {
		text, err := s.customUserData()
		if err != nil {
			return err
		}
		id, family := s.registerImage("own-image-"+s.Name), "Custom"
		text = change(text)
		s.Class.Spec.AMIFamily, s.Class.Spec.UserData, s.Class.Spec.AMISelectorTerms = &family, &text, []awsv1.AMISelectorTerm{{ID: id}}
		return nil
	}
}

// breakUserData is useCustomImage with a change that breaks the user data. A change without effect is an error.
func breakUserData(change func(string) string) func(context.Context, *Scene) error {
	return func(ctx context.Context, s *Scene) error {
		before, err := s.customUserData()
		if err == nil && change(before) == before {
			err = errors.New("the fault does not change the user data")
		}
		return errors.Join(err, useCustomImage(change)(ctx, s))
	}
}

// customUserData returns working user data for a custom AMI. Here, ChangeCluster only reads the cluster.
func (s *Scene) customUserData() (string, error) {
	text := ""
	err := s.ChangeCluster(func(c *ekscluster.Cluster) {
		text = fmt.Sprintf("#!/bin/bash\nset -o xtrace\n/etc/eks/bootstrap.sh %s --b64-cluster-ca %s --apiserver-endpoint %s %s\n", c.Name, c.CA, c.Endpoint, healthyArgs)
	})
	return text, err
}

// registerImage registers a custom AMI, which the lab boots as Amazon Linux 2.
func (s *Scene) registerImage(name string) (id string) {
	s.Lab.Emulator.Do(func(_ *world.World, now time.Time) {
		id = s.Lab.Estate.Region.Images.Register(world.Image{
			Name: name, Architecture: "x86_64", OwnerID: s.Lab.Account, CreatedAt: now, RootDevice: "/dev/xvda",
			Volumes: []world.ImageVolume{{Device: "/dev/xvda", SizeGiB: 20, Kind: "gp3"}},
			Family:  "Custom", Variant: "standard", Version: lab.KubernetesMinor(),
		}).ID
	})
	return id
}

func armFaults() []Fault {
	return []Fault{
		{
			Name:             "x86-program-on-arm",
			What:             "the user data downloads a program for x86, and the NodePool launches arm64",
			Check:            "ARCH-3",
			Cause:            "cannot run it",
			ExpectSuspicious: true,
			Break: func(_ context.Context, s *Scene) error {
				s.Pool.Spec.Template.Spec.Requirements[0] = In(corev1.LabelArchStable, "arm64")
				text := "#!/bin/bash\necho https://example.com/agent-linux-x86_64.tar.gz\n"
				s.Class.Spec.UserData = &text
				return nil
			}},
		{
			Name:  "image-for-x86-alone",
			What:  "the pods' image is for amd64 only, and their NodePool allows both architectures; arm64 is cheaper",
			Check: "ARCH-5",
			Cause: "has no variant for arm64", NeedsInstance: true, Break: func(_ context.Context, s *Scene) error {
				s.Pool.Spec.Template.Spec.Requirements = append(karpv1.Requirements{In(corev1.LabelArchStable, "amd64", "arm64"),
					In("karpenter.k8s.aws/instance-family", "m5", "t4g")},
					s.Pool.Spec.Template.Spec.Requirements[1]) // the capacity type
				s.Pods.Spec.Template.Spec.Containers[0].Image = "example.com/app:1.4-amd64"
				return nil
			}},
	}
}

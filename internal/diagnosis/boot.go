package diagnosis

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/joiner-sh/joiner/internal/diagnosis/fix"
)

func bootChecks() []Check {
	sign := func(id, title string, s symptom) Check {
		return Check{ID: id, Title: title, Layer: LayerBoot, judge: func(d *desk) []Finding { return append(d.problems(id), d.judgeSymptom(id, s)...) }}
	}
	checks := []Check{
		{ID: "BOOT-1", Title: "the controller has the cluster's present endpoint", Layer: LayerBoot, judge: judgeEndpointSetting},
		sign("BOOT-2", "the cluster's certificate authority is trusted", symptom{[]Sign{Untrusted},
			"the kubelet does not trust the API server's certificate: the user data has another cluster's certificate authority, or bootstraps twice",
			func(d *desk, class string) []fix.Step {
				return []fix.Step{fix.Edit(fix.NodeClass(class)).With("in spec.userData write the certificate authority of the cluster"),
					fix.Call("eks", "describe-cluster", fix.P("--name", fix.ClusterName(d.Name)), d.inRegion(), fix.P("--query", fix.Text("cluster.certificateAuthority.data")))}
			}}),
		sign("BOOT-3", "the instance's clock is right", symptom{[]Sign{ClockWrong},
			"the instance's clock is wrong, so AWS and the API server refuse what it signs",
			func(_ *desk, class string) []fix.Step {
				return []fix.Step{fix.Edit(fix.NodeClass(class)).With("let spec.userData leave chrony as it is, or select an image in spec.amiSelectorTerms that has it: server 169.254.169.123")}
			}}),
		{ID: "BOOT-4", Title: "image and AMI family belong together", Layer: LayerBoot, judge: judgeFamily},
		sign("BOOT-5", "the image has nodeadm", symptom{[]Sign{NodeadmAbsent},
			"the image has no nodeadm, and AMI family AL2023 needs it",
			func(_ *desk, class string) []fix.Step {
				return []fix.Step{fix.Merge(fix.NodeClass(class), fix.At(fix.List{fix.At(fix.Text("al2023@latest"), "alias")}, "spec", "amiSelectorTerms"))}
			}}),
		{ID: "BOOT-6", Title: "nodeadm configures the node", Layer: LayerBoot, Fallback: true, judge: func(d *desk) []Finding {
			return d.judgeSymptom("BOOT-6", symptom{[]Sign{NodeadmFailed}, "nodeadm fails on the instance before it has configured the kubelet",
				func(_ *desk, class string) []fix.Step {
					return []fix.Step{fix.Edit(fix.NodeClass(class)).With("correct in the NodeConfig of spec.userData what the console names"), rendered(class)}
				}})
		}},
		sign("BOOT-7", "the image accepts its user data and joins this cluster with it", symptom{[]Sign{BadSettings},
			"Bottlerocket refuses the settings in the user data, so no kubelet starts",
			func(_ *desk, class string) []fix.Step {
				return []fix.Step{fix.Edit(fix.NodeClass(class)).With("correct the setting in spec.userData that the console names")}
			}}),
		{ID: "BOOT-8", Title: "the image's Kubernetes version suits the control plane", Layer: LayerBoot, judge: judgeSkew},
		sign("BOOT-9", "the kubelet takes its flags and configuration", symptom{[]Sign{KubeletFlag, KubeletConfig},
			"the kubelet refuses a flag or its configuration, and does not start",
			func(_ *desk, class string) []fix.Step {
				return []fix.Step{fix.Edit(fix.NodeClass(class)).With("take out of spec.kubelet or spec.userData what the console names")}
			}}),
		sign("BOOT-10", "the image knows the instance type", symptom{[]Sign{UnknownType},
			"the image is older than the instance type, and does not know how many pods it takes",
			func(_ *desk, class string) []fix.Step {
				return []fix.Step{fix.Edit(fix.NodeClass(class)).With("select a newer image in spec.amiSelectorTerms, or set spec.kubelet.maxPods")}
			}}),
		sign("BOOT-11", "the instance has no swap", symptom{[]Sign{SwapOn},
			"the instance has swap, and the kubelet refuses to start with it",
			func(_ *desk, class string) []fix.Step {
				return []fix.Step{fix.Edit(fix.NodeClass(class)).With("make no swap in spec.userData; in the NodePool exclude the types that come with it, m1 and c1")}
			}}),
		{ID: "BOOT-12", Title: "instances have credentials", Layer: LayerBoot, Fallback: true, judge: func(d *desk) []Finding {
			return d.judgeSymptom("BOOT-12", symptom{[]Sign{NoCredentials}, "the instance has no credentials, so it cannot find out about its cluster",
				func(_ *desk, class string) []fix.Step {
					return []fix.Step{fix.Show("get", fix.NodeClass(class), "-o", "jsonpath={.status.instanceProfile}").With("then: aws iam get-instance-profile: it must have the node role")}
				}})
		}},
		{ID: "BOOT-13", Title: "scripts of the user data end well", Layer: LayerBoot, Fallback: true, judge: func(d *desk) []Finding {
			return d.judgeSymptom("BOOT-13", symptom{[]Sign{ScriptFailed}, "a script of the user data fails before the kubelet starts",
				func(_ *desk, class string) []fix.Step {
					return []fix.Step{fix.Edit(fix.NodeClass(class)).With("in spec.userData correct the script that the console names"), rendered(class)}
				}})
		}},
		{ID: "BOOT-16", Title: "EC2's status checks pass", Layer: LayerBoot, judge: judgeStatus},
		{ID: "IMDS-2", Title: "instances can read their own metadata", Layer: LayerBoot, judge: judgeMetadata},
		sign("BOOT-17", "a proxy leaves the cluster's own addresses alone", symptom{[]Sign{Proxied},
			"the kubelet asks a proxy for the API server, and the proxy does not let it through",
			func(_ *desk, class string) []fix.Step {
				return []fix.Step{fix.Edit(fix.NodeClass(class)).With("in spec.userData add .eks.amazonaws.com and 169.254.169.254 to NO_PROXY")}
			}}),
		sign("BOOT-14", "the image has a kubelet", symptom{[]Sign{KubeletAbsent},
			"the image has no kubelet",
			func(_ *desk, class string) []fix.Step {
				return []fix.Step{fix.Edit(fix.NodeClass(class)).With("in spec.amiSelectorTerms select an image that is made for EKS, such as alias: al2023@latest")}
			}}),
		sign("BOOT-15", "the disk has room", symptom{[]Sign{DiskFull},
			"the instance's disk is full before its kubelet starts",
			func(_ *desk, class string) []fix.Step {
				return []fix.Step{fix.Edit(fix.NodeClass(class)).With("give the root volume more in spec.blockDeviceMappings[].ebs.volumeSize, or let spec.userData write less")}
			}}),
	}
	return checks
}

// symptom is a cause that its console signs prove.
type symptom struct {
	signs []Sign
	text  string
	steps func(d *desk, class string) []fix.Step // where the console does not say more; class is never empty
}

// rendered is the step that prints the user data of a class's instances.
func rendered(class string) fix.Step {
	return fix.Joiner(fix.Text("render"), fix.Text("userdata"), fix.Text("--nodeclass"), fix.Name(class), fix.Text("--instance-type"), fix.Text("m5.large"))
}

// follow returns the signs that the symptom may cause: with a wrong clock, an instance may also get no credentials.
func (s symptom) follow() []Sign {
	if slices.Contains(s.signs, ClockWrong) {
		return []Sign{NoCredentials}
	}
	return nil
}

func (d *desk) judgeSymptom(check string, s symptom) []Finding {
	sights := d.of("", s.signs...)
	if gap, ok := d.consoles(); ok && len(sights) == 0 {
		return []Finding{gap}
	}
	var out []Finding
	told := map[string]bool{}
	for _, g := range sights {
		class := g.instance.Class
		if told[class] {
			continue
		}
		told[class] = true
		subject, steps := "EC2NodeClass "+class, []fix.Step{fix.Say("the EC2NodeClass of instance %s is not known: docs/checks/%s.md has what corrects it", g.instance.ID, check)}
		if class == "" {
			subject = "instance " + g.instance.ID
		} else if step, ok := d.literal(check, g); ok {
			steps = []fix.Step{step}
		} else {
			steps = s.steps(d, class)
		}
		out = append(out, broken(subject, Likely, "%s", s.text).with(lines(d.of(g.instance.Class, s.signs...))...).explaining(s.signs...).
			explaining(NodeadmFailed, ScriptFailed).explaining(s.follow()...).mend(steps...))
	}
	return out
}

// judgeEndpointSetting: a setting outlives the cluster that it was made for.
func judgeEndpointSetting(d *desk) []Finding {
	if gap, ok := d.Cluster.gap("the cluster's endpoint"); ok {
		return []Finding{gap}
	}
	set := d.Controller.Value.Settings["CLUSTER_ENDPOINT"]
	if set == "" || strings.TrimSuffix(set, "/") == strings.TrimSuffix(d.Cluster.Value.Endpoint, "/") {
		return nil
	}
	return []Finding{broken("", Certain, "nodes are told to join at %s, and the cluster's endpoint is %s: the controller's setting is of a cluster that was made anew since", set, d.Cluster.Value.Endpoint).
		with(d.Controller.Source+": CLUSTER_ENDPOINT", d.Cluster.Source).explaining(NoSuchHost, TimedOut, Untrusted).
		mend(fix.UnsetEnv(d.controllerDeployment(), "CLUSTER_ENDPOINT").With("it is then read from EKS"))}
}

// familyOf returns the AMI family that an image's name shows, and whether the name is one of AWS's.
func familyOf(name string) (family string, official bool) {
	lower := strings.ToLower(name)
	official = strings.HasPrefix(lower, "amazon-eks-") || strings.HasPrefix(lower, "bottlerocket-aws-") || strings.HasPrefix(lower, "windows_server-")
	switch {
	case strings.Contains(lower, "al2023"):
		return "AL2023", official
	case strings.HasPrefix(lower, "bottlerocket"):
		return "Bottlerocket", official
	case strings.HasPrefix(lower, "windows_server-2019"):
		return "Windows2019", official
	case strings.HasPrefix(lower, "windows_server-2022"):
		return "Windows2022", official
	case strings.HasPrefix(lower, "windows_server-2025"):
		return "Windows2025", official
	case strings.HasPrefix(lower, "amazon-eks-node-"), strings.HasPrefix(lower, "amazon-eks-gpu-node-"), strings.HasPrefix(lower, "amazon-eks-arm64-node-"):
		return "AL2", official
	}
	return "", false
}

// judgeFamily: each family writes user data that the others do not understand.
func judgeFamily(d *desk) []Finding {
	if gap, ok := d.Classes.gap("the EC2NodeClasses"); ok {
		return []Finding{gap}
	}
	out := d.problems("BOOT-4")
	for _, c := range d.Classes.Value {
		subject := "EC2NodeClass " + c.Name
		sights := d.of(c.Name, UnknownPart, ScriptAbsent)
		at := slices.IndexFunc(d.Images.Value, func(i Image) bool {
			family, _ := familyOf(i.Name)
			return (slices.Contains(c.Images, i.ID) || slices.Contains(c.ImageIDs, i.ID)) && family != "" && c.Family != "" && c.Family != "Custom" && family != c.Family
		})
		switch {
		case at >= 0:
			i := d.Images.Value[at]
			family, official := familyOf(i.Name)
			certainty := Likely
			if official { // programs on the instance can write anything to the console
				certainty = Certain
			}
			out = append(out, broken(subject, certainty, "its AMI family is %s, and its image %s is one of %s: the image does not understand the user data", c.Family, i.ID, family).
				with(d.Images.Source+": "+i.ID+" is "+i.Name).with(lines(sights)...).explaining(UnknownPart, ScriptAbsent, NodeadmFailed, ScriptFailed).mend(c.withFamily(family)))
		case len(sights) > 0:
			out = append(out, broken(subject, Likely, "its image does not understand the user data of AMI family %s", orElse(c.Family, "that it has")).
				with(lines(sights)...).explaining(UnknownPart, ScriptAbsent, NodeadmFailed, ScriptFailed).mend(d.familyFix(c, sights)))
		}
	}
	return out
}

// withFamily is the step that sets the AMI family of a class.
func (c Class) withFamily(family string) fix.Step {
	return fix.Merge(fix.NodeClass(c.Name), fix.At(fix.Family(family), "spec", "amiFamily"))
}

// familyFix is the step that brings the family of a class and its image together: the family that the image shows, else an image of the family.
func (d *desk) familyFix(c Class, sights []sighting) fix.Step {
	if family := familyOnConsole(sights); family != "" && family != c.Family {
		return c.withFamily(family).With("the console shows that the image is one of %s", family)
	}
	by := fix.Edit(fix.NodeClass(c.Name)).With("spec.amiFamily must be that of the image; with Custom, spec.userData must start the kubelet itself")
	return c.ownImageOr(by, func(s fix.Step) fix.Step {
		return s.With("AWS's own image; or set spec.amiFamily to that of your image")
	})
}

// minorOf returns the Kubernetes minor version in the name of an image: amazon-eks-node-al2023-x86_64-standard-1.33-v20250501.
func minorOf(name string) (int, bool) {
	for _, part := range strings.Split(name, "-") {
		major, minor, ok := strings.Cut(part, ".")
		if n, err := strconv.Atoi(minor); ok && major == "1" && err == nil && n >= 10 && n < 100 {
			return n, true
		}
	}
	return 0, false
}

// judgeSkew: a kubelet may be older than the control plane by three minor versions, and never newer.
func judgeSkew(d *desk) []Finding {
	if gap, ok := d.Cluster.gap("the cluster's version"); ok {
		return []Finding{gap}
	}
	if gap, ok := d.Images.gap("the images"); ok {
		return []Finding{gap}
	}
	_, minor, _ := strings.Cut(d.Cluster.Value.Version, ".")
	plane, err := strconv.Atoi(minor)
	if err != nil {
		return []Finding{{Verdict: Unknown, Certainty: Certain, Cause: fmt.Sprintf("the cluster's version %q is no version", d.Cluster.Value.Version)}}
	}
	var out []Finding
	for _, c := range d.Classes.Value {
		for _, i := range d.Images.Value {
			kubelet, ok := minorOf(i.Name)
			const oldest = 3
			if !ok || !slices.Contains(c.Images, i.ID) && !slices.Contains(c.ImageIDs, i.ID) || kubelet <= plane && kubelet >= plane-oldest {
				continue
			}
			relation := "newer"
			if kubelet < plane {
				relation = fmt.Sprintf("more than %d versions older", oldest)
			}
			out = append(out, broken("EC2NodeClass "+c.Name, Likely, "its image %s is for Kubernetes 1.%d, which is %s than the control plane's %s", i.ID, kubelet, relation, d.Cluster.Value.Version).
				with(d.Images.Source+": "+i.Name, d.Cluster.Source).explaining(KubeletFlag, KubeletConfig).
				mend(familyImages(c).With("an image for %s", d.Cluster.Value.Version)))
		}
	}
	return out
}

// Package boot checks whether an instance boots: its image, clock, disk, swap and metadata, and the user data that
// starts a kubelet.
//
// In: an index.Index.
// Out: findings of the checks BOOT and IMDS.
// Never: a network call, a reading of the clock, or a verdict without evidence.
package boot

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/joiner-sh/joiner/internal/diagnosis"
	"github.com/joiner-sh/joiner/internal/diagnosis/fix"
	"github.com/joiner-sh/joiner/internal/diagnosis/index"
	"github.com/joiner-sh/joiner/internal/diagnosis/nodeclass"
)

// Checks returns the checks BOOT and IMDS.
func Checks() []index.Check {
	symptomCheck := func(id, title string, c consoleCheck) index.Check {
		return index.Check{ID: id, Title: title, Layer: diagnosis.LayerBoot, Judge: func(ix *index.Index) []diagnosis.Finding {
			return append(nodeclass.Problems(ix, id), judgeSymptom(ix, id, c)...)
		}}
	}
	fallbackCheck := func(id, title string, c consoleCheck) index.Check {
		return index.Check{ID: id, Title: title, Layer: diagnosis.LayerBoot, Fallback: true, Judge: func(ix *index.Index) []diagnosis.Finding {
			return judgeSymptom(ix, id, c)
		}}
	}
	return []index.Check{
		{ID: "BOOT-1", Title: "the controller has the cluster's current endpoint", Layer: diagnosis.LayerBoot, Judge: judgeEndpointSetting},
		symptomCheck("BOOT-2", "the cluster's certificate authority is trusted", consoleCheck{[]diagnosis.Symptom{diagnosis.Untrusted},
			"the kubelet does not trust the API server's certificate: the user data has another cluster's certificate authority, or starts the bootstrap a second time without a certificate authority",
			func(ix *index.Index, class string) []fix.Step {
				return []fix.Step{fix.Edit(fix.NodeClass(class)).With("in spec.userData write the certificate authority of the cluster"),
					fix.Call("eks", "describe-cluster", fix.P("--name", fix.ClusterName(ix.Evidence.Name)), ix.RegionParam(),
						fix.P("--query", fix.Text("cluster.certificateAuthority.data")))}
			}}),
		symptomCheck("BOOT-3", "the instance's clock is correct", consoleCheck{[]diagnosis.Symptom{diagnosis.ClockWrong},
			"the instance's clock is wrong, so AWS and the API server refuse what it signs",
			func(_ *index.Index, class string) []fix.Step {
				return []fix.Step{fix.Edit(fix.NodeClass(class)).With("in spec.userData remove changes of chrony's configuration, or in spec.amiSelectorTerms select an image whose chrony uses the server 169.254.169.123")}
			}}),
		{ID: "BOOT-4", Title: "image and AMI family belong together", Layer: diagnosis.LayerBoot, Judge: judgeFamily},
		symptomCheck("BOOT-5", "the image has nodeadm", consoleCheck{[]diagnosis.Symptom{diagnosis.NodeadmAbsent},
			"the image has no nodeadm, and AMI family AL2023 needs it",
			func(_ *index.Index, class string) []fix.Step {
				return []fix.Step{fix.Merge(fix.NodeClass(class),
					fix.At(fix.List{fix.At(fix.Text("al2023@latest"), "alias")}, "spec", "amiSelectorTerms"))}
			}}),
		fallbackCheck("BOOT-6", "nodeadm configures the node", consoleCheck{[]diagnosis.Symptom{diagnosis.NodeadmFailed},
			"nodeadm fails on the instance before it has configured the kubelet",
			func(_ *index.Index, class string) []fix.Step {
				return []fix.Step{fix.Edit(fix.NodeClass(class)).With("correct the part of the NodeConfig in spec.userData that the console names"),
					renderUserData(class)}
			}}),
		symptomCheck("BOOT-7", "the image accepts its user data and joins this cluster with it", consoleCheck{
			[]diagnosis.Symptom{diagnosis.BadSettings},
			"Bottlerocket refuses the settings in the user data, so no kubelet starts",
			func(_ *index.Index, class string) []fix.Step {
				return []fix.Step{fix.Edit(fix.NodeClass(class)).With("correct the setting in spec.userData that the console names")}
			}}),
		{ID: "BOOT-8", Title: "the image's Kubernetes version suits the control plane", Layer: diagnosis.LayerBoot, Judge: judgeSkew},
		symptomCheck("BOOT-9", "the kubelet accepts its flags and configuration",
			consoleCheck{[]diagnosis.Symptom{diagnosis.KubeletFlag, diagnosis.KubeletConfig},
				"the kubelet refuses a flag or its configuration, and does not start",
				func(_ *index.Index, class string) []fix.Step {
					return []fix.Step{fix.Edit(fix.NodeClass(class)).With("remove the setting that the console names from spec.kubelet or spec.userData")}
				}}),
		symptomCheck("BOOT-10", "the image knows the instance type", consoleCheck{[]diagnosis.Symptom{diagnosis.UnknownType},
			"the image is older than the instance type, and does not know how many pods the type takes",
			func(_ *index.Index, class string) []fix.Step {
				return []fix.Step{fix.Edit(fix.NodeClass(class)).With("select a newer image in spec.amiSelectorTerms, or set spec.kubelet.maxPods")}
			}}),
		symptomCheck("BOOT-11", "the instance has no swap", consoleCheck{[]diagnosis.Symptom{diagnosis.SwapOn},
			"the instance has swap, and the kubelet refuses to start with it",
			func(_ *index.Index, class string) []fix.Step {
				return []fix.Step{fix.Edit(fix.NodeClass(class)).With("remove the creation of swap from spec.userData; in the NodePool exclude the types that come with swap, m1 and c1")}
			}}),
		fallbackCheck("BOOT-12", "instances have credentials", consoleCheck{[]diagnosis.Symptom{diagnosis.NoCredentials},
			"the instance has no credentials, so it cannot read the configuration of its cluster",
			func(_ *index.Index, class string) []fix.Step {
				return []fix.Step{fix.Show("get", fix.NodeClass(class), "-o", "jsonpath={.status.instanceProfile}").
					With("then: aws iam get-instance-profile --instance-profile-name PROFILE; the profile must have the node role")}
			}}),
		fallbackCheck("BOOT-13", "scripts of the user data succeed", consoleCheck{[]diagnosis.Symptom{diagnosis.ScriptFailed},
			"a script of the user data fails before the kubelet starts",
			func(_ *index.Index, class string) []fix.Step {
				return []fix.Step{fix.Edit(fix.NodeClass(class)).With("in spec.userData correct the script that the console names"),
					renderUserData(class)}
			}}),
		{ID: "BOOT-16", Title: "EC2's status checks pass", Layer: diagnosis.LayerBoot, Judge: judgeStatus},
		{ID: "IMDS-2", Title: "instances can read their own metadata", Layer: diagnosis.LayerBoot, Judge: judgeMetadata},
		symptomCheck("BOOT-17", "requests to the cluster's own addresses bypass the proxy", consoleCheck{[]diagnosis.Symptom{diagnosis.Proxied},
			"the kubelet calls the API server through a proxy, and the proxy refuses the request",
			func(_ *index.Index, class string) []fix.Step {
				return []fix.Step{fix.Edit(fix.NodeClass(class)).With("in spec.userData add .eks.amazonaws.com and 169.254.169.254 to NO_PROXY")}
			}}),
		symptomCheck("BOOT-14", "the image has a kubelet", consoleCheck{[]diagnosis.Symptom{diagnosis.KubeletAbsent},
			"the image has no kubelet",
			func(_ *index.Index, class string) []fix.Step {
				return []fix.Step{fix.Edit(fix.NodeClass(class)).With("in spec.amiSelectorTerms select an image for EKS, such as alias: al2023@latest")}
			}}),
		symptomCheck("BOOT-15", "the disk is not full", consoleCheck{[]diagnosis.Symptom{diagnosis.DiskFull},
			"the instance's disk is full before its kubelet starts",
			func(_ *index.Index, class string) []fix.Step {
				return []fix.Step{fix.Edit(fix.NodeClass(class)).With("increase the root volume in spec.blockDeviceMappings[].ebs.volumeSize, or change spec.userData to write less")}
			}}),
	}
}

// consoleCheck describes a check whose findings are based on symptoms on consoles.
type consoleCheck struct {
	symptoms []diagnosis.Symptom                            // one of them is enough for a finding
	cause    string                                         // of the finding
	steps    func(ix *index.Index, class string) []fix.Step // the fix if nodeclass.UserDataFix returns none
}

func renderUserData(class string) fix.Step {
	return fix.Joiner(fix.Text("render"), fix.Text("userdata"), fix.Text("--nodeclass"), fix.Name(class),
		fix.Text("--instance-type"), fix.Text("m5.large"))
}

// consequences returns NoCredentials for a wrong clock, which may cause it.
func (c consoleCheck) consequences() []diagnosis.Symptom {
	if slices.Contains(c.symptoms, diagnosis.ClockWrong) {
		return []diagnosis.Symptom{diagnosis.NoCredentials}
	}
	return nil
}

// judgeSymptom returns a finding of the check for each class whose instances show a symptom of c. Instances whose class
// is not known share one finding.
func judgeSymptom(ix *index.Index, check string, c consoleCheck) []diagnosis.Finding {
	seen := ix.OccurrencesOf("", c.symptoms...)
	if gap, ok := ix.ConsoleGap(); ok && len(seen) == 0 {
		return []diagnosis.Finding{gap}
	}
	var out []diagnosis.Finding
	reported := map[string]bool{}
	for _, o := range seen {
		class := o.Instance.Class
		if reported[class] {
			continue
		}
		reported[class] = true
		subject := "EC2NodeClass " + class
		steps := []fix.Step{fix.AdviceStep("the EC2NodeClass of instance %s is not known: docs/checks/%s.md describes the fix", o.Instance.ID, check)}
		if class == "" {
			subject = "instance " + o.Instance.ID
		} else if step, ok := nodeclass.UserDataFix(ix, check, o); ok {
			steps = []fix.Step{step}
		} else {
			steps = c.steps(ix, class)
		}
		out = append(out, diagnosis.ReportBroken(subject, diagnosis.Likely, "%s",
			c.cause).With(index.Lines(ix.OccurrencesOf(o.Instance.Class, c.symptoms...))...).Explaining(c.symptoms...).
			Explaining(diagnosis.NodeadmFailed, diagnosis.ScriptFailed). // either may fail because of any of these problems
			Explaining(c.consequences()...).FixedBy(steps...))
	}
	return out
}

func judgeEndpointSetting(ix *index.Index) []diagnosis.Finding {
	if gap, ok := ix.Evidence.Cluster.Gap("the cluster's endpoint"); ok {
		return []diagnosis.Finding{gap}
	}
	set := ix.Evidence.Controller.Value.Settings["CLUSTER_ENDPOINT"]
	if set == "" || strings.TrimSuffix(set, "/") == strings.TrimSuffix(ix.Evidence.Cluster.Value.Endpoint, "/") {
		return nil
	}
	return []diagnosis.Finding{diagnosis.ReportBroken("", diagnosis.Certain, "nodes join at %s, and the cluster's endpoint is %s: the controller's setting is of a deleted cluster of the same name", set, ix.Evidence.Cluster.Value.Endpoint).
		With(ix.Evidence.Controller.Source+": CLUSTER_ENDPOINT", ix.Evidence.Cluster.Source).Explaining(diagnosis.NoSuchHost,
		diagnosis.TimedOut, diagnosis.Untrusted).
		FixedBy(fix.UnsetEnv(ix.ControllerDeployment(), "CLUSTER_ENDPOINT").With("the controller then reads the endpoint from EKS"))}
}

// familyOf returns the AMI family in the name of an image; empty if the name shows none. isOfficial: the name has the
// form of AWS's own images.
func familyOf(name string) (family string, isOfficial bool) {
	lower := strings.ToLower(name)
	isOfficial = strings.HasPrefix(lower, "amazon-eks-") || strings.HasPrefix(lower, "bottlerocket-aws-") ||
		strings.HasPrefix(lower, "windows_server-")
	switch {
	case strings.Contains(lower, "al2023"):
		return "AL2023", isOfficial
	case strings.HasPrefix(lower, "bottlerocket"):
		return "Bottlerocket", isOfficial
	case strings.HasPrefix(lower, "windows_server-2019"):
		return "Windows2019", isOfficial
	case strings.HasPrefix(lower, "windows_server-2022"):
		return "Windows2022", isOfficial
	case strings.HasPrefix(lower, "windows_server-2025"):
		return "Windows2025", isOfficial
	case strings.HasPrefix(lower, "amazon-eks-node-"), strings.HasPrefix(lower, "amazon-eks-gpu-node-"),
		strings.HasPrefix(lower, "amazon-eks-arm64-node-"):
		return "AL2", isOfficial
	}
	return "", false
}

// judgeFamily checks that the image of a class belongs to the class's AMI family. An image does not understand the user
// data of other families.
func judgeFamily(ix *index.Index) []diagnosis.Finding {
	if gap, ok := ix.Evidence.Classes.Gap("the EC2NodeClasses"); ok {
		return []diagnosis.Finding{gap}
	}
	out := nodeclass.Problems(ix, "BOOT-4")
	for _, c := range ix.Evidence.Classes.Value {
		subject := "EC2NodeClass " + c.Name
		seen := ix.OccurrencesOf(c.Name, diagnosis.UnknownPart, diagnosis.ScriptAbsent)
		at := slices.IndexFunc(ix.Evidence.Images.Value, func(i diagnosis.Image) bool {
			family, _ := familyOf(i.Name)
			isOfClass := slices.Contains(c.Images, i.ID) || slices.Contains(c.ImageIDs, i.ID)
			return isOfClass && family != "" && c.Family != "" && c.Family != "Custom" && family != c.Family
		})
		switch {
		case at >= 0:
			i := ix.Evidence.Images.Value[at]
			family, isOfficial := familyOf(i.Name)
			certainty := diagnosis.Likely
			if isOfficial { // the names of AWS's own images are reliable
				certainty = diagnosis.Certain
			}
			out = append(out, diagnosis.ReportBroken(subject, certainty,
				"its AMI family is %s, and its image %s is for %s: the image does not understand the user data", c.Family, i.ID, family).
				With(ix.Evidence.Images.Source+": "+i.ID+" is "+
					i.Name).With(index.Lines(seen)...).Explaining(diagnosis.UnknownPart, diagnosis.ScriptAbsent,
				diagnosis.NodeadmFailed, diagnosis.ScriptFailed).FixedBy(setFamily(c, family)))
		case len(seen) > 0:
			out = append(out, diagnosis.ReportBroken(subject, diagnosis.Likely,
				"its image does not understand the user data of AMI family %s", diagnosis.OrElse(c.Family, "(not known)")).
				With(index.Lines(seen)...).Explaining(diagnosis.UnknownPart, diagnosis.ScriptAbsent, diagnosis.NodeadmFailed,
				diagnosis.ScriptFailed).FixedBy(familyFix(c, seen)))
		}
	}
	return out
}

func setFamily(c diagnosis.Class, family string) fix.Step {
	return fix.Merge(fix.NodeClass(c.Name), fix.At(fix.Family(family), "spec", "amiFamily"))
}

// familyFix returns a step that sets the AMI family that the console shows, or else selects AWS's image for the family.
func familyFix(c diagnosis.Class, seen []index.Occurrence) fix.Step {
	if family := nodeclass.FamilyOnConsole(seen); family != "" && family != c.Family {
		return setFamily(c, family).With("the console shows that the image is for %s", family)
	}
	edit := fix.Edit(fix.NodeClass(c.Name)).With("spec.amiFamily must be the family of the image; with Custom, spec.userData must start the kubelet itself")
	return nodeclass.AWSImageOr(c, edit, func(s fix.Step) fix.Step {
		return s.With("AWS's own image; or set spec.amiFamily to the family of your image")
	})
}

// minorOf returns the Kubernetes minor version in the name of an image, for example 31 in
// amazon-eks-node-1.31-v20250501; false if the name has none.
func minorOf(name string) (int, bool) {
	for _, part := range strings.Split(name, "-") {
		major, minor, ok := strings.Cut(part, ".")
		if n, err := strconv.Atoi(minor); ok && major == "1" && err == nil && n >= 10 && n < 100 { // the first version of EKS was 1.10
			return n, true
		}
	}
	return 0, false
}

// judgeSkew checks that the kubelet of an image is not newer than the control plane, and at most three minor versions
// older.
func judgeSkew(ix *index.Index) []diagnosis.Finding {
	if gap, ok := ix.Evidence.Cluster.Gap("the cluster's version"); ok {
		return []diagnosis.Finding{gap}
	}
	if gap, ok := ix.Evidence.Images.Gap("the images"); ok {
		return []diagnosis.Finding{gap}
	}
	_, minor, _ := strings.Cut(ix.Evidence.Cluster.Value.Version, ".")
	controlPlane, err := strconv.Atoi(minor)
	if err != nil {
		return []diagnosis.Finding{{
			Verdict:   diagnosis.Unknown,
			Certainty: diagnosis.Certain,
			Cause:     fmt.Sprintf("the cluster's version %q is not a version", ix.Evidence.Cluster.Value.Version),
		}}
	}
	var out []diagnosis.Finding
	for _, c := range ix.Evidence.Classes.Value {
		for _, i := range ix.Evidence.Images.Value {
			kubelet, ok := minorOf(i.Name)
			const maxSkew = 3 // minor versions
			isOfClass := slices.Contains(c.Images, i.ID) || slices.Contains(c.ImageIDs, i.ID)
			isSupported := kubelet <= controlPlane && kubelet >= controlPlane-maxSkew
			if !ok || !isOfClass || isSupported {
				continue
			}
			relation := "newer"
			if kubelet < controlPlane {
				relation = fmt.Sprintf("more than %d versions older", maxSkew)
			}
			out = append(out, diagnosis.ReportBroken("EC2NodeClass "+c.Name, diagnosis.Likely,
				"its image %s is for Kubernetes 1.%d, which is %s than the control plane's version %s", i.ID, kubelet, relation,
				ix.Evidence.Cluster.Value.Version).
				With(ix.Evidence.Images.Source+": "+i.Name, ix.Evidence.Cluster.Source).Explaining(diagnosis.KubeletFlag, diagnosis.KubeletConfig).
				FixedBy(nodeclass.FamilyImages(c).With("an image for %s", ix.Evidence.Cluster.Value.Version)))
		}
	}
	return out
}

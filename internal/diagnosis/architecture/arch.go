// Package architecture checks whether NodePools, AMIs, programs and pods agree on the CPU architecture and on labels.
//
// In: an index.Index.
// Out: findings of the checks ARCH.
// Never: a network call, a reading of the clock, or a verdict without evidence.
package architecture

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/joiner-sh/joiner/internal/diagnosis"
	"github.com/joiner-sh/joiner/internal/diagnosis/fix"
	"github.com/joiner-sh/joiner/internal/diagnosis/index"
	"github.com/joiner-sh/joiner/internal/diagnosis/nodeclass"
)

// Checks returns the checks ARCH.
func Checks() []index.Check {
	return []index.Check{
		{ID: "ARCH-1", Title: "a NodePool has instance types of each architecture that it allows", Layer: diagnosis.LayerPlan,
			Judge: judgeInstanceTypes},
		{ID: "ARCH-2", Title: "images are for the architectures that the NodePools launch", Layer: diagnosis.LayerPlan, Judge: judgeImageArch},
		{ID: "ARCH-3", Title: "programs in user data are for the instance's architecture", Layer: diagnosis.LayerBoot, Judge: judgeProgramArch},
		{ID: "ARCH-4", Title: "a NodePool sets the labels that pods select", Layer: diagnosis.LayerPlan, Judge: judgePodLabels},
		{ID: "ARCH-5", Title: "container images exist for the architecture of the node", Layer: diagnosis.LayerReady, Judge: judgePodImages},
		{ID: "ARCH-6", Title: "pods in a pool of several architectures can run on each", Layer: diagnosis.LayerReady, Judge: judgeMixedPool},
		{ID: "ARCH-7", Title: "A1 instances get an image that runs on them", Layer: diagnosis.LayerPlan, Judge: judgeA1},
	}
}

// judgeInstanceTypes reports NodePools that have no instance type for an architecture that they allow, with the first
// requirement that leaves no such type.
func judgeInstanceTypes(ix *index.Index) []diagnosis.Finding {
	if gap, ok := ix.Evidence.Pools.Gap("the NodePools"); ok {
		return []diagnosis.Finding{gap}
	}
	var out []diagnosis.Finding
	for _, p := range ix.Evidence.Pools.Value {
		found := judgePoolInstanceTypes(ix, p)
		if len(found) == 0 {
			found = []diagnosis.Finding{diagnosis.ReportFine("NodePool " + p.Name)}
		}
		out = append(out, found...)
	}
	return out
}

func isWindows(c diagnosis.Class) bool { return strings.HasPrefix(c.Family, "Windows") }

// judgePoolInstanceTypes returns the findings of judgeInstanceTypes about one pool; none if the pool has instance types
// of each architecture.
func judgePoolInstanceTypes(ix *index.Index, p diagnosis.Pool) []diagnosis.Finding {
	subject := "NodePool " + p.Name
	if len(p.Steps) == 0 {
		return []diagnosis.Finding{{
			Verdict:   diagnosis.Unknown,
			Certainty: diagnosis.Certain,
			Subject:   subject,
			Cause:     "the instance types that the NodePool allows were not counted",
		}}
	}
	total := func(s diagnosis.Step) int {
		n := 0
		for _, left := range s.Left {
			n += left
		}
		return n
	}
	last := p.Steps[len(p.Steps)-1]
	if total(last) == 0 {
		i := slices.IndexFunc(p.Steps, func(s diagnosis.Step) bool { return total(s) == 0 })
		before := "all types of the catalog"
		if i > 0 {
			before = fmt.Sprintf("%d types", total(p.Steps[i-1]))
		}
		return []diagnosis.Finding{diagnosis.ReportBroken(subject, diagnosis.Certain,
			"no instance type is left after the requirement %s; before it there were %s", p.Steps[i].Name, before).
			With(typeCountsLine(p.Steps)).FixedBy(loosen(p, p.Steps[i].Name))}
	}
	var out []diagnosis.Finding
	class, _ := ix.Evidence.Class(p.Class)
	for _, arch := range p.Architectures() {
		if last.Left[arch] > 0 || arch != "amd64" && isWindows(class) { // Windows runs only on amd64, whatever a pool allows
			continue
		}
		i := slices.IndexFunc(p.Steps, func(s diagnosis.Step) bool { return s.Left[arch] == 0 })
		out = append(out, diagnosis.ReportSuspicious(subject, diagnosis.Certain,
			"no %s instance type is left after the requirement %s, although the NodePool allows that architecture", arch, p.Steps[i].Name).
			With(typeCountsLine(p.Steps)).FixedBy(withoutArchitecture(p, arch, last)))
	}
	return out
}

// loosen returns the step after which a NodePool without instance types allows some. The step makes the smallest
// change, p.Loosened. If p.Loosened is nil, the step removes the requirement.
func loosen(p diagnosis.Pool, requirement string) fix.Step {
	l := p.Loosened
	if l == nil {
		return removeNamed(p, requirement)
	}
	if l.Key == diagnosis.LabelArch && l.Index < len(p.Requirements) {
		// The architectures in the requirement have no instance types, so the new value replaces them.
		return setValues(p, l.Index, fix.List{fix.Architecture(l.Value)})
	}
	return fix.JSONPatch(fix.NodePool(p.Name), keyTest(l.Index, l.Key),
		fix.Fields{
			"op":    fix.Text("add"),
			"path":  fix.Path("/spec/template/spec/requirements/%d/values/-", l.Index),
			"value": fix.LabelValue(l.Value),
		})
}

func typeCountsLine(steps []diagnosis.Step) string {
	var out []string
	for _, s := range steps {
		var left []string
		for _, arch := range slices.Sorted(maps.Keys(s.Left)) {
			left = append(left, fmt.Sprintf("%d %s", s.Left[arch], arch))
		}
		out = append(out, s.Name+" → "+diagnosis.OrElse(strings.Join(left, " + "), "none"))
	}
	return strings.Join(out, "; ")
}

// launchedArchitectures returns, sorted, the architectures that the pools of a class allow and for which instance types
// are left; nil if not known.
func launchedArchitectures(ix *index.Index, class string) []string {
	var out []string
	for _, p := range ix.Evidence.Pools.Value {
		if p.Class != class {
			continue
		}
		all := p.Architectures()
		if len(p.Steps) > 0 {
			last := p.Steps[len(p.Steps)-1].Left
			if all == nil {
				all = slices.Sorted(maps.Keys(last))
			}
			all = slices.DeleteFunc(slices.Clone(all), func(a string) bool { return last[a] == 0 })
		}
		out = append(out, all...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func judgeImageArch(ix *index.Index) []diagnosis.Finding {
	if gap, ok := ix.Evidence.Classes.Gap("the EC2NodeClasses"); ok {
		return []diagnosis.Finding{gap}
	}
	if gap, ok := ix.Evidence.Images.Gap("the images"); ok {
		return []diagnosis.Finding{gap}
	}
	var out []diagnosis.Finding
	for _, c := range ix.Evidence.Classes.Value {
		subject := "EC2NodeClass " + c.Name
		hasImage := map[string]bool{} // by architecture
		imageLines := []string{}      // one line of evidence for each image
		for _, i := range ix.Evidence.Images.Value {
			if slices.Contains(c.Images, i.ID) || slices.Contains(c.ImageIDs, i.ID) {
				hasImage[i.Architecture] = true
				imageLines = append(imageLines, i.ID+" is for "+i.Architecture)
			}
		}
		if len(hasImage) == 0 {
			out = append(out, diagnosis.ReportFine(subject)) // LAUNCH-8 reports a class without images
			continue
		}
		launched := launchedArchitectures(ix, c.Name)
		for _, arch := range launched {
			if hasImage[arch] {
				continue
			}
			f := diagnosis.ReportBroken(subject, diagnosis.Certain,
				"its pools launch %s instances, and none of its images is for them", arch).With(imageLines...).
				Explaining(diagnosis.OtherArch).FixedBy(imageFor(c, arch))
			if slices.ContainsFunc(launched, func(a string) bool { return hasImage[a] }) {
				f.Verdict = diagnosis.Suspicious // instances of an architecture with an image still join
			}
			out = append(out, f)
		}
	}
	return out
}

// imageFor is the step that adds an image for an architecture. For a family with images for all architectures, the step
// selects AWS's images.
func imageFor(c diagnosis.Class, arch string) fix.Step {
	if c.Family != "AL2023" && c.Family != "Bottlerocket" {
		return fix.Edit(fix.NodeClass(c.Name)).With("add an image for %s to spec.amiSelectorTerms, or narrow "+
			diagnosis.LabelArch+" in the NodePool", arch)
	}
	return nodeclass.FamilyImages(c).With("AWS's own image; or add your image for %s", arch)
}

func judgeProgramArch(ix *index.Index) []diagnosis.Finding {
	out := nodeclass.Problems(ix, "ARCH-3")
	if gap, ok := ix.Evidence.UserData.Gap("user data"); ok && len(ix.OccurrencesOf("", diagnosis.OtherArch)) == 0 {
		return []diagnosis.Finding{gap}
	}
	for _, c := range ix.Evidence.Classes.Value {
		if seen := ix.OccurrencesOf(c.Name, diagnosis.OtherArch); len(seen) > 0 {
			// The broken finding replaces suspicious findings that predicted the problem from the user data.
			out = slices.DeleteFunc(out, func(f diagnosis.Finding) bool {
				return f.Subject == "EC2NodeClass "+c.Name && f.Verdict == diagnosis.Suspicious
			})
			out = append(out, diagnosis.ReportBroken("EC2NodeClass "+c.Name, diagnosis.Likely, "the user data of EC2NodeClass %s runs a program for an architecture other than that of instance type %s", c.Name, seen[0].Instance.Type).
				With(index.Lines(seen)...).Explaining(diagnosis.OtherArch, diagnosis.ScriptFailed).
				FixedBy(nodeclass.UserDataFixOr(ix, "ARCH-3", seen[0],
					fix.Edit(fix.NodeClass(c.Name)).With("in spec.userData fetch programs for what uname -m prints, or narrow "+
						diagnosis.LabelArch+" in the NodePool"))))
		}
	}
	return out
}

// judgePodLabels checks that, for each user-defined label that a pod selects, a NodePool or a node has the label.
func judgePodLabels(ix *index.Index) []diagnosis.Finding {
	if gap, ok := ix.Evidence.Pools.Gap("the NodePools"); ok {
		return []diagnosis.Finding{gap}
	}
	if gap, ok := ix.Evidence.Pods.Gap("the pods that do not run"); ok {
		return []diagnosis.Finding{gap}
	}
	var out []diagnosis.Finding
	reported := map[string]bool{} // by "key=value"
	for _, pod := range ix.Evidence.Pods.Value {
		if pod.Node != "" || pod.IsOfDaemonSet() {
			continue
		}
		for _, key := range slices.Sorted(maps.Keys(pod.Selector)) {
			value := pod.Selector[key]
			isOnNode := slices.ContainsFunc(ix.Evidence.Nodes.Value, func(n diagnosis.Node) bool { return n.Labels[key] == value })
			if isOnNode || diagnosis.IsWellKnown(key) || reported[key+"="+value] ||
				slices.ContainsFunc(ix.Evidence.Pools.Value, func(p diagnosis.Pool) bool { return canHaveLabel(p, key, value) }) {
				continue
			}
			reported[key+"="+value] = true
			out = append(out, noSuchLabel(ix, pod, key, value))
		}
	}
	return out
}

func canHaveLabel(p diagnosis.Pool, key, value string) bool {
	if v, ok := p.Labels[key]; ok {
		return v == value
	}
	return slices.ContainsFunc(p.Requirements, func(r diagnosis.Requirement) bool {
		switch {
		case r.Key != key:
			return false
		case r.Operator == "In":
			return slices.Contains(r.Values, value)
		case r.Operator == "NotIn":
			return !slices.Contains(r.Values, value)
		}
		return r.Operator == "Exists"
	})
}

// noSuchLabel returns the finding about a pod that selects a label that no NodePool has. The fix changes the last
// NodePool with the same key or label value, or else the first NodePool.
func noSuchLabel(ix *index.Index, pod diagnosis.Pod, key, value string) diagnosis.Finding {
	f := diagnosis.ReportBroken("pod "+pod.String(), diagnosis.Likely,
		"the pod selects nodes with %s=%s, and no NodePool gives its nodes that label", key, value).
		With(fmt.Sprintf("%s: %d, and none has the label in its labels or requirements", ix.Evidence.Pools.Source, len(ix.Evidence.Pools.Value)))
	if len(ix.Evidence.Pools.Value) == 0 {
		return f.With("there is no NodePool").
			FixedBy(fix.Apply("nodepool.yaml").With("docs/examples has one; with template.metadata.labels %s: %s", key, value))
	}
	closest := ix.Evidence.Pools.Value[0]
	for _, p := range ix.Evidence.Pools.Value {
		for k, v := range p.Labels {
			if k == key || v == value {
				closest = p
			}
		}
		if slices.ContainsFunc(p.Requirements, func(r diagnosis.Requirement) bool { return r.Key == key }) {
			closest = p
		}
	}
	for k := range closest.Labels { // the same key in another case, or the value under any key
		if strings.EqualFold(k, key) && k != key || closest.Labels[k] == value {
			f = f.With(fmt.Sprintf("NodePool %s has %s=%s", closest.Name, k, closest.Labels[k]))
			break
		}
	}
	if i := slices.IndexFunc(closest.Requirements, func(r diagnosis.Requirement) bool { return r.Key == key }); i >= 0 {
		return f.With(fmt.Sprintf("NodePool %s requires %s", closest.Name, closest.Requirements[i])).FixedBy(admit(closest, i, value))
	}
	if present, ok := closest.Labels[key]; ok { // other pods may select the NodePool's nodes by the present value
		return f.FixedBy(fix.Edit(fix.NodePool(closest.Name)).
			With("its nodes have %s=%s; or add a NodePool whose nodes have %[1]s=%[3]s", key, present, value))
	}
	return f.FixedBy(fix.Merge(fix.NodePool(closest.Name),
		fix.At(fix.Labels{Key: fix.LabelKey(key), Value: fix.LabelValue(value)}, "spec", "template", "metadata", "labels")))
}

// imageMismatch returns the message or event which shows that an image of a pod is for another architecture; false if
// there is none.
func imageMismatch(p diagnosis.Pod) (string, bool) {
	all := slices.Concat(p.Messages, p.Events)
	i := slices.IndexFunc(all, func(m string) bool {
		return strings.Contains(m, "no match for platform") || strings.Contains(m, "xec format error") ||
			strings.Contains(m, "no matching manifest for")
	})
	if i < 0 {
		return "", false
	}
	return all[i], true
}

func judgePodImages(ix *index.Index) []diagnosis.Finding {
	if gap, ok := ix.Evidence.Pods.Gap("the pods that do not run"); ok {
		return []diagnosis.Finding{gap}
	}
	var out []diagnosis.Finding
	reported := map[string]bool{} // by owner
	for _, p := range ix.Evidence.Pods.Value {
		line, isMismatch := imageMismatch(p)
		owner := diagnosis.OrElse(p.Owner, "pod "+p.String())
		if !isMismatch || reported[owner] {
			continue
		}
		reported[owner] = true
		arch := "the node's architecture"
		if i := slices.IndexFunc(ix.Evidence.Nodes.Value, func(n diagnosis.Node) bool { return n.Name == p.Node }); i >= 0 &&
			ix.Evidence.Nodes.Value[i].Arch != "" {
			arch = ix.Evidence.Nodes.Value[i].Arch
		}
		builtFor := "amd64" // of the image, probably: amd64, except on nodes of amd64
		if arch == builtFor {
			builtFor = "arm64"
		}
		certainty := diagnosis.Likely // tenants control the messages of their pods and the events about their pods
		if ix.IsOfSystem(p) {
			certainty = diagnosis.Certain
		}
		f := diagnosis.ReportBroken("pod "+p.String(), certainty, "an image of %s has no variant for %s", owner,
			arch).With(diagnosis.Shorten(line), "the pod is on node "+p.Node)
		if p.IsOfDaemonSet() {
			f = f.Explaining(diagnosis.NetworkPlugin)
		}
		out = append(out, f.FixedBy(runOn(p, builtFor, arch)))
	}
	return out
}

// runOn returns the step after which the pods of p's owner run on the supported architecture of their image, and not on
// the unsupported one. The pod's author controls the text p.Owner. So a command names the owner only if its kind is
// known and has a pod template.
func runOn(p diagnosis.Pod, supported, unsupported string) fix.Step {
	workload, ok := fix.Workload(p.Namespace, p.Owner)
	switch {
	case !ok && p.Owner == "":
		return fix.AdviceStep("recreate pod %s with a nodeSelector on "+diagnosis.LabelArch+"=%s, or build its image for %s",
			p.String(), supported, unsupported)
	case !ok:
		return fix.AdviceStep("give the pods of %s in namespace %s a nodeSelector on "+diagnosis.LabelArch+
			"=%s, or build their image for %s", p.Owner, p.Namespace, supported, unsupported)
	case strings.HasPrefix(p.Owner, "DaemonSet/"):
		return fix.Edit(workload).With("an image for %s, or a nodeSelector on "+diagnosis.LabelArch, unsupported)
	}
	return fix.Merge(workload, fix.At(fix.Architecture(supported), "spec", "template", "spec", "nodeSelector",
		diagnosis.LabelArch)).With("or build the image for %s", unsupported)
}

// judgeMixedPool reports NodePools that launch several architectures although a pod on their nodes has an image for
// only one.
func judgeMixedPool(ix *index.Index) []diagnosis.Finding {
	if gap, ok := ix.Evidence.Pools.Gap("the NodePools"); ok {
		return []diagnosis.Finding{gap}
	}
	var out []diagnosis.Finding
	for _, p := range ix.Evidence.Pools.Value {
		hasMismatch := slices.ContainsFunc(ix.Evidence.Pods.Value, func(pod diagnosis.Pod) bool {
			_, isMismatch := imageMismatch(pod)
			return isMismatch && slices.ContainsFunc(ix.Evidence.Nodes.Value,
				func(n diagnosis.Node) bool { return n.Name == pod.Node && n.Pool == p.Name })
		})
		if !hasMismatch || len(launchedArchitectures(ix, p.Class)) < 2 || len(p.Architectures()) == 1 {
			continue
		}
		f := diagnosis.ReportSuspicious("NodePool "+p.Name, diagnosis.Possible, "the NodePool launches %s, the cheaper first, and pods without an architecture in their node selector run on any of them", strings.Join(launchedArchitectures(ix, p.Class), " and ")).
			FixedBy(fix.JSONPatch(fix.NodePool(p.Name), fix.Fields{"op": fix.Text("add"), "path": fix.Text("/spec/template/spec/requirements/-"),
				"value": fix.Fields{"key": fix.Text(diagnosis.LabelArch), "operator": fix.Text("In"), "values": fix.List{fix.Text("amd64")}}}))
		f.Follows = "ARCH-5"
		out = append(out, f)
	}
	return out
}

// judgeA1 reports NodePools that name A1 instances in a requirement and whose class has the AMI family AL2023. AL2023
// images use instructions that A1 instances, the first generation of Graviton, do not have.
func judgeA1(ix *index.Index) []diagnosis.Finding {
	if gap, ok := ix.Evidence.Pools.Gap("the NodePools"); ok {
		return []diagnosis.Finding{gap}
	}
	var out []diagnosis.Finding
	for _, p := range ix.Evidence.Pools.Value {
		c, ok := ix.Evidence.Class(p.Class)
		namesA1 := slices.ContainsFunc(p.Requirements, func(r diagnosis.Requirement) bool {
			isFamily := r.Key == "karpenter.k8s.aws/instance-family" && slices.Contains(r.Values, "a1")
			isType := r.Key == "node.kubernetes.io/instance-type" &&
				slices.ContainsFunc(r.Values, func(v string) bool { return strings.HasPrefix(v, "a1.") })
			return r.Operator == "In" && (isFamily || isType)
		})
		if ok && namesA1 && strings.HasPrefix(c.Family, "AL2023") {
			out = append(out, diagnosis.ReportSuspicious("NodePool "+p.Name, diagnosis.Certain,
				"the NodePool allows A1 instances, and Amazon Linux 2023 does not run on them").
				With("EC2NodeClass "+c.Name+": family "+c.Family).Explaining(diagnosis.OtherArch).
				FixedBy(fix.Edit(fix.NodePool(p.Name)).With("exclude a1 in the NodePool's requirements")))
		}
	}
	return out
}

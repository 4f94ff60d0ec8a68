package diagnosis

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/joiner-sh/joiner/internal/diagnosis/fix"
)

func architectureChecks() []Check {
	return []Check{
		{ID: "ARCH-1", Title: "every architecture of a pool has instance types and an image", Layer: LayerPlan, judge: judgeSteps},
		{ID: "ARCH-2", Title: "images are for the architectures of the pools", Layer: LayerPlan, judge: judgeImageArch},
		{ID: "ARCH-3", Title: "user data is for the architecture", Layer: LayerBoot, judge: judgeProgramArch},
		{ID: "ARCH-4", Title: "pods' own labels are offered by a pool", Layer: LayerPlan, judge: judgePodLabels},
		{ID: "ARCH-5", Title: "images of pods exist for the architecture", Layer: LayerReady, judge: judgePodImages},
		{ID: "ARCH-6", Title: "pods in a pool of several architectures can run on each", Layer: LayerReady, judge: judgeMixedPool},
		{ID: "ARCH-7", Title: "A1 instances get an image that runs on them", Layer: LayerPlan, judge: judgeA1},
	}
}

// judgeSteps names the first requirement after which nothing is left, for each architecture.
func judgeSteps(d *desk) []Finding {
	if gap, ok := d.Pools.gap("the NodePools"); ok {
		return []Finding{gap}
	}
	var out []Finding
	for _, p := range d.Pools.Value {
		found := d.judgePoolSteps(p)
		if len(found) == 0 {
			found = []Finding{fine("NodePool " + p.Name)}
		}
		out = append(out, found...)
	}
	return out
}

// isWindows reports whether the instances of a class run Windows.
func (c Class) isWindows() bool { return strings.HasPrefix(c.Family, "Windows") }

func (d *desk) judgePoolSteps(p Pool) []Finding {
	subject := "NodePool " + p.Name
	if len(p.Steps) == 0 {
		return []Finding{{Verdict: Unknown, Certainty: Certain, Subject: subject, Cause: "the instance types that it allows were not counted"}}
	}
	total := func(s Step) int {
		n := 0
		for _, left := range s.Left {
			n += left
		}
		return n
	}
	last := p.Steps[len(p.Steps)-1]
	if total(last) == 0 {
		i := slices.IndexFunc(p.Steps, func(s Step) bool { return total(s) == 0 })
		before := "every type of the catalog"
		if i > 0 {
			before = fmt.Sprintf("%d types", total(p.Steps[i-1]))
		}
		return []Finding{broken(subject, Certain, "no instance type is left after the requirement %s, and there were %s before it", p.Steps[i].Name, before).
			with(stepsLine(p.Steps)).mend(p.loosen(p.Steps[i].Name))}
	}
	var out []Finding
	class, _ := d.class(p.Class)
	for _, arch := range p.architectures() {
		if last.Left[arch] > 0 || arch != "amd64" && class.isWindows() { // Windows is for amd64 alone, whatever else a pool allows
			continue
		}
		i := slices.IndexFunc(p.Steps, func(s Step) bool { return s.Left[arch] == 0 })
		out = append(out, suspicious(subject, Certain, "of the architecture %s that it allows, no instance type is left after the requirement %s", arch, p.Steps[i].Name).
			with(stepsLine(p.Steps)).mend(p.only(arch, last)))
	}
	return out
}

// loosen is the step with the smallest change, or advice if there are several.
func (p Pool) loosen(requirement string) fix.Step {
	m := p.Mend
	if m == nil {
		return p.without(requirement)
	}
	if m.Key == labelArch && m.Index < len(p.Requirements) {
		// The architectures that it allows now have no types, so the new value replaces them.
		return p.values(m.Index, fix.List{fix.Architecture(m.Value)})
	}
	return fix.JSONPatch(fix.NodePool(p.Name), p.still(m.Index, m.Key),
		fix.Fields{"op": fix.Text("add"), "path": fix.Path("/spec/template/spec/requirements/%d/values/-", m.Index), "value": fix.LabelValue(m.Value)})
}

func stepsLine(steps []Step) string {
	var out []string
	for _, s := range steps {
		var left []string
		for _, arch := range slices.Sorted(maps.Keys(s.Left)) {
			left = append(left, fmt.Sprintf("%d %s", s.Left[arch], arch))
		}
		out = append(out, s.Name+" → "+orElse(strings.Join(left, " + "), "none"))
	}
	return strings.Join(out, "; ")
}

// wanted are the architectures of the pools of a class, as far as any is left; nil if pools do not say.
func (d *desk) wanted(class string) []string {
	var out []string
	for _, p := range d.Pools.Value {
		if p.Class != class {
			continue
		}
		all := p.architectures()
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

// judgeImageArch: a class that selects images by hand must have one for each architecture that its pools buy.
func judgeImageArch(d *desk) []Finding {
	if gap, ok := d.Classes.gap("the EC2NodeClasses"); ok {
		return []Finding{gap}
	}
	if gap, ok := d.Images.gap("the images"); ok {
		return []Finding{gap}
	}
	var out []Finding
	for _, c := range d.Classes.Value {
		subject := "EC2NodeClass " + c.Name
		has, names := map[string]bool{}, []string{}
		for _, i := range d.Images.Value {
			if slices.Contains(c.Images, i.ID) || slices.Contains(c.ImageIDs, i.ID) {
				has[i.Architecture] = true
				names = append(names, i.ID+" is for "+i.Architecture)
			}
		}
		if len(has) == 0 {
			out = append(out, fine(subject))
			continue
		}
		for _, arch := range d.wanted(c.Name) {
			if has[arch] {
				continue
			}
			f := broken(subject, Certain, "its pools buy %s instances, and none of its images is for them", arch).with(names...).
				explaining(OtherArch).mend(c.imageFor(arch))
			if len(d.wanted(c.Name)) > 1 && slices.ContainsFunc(d.wanted(c.Name), func(a string) bool { return has[a] }) {
				f.Verdict = Suspicious // the architectures that have an image still launch
			}
			out = append(out, f)
		}
	}
	return out
}

// imageFor is the step that adds an image for an architecture: AWS's images if the family exists for all.
func (c Class) imageFor(arch string) fix.Step {
	if c.Family != "AL2023" && c.Family != "Bottlerocket" {
		return fix.Edit(fix.NodeClass(c.Name)).With("add an image for %s to spec.amiSelectorTerms, or narrow "+labelArch+" in the NodePool", arch)
	}
	return familyImages(c).With("AWS's own image; or add your image for %s", arch)
}

// judgeProgramArch: user data that fetches or runs programs of another architecture.
func judgeProgramArch(d *desk) []Finding {
	out := d.problems("ARCH-3")
	if gap, ok := d.UserData.gap("user data"); ok && len(d.of("", OtherArch)) == 0 {
		return []Finding{gap}
	}
	for _, c := range d.Classes.Value {
		if sights := d.of(c.Name, OtherArch); len(sights) > 0 {
			// The problem that was predicted from the user data has occurred.
			out = slices.DeleteFunc(out, func(f Finding) bool { return f.Subject == "EC2NodeClass "+c.Name && f.Verdict == Suspicious })
			out = append(out, broken("EC2NodeClass "+c.Name, Likely, "the user data of EC2NodeClass %s runs a program that is for another architecture than instance type %s", c.Name, sights[0].instance.Type).
				with(lines(sights)...).explaining(OtherArch, ScriptFailed).
				mend(d.literalOr("ARCH-3", sights[0], fix.Edit(fix.NodeClass(c.Name)).With("in spec.userData fetch programs for what uname -m prints, or narrow "+labelArch+" in the NodePool"))))
		}
	}
	return out
}

// problems are what was found in user data that belongs to a check.
func (d *desk) problems(id string) []Finding {
	var out []Finding
	for _, p := range d.UserData.Value {
		if p.ID != id {
			continue
		}
		f := broken("EC2NodeClass "+p.Class, p.Certainty, "%s", p.Sentence)
		if p.Certainty != Certain {
			f.Verdict = Suspicious
		}
		f = f.with(p.Where).explaining(ScriptFailed)
		if p.Fix != "" && !p.Corrected {
			f = f.with("it should be: " + p.Fix)
		}
		out = append(out, f.mend(d.fixOf(p)))
	}
	return out
}

// wellKnown reports whether a label is set by the system or follows from the instance type.
func wellKnown(key string) bool {
	for _, suffix := range []string{"kubernetes.io", "k8s.io", "karpenter.sh", "karpenter.k8s.aws", "k8s.aws", "eks.amazonaws.com", "joiner.sh"} {
		domain, _, ok := strings.Cut(key, "/")
		if ok && (domain == suffix || strings.HasSuffix(domain, "."+suffix)) {
			return true
		}
	}
	return false
}

// OwnLabels returns the user-defined labels: those of neither Kubernetes, nor a cloud, nor an autoscaler; nil if there are none.
func OwnLabels(labels map[string]string) map[string]string {
	var out map[string]string
	for k, v := range labels {
		if wellKnown(k) {
			continue
		}
		if out == nil {
			out = map[string]string{}
		}
		out[k] = v
	}
	return out
}

// judgePodLabels: a label of the user's own must be offered by some pool, or no node ever has it.
func judgePodLabels(d *desk) []Finding {
	if gap, ok := d.Pools.gap("the NodePools"); ok {
		return []Finding{gap}
	}
	if gap, ok := d.Pods.gap("the pods that do not run"); ok {
		return []Finding{gap}
	}
	var out []Finding
	told := map[string]bool{}
	for _, pod := range d.Pods.Value {
		if pod.Node != "" || pod.isDaemons() {
			continue
		}
		for _, key := range slices.Sorted(maps.Keys(pod.Selector)) {
			value := pod.Selector[key]
			node := slices.ContainsFunc(d.Nodes.Value, func(n Node) bool { return n.Labels[key] == value })
			if node || wellKnown(key) || told[key+"="+value] || slices.ContainsFunc(d.Pools.Value, func(p Pool) bool { return p.offers(key, value) }) {
				continue
			}
			told[key+"="+value] = true
			out = append(out, d.noSuchLabel(pod, key, value))
		}
	}
	return out
}

// offers reports whether nodes of the pool can have the label.
func (p Pool) offers(key, value string) bool {
	if v, ok := p.Labels[key]; ok {
		return v == value
	}
	return slices.ContainsFunc(p.Requirements, func(r Requirement) bool {
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

func (d *desk) noSuchLabel(pod Pod, key, value string) Finding {
	f := broken("pod "+pod.String(), Likely, "the pod selects nodes with %s=%s, and no NodePool gives its nodes that label", key, value).
		with(fmt.Sprintf("%s: %d, and none has it among its labels or requirements", d.Pools.Source, len(d.Pools.Value)))
	if len(d.Pools.Value) == 0 {
		return f.with("there is no NodePool").mend(fix.Apply("nodepool.yaml").With("docs/examples has one; with template.metadata.labels %s: %s", key, value))
	}
	best := d.Pools.Value[0]
	for _, p := range d.Pools.Value {
		for k, v := range p.Labels {
			if k == key || v == value {
				best = p
			}
		}
		if slices.ContainsFunc(p.Requirements, func(r Requirement) bool { return r.Key == key }) {
			best = p
		}
	}
	for k := range best.Labels {
		if strings.EqualFold(k, key) && k != key || best.Labels[k] == value {
			f = f.with(fmt.Sprintf("NodePool %s has %s=%s", best.Name, k, best.Labels[k]))
			break
		}
	}
	if i := slices.IndexFunc(best.Requirements, func(r Requirement) bool { return r.Key == key }); i >= 0 {
		return f.with(fmt.Sprintf("NodePool %s requires %s", best.Name, best.Requirements[i])).mend(best.admit(i, value))
	}
	if now, has := best.Labels[key]; has { // pods of others may be on nodes of the NodePool by that label
		return f.mend(fix.Edit(fix.NodePool(best.Name)).With("its nodes have %s=%s; or add a NodePool whose nodes have %[1]s=%[3]s", key, now, value))
	}
	return f.mend(fix.Merge(fix.NodePool(best.Name), fix.At(fix.Labels{Key: fix.LabelKey(key), Value: fix.LabelValue(value)}, "spec", "template", "metadata", "labels")))
}

// badImage returns the message or event of a pod that shows an image for another architecture.
func badImage(p Pod) (string, bool) {
	all := slices.Concat(p.Messages, p.Events)
	i := slices.IndexFunc(all, func(m string) bool {
		return strings.Contains(m, "no match for platform") || strings.Contains(m, "xec format error") || strings.Contains(m, "no matching manifest for")
	})
	if i < 0 {
		return "", false
	}
	return all[i], true
}

// judgePodImages: a pod on a node that its image was not built for.
func judgePodImages(d *desk) []Finding {
	if gap, ok := d.Pods.gap("the pods that do not run"); ok {
		return []Finding{gap}
	}
	var out []Finding
	told := map[string]bool{}
	for _, p := range d.Pods.Value {
		line, bad := badImage(p)
		owner := orElse(p.Owner, "pod "+p.String())
		if !bad || told[owner] {
			continue
		}
		told[owner] = true
		arch := "the node's architecture"
		if i := slices.IndexFunc(d.Nodes.Value, func(n Node) bool { return n.Name == p.Node }); i >= 0 && d.Nodes.Value[i].Arch != "" {
			arch = d.Nodes.Value[i].Arch
		}
		other := "amd64" // for which most images are
		if arch == other {
			other = "arm64"
		}
		certainty := Likely // tenants control the messages of their pods and events about them
		if d.isOfSystem(p) {
			certainty = Certain
		}
		f := broken("pod "+p.String(), certainty, "an image of %s has no variant for %s", owner, arch).with(quote(line), "it is on node "+p.Node)
		if p.isDaemons() {
			f = f.explaining(NetworkPlugin)
		}
		out = append(out, f.mend(p.runOn(other, arch)))
	}
	return out
}

// runOn is the step that moves pods like this one to an architecture that their image supports. The owner is text that the pod's author
// controls, so a command names only known kinds whose pods a patch changes.
func (p Pod) runOn(good, bad string) fix.Step {
	workload, ok := fix.Workload(p.Namespace, p.Owner)
	switch {
	case !ok && p.Owner == "":
		return fix.Say("create pod %s anew with a nodeSelector on "+labelArch+"=%s, or build its image for %s", p.String(), good, bad)
	case !ok:
		return fix.Say("give the pods of %s in namespace %s a nodeSelector on "+labelArch+"=%s, or build their image for %s", p.Owner, p.Namespace, good, bad)
	case strings.HasPrefix(p.Owner, "DaemonSet/"):
		return fix.Edit(workload).With("an image for %s, or a nodeSelector on "+labelArch, bad)
	}
	return fix.Merge(workload, fix.At(fix.Architecture(good), "spec", "template", "spec", "nodeSelector", labelArch)).With("or build the image for %s", bad)
}

// judgeMixedPool is a hint where images turned out to be for one architecture only: the pool buys both.
func judgeMixedPool(d *desk) []Finding {
	if gap, ok := d.Pools.gap("the NodePools"); ok {
		return []Finding{gap}
	}
	var out []Finding
	for _, p := range d.Pools.Value {
		bad := slices.ContainsFunc(d.Pods.Value, func(pod Pod) bool {
			_, is := badImage(pod)
			return is && slices.ContainsFunc(d.Nodes.Value, func(n Node) bool { return n.Name == pod.Node && n.Pool == p.Name })
		})
		if !bad || len(d.wanted(p.Class)) < 2 || len(p.architectures()) == 1 {
			continue
		}
		f := suspicious("NodePool "+p.Name, Possible, "it buys %s, the cheaper first, and pods without an architecture in their selector land on either", strings.Join(d.wanted(p.Class), " and ")).
			mend(fix.JSONPatch(fix.NodePool(p.Name), fix.Fields{"op": fix.Text("add"), "path": fix.Text("/spec/template/spec/requirements/-"),
				"value": fix.Fields{"key": fix.Text(labelArch), "operator": fix.Text("In"), "values": fix.List{fix.Text("amd64")}}}))
		f.Follows = "ARCH-5"
		out = append(out, f)
	}
	return out
}

// judgeA1: the first Graviton lacks instructions that Amazon Linux 2023 is built with.
func judgeA1(d *desk) []Finding {
	if gap, ok := d.Pools.gap("the NodePools"); ok {
		return []Finding{gap}
	}
	var out []Finding
	for _, p := range d.Pools.Value {
		c, ok := d.class(p.Class)
		only := slices.ContainsFunc(p.Requirements, func(r Requirement) bool {
			family := r.Key == "karpenter.k8s.aws/instance-family" && slices.Contains(r.Values, "a1")
			kind := r.Key == "node.kubernetes.io/instance-type" && slices.ContainsFunc(r.Values, func(v string) bool { return strings.HasPrefix(v, "a1.") })
			return r.Operator == "In" && (family || kind)
		})
		if ok && only && strings.HasPrefix(c.Family, "AL2023") {
			out = append(out, suspicious("NodePool "+p.Name, Certain, "it allows A1 instances, and Amazon Linux 2023 does not run on them").
				with("EC2NodeClass "+c.Name+": family "+c.Family).explaining(OtherArch).
				mend(fix.Edit(fix.NodePool(p.Name)).With("leave a1 out of its requirements")))
		}
	}
	return out
}

package diagnosis

import (
	"regexp"
	"slices"
	"strings"

	"github.com/joiner-sh/joiner/internal/diagnosis/fix"
)

// correct is the step that corrects the user data of an EC2NodeClass: it is not in the evidence, and may hold secrets, so joiner correct
// writes the patch where it is.
func (d *desk) correct(class string, options ...fix.Value) fix.Step {
	if d.Name != "" {
		options = append([]fix.Value{fix.Text("--cluster-name"), fix.ClusterName(d.Name)}, options...)
	}
	return fix.Correct(class, options...)
}

// ownImage is the step that selects AWS's image for the family of a class, or of Amazon Linux 2023 if AWS no longer releases one. ok is false
// for a class whose user data needs the user's own image.
func (c Class) ownImage() (step fix.Step, ok bool) {
	family := c.Family
	if family == "AL2" {
		family = "AL2023"
	}
	if family == "" || family == "Custom" {
		return fix.Step{}, false
	}
	return fix.Merge(fix.NodeClass(c.Name), fix.At(fix.Fields{"amiFamily": fix.Null(), "amiSelectorTerms": fix.List{fix.At(aliasOf(family), "alias")}}, "spec")), true
}

// ownImageOr is ownImage, or another step if there is none.
func (c Class) ownImageOr(other fix.Step, with func(fix.Step) fix.Step) fix.Step {
	if step, ok := c.ownImage(); ok {
		return with(step)
	}
	return other
}

// putsRight reports whether joiner correct puts all right that a check has found in the user data of a class.
func (d *desk) putsRight(class, check string) bool {
	all := false
	for _, p := range d.UserData.Value {
		if p.Class == class && p.ID == check {
			if all = p.Corrected; !all {
				return false
			}
		}
	}
	return all
}

// fixOf is the step by which what is wrong with user data is corrected, or what a person has to do.
func (d *desk) fixOf(p UserDataProblem) fix.Step {
	edit := fix.Edit(fix.NodeClass(p.Class))
	switch {
	case p.Corrected && p.Where+p.Fix == "":
		return d.correct(p.Class, fix.Text("--check"), fix.Check(p.ID))
	case p.Corrected:
		return d.correct(p.Class, fix.Text("--check"), fix.Check(p.ID)).With("%s", strings.TrimPrefix(strings.TrimSuffix(p.Where+": "+p.Fix, ": "), ": "))
	case p.Fix != "":
		return edit.With("spec.userData should have there: %s", p.Fix)
	}
	return edit.With("correct spec.userData, or leave out what is named above: %s", orElse(p.Where, "the whole of it"))
}

// literalOr is the fix of a symptom as a step, made of what the console says, or another where a person has to find out more.
func (d *desk) literalOr(check string, g sighting, other fix.Step) fix.Step {
	if step, ok := d.literal(check, g); ok {
		return step
	}
	return other
}

// literal is the fix of a symptom as a step, made of what the console says; ok is false where a person has to find out more.
func (d *desk) literal(check string, g sighting) (step fix.Step, ok bool) {
	c, ok := d.class(g.instance.Class)
	if !ok {
		return fix.Step{}, false
	}
	console := g.instance.Console.Value
	switch check {
	case "BOOT-2", "BOOT-17", "ARCH-3":
		if d.putsRight(c.Name, check) {
			return d.correct(c.Name, fix.Text("--check"), fix.Check(check)).With("joiner correct %s --diff shows the lines", c.Name), true
		}
	case "BOOT-3":
		step, ok := c.ownImage()
		return step.With("AWS's own image keeps the time; yours needs chrony with: server 169.254.169.123"), ok
	case "BOOT-6":
		return c.forNodeadm(g.Line)
	case "BOOT-7":
		return withoutUserData(c.Name).With("or correct in it the setting that the console names"), true
	case "BOOT-9":
		if flag := flagOf(g.Line); flag != "" && !isGuard(flag) {
			return d.correct(c.Name, fix.Text("--without-flag"), fix.Flag(flag)).With("or give --%s a value that the kubelet takes", flag), true
		}
	case "BOOT-10":
		return d.morePods(c)
	case "BOOT-11":
		return d.correct(c.Name, fix.Text("--without-program"), fix.Text("swapon")).With("types that come with swap, m1 and c1, are left out in the NodePool"), true
	case "BOOT-13":
		if program := absentProgram(console); program != "" {
			return d.correct(c.Name, fix.Text("--forgive"), fix.Program(program)).With("or add %s to the image", program), true
		}
	case "BOOT-14":
		step, ok := c.ownImage()
		return step.With("AWS's own image has one"), ok
	case "BOOT-15":
		return d.largerRoot(c)
	}
	return fix.Step{}, false
}

// forNodeadm is the fix for nodeadm, whose console line names what is missing.
func (c Class) forNodeadm(line string) (step fix.Step, ok bool) {
	if strings.Contains(line, "executable file not found") || c.DataBytes == 0 {
		step, ok := c.ownImage()
		return step.With("AWS's own image has all programs that nodeadm calls; or add the one that the console names to yours"), ok
	}
	return withoutUserData(c.Name).With("or correct in it what the console names"), true
}

// morePods is what helps an image that does not know how many pods a new instance type takes.
func (d *desk) morePods(c Class) (step fix.Step, ok bool) {
	if c.Family == "Custom" {
		const pods = 29 // the usual minimum of large instances
		return d.correct(c.Name, fix.Text("--max-pods"), fix.Number(pods)).With("%d is the limit of a large instance; or select a newer image, which knows the type", pods), true
	}
	step, ok = c.ownImage()
	return step.With("AWS's newest image knows it; or copy a newer one, or set spec.kubelet.maxPods"), ok
}

// withoutUserData is the step that removes spec.userData from a class: Joiner writes all that instances need to join.
func withoutUserData(class string) fix.Step {
	return fix.JSONPatch(fix.NodeClass(class), fix.Fields{"op": fix.Text("remove"), "path": fix.Text("/spec/userData")})
}

// namedFlag matches the flag that the kubelet names when it rejects one.
var namedFlag = regexp.MustCompile(`"--([a-z][a-z0-9-]+)\\?"|\(--([a-z][a-z0-9-]+)\)|unknown flag: --([a-z][a-z0-9-]+)|(unrecognized feature gate)|--(node-labels)`)

// flagOf returns the flag that a kubelet line is about; empty if it names none.
func flagOf(line string) string {
	m := namedFlag.FindStringSubmatch(line)
	if m == nil {
		return ""
	}
	i := slices.IndexFunc(m[1:], func(part string) bool { return part != "" }) + 1
	if m[i] == "unrecognized feature gate" {
		return "feature-gates"
	}
	return m[i]
}

// isGuard reports whether a flag protects a node. Console output never leads to a step that removes such a flag.
func isGuard(flag string) bool {
	for _, part := range []string{"auth", "taint", "protect", "read-only-port", "seccomp", "tls", "cert", "client-ca", "kubeconfig", "provider-id"} {
		if strings.Contains(flag, part) {
			return true
		}
	}
	return false
}

// shellName matches program names that need no quotes in a shell.
var shellName = regexp.MustCompile(`^[A-Za-z0-9_./-]+$`)

// absentProgram returns the last program that the console output reports as missing; empty if none is.
func absentProgram(console string) string {
	found := ""
	for line := range strings.Lines(console) {
		before, _, ok := strings.Cut(line[:min(len(line), longestLine)], ": command not found")
		if !ok {
			continue
		}
		if name := strings.TrimSpace(before[strings.LastIndexByte(before, ':')+1:]); shellName.MatchString(name) {
			found = name
		}
	}
	return found
}

// largerRoot is the step that gives the root volume of a class more room.
func (d *desk) largerRoot(c Class) (step fix.Step, ok bool) {
	now := c.RootGiB
	for _, i := range d.Images.Value {
		if now == 0 && slices.Contains(c.Images, i.ID) {
			now = i.SnapshotGiB
		}
	}
	const small, usual = 100, 20 // GiB
	if now == 0 {
		now = usual
	}
	wish := 2 * now
	if now < small {
		wish = 10 * now
	}
	if c.RootGiB > 0 {
		return c.resized(wish).With("it has %d GiB now; or let spec.userData write less", now), true
	}
	if c.Family == "Bottlerocket" || strings.HasPrefix(c.Family, "Windows") {
		return fix.Step{}, false // the root is another device
	}
	volume := fix.Fields{"deviceName": fix.Text("/dev/xvda"), "rootVolume": fix.Bool(true), "ebs": fix.Fields{"volumeSize": fix.GiB(wish), "volumeType": fix.Text("gp3")}}
	return fix.Merge(fix.NodeClass(c.Name), fix.At(fix.List{volume}, "spec", "blockDeviceMappings")).With("it has %d GiB now; or let spec.userData write less", now), true
}

// resized is the step that changes the size of the root volume that a class requests.
func (c Class) resized(gib int) fix.Step {
	return fix.JSONPatch(fix.NodeClass(c.Name), fix.Fields{"op": fix.Text("replace"),
		"path": fix.Path("/spec/blockDeviceMappings/%d/ebs/volumeSize", c.RootAt), "value": fix.GiB(gib)})
}

// familyOnConsole is the AMI family of an image, as it shows by what it does not understand; empty where that is not known.
func familyOnConsole(sights []sighting) string {
	for _, g := range sights {
		switch {
		case strings.Contains(g.Line, "application/node.eks.aws"):
			return "AL2"
		case strings.Contains(g.Line, "could not find NodeConfig"), strings.Contains(g.Line, "removed from AL2023"):
			return "AL2023"
		}
	}
	return ""
}

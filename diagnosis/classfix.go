package diagnosis

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// patchOf is the command that changes an EC2NodeClass by a merge patch of its spec, with a remark behind it.
func patchOf(class, spec, remark string) string {
	line := fmt.Sprintf(`kubectl patch ec2nodeclass %s --type merge -p '{"spec":%s}'`, class, spec)
	if remark != "" {
		line += "   # " + remark
	}
	return line
}

// correct is the command that puts the user data of an EC2NodeClass right: it is not in the evidence, and may hold secrets, so joiner correct
// writes the patch where it is.
func (d *desk) correct(class, options, remark string) string {
	if d.Name != "" {
		options = "--cluster-name " + d.Name + " " + options
	}
	line := fmt.Sprintf(`kubectl patch ec2nodeclass %s --type merge -p "$(joiner correct %s %s)"`, class, class, options)
	if remark != "" {
		line += "   # " + remark
	}
	return line
}

// ownImage is the command that selects the image that AWS makes for the family of a class, or of Amazon Linux 2023 where it makes none any more;
// empty for a class whose user data is written for an image of the user's own.
func (c Class) ownImage(remark string) string {
	alias := map[string]string{
		"AL2": "al2023", "AL2023": "al2023", "Bottlerocket": "bottlerocket", "Windows2019": "windows2019", "Windows2022": "windows2022", "Windows2025": "windows2025",
	}[c.Family]
	if alias == "" {
		return ""
	}
	return patchOf(c.Name, `{"amiFamily":null,"amiSelectorTerms":[{"alias":"`+alias+`@latest"}]}`, remark)
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

// fixOf is the command by which what is wrong with user data is put right, or what a person has to do.
func (d *desk) fixOf(p UserDataProblem) []string {
	edit := "kubectl edit ec2nodeclass " + p.Class + "   # "
	switch {
	case p.Corrected:
		return []string{d.correct(p.Class, "--check "+p.ID, strings.TrimPrefix(strings.TrimSuffix(p.Where+": "+p.Fix, ": "), ": "))}
	case p.Fix != "":
		return []string{edit + "spec.userData should have there:", p.Fix}
	}
	return []string{edit + "correct spec.userData, or leave out what is named above: " + orElse(p.Where, "the whole of it")}
}

// literal is the fix of a symptom as a command, made of what the console says; empty where a person has to find out more.
func (d *desk) literal(check string, g sighting) string {
	c, ok := d.class(g.instance.Class)
	if !ok {
		return ""
	}
	console := g.instance.Console.Value
	switch check {
	case "BOOT-2", "BOOT-17", "ARCH-3":
		if d.putsRight(c.Name, check) {
			return d.correct(c.Name, "--check "+check, "joiner correct "+c.Name+" --diff shows the lines")
		}
	case "BOOT-3":
		return c.ownImage("AWS's own image keeps the time; yours needs chrony with: server 169.254.169.123")
	case "BOOT-6":
		return c.forNodeadm(g.Line)
	case "BOOT-7":
		return withoutUserData(c.Name, "or correct in it the setting that the console names")
	case "BOOT-9":
		if flag := flagOf(g.Line); flag != "" {
			return d.correct(c.Name, "--without-flag "+flag, "or give --"+flag+" a value that the kubelet takes")
		}
	case "BOOT-10":
		return d.morePods(c)
	case "BOOT-11":
		return d.correct(c.Name, "--without-program swapon", "types that come with swap, m1 and c1, are left out in the NodePool")
	case "BOOT-13":
		if program := absentProgram(console); program != "" {
			return d.correct(c.Name, "--forgive "+program, "or have the image bring "+program)
		}
	case "BOOT-14":
		return c.ownImage("AWS's own image has one")
	case "BOOT-15":
		return d.largerRoot(c)
	}
	return ""
}

// forNodeadm is what helps nodeadm, which says on the console what it lacks.
func (c Class) forNodeadm(line string) string {
	if strings.Contains(line, "executable file not found") || c.DataBytes == 0 {
		return c.ownImage("AWS's own image brings all that nodeadm calls; or have yours bring what the console names")
	}
	return withoutUserData(c.Name, "or correct in it what the console names")
}

// morePods is what helps an image that does not know how many pods a new instance type takes.
func (d *desk) morePods(c Class) string {
	if c.Family == "Custom" {
		const pods = 29 // of large machines, the least that nodes usually have
		return d.correct(c.Name, fmt.Sprintf("--max-pods %d", pods), fmt.Sprintf("%d is what a large takes; or select a newer image, which knows the type", pods))
	}
	return c.ownImage("AWS's newest image knows it; or copy a newer one, or set spec.kubelet.maxPods")
}

// withoutUserData is the command that takes the user's own user data out of a class: Joiner writes all that instances need to join.
func withoutUserData(class, remark string) string {
	return fmt.Sprintf(`kubectl patch ec2nodeclass %s --type json -p '[{"op":"remove","path":"/spec/userData"}]'   # %s`, class, remark)
}

// namedFlag is how the kubelet names a flag that it does not take.
var namedFlag = regexp.MustCompile(`"--([a-z][a-z0-9-]+)\\?"|\(--([a-z][a-z0-9-]+)\)|unknown flag: --([a-z][a-z0-9-]+)|(unrecognized feature gate)|--(node-labels)`)

// flagOf is the flag that a line of the kubelet is about; empty if it names none.
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

// shellName is a program's name that needs no quotes in a shell.
var shellName = regexp.MustCompile(`^[A-Za-z0-9_./-]+$`)

// absentProgram is the last program that a console says is not there; empty if none is.
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

// largerRoot is the command that gives the root volume of a class more room.
func (d *desk) largerRoot(c Class) string {
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
	remark := fmt.Sprintf("it has %d GiB now; or let spec.userData write less", now)
	if c.RootGiB > 0 {
		return c.resized(wish) + "   # " + remark
	}
	if c.Family == "Bottlerocket" || strings.HasPrefix(c.Family, "Windows") {
		return "" // their root is another device
	}
	return patchOf(c.Name, fmt.Sprintf(`{"blockDeviceMappings":[{"deviceName":"/dev/xvda","rootVolume":true,"ebs":{"volumeSize":"%dGi","volumeType":"gp3"}}]}`, wish), remark)
}

// resized is the command that gives the root volume that a class asks for another size.
func (c Class) resized(gib int) string {
	return fmt.Sprintf(`kubectl patch ec2nodeclass %s --type json -p '[{"op":"replace","path":"/spec/blockDeviceMappings/%d/ebs/volumeSize","value":"%dGi"}]'`, c.Name, c.RootAt, gib)
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

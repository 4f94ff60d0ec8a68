package nodeclass

import (
	"slices"
	"strings"

	"github.com/joiner-sh/joiner/internal/diagnosis"
	"github.com/joiner-sh/joiner/internal/diagnosis/fix"
	"github.com/joiner-sh/joiner/internal/diagnosis/index"
)

// awsImage is the step that selects AWS's newest image of the class's AMI family. For AL2, it selects Amazon Linux
// 2023, because AWS no longer releases images of AL2. ok is false for the family Custom, which needs the user's own
// image, and if the family is not known.
func awsImage(c diagnosis.Class) (step fix.Step, ok bool) {
	family := c.Family
	if family == "AL2" {
		family = "AL2023"
	}
	if family == "" || family == "Custom" {
		return fix.Step{}, false
	}
	return fix.Merge(fix.NodeClass(c.Name),
		fix.At(fix.Fields{"amiFamily": fix.Null(), "amiSelectorTerms": fix.List{fix.At(aliasOf(family), "alias")}}, "spec")), true
}

// AWSImageOr returns change(step), where step is the step of awsImage, or other if awsImage has no step.
func AWSImageOr(c diagnosis.Class, other fix.Step, change func(fix.Step) fix.Step) fix.Step {
	if step, ok := awsImage(c); ok {
		return change(step)
	}
	return other
}

// largerRoot is the step that makes the root volume of a class larger. ok is false if the root device is not known.
func largerRoot(ix *index.Index, c diagnosis.Class) (step fix.Step, ok bool) {
	present := c.RootGiB
	for _, i := range ix.Evidence.Images.Value {
		if present == 0 && slices.Contains(c.Images, i.ID) {
			present = i.SnapshotGiB
		}
	}
	const defaultGiB = 20 // used if the present size is not known
	const smallGiB = 100  // a volume below this size becomes ten times as large, others twice as large
	if present == 0 {
		present = defaultGiB
	}
	size := 2 * present
	if present < smallGiB {
		size = 10 * present
	}
	if c.RootGiB > 0 {
		return ResizeRootVolume(c, size).With("the volume has %d GiB now; or change spec.userData to write less", present), true
	}
	if c.Family == "Bottlerocket" || strings.HasPrefix(c.Family, "Windows") {
		return fix.Step{}, false // the root device is not /dev/xvda
	}
	volume := fix.Fields{
		"deviceName": fix.Text("/dev/xvda"),
		"rootVolume": fix.Bool(true),
		"ebs":        fix.Fields{"volumeSize": fix.GiB(size), "volumeType": fix.Text("gp3")},
	}
	return fix.Merge(fix.NodeClass(c.Name),
		fix.At(fix.List{volume}, "spec",
			"blockDeviceMappings")).With("the volume has %d GiB now; or change spec.userData to write less", present), true
}

// ResizeRootVolume is the step that changes the size of the root volume in a class's spec.blockDeviceMappings.
func ResizeRootVolume(c diagnosis.Class, gib int) fix.Step {
	return fix.JSONPatch(fix.NodeClass(c.Name), fix.Fields{"op": fix.Text("replace"),
		"path": fix.Path("/spec/blockDeviceMappings/%d/ebs/volumeSize", c.RootIndex), "value": fix.GiB(gib)})
}

// FamilyOnConsole returns the AMI family of an image, derived from the user data that the image rejects; empty if not
// known.
func FamilyOnConsole(seen []index.Occurrence) string {
	for _, o := range seen {
		switch {
		case strings.Contains(o.Line, "application/node.eks.aws"):
			return "AL2"
		case strings.Contains(o.Line, "could not find NodeConfig"), strings.Contains(o.Line, "removed from AL2023"):
			return "AL2023"
		}
	}
	return ""
}

// FamilyImages is the step that selects AWS's newest images of the class's AMI family. For Custom or an unknown
// family, the user selects an image.
func FamilyImages(c diagnosis.Class) fix.Step {
	alias := aliasOf(c.Family)
	if c.Family == "" || c.Family == "Custom" {
		return fix.Edit(fix.NodeClass(c.Name)).With("in spec.amiSelectorTerms select an image that exists")
	}
	return fix.Merge(fix.NodeClass(c.Name), fix.At(fix.List{fix.At(alias, "alias")}, "spec", "amiSelectorTerms"))
}

// aliasOf returns the alias of AWS's newest image of an AMI family; an invalid value if the family is not known.
func aliasOf(family string) fix.Value {
	switch family {
	case "AL2":
		return fix.Text("al2@latest")
	case "AL2023":
		return fix.Text("al2023@latest")
	case "Bottlerocket":
		return fix.Text("bottlerocket@latest")
	case "Windows2019":
		return fix.Text("windows2019@latest")
	case "Windows2022":
		return fix.Text("windows2022@latest")
	case "Windows2025":
		return fix.Text("windows2025@latest")
	}
	return fix.Family(family)
}

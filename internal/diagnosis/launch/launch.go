// Package launch checks for reasons why EC2 launches no instance: references, selectors, permissions, quotas, keys and
// volumes.
//
// In: an index.Index.
// Out: findings of the checks LAUNCH.
// Never: a network call, a reading of the clock, or a verdict without evidence.
package launch

import (
	"slices"

	"github.com/joiner-sh/joiner/internal/diagnosis"
	"github.com/joiner-sh/joiner/internal/diagnosis/auth"
	"github.com/joiner-sh/joiner/internal/diagnosis/fix"
	"github.com/joiner-sh/joiner/internal/diagnosis/index"
	"github.com/joiner-sh/joiner/internal/diagnosis/nodeclass"
)

// Checks returns the checks LAUNCH.
func Checks() []index.Check {
	return []index.Check{
		{ID: "LAUNCH-1", Title: "the instance profile exists", Layer: diagnosis.LayerLaunch, Judge: judgeProfile},
		{ID: "LAUNCH-2", Title: "the KMS key of the volumes can be used", Layer: diagnosis.LayerLaunch, Judge: judgeKey},
		{ID: "LAUNCH-3", Title: "the account has the service-linked role for spot", Layer: diagnosis.LayerLaunch, Judge: judgeSpotRole},
		{ID: "LAUNCH-4", Title: "no policy forbids launching", Layer: diagnosis.LayerLaunch, Judge: judgeDenial},
		{ID: "LAUNCH-5", Title: "quotas suffice", Layer: diagnosis.LayerLaunch, Judge: judgeQuota},
		{ID: "LAUNCH-6", Title: "volumes are large enough for their images", Layer: diagnosis.LayerLaunch, Judge: judgeVolumes},
		{ID: "LAUNCH-7", Title: "user data is not longer than EC2 allows", Layer: diagnosis.LayerLaunch, Judge: judgeDataSize},
		{
			ID:    "LAUNCH-8",
			Title: "the EC2NodeClass selects existing subnets, security groups and images",
			Layer: diagnosis.LayerLaunch,
			Judge: judgeSelection,
		},
		{ID: "LAUNCH-9", Title: "the NodePool's EC2NodeClass exists", Layer: diagnosis.LayerPlan, Judge: judgeClassRef},
		{ID: "LAUNCH-10", Title: "images can be launched", Layer: diagnosis.LayerLaunch, Judge: judgeImageState},
	}
}

func judgeProfile(ix *index.Index) []diagnosis.Finding {
	if gap, ok := ix.Evidence.Classes.Gap("the EC2NodeClasses"); ok {
		return []diagnosis.Finding{gap}
	}
	var out []diagnosis.Finding
	for _, c := range ix.Evidence.Classes.Value {
		subject := "EC2NodeClass " + c.Name
		p, wasAsked := ix.Evidence.Profiles[c.Profile]
		switch {
		case c.Role != "" || !wasAsked:
			out = append(out, diagnosis.ReportFine(subject)) // with spec.role, the controller manages the profile
		case c.Profile != "" && p.Is(diagnosis.Missing):
			f := diagnosis.ReportBroken(subject, diagnosis.Certain, "instance profile %s does not exist",
				c.Profile).With(p.Source).With(ix.StatementLines("instance profile", c.Profile)...).Explaining(diagnosis.NoCredentials)
			out = append(out, f.FixedBy(fix.Call("iam", "create-instance-profile",
				fix.P("--instance-profile-name", fix.Profile(c.Profile))), auth.AddRole(ix, c)))
		default:
			if gap, ok := p.Gap("instance profile " + c.Profile); ok {
				gap.Subject = subject
				out = append(out, gap)
				continue
			}
			out = append(out, diagnosis.ReportFine(subject))
		}
	}
	return out
}

// judgeSpotRole reports that the service-linked role for spot is missing, if the controller is not allowed to create
// it.
func judgeSpotRole(ix *index.Index) []diagnosis.Finding {
	const name = "AWSServiceRoleForEC2Spot"
	lines := append(ix.StatementLines("ServiceLinkedRole"), ix.StatementLines("SpotSLRCreationFailed")...)
	if gap, ok := ix.Evidence.Events.Gap("warnings of Kubernetes"); ok && len(lines) == 0 {
		return []diagnosis.Finding{gap}
	}
	if len(lines) == 0 {
		return nil
	}
	f := diagnosis.ReportBroken("", diagnosis.Certain,
		"spot instances need the service-linked role %s, and the controller is not allowed to create it", name).With(lines[0]).
		FixedBy(fix.Call("iam", "create-service-linked-role", fix.P("--aws-service-name", fix.Text("spot.amazonaws.com"))))
	if r := ix.Evidence.Roles[name]; r.Is(diagnosis.Missing) && r.Source != "" {
		f = f.With(r.Source + ": not found")
	}
	return []diagnosis.Finding{f}
}

func judgeVolumes(ix *index.Index) []diagnosis.Finding {
	if gap, ok := ix.Evidence.Images.Gap("the images"); ok {
		return []diagnosis.Finding{gap}
	}
	var out []diagnosis.Finding
	for _, c := range ix.Evidence.Classes.Value {
		for _, i := range ix.Evidence.Images.Value {
			if c.RootGiB > 0 && i.SnapshotGiB > c.RootGiB && slices.Contains(c.Images, i.ID) {
				out = append(out, diagnosis.ReportBroken("EC2NodeClass "+c.Name, diagnosis.Certain,
					"its root volume of %d GiB is smaller than the %d GiB of image %s", c.RootGiB, i.SnapshotGiB, i.ID).
					With(ix.Evidence.Images.Source).With(ix.StatementLines("InvalidBlockDeviceMapping")...).
					FixedBy(nodeclass.ResizeRootVolume(c, i.SnapshotGiB).With("or more")))
			}
		}
	}
	if lines := ix.StatementLines("InvalidBlockDeviceMapping"); len(out) == 0 && len(lines) > 0 {
		out = append(out, diagnosis.ReportBroken("", diagnosis.Certain, "EC2 refuses the block device mappings").With(lines...).
			FixedBy(fix.EditAll("ec2nodeclass").With("correct spec.blockDeviceMappings according to the message")))
	}
	return out
}

// maxUserData is EC2's limit for user data, before base64 encoding.
const maxUserData = 16384

// judgeDataSize reports user data that exceeds EC2's limit. EC2 also counts the few hundred bytes that the AMI family
// adds.
func judgeDataSize(ix *index.Index) []diagnosis.Finding {
	if gap, ok := ix.Evidence.Classes.Gap("the EC2NodeClasses"); ok {
		return []diagnosis.Finding{gap}
	}
	out := nodeclass.Problems(ix, "LAUNCH-7")
	for _, c := range ix.Evidence.Classes.Value {
		isReported := slices.ContainsFunc(out, func(f diagnosis.Finding) bool { return f.Subject == "EC2NodeClass "+c.Name })
		if c.DataBytes > maxUserData && !isReported {
			out = append(out, diagnosis.ReportBroken("EC2NodeClass "+c.Name, diagnosis.Certain,
				"its user data has %d bytes, and EC2 takes %d", c.DataBytes, maxUserData).
				With(ix.Evidence.Classes.Source).
				FixedBy(fix.Edit(fix.NodeClass(c.Name)).With("shorten spec.userData: fetch long parts from S3 at boot")))
		}
	}
	if lines := ix.StatementLines("user data is limited to"); len(out) == 0 && len(lines) > 0 {
		out = append(out, diagnosis.ReportBroken("", diagnosis.Certain,
			"the user data, with the part that the AMI family adds, is larger than EC2's limit of %d bytes", maxUserData).With(lines...).
			FixedBy(fix.EditAll("ec2nodeclass").With("shorten spec.userData: fetch long parts from S3 at boot")))
	}
	return out
}

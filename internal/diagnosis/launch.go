package diagnosis

import (
	"slices"

	"github.com/joiner-sh/joiner/internal/diagnosis/fix"
)

func launchChecks() []Check {
	return []Check{
		{ID: "LAUNCH-1", Title: "the instance profile is there", Layer: LayerLaunch, judge: judgeProfile},
		{ID: "LAUNCH-2", Title: "the volumes' key can be used", Layer: LayerLaunch, judge: judgeKey},
		{ID: "LAUNCH-3", Title: "the account has the service-linked role for spot", Layer: LayerLaunch, judge: judgeSpotRole},
		{ID: "LAUNCH-4", Title: "no policy forbids launching", Layer: LayerLaunch, judge: judgeDenial},
		{ID: "LAUNCH-5", Title: "quotas suffice", Layer: LayerLaunch, judge: judgeQuota},
		{ID: "LAUNCH-6", Title: "volumes are large enough for their images", Layer: LayerLaunch, judge: judgeVolumes},
		{ID: "LAUNCH-7", Title: "user data fits", Layer: LayerLaunch, judge: judgeDataSize},
		{ID: "LAUNCH-8", Title: "the EC2NodeClass selects subnets, security groups and images that are there", Layer: LayerLaunch, judge: judgeSelection},
		{ID: "LAUNCH-9", Title: "the NodePool's EC2NodeClass is there", Layer: LayerPlan, judge: judgeClassRef},
		{ID: "LAUNCH-10", Title: "images can be launched", Layer: LayerLaunch, judge: judgeImageState},
	}
}

// judgeProfile: what spec.instanceProfile names must be there.
func judgeProfile(d *desk) []Finding {
	if gap, ok := d.Classes.gap("the EC2NodeClasses"); ok {
		return []Finding{gap}
	}
	var out []Finding
	for _, c := range d.Classes.Value {
		subject := "EC2NodeClass " + c.Name
		p, asked := d.Profiles[c.Profile]
		switch {
		case c.Role != "" || !asked:
			out = append(out, fine(subject)) // the controller creates the profile and deletes it with the class
		case c.Profile != "" && p.Is(Missing):
			f := broken(subject, Certain, "instance profile %s does not exist", c.Profile).with(p.Source).with(d.messages("instance profile", c.Profile)...).explaining(NoCredentials)
			out = append(out, f.mend(fix.Call("iam", "create-instance-profile", fix.P("--instance-profile-name", fix.Profile(c.Profile))), d.addRole(c)))
		default:
			if gap, ok := p.gap("instance profile " + c.Profile); ok {
				gap.Subject = subject
				out = append(out, gap)
				continue
			}
			out = append(out, fine(subject))
		}
	}
	return out
}

// judgeSpotRole: the first spot instance of an account needs a role that not everybody may make.
func judgeSpotRole(d *desk) []Finding {
	const name = "AWSServiceRoleForEC2Spot"
	said := append(d.messages("ServiceLinkedRole"), d.messages("SpotSLRCreationFailed")...)
	if gap, ok := d.Events.gap("warnings of Kubernetes"); ok && len(said) == 0 {
		return []Finding{gap}
	}
	if len(said) == 0 {
		return nil
	}
	f := broken("", Certain, "spot instances need the service-linked role %s, and the controller may not make it", name).with(said[0]).
		mend(fix.Call("iam", "create-service-linked-role", fix.P("--aws-service-name", fix.Text("spot.amazonaws.com"))))
	if r := d.Roles[name]; r.Is(Missing) && r.Source != "" {
		f = f.with(r.Source + ": not found")
	}
	return []Finding{f}
}

// judgeVolumes: a root volume cannot be smaller than the snapshot that it is made of.
func judgeVolumes(d *desk) []Finding {
	if gap, ok := d.Images.gap("the images"); ok {
		return []Finding{gap}
	}
	var out []Finding
	for _, c := range d.Classes.Value {
		for _, i := range d.Images.Value {
			if c.RootGiB > 0 && i.SnapshotGiB > c.RootGiB && slices.Contains(c.Images, i.ID) {
				out = append(out, broken("EC2NodeClass "+c.Name, Certain, "its root volume of %d GiB is smaller than the %d GiB of image %s", c.RootGiB, i.SnapshotGiB, i.ID).
					with(d.Images.Source).with(d.messages("InvalidBlockDeviceMapping")...).
					mend(c.resized(i.SnapshotGiB).With("or more")))
			}
		}
	}
	if said := d.messages("InvalidBlockDeviceMapping"); len(out) == 0 && len(said) > 0 {
		out = append(out, broken("", Certain, "EC2 refuses the block device mappings").with(said...).
			mend(fix.EditAll("ec2nodeclass").With("correct spec.blockDeviceMappings as the message says")))
	}
	return out
}

// mostData is EC2's limit for user data, before base64 encoding.
const mostData = 16384

// judgeDataSize: what the family adds to a user's own part takes some hundred bytes more.
func judgeDataSize(d *desk) []Finding {
	if gap, ok := d.Classes.gap("the EC2NodeClasses"); ok {
		return []Finding{gap}
	}
	out := d.problems("LAUNCH-7")
	for _, c := range d.Classes.Value {
		read := slices.ContainsFunc(out, func(f Finding) bool { return f.Subject == "EC2NodeClass "+c.Name })
		if c.DataBytes > mostData && !read {
			out = append(out, broken("EC2NodeClass "+c.Name, Certain, "its user data has %d bytes, and EC2 takes %d", c.DataBytes, mostData).
				with(d.Classes.Source).mend(fix.Edit(fix.NodeClass(c.Name)).With("shorten spec.userData: fetch what is long from S3 at boot")))
		}
	}
	if said := d.messages("user data is limited to"); len(out) == 0 && len(said) > 0 {
		out = append(out, broken("", Certain, "the user data, with what the image family adds, is larger than the %d bytes that EC2 takes", mostData).with(said...).
			mend(fix.EditAll("ec2nodeclass").With("shorten spec.userData: fetch what is long from S3 at boot")))
	}
	return out
}

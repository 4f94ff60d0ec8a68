package iam

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsiam "github.com/aws/aws-sdk-go-v2/service/iam"
	iamtypes "github.com/aws/aws-sdk-go-v2/service/iam/types"

	"github.com/joiner-sh/joiner/internal/aws/awserr"
)

// The tags of an instance profile: Karpenter's tags, and the UID of our cluster.
const (
	tagClusterPrefix = "kubernetes.io/cluster/"
	tagClusterName   = "eks:eks-cluster-name"
	tagNodeClass     = "karpenter.k8s.aws/ec2nodeclass"
	tagRegion        = "topology.kubernetes.io/region"
	tagUID           = "joiner.sh/cluster-uid"
)

// NodeClass identifies the EC2NodeClass that an instance profile is for.
type NodeClass struct {
	Name, UID string            // of the EC2NodeClass
	Role      string            // spec.role: the name of a role, optionally with a path, or its ARN
	Tags      map[string]string // spec.tags
}

// Profile is an instance profile, read from IAM.
type Profile struct {
	Name, ARN, Path string            // of the instance profile
	Role            string            // name of the profile's role, without path; empty if the profile has none
	RoleARN         string            // ARN of the role; empty if the profile has none, or if IAM does not return the role yet
	Created         time.Time         // zero if IAM did not return it
	Tags            map[string]string // of the instance profile
}

// ProfileName returns the name of the instance profile for an EC2NodeClass and its role. The name depends on the
// UIDs of cluster and class and on the role. So a change of spec.role leads to a new profile, and running instances
// keep the old one.
func (d *Client) ProfileName(c NodeClass) string {
	sum := sha256.Sum256([]byte(strings.Join([]string{d.cluster.Region, d.cluster.UID, c.UID, roleName(c.Role)}, "/")))
	const maxLength, digits = 128, 20 // IAM's limit for the name, and how many digits of the hash it has
	name := d.cluster.Name
	return name[:min(len(name), maxLength-digits-1)] + "_" + hex.EncodeToString(sum[:])[:digits]
}

// pathPrefix returns the start of the IAM paths of our cluster's instance profiles. The path of a profile continues
// with the UID of its EC2NodeClass.
func (d *Client) pathPrefix() string {
	return "/karpenter/" + d.cluster.Region + "/" + d.cluster.Name + "/"
}

// roleName returns the name in role, which is a name, a name with a path, or an ARN. Instance profiles refer to roles
// by name.
func roleName(role string) string { return role[strings.LastIndex(role, "/")+1:] }

// EnsureProfile returns the instance profile for the EC2NodeClass and its spec.role. If necessary, it creates the
// profile and sets the profile's role. It is idempotent, and makes one call if the profile is correct.
func (d *Client) EnsureProfile(ctx context.Context, c NodeClass) (Profile, error) {
	switch {
	case d.cluster.UID == "" || c.UID == "":
		return Profile{}, errors.New("ensure instance profile: the UID of the cluster or of the NodeClass is empty")
	case !isRoleName(roleName(c.Role)):
		return Profile{}, awserr.Misconfiguredf("CreateInstanceProfile", "InvalidRole",
			"spec.role %q of EC2NodeClass %s is not a role name: set it to the name of an IAM role", c.Role, c.Name)
	}
	name := d.ProfileName(c)
	p, err := d.Profile(ctx, name)
	if awserr.Is(err, awserr.Gone) {
		p, err = d.createProfile(ctx, name, c)
	}
	if err != nil {
		return Profile{}, fmt.Errorf("ensure instance profile of EC2NodeClass %s: %w", c.Name, err)
	}
	if err := d.checkOwner(p); err != nil {
		return Profile{}, fmt.Errorf("ensure instance profile of EC2NodeClass %s: %w", c.Name, err)
	}
	if p.Role != roleName(c.Role) {
		if err := d.setRole(ctx, p, roleName(c.Role)); err != nil {
			return Profile{}, fmt.Errorf("ensure instance profile of EC2NodeClass %s: %w", c.Name, err)
		}
		p.Role, p.RoleARN = roleName(c.Role), ""
	}
	if err := d.checkRolePath(ctx, &p, c); err != nil {
		return Profile{}, fmt.Errorf("ensure instance profile of EC2NodeClass %s: %w", c.Name, err)
	}
	return p, nil
}

func isRoleName(name string) bool {
	const maxLength = 64
	return name != "" && len(name) <= maxLength &&
		strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_+=,.@-") == ""
}

// checkRolePath returns an error if spec.role has a path or is an ARN, but the role of this name in the account has
// another path or ARN. Without this check, users would notice a wrong path or account only when nodes cannot join. It
// sets p.RoleARN if that is empty.
func (d *Client) checkRolePath(ctx context.Context, p *Profile, c NodeClass) error {
	if !strings.Contains(c.Role, "/") {
		return nil
	}
	if p.RoleARN == "" { // IAM may return the role only some seconds after it was added to the profile
		latest, err := d.Profile(ctx, p.Name)
		if err != nil {
			return err
		}
		if latest.RoleARN == "" {
			return &awserr.Error{Op: "GetInstanceProfile", Kind: awserr.Transient, Reason: "ProfileNotSettled",
				Message: "the role of instance profile " + p.Name + " is not visible yet", Hint: "IAM takes some seconds to show a change"}
		}
		p.RoleARN = latest.RoleARN
	}
	if p.RoleARN == c.Role || strings.HasSuffix(p.RoleARN, ":role/"+strings.TrimPrefix(c.Role, "/")) {
		return nil
	}
	return awserr.Misconfiguredf("AddRoleToInstanceProfile", "RolePathMismatch",
		"spec.role of EC2NodeClass %s is %q, but the role of that name in this account is %s: set spec.role to %q",
		c.Name, c.Role, p.RoleARN, p.Role)
}

// Profile returns the instance profile with that name, of any owner. The error is awserr.Gone if it does not exist.
func (d *Client) Profile(ctx context.Context, name string) (Profile, error) {
	out, err := d.iam.GetInstanceProfile(ctx, &awsiam.GetInstanceProfileInput{InstanceProfileName: aws.String(name)})
	if err != nil {
		return Profile{}, awserr.Classify("GetInstanceProfile "+name, err)
	}
	if out.InstanceProfile == nil {
		return Profile{}, &awserr.Error{Op: "GetInstanceProfile " +
			name, Kind: awserr.Transient, Reason: "EmptyAnswer", Message: "IAM returned no profile"}
	}
	return profileOf(*out.InstanceProfile), nil
}

func profileOf(i iamtypes.InstanceProfile) Profile {
	p := Profile{Name: aws.ToString(i.InstanceProfileName), ARN: aws.ToString(i.Arn), Path: aws.ToString(i.Path),
		Created: aws.ToTime(i.CreateDate), Tags: map[string]string{}}
	if len(i.Roles) > 0 {
		p.Role, p.RoleARN = aws.ToString(i.Roles[0].RoleName), aws.ToString(i.Roles[0].Arn)
	}
	for _, t := range i.Tags {
		p.Tags[aws.ToString(t.Key)] = aws.ToString(t.Value)
	}
	return p
}

// checkOwner returns an error of kind awserr.Refused unless the profile's tags have the name and UID of this cluster.
// Without these tags, the profile was not created by this cluster's controller.
func (d *Client) checkOwner(p Profile) error {
	if p.Tags[tagClusterName] == d.cluster.Name && p.Tags[tagUID] == d.cluster.UID {
		return nil
	}
	return awserr.Refusedf("change instance profile "+p.Name, "NotOurs",
		"it does not carry the tags of cluster %s with uid %s", d.cluster.Name, d.cluster.UID)
}

// createProfile creates the profile without a role. If IAM already has a profile of this name, it returns that profile.
func (d *Client) createProfile(ctx context.Context, name string, c NodeClass) (Profile, error) {
	tags := map[string]string{}
	maps.Copy(tags, c.Tags)
	tags[tagClusterPrefix+d.cluster.Name] = "owned"
	tags[tagClusterName], tags[tagNodeClass] = d.cluster.Name, c.Name
	tags[tagRegion], tags[tagUID] = d.cluster.Region, d.cluster.UID
	in := &awsiam.CreateInstanceProfileInput{InstanceProfileName: aws.String(name), Path: aws.String(d.pathPrefix() + c.UID + "/")}
	for _, k := range slices.Sorted(maps.Keys(tags)) {
		in.Tags = append(in.Tags, iamtypes.Tag{Key: aws.String(k), Value: aws.String(tags[k])})
	}
	out, err := d.iam.CreateInstanceProfile(ctx, in)
	err = awserr.Classify("CreateInstanceProfile "+name, err)
	if e := awserr.Of(err); e != nil && e.Code == "EntityAlreadyExists" {
		return d.Profile(ctx, name) // another process has created the profile since EnsureProfile read it
	}
	if err != nil {
		return Profile{}, err
	}
	p := Profile{Name: name, Tags: tags}
	if out.InstanceProfile != nil {
		p.ARN, p.Path = aws.ToString(out.InstanceProfile.Arn), aws.ToString(out.InstanceProfile.Path)
	}
	return p, nil
}

// setRole sets the profile's role. It first removes any other role, because a profile can have only one.
func (d *Client) setRole(ctx context.Context, p Profile, role string) error {
	if p.Role != "" {
		_, err := d.iam.RemoveRoleFromInstanceProfile(ctx, &awsiam.RemoveRoleFromInstanceProfileInput{
			InstanceProfileName: aws.String(p.Name), RoleName: aws.String(p.Role)})
		if err := awserr.Classify("RemoveRoleFromInstanceProfile "+p.Name, err); err != nil && !awserr.Is(err, awserr.Gone) {
			return err
		}
	}
	_, err := d.iam.AddRoleToInstanceProfile(ctx, &awsiam.AddRoleToInstanceProfileInput{
		InstanceProfileName: aws.String(p.Name), RoleName: aws.String(role)})
	err = awserr.Classify("AddRoleToInstanceProfile "+p.Name, err)
	switch e := awserr.Of(err); {
	case e == nil:
		return nil
	case e.Kind == awserr.Gone:
		return awserr.Misconfiguredf("AddRoleToInstanceProfile", "RoleNotFound",
			"there is no role %q in this account: correct spec.role of the EC2NodeClass, or create the role", role)
	case e.Code == "LimitExceeded":
		// The profile already has a role, which IAM did not return before: another process has just added the role.
		latest, err := d.Profile(ctx, p.Name)
		if err == nil && latest.Role == role {
			return nil
		}
		return &awserr.Error{Op: e.Op, Kind: awserr.Transient, Reason: "ProfileNotSettled", Code: e.Code, Message: e.Message,
			Hint: "IAM takes some seconds to show a change"}
	}
	return err
}

// Profiles returns the instance profiles that have our cluster's path and its tags, sorted by name. It makes one call
// per profile, because IAM's list has no tags.
func (d *Client) Profiles(ctx context.Context) ([]Profile, error) {
	var out []Profile
	pages := awsiam.NewListInstanceProfilesPaginator(d.iam, &awsiam.ListInstanceProfilesInput{PathPrefix: aws.String(d.pathPrefix())})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, awserr.Classify("ListInstanceProfiles", err)
		}
		for _, listed := range page.InstanceProfiles {
			p, err := d.Profile(ctx, aws.ToString(listed.InstanceProfileName))
			if awserr.Is(err, awserr.Gone) {
				continue
			}
			if err != nil {
				return nil, err
			}
			if d.checkOwner(p) == nil {
				out = append(out, p)
			}
		}
	}
	slices.SortFunc(out, func(a, b Profile) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

// DeleteProfile deletes an instance profile of ours. It refuses (awserr.Refused) to delete a profile that does not
// have our cluster's tags. It returns nil for a profile that does not exist.
func (d *Client) DeleteProfile(ctx context.Context, name string) error {
	p, err := d.Profile(ctx, name)
	if awserr.Is(err, awserr.Gone) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("delete instance profile: %w", err)
	}
	if err := d.checkOwner(p); err != nil {
		return err
	}
	if p.Role != "" {
		_, err := d.iam.RemoveRoleFromInstanceProfile(ctx, &awsiam.RemoveRoleFromInstanceProfileInput{
			InstanceProfileName: aws.String(name), RoleName: aws.String(p.Role)})
		if err := awserr.Classify("RemoveRoleFromInstanceProfile "+name, err); err != nil && !awserr.Is(err, awserr.Gone) {
			return err
		}
	}
	_, err = d.iam.DeleteInstanceProfile(ctx, &awsiam.DeleteInstanceProfileInput{InstanceProfileName: aws.String(name)})
	if err := awserr.Classify("DeleteInstanceProfile "+name, err); err != nil && !awserr.Is(err, awserr.Gone) {
		return err
	}
	return nil
}

// DeleteProfiles deletes our instance profiles for the EC2NodeClass with the UID.
func (d *Client) DeleteProfiles(ctx context.Context, nodeClassUID string) error {
	all, err := d.Profiles(ctx)
	if err != nil {
		return fmt.Errorf("delete instance profiles: %w", err)
	}
	for _, p := range all {
		if !strings.HasPrefix(p.Path, d.pathPrefix()+nodeClassUID+"/") {
			continue
		}
		if err := d.DeleteProfile(ctx, p.Name); err != nil {
			return err
		}
	}
	return nil
}

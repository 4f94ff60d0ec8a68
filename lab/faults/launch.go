package faults

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	awsv1 "github.com/joiner-sh/joiner/api/aws/v1"
	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/emulator/world"
	"github.com/joiner-sh/joiner/internal/emulator/world/identity"
	"github.com/joiner-sh/joiner/lab"
)

// launchFaults are faults that prevent launches: of KMS keys, the spot role, quotas, policies and images.
func launchFaults() []Fault {
	const noLaunch = "not let the controller launch instances"
	return []Fault{
		{Name: "key-disabled", What: "the KMS key of the volumes is disabled", Check: "LAUNCH-2", Cause: "the key is disabled",
			NeedsInstance: true, Break: encryptWith(world.Key{Disabled: true})},
		{
			Name:          "key-without-controller",
			What:          "the policy of the volumes' KMS key does not name the controller",
			Check:         "LAUNCH-2",
			Cause:         "cannot use the KMS key",
			NeedsInstance: true,
			Smoke:         true,
			Break:         encryptWith(world.Key{NeedsGrant: true})},
		{
			Name:        "spot-role-missing",
			What:        "the account has never had a spot instance, and lacks the service-linked role",
			Check:       "LAUNCH-3",
			Cause:       "AWSServiceRoleForEC2Spot",
			NeedsPods:   true,
			IsExclusive: true, Break: removeSpotRole},
		{
			Name:        "quota-used-up",
			What:        "the account's quota of vCPUs is used up",
			Check:       "LAUNCH-5",
			Cause:       "quota of vCPUs is used up",
			NeedsPods:   true,
			IsExclusive: true,
			Break:       useUpQuota(world.Quota{Kind: "standard"}, karpv1.CapacityTypeOnDemand)},
		{
			Name:        "spot-quota-used-up",
			What:        "the account's quota of spot vCPUs is used up",
			Check:       "LAUNCH-5",
			Cause:       "quota of spot vCPUs is used up",
			NeedsPods:   true,
			IsExclusive: true,
			Break:       useUpQuota(world.Quota{Kind: "standard", Spot: true}, karpv1.CapacityTypeSpot)},
		{
			Name:  "organization-denies-fleets",
			What:  "a service control policy denies ec2:CreateFleet",
			Check: "LAUNCH-4",
			Cause: noLaunch,
			Slow:  true,
			Break: denyInOrganization("ec2:CreateFleet")},
		{
			Name:  "organization-denies-instances",
			What:  "a service control policy denies ec2:RunInstances",
			Check: "LAUNCH-4",
			Cause: "service control policy",
			Slow:  true,
			Break: denyInOrganization("ec2:RunInstances")},
		{
			Name:  "organization-denies-templates",
			What:  "a service control policy denies ec2:CreateLaunchTemplate",
			Check: "LAUNCH-4",
			Cause: "service control policy",
			Slow:  true,
			Break: denyInOrganization("ec2:CreateLaunchTemplate")},
		{
			Name:  "role-denies-tags",
			What:  "a policy of the controller's role denies ec2:CreateTags",
			Check: "LAUNCH-4",
			Cause: "a policy of the controller's role denies launching",
			Slow:  true,
			Break: denyInRole("ec2:CreateTags")},
		{
			Name:  "role-denies-instances",
			What:  "a policy of the controller's role denies ec2:RunInstances",
			Check: "LAUNCH-4",
			Cause: "a policy of the controller's role denies launching",
			Slow:  true,
			Break: denyInRole("ec2:RunInstances")},
		{
			Name:  "image-not-ready",
			What:  "the image is still being copied",
			Check: "LAUNCH-10",
			Cause: "is pending, and EC2 launches nothing from it",
			Slow:  true,
			Break: useImageCopy(func(i *world.Image) { i.State = "pending" })},
		{
			Name:  "image-of-the-marketplace",
			What:  "the image is in the AWS Marketplace, and the account has no subscription to it",
			Check: "LAUNCH-10",
			Cause: "has not subscribed to it",
			Slow:  true,
			Break: useImageCopy(func(i *world.Image) { i.Product = "4b1fcd2e" })},
	}
}

// encryptWith returns a Break function that encrypts the scene's volumes with a new KMS key.
func encryptWith(k world.Key) func(context.Context, *Scene) error {
	return func(_ context.Context, s *Scene) error {
		return s.ChangeAWS(func(_ *world.World, _ time.Time) error {
			device, size, kind, yes := "/dev/xvda", resource.MustParse("30Gi"), "gp3", true
			arn := s.Lab.Estate.Region.KMS.CreateKey(k).ARN
			s.Class.Spec.BlockDeviceMappings = []awsv1.BlockDeviceMapping{{DeviceName: &device, RootVolume: true,
				EBS: &awsv1.BlockDevice{VolumeSize: &size, VolumeType: &kind, Encrypted: &yes, KMSKeyID: &arn}}}
			return nil
		})
	}
}

// removeSpotRole deletes the service-linked role that EC2 creates with the first spot instance, and restricts the scene
// to spot instances.
func removeSpotRole(_ context.Context, s *Scene) error {
	s.Pool.Spec.Template.Spec.Requirements[1] = In(karpv1.LabelCapacityType, karpv1.CapacityTypeSpot)
	setMissing := func(missing bool) func(*world.World, time.Time) error {
		return func(w *world.World, _ time.Time) error {
			account := w.Account(s.Lab.Account)
			account.NoSpotRole = missing
			// The role exists if an earlier scene launched a spot instance or, at undo, if the fix created it.
			_ = account.DeleteRole("AWSServiceRoleForEC2Spot")
			return nil
		}
	}
	s.AddUndo(func(context.Context) error { return s.ChangeAWS(setMissing(false)) })
	return s.ChangeAWS(setMissing(true))
}

// useUpQuota returns a Break function that sets a quota of vCPUs to 0, and restricts the scene to the capacity type.
func useUpQuota(q world.Quota, capacityType string) func(context.Context, *Scene) error {
	return func(_ context.Context, s *Scene) error {
		s.Pool.Spec.Template.Spec.Requirements[1] = In(karpv1.LabelCapacityType, capacityType)
		region := s.Lab.Estate.Region
		s.AddUndo(func(context.Context) error {
			return s.ChangeAWS(func(*world.World, time.Time) error { delete(region.Capacity.Quotas, q); return nil })
		})
		return s.ChangeAWS(func(*world.World, time.Time) error {
			if region.Capacity.Quotas == nil {
				region.Capacity.Quotas = map[world.Quota]int64{}
			}
			region.Capacity.Quotas[q] = 0
			return nil
		})
	}
}

// denyPolicy returns a policy that denies an action if the request tags resources with the name of the scene's class.
func (s *Scene) denyPolicy(action string) string {
	return fmt.Sprintf(`{"Version":"2012-10-17","Statement":[{"Sid":"Freeze","Effect":"Deny","Action":%q,"Resource":"*","Condition":{"StringEquals":{"aws:RequestTag/%s":%q}}}]}`,
		action, awsv1.LabelNodeClass, s.Name)
}

// denyInOrganization returns a Break function that attaches a service control policy to the account. The policy denies
// an action for the scene's class.
func denyInOrganization(action string) func(context.Context, *Scene) error {
	return func(_ context.Context, s *Scene) error {
		return s.ChangeAWS(func(w *world.World, _ time.Time) error {
			account := w.Account(s.Lab.Account)
			g, err := account.AttachServiceControlPolicy(s.denyPolicy(action))
			s.AddUndo(func(context.Context) error {
				// the fix may have detached the policy already
				return s.ChangeAWS(func(*world.World, time.Time) error { _ = account.DetachServiceControlPolicy(g.ID); return nil })
			})
			return err
		})
	}
}

// denyInRole returns a Break function that gives the controller's role a policy that denies an action for the scene's
// class.
func denyInRole(action string) func(context.Context, *Scene) error {
	return func(_ context.Context, s *Scene) error {
		return s.ChangeAWS(func(w *world.World, now time.Time) error {
			account := w.Account(s.Lab.Account)
			p, err := account.CreatePolicy(now, identity.Policy{Name: "freeze-" + s.Name, Document: s.denyPolicy(action)})
			if err != nil {
				return err
			}
			s.AddUndo(func(context.Context) error {
				return s.ChangeAWS(func(*world.World, time.Time) error { return account.DetachPolicy(lab.ControllerRole, p.ARN) })
			})
			return account.AttachPolicy(lab.ControllerRole, p.ARN)
		})
	}
}

// useImageCopy returns a Break function that makes the scene use a changed copy of an Amazon Linux 2023 image. The
// account owns the copy.
func useImageCopy(change func(*world.Image)) func(context.Context, *Scene) error {
	return func(_ context.Context, s *Scene) error {
		family := "AL2023"
		return s.ChangeAWS(func(_ *world.World, now time.Time) error {
			id, err := s.copyImage(now, family, change)
			s.Class.Spec.AMIFamily, s.Class.Spec.AMISelectorTerms = &family, []awsv1.AMISelectorTerm{{ID: id}}
			return err
		})
	}
}

// copyImage registers a changed copy of AWS's image of the family. The account owns the copy. The copy's name does not
// contain the family.
func (s *Scene) copyImage(now time.Time, family string, change func(*world.Image)) (id string, err error) {
	region := s.Lab.Estate.Region
	for _, i := range region.Images.All() {
		if i.Family != family || i.Architecture != "x86_64" || i.Variant != "standard" || i.Version != lab.KubernetesMinor() {
			continue
		}
		i.ID, i.Name, i.OwnerID, i.OwnerAlias, i.Public, i.CreatedAt = "", fmt.Sprintf("golden-%x", now.UnixNano()), s.Lab.Account, "", false, now
		change(&i)
		id = region.Images.Register(i).ID
		s.images = append(s.images, id)
		return id, nil
	}
	return "", errors.New("AWS has no image of family " + family)
}

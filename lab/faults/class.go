package faults

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	awsv1 "github.com/joiner-sh/joiner/api/aws/v1"
	"github.com/joiner-sh/joiner/internal/emulator/world"
	"github.com/joiner-sh/joiner/internal/emulator/world/network"
)

// classFaults are faults of EC2NodeClasses that select no resources, or resources of another cluster.
func classFaults() []Fault {
	classFault := func(name, what, cause string, change func(s *Scene)) Fault {
		return Fault{Name: name, What: what, Check: "LAUNCH-8", Cause: cause, Break: func(_ context.Context, s *Scene) error {
			change(s)
			return nil
		}}
	}
	return []Fault{
		classFault("subnet-tag-misspelt", "the EC2NodeClass selects subnets by a tag that no subnet has", "it selects no subnet", func(s *Scene) {
			s.Class.Spec.SubnetSelectorTerms = []awsv1.SubnetSelectorTerm{{Tags: map[string]string{"karpenter.sh/discovery": "Lab"}}}
		}),
		classFault("group-tag-misspelt", "the EC2NodeClass selects security groups by a tag that no group has",
			"it selects no security group", func(s *Scene) {
				s.Class.Spec.SecurityGroupSelectorTerms = []awsv1.SecurityGroupSelectorTerm{{
					Tags: map[string]string{"karpenter.sh/discovry": s.Lab.Cluster},
				}}
			}),
		classFault("image-gone", "the EC2NodeClass selects an image that was deregistered", "it selects no image", func(s *Scene) {
			id, family := s.registerImage("own-image-"+s.Name), "AL2023"
			s.Lab.Emulator.Do(func(_ *world.World, _ time.Time) { s.Lab.Estate.Region.Images.Deregister(id) })
			s.Class.Spec.AMIFamily, s.Class.Spec.AMISelectorTerms = &family, []awsv1.AMISelectorTerm{{ID: id}}
		}),
		classFault("image-name-without-match", "the EC2NodeClass selects images by a name that no image has",
			"it selects no image", func(s *Scene) {
				family := "Bottlerocket"
				s.Class.Spec.AMIFamily = &family
				s.Class.Spec.AMISelectorTerms = []awsv1.AMISelectorTerm{{Name: "golden-" + s.Name + "-*", Owner: "self"}}
			}),
		classFault("image-version-never-made", "the EC2NodeClass pins an image version that AWS never released",
			"it selects no image", func(s *Scene) {
				s.Class.Spec.AMISelectorTerms = []awsv1.AMISelectorTerm{{Alias: "al2023@v19990101"}}
			}),
		{
			Name:  "image-too-old",
			What:  "the EC2NodeClass selects images of a Kubernetes version that is too old for the control plane",
			Check: "BOOT-8",
			Cause: "more than 3 versions older than the control plane's",
			Break: func(_ context.Context, s *Scene) error {
				family := "AL2023"
				s.Class.Spec.AMIFamily = &family
				s.Class.Spec.AMISelectorTerms = []awsv1.AMISelectorTerm{{Name: "amazon-eks-node-al2023-x86_64-standard-1.30-*", Owner: "amazon"}}
				return nil
			}},
		{
			Name:  "class-of-other-name",
			What:  "the NodePool names an EC2NodeClass that does not exist",
			Check: "LAUNCH-9",
			Cause: "which does not exist",
			Break: func(_ context.Context, s *Scene) error {
				s.Pool.Spec.Template.Spec.NodeClassRef.Name = s.Name + "-nodes"
				return nil
			}},
		{
			Name:  "volume-smaller-than-image",
			What:  "the root volume is smaller than the image's snapshot",
			Check: "LAUNCH-6",
			Cause: "is smaller than the",
			Break: func(_ context.Context, s *Scene) error {
				device, size, kind := "/dev/xvda", resource.MustParse("4Gi"), "gp3"
				s.Class.Spec.BlockDeviceMappings = []awsv1.BlockDeviceMapping{{
					DeviceName: &device,
					RootVolume: true,
					EBS:        &awsv1.BlockDevice{VolumeSize: &size, VolumeType: &kind},
				}}
				return nil
			}},
		{
			Name:             "group-of-other-cluster",
			What:             "the tags of the nodes' security group name another cluster",
			Check:            "ID-9",
			Cause:            "belongs to cluster staging",
			ExpectSuspicious: true,
			Break:            changeGroup(func(g *network.SecurityGroup) { g.Tags = map[string]string{"kubernetes.io/cluster/staging": "owned"} })},
	}
}

package ec2

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsec2 "github.com/aws/aws-sdk-go-v2/service/ec2"
	awstypes "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/joiner-sh/joiner/internal/aws/awserr"
	"github.com/joiner-sh/joiner/internal/model/catalog"
)

// DryRun has the parameters for a dry run of a launch.
type DryRun struct {
	NodeClass    string            // name of the EC2NodeClass
	Tags         map[string]string // the user's tags
	Blueprint    Blueprint         // content of the launch request
	InstanceType string            // "m5.large"
	Subnets      []string          // at least one subnet ID
}

// DryRun makes a dry run of an on-demand launch. It creates the launch template, which SweepTemplates deletes when no
// launch uses it. A nil error means that permissions and request are valid in at least one of the subnets. A dry run
// checks neither capacity nor quotas. Errors are of package awserr, with the rejected call as Op.
func (d *Client) DryRun(ctx context.Context, r DryRun) error {
	r.Blueprint.CapacityType = catalog.OnDemand
	// A dry run has no NodePool, so TagNodePool is empty. IAM policies must accept any value of this tag.
	tags := d.cluster.Tags(r.Tags, "", r.NodeClass, "")
	name, err := d.ensureTemplate(ctx, r.Blueprint, tags)
	if err == nil {
		err = d.dryRunFleet(ctx, r, name, tags)
	}
	if err == nil { // EC2 checks image, subnet, groups and profile only for RunInstances
		err = d.dryRunInstances(ctx, r, name, tags)
	}
	if e := awserr.Of(err); e != nil && e.Reason == "LaunchTemplateNotFound" {
		d.templates.forget(name, nil) // deleted or not visible yet: the next dry run creates the template again
	}
	if err != nil {
		return fmt.Errorf("try a launch for EC2NodeClass %s: %w", r.NodeClass, err)
	}
	return nil
}

func (d *Client) dryRunFleet(ctx context.Context, r DryRun, template string, tags map[string]string) error {
	config := awstypes.FleetLaunchTemplateConfigRequest{LaunchTemplateSpecification: &awstypes.FleetLaunchTemplateSpecificationRequest{
		LaunchTemplateName: aws.String(template), Version: aws.String("1")}}
	for _, subnet := range r.Subnets {
		config.Overrides = append(config.Overrides, awstypes.FleetLaunchTemplateOverridesRequest{
			InstanceType: awstypes.InstanceType(r.InstanceType), SubnetId: aws.String(subnet)})
	}
	_, err := d.writes.CreateFleet(ctx, &awsec2.CreateFleetInput{
		DryRun:                aws.Bool(true),
		Type:                  awstypes.FleetTypeInstant,
		LaunchTemplateConfigs: []awstypes.FleetLaunchTemplateConfigRequest{config},
		TargetCapacitySpecification: &awstypes.TargetCapacitySpecificationRequest{
			TotalTargetCapacity: aws.Int32(1), DefaultTargetCapacityType: awstypes.DefaultTargetCapacityTypeOnDemand},
		TagSpecifications: tagSpecifications(tags, awstypes.ResourceTypeInstance, awstypes.ResourceTypeVolume, awstypes.ResourceTypeFleet),
	})
	return dryRunError("CreateFleet", err)
}

// dryRunInstances makes dry runs of RunInstances, one for each subnet, until one succeeds. If none succeeds, it returns
// the first error, which most likely applies to all subnets. It also stops at an error that is neither Denied nor
// Misconfigured.
func (d *Client) dryRunInstances(ctx context.Context, r DryRun, template string, tags map[string]string) error {
	var first error
	for _, subnet := range r.Subnets {
		interfaces := r.Blueprint.runInterfaces(subnet)
		_, err := d.writes.RunInstances(ctx, &awsec2.RunInstancesInput{
			DryRun:            aws.Bool(true),
			LaunchTemplate:    &awstypes.LaunchTemplateSpecification{LaunchTemplateName: aws.String(template), Version: aws.String("1")},
			InstanceType:      awstypes.InstanceType(r.InstanceType),
			MinCount:          aws.Int32(1),
			MaxCount:          aws.Int32(1),
			NetworkInterfaces: interfaces,
			TagSpecifications: tagSpecifications(tags, awstypes.ResourceTypeInstance, awstypes.ResourceTypeVolume,
				awstypes.ResourceTypeNetworkInterface),
		})
		if err = dryRunError("RunInstances", err); err == nil {
			return nil
		}
		if first == nil {
			first = err
		}
		if !awserr.Is(err, awserr.Denied) && !awserr.Is(err, awserr.Misconfigured) {
			break
		}
	}
	return first
}

// runInterfaces returns the blueprint's interfaces for RunInstances, each with the subnet. If a template has
// interfaces, RunInstances expects the subnet in each interface, not as a separate parameter.
func (b Blueprint) runInterfaces(subnet string) []awstypes.InstanceNetworkInterfaceSpecification {
	var out []awstypes.InstanceNetworkInterfaceSpecification
	for _, i := range b.interfaces() {
		out = append(out, awstypes.InstanceNetworkInterfaceSpecification{
			DeviceIndex: i.DeviceIndex, NetworkCardIndex: i.NetworkCardIndex, InterfaceType: i.InterfaceType, Groups: i.Groups,
			AssociatePublicIpAddress: i.AssociatePublicIpAddress, SubnetId: aws.String(subnet),
		})
	}
	return out
}

// dryRunError returns the classified error of a dry run. It returns nil for a success, which EC2 reports with the code
// DryRunOperation, and for a shortage.
func dryRunError(op string, err error) error {
	err = awserr.Classify(op, err)
	if e := awserr.Of(err); e == nil || e.Code == "DryRunOperation" || e.Kind == awserr.Shortage {
		return nil
	}
	return err
}

func tagSpecifications(tags map[string]string, kinds ...awstypes.ResourceType) []awstypes.TagSpecification {
	var out []awstypes.TagSpecification
	for _, kind := range kinds {
		out = append(out, awstypes.TagSpecification{ResourceType: kind, Tags: toTags(tags)})
	}
	return out
}

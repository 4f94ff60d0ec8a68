package ec2

import (
	"errors"

	"github.com/joiner-sh/joiner/internal/emulator/api"
	"github.com/joiner-sh/joiner/internal/emulator/iampolicy"
	"github.com/joiner-sh/joiner/internal/emulator/world"
	"github.com/joiner-sh/joiner/internal/emulator/world/failure"
)

// Permissions returns the actions on resources that IAM must allow for a call. It returns nil if the action itself
// asks IAM, or will report an error.
func Permissions(c *api.Call, in any) []iampolicy.Request {
	switch in := in.(type) {
	case *createFleetIn, *runInstancesIn:
		return nil // these actions call Authorize when they know the launch templates
	case *createTemplateIn:
		tags, err := api.Tagging(in.Tags)
		if err != nil {
			return nil // the action reports the error
		}
		return c.Region.Permissions.ForLaunchTemplate(tags["launch-template"])
	case *deleteTemplateIn:
		if t := c.Region.LaunchTemplates.ByIDOrName(in.LaunchTemplateId, in.LaunchTemplateName); t != nil {
			return c.Region.Permissions.ForResources(c.Name(), nil, t.ID) // nil: the call adds no tags
		}
		return nil
	case *terminateIn:
		return c.Region.Permissions.ForResources(c.Name(), nil, in.InstanceIds...)
	case *consoleIn:
		return c.Region.Permissions.ForResources(c.Name(), nil, in.InstanceId)
	case *createTagsIn:
		return c.Region.Permissions.ForResources(c.Name(), api.TagMap(in.Tags), in.Resources...)
	case *deleteTagsIn:
		return c.Region.Permissions.ForResources(c.Name(), nil, in.Resources...)
	}
	return []iampolicy.Request{{Action: c.Name(), Resource: "*"}}
}

// authorizeOverrides sets FleetOverride.IAMError for the overrides that the caller is not allowed to launch. EC2
// authorizes each override separately, and does not reject the whole call.
func authorizeOverrides(c *api.Call, q *world.FleetRequest) {
	for i := range q.Configs {
		config := &q.Configs[i]
		configErr := awsErrorOf(c.Authorize(c.Region.Permissions.ForFleetConfig(*q, *config)...)) // applies to all overrides
		if len(config.Overrides) == 0 {
			config.Overrides = []world.FleetOverride{{}} // the template's own parameters
		}
		overrideErrs := map[[2]string]*failure.Error{} // by subnet and image, so that IAM is asked once for each pair
		for j := range config.Overrides {
			o := &config.Overrides[j]
			key := [2]string{o.SubnetID, o.ImageID}
			overrideErr, ok := overrideErrs[key]
			if !ok && configErr == nil {
				overrideErr = awsErrorOf(c.Authorize(c.Region.Permissions.ForFleetOverride(*o)...))
				overrideErrs[key] = overrideErr
			}
			o.IAMError = overrideErr
			if configErr != nil {
				o.IAMError = configErr
			}
		}
	}
}

func awsErrorOf(err error) *failure.Error {
	var awsErr *failure.Error
	if errors.As(err, &awsErr) {
		return awsErr
	}
	return nil
}

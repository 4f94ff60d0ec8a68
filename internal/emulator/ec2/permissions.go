package ec2

import (
	"errors"

	"github.com/joiner-sh/joiner/internal/emulator/api"
	"github.com/joiner-sh/joiner/internal/emulator/iampolicy"
	"github.com/joiner-sh/joiner/internal/emulator/world"
	"github.com/joiner-sh/joiner/internal/emulator/world/failure"
)

// Permissions returns the actions on resources that IAM must allow for a call. None means that the action itself reports
// an error or asks IAM.
func Permissions(c *api.Call, in any) []iampolicy.Request {
	switch in := in.(type) {
	case *createFleetIn, *runInstancesIn:
		return nil // the action asks IAM when it knows the launch templates
	case *createTemplateIn:
		tags, err := api.Tagging(in.Tags)
		if err != nil {
			return nil // the action reports the error
		}
		return c.Region.Permissions.ForLaunchTemplate(tags["launch-template"])
	case *deleteTemplateIn:
		if t := c.Region.LaunchTemplates.ByIDOrName(in.LaunchTemplateId, in.LaunchTemplateName); t != nil {
			return c.Region.Permissions.ForResources(c.Name(), nil, t.ID)
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

// refuseOverrides sets FleetOverride.Refused for the overrides that the caller is not allowed to launch. EC2 authorizes
// each override separately, and does not reject the whole call.
func refuseOverrides(c *api.Call, q *world.FleetRequest) {
	for i := range q.Configs {
		config := &q.Configs[i]
		shared := refusalOf(c.Ask(c.Region.Permissions.ForFleetConfig(*q, *config)...)) // holds for all overrides
		if len(config.Overrides) == 0 {
			config.Overrides = []world.FleetOverride{{}} // the template's own parameters
		}
		known := map[[2]string]*failure.Error{} // refusal by subnet and image, so that IAM is asked once
		for j := range config.Overrides {
			o := &config.Overrides[j]
			key := [2]string{o.SubnetID, o.ImageID}
			refused, ok := known[key]
			if !ok && shared == nil {
				refused = refusalOf(c.Ask(c.Region.Permissions.ForFleetOverride(*o)...))
				known[key] = refused
			}
			if o.Refused = shared; shared == nil {
				o.Refused = refused
			}
		}
	}
}

// refusalOf returns the AWS error in err; nil if err has none.
func refusalOf(err error) *failure.Error {
	var refusal *failure.Error
	if errors.As(err, &refusal) {
		return refusal
	}
	return nil
}

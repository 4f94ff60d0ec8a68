package ec2

import (
	"errors"

	"github.com/joiner-sh/joiner/internal/emulator/api"
	"github.com/joiner-sh/joiner/internal/emulator/iampolicy"
	"github.com/joiner-sh/joiner/internal/emulator/world"
	"github.com/joiner-sh/joiner/internal/emulator/world/failure"
)

// Permissions is what a call does to which resources of EC2, as IAM evaluates it.
func Permissions(c *api.Call, in any) []iampolicy.Request {
	switch in := in.(type) {
	case *createFleetIn, *runInstancesIn:
		return nil // authorized once the launch templates are known
	case *createTemplateIn:
		tags, err := api.Tagging(in.Tags)
		if err != nil {
			return nil // the action reports it
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

// refuseOverrides marks the overrides that the caller may not launch: EC2 denies them one by one, not the call.
func refuseOverrides(c *api.Call, q *world.FleetRequest) {
	for i := range q.Configs {
		config := &q.Configs[i]
		shared := refusalOf(c.Ask(c.Region.Permissions.ForFleetConfig(*q, *config)...))
		if len(config.Overrides) == 0 {
			config.Overrides = []world.FleetOverride{{}}
		}
		known := map[[2]string]*failure.Error{} // by subnet and image
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

// refusalOf returns the error as EC2 words it; nil for none.
func refusalOf(err error) *failure.Error {
	var refusal *failure.Error
	if errors.As(err, &refusal) {
		return refusal
	}
	return nil
}

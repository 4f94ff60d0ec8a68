package emulator

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"maps"
	"strings"

	"github.com/joiner-sh/joiner/internal/emulator/iampolicy"
	"github.com/joiner-sh/joiner/internal/emulator/world"
)

// Permissions returns what the sessions of a role have used of what its policies allow: "iam:PassRole" → 3. Nothing is
// counted for a role whose policies are not looked at.
func (s *Server) Permissions(role string) map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.permissions[role])
}

// authorize refuses a call that the policies of the caller's role do not allow. Fleets and launches ask themselves, once they
// have found what they are to be made of.
func (c *call) authorize(in any) error {
	if c.service == "sts" && c.action == "GetCallerIdentity" {
		return nil // needs no permission
	}
	if !c.judged() {
		return nil
	}
	return c.ask(c.wanted(in)...)
}

// judged says whether the policies of the caller are looked at.
func (c *call) judged() bool { return c.account().Judged(c.caller.Role) }

// ask refuses the first of some requests that the caller's role, which is judged, is not allowed.
func (c *call) ask(requests ...iampolicy.Request) error {
	for _, r := range requests {
		if r.Keys == nil {
			r.Keys = iampolicy.Keys{}
		}
		r.Keys["aws:RequestedRegion"] = []string{c.regionID}
		r.Keys["aws:PrincipalAccount"] = []string{c.caller.Account}
		if c.service == "ec2" {
			r.Keys["ec2:Region"] = []string{c.regionID}
		}
		verdict := c.account().Judge(c.caller.Role, r)
		c.asked(r, verdict.Allowed)
		if !verdict.Allowed {
			return deniedBy(c, r, verdict)
		}
	}
	return nil
}

// deniedBy refuses a request in the words of the service.
func deniedBy(c *call, r iampolicy.Request, v iampolicy.Verdict) error {
	why := "because no identity-based policy allows the " + r.Action + " action"
	if v.Denied {
		kind, arn := c.account().Denier(c.caller.Role, r)
		why = "with an explicit deny in " + kind + ": " + arn
	}
	what := "User: " + c.caller.ARN + " is not authorized to perform: " + r.Action + " on resource: " + r.Resource + " " + why
	if c.service == "ec2" {
		what += ". Encoded authorization failure message: " + c.encoded(r, v)
	}
	return denial(c, what)
}

// encoded is what sts:DecodeAuthorizationMessage reads: in life more than this, and for AWS alone to read.
func (c *call) encoded(r iampolicy.Request, v iampolicy.Verdict) string {
	text, err := json.Marshal(map[string]any{
		"allowed": false, "explicitDeny": v.Denied,
		"context": map[string]any{"principal": map[string]string{"id": c.caller.UserID, "arn": c.caller.ARN}, "action": r.Action, "resource": r.Resource},
	})
	if err != nil {
		return ""
	}
	return base64.RawURLEncoding.EncodeToString(text)
}

// roleARN is the role of the caller; empty for a user.
func (c *call) roleARN() string {
	if r, err := c.account().Role(c.caller.Role); err == nil {
		return r.ARN
	}
	return ""
}

// wanted is what a call does to which resources, as IAM sees it.
func (c *call) wanted(in any) []iampolicy.Request {
	switch in := in.(type) {
	case *createFleetIn, *runInstancesIn:
		return nil // they ask themselves
	case *createTemplateIn:
		tags, err := tagging(in.Tags)
		if err != nil {
			return nil // the action reports it
		}
		return c.region.Permissions.ForLaunchTemplate(tags["launch-template"])
	case *deleteTemplateIn:
		if t := c.region.LaunchTemplates.ByIDOrName(in.LaunchTemplateId, in.LaunchTemplateName); t != nil {
			return c.region.Permissions.ForResources(c.name(), nil, t.ID)
		}
		return nil
	case *terminateIn:
		return c.region.Permissions.ForResources(c.name(), nil, in.InstanceIds...)
	case *consoleIn:
		return c.region.Permissions.ForResources(c.name(), nil, in.InstanceId)
	case *createTagsIn:
		return c.region.Permissions.ForResources(c.name(), tagMap(in.Tags), in.Resources...)
	case *deleteTagsIn:
		return c.region.Permissions.ForResources(c.name(), nil, in.Resources...)
	}
	switch c.service {
	case "iam":
		return c.wantedOfIAM(in)
	case "sqs":
		return c.wantedOfQueue(in)
	case shiftService:
		return c.wantedOfShift(in)
	}
	return []iampolicy.Request{{Action: c.name(), Resource: c.resource(in)}}
}

// resource is the one thing that a call is about; "*" if it is about none.
func (c *call) resource(in any) string {
	switch in := in.(type) {
	case *parameterIn:
		account := c.caller.Account
		if strings.HasPrefix(in.Name, "/aws/") {
			account = ""
		}
		return c.region.ARN("ssm", account, "parameter/"+strings.TrimPrefix(in.Name, "/"))
	}
	if c.service == "eks" && len(c.path) > 0 {
		return c.region.ARN("eks", c.caller.Account, "cluster/"+c.path[0])
	}
	return "*"
}

// wantedOfQueue is what a call does to a queue. A batch takes the permission for one message.
func (c *call) wantedOfQueue(in any) []iampolicy.Request {
	queue := ""
	switch in := in.(type) {
	case *queueNameIn:
		queue = in.QueueName
	case *receiveMessageIn:
		queue = c.queueOf(in.QueueUrl)
	case *deleteMessageIn:
		queue = c.queueOf(in.QueueUrl)
	case *deleteMessageBatchIn:
		queue = c.queueOf(in.QueueUrl)
	case *sendMessageIn:
		queue = c.queueOf(in.QueueUrl)
	case *sendMessageBatchIn:
		queue = c.queueOf(in.QueueUrl)
	}
	r := iampolicy.Request{Action: strings.TrimSuffix(c.name(), "Batch"), Resource: "*"}
	if queue != "" {
		r.Resource = c.region.ARN("sqs", c.caller.Account, queue)
	}
	return []iampolicy.Request{r}
}

// wantedOfIAM is what a call does to IAM's own things.
func (c *call) wantedOfIAM(in any) []iampolicy.Request {
	switch in := in.(type) {
	case *createProfileIn:
		out := c.wantedOfProfile(world.Profile{Name: in.InstanceProfileName, Path: in.Path}, tagMap(in.Tags))
		if len(in.Tags) > 0 {
			tag := c.wantedOfProfile(world.Profile{Name: in.InstanceProfileName, Path: in.Path}, tagMap(in.Tags))
			tag[0].Action = "iam:TagInstanceProfile"
			out = append(out, tag...)
		}
		return out
	case *profileIn:
		out := c.wantedOfProfile(c.profileNamed(in.InstanceProfileName), nil)
		if c.action == "AddRoleToInstanceProfile" {
			out = append(out, c.account().PassPermits(in.RoleName)...)
		}
		return out
	case *tagProfileIn:
		return c.wantedOfProfile(c.profileNamed(in.InstanceProfileName), tagMap(in.Tags))
	case *roleIn:
		return c.wantedOfRole(in.RoleName)
	case *rolePolicyIn:
		return c.wantedOfRole(in.RoleName)
	case *simulateIn:
		return []iampolicy.Request{{Action: c.name(), Resource: in.PolicySourceArn}}
	}
	return []iampolicy.Request{{Action: c.name(), Resource: "*"}}
}

// wantedOfRole asks about the call's action on a role; IAM looks for one that does not exist by its name alone.
func (c *call) wantedOfRole(name string) []iampolicy.Request {
	r, err := c.account().Role(name)
	if err != nil {
		r.ARN = "arn:aws:iam::" + c.caller.Account + ":role/" + name
	}
	return []iampolicy.Request{{Action: c.name(), Resource: r.ARN}}
}

// profileNamed is a profile as IAM finds it: of one that does not exist it knows neither path nor tags, and asks all the same.
func (c *call) profileNamed(name string) world.Profile {
	p, err := c.account().Profile(name)
	if err != nil {
		return world.Profile{Name: name}
	}
	return p
}

// wantedOfProfile asks about the call's action on an instance profile.
func (c *call) wantedOfProfile(p world.Profile, add map[string]string) []iampolicy.Request {
	keys := iampolicy.Keys{}
	keys.Tags("aws:ResourceTag/", p.Tags)
	keys.Tags("iam:ResourceTag/", p.Tags)
	keys.Tags("aws:RequestTag/", add)
	arn := or(p.ARN, "arn:"+world.Partition(c.regionID)+":iam::"+c.caller.Account+":instance-profile"+or(p.Path, "/")+p.Name)
	return []iampolicy.Request{{Action: c.name(), Resource: arn, Keys: keys}}
}

// refuseOverrides marks the overrides that the caller may not launch: EC2 denies them one by one, not the call.
func (c *call) refuseOverrides(q *world.FleetRequest) {
	for i := range q.Configs {
		config := &q.Configs[i]
		shared := refusalOf(c.ask(c.region.Permissions.ForFleetConfig(*q, *config)...))
		if len(config.Overrides) == 0 {
			config.Overrides = []world.FleetOverride{{}}
		}
		known := map[[2]string]*world.Error{} // by subnet and image
		for j := range config.Overrides {
			o := &config.Overrides[j]
			key := [2]string{o.SubnetID, o.ImageID}
			refused, ok := known[key]
			if !ok && shared == nil {
				refused = refusalOf(c.ask(c.region.Permissions.ForFleetOverride(*o)...))
				known[key] = refused
			}
			if o.Refused = shared; shared == nil {
				o.Refused = refused
			}
		}
	}
}

// refusalOf returns the error as EC2 words it; nil for none.
func refusalOf(err error) *world.Error {
	var refusal *world.Error
	if errors.As(err, &refusal) {
		return refusal
	}
	return nil
}

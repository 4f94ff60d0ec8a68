package emulator

import (
	"maps"

	"github.com/joiner-sh/joiner/internal/emulator/api"
	"github.com/joiner-sh/joiner/internal/emulator/ec2"
	"github.com/joiner-sh/joiner/internal/emulator/eks"
	"github.com/joiner-sh/joiner/internal/emulator/iam"
	"github.com/joiner-sh/joiner/internal/emulator/iampolicy"
	"github.com/joiner-sh/joiner/internal/emulator/sqs"
)

// build sets s.services.
func (s *Server) build() {
	s.services = map[string]api.Service{}
	for _, svc := range []api.Service{
		{Name: "ec2", Namespace: "http://ec2.amazonaws.com/doc/2016-11-15/", Actions: ec2.Actions(), Permissions: ec2.Permissions},
		{Name: "iam", Namespace: "https://iam.amazonaws.com/doc/2010-05-08/", Actions: iam.Actions(), Permissions: iam.Permissions},
		{Name: "sts", Namespace: "https://sts.amazonaws.com/doc/2011-06-15/", Actions: iam.STSActions()},
		{Name: "sqs", Namespace: "http://queue.amazonaws.com/doc/2012-11-05/", Actions: sqs.Actions(), Permissions: sqs.Permissions},
		{Name: "ssm", Actions: ssmActions(), Permissions: ssmPermissions},
		{Name: "eks", Actions: eks.Actions(), Permissions: eks.Permissions},
		{Name: "pricing", Actions: pricingActions()},
		{Name: "kms", Actions: kmsActions()},
		{Name: "servicequotas", Actions: quotaActions()},
		{Name: "organizations", Actions: organizationActions()},
		{Name: api.ShiftService, Actions: eks.ShiftActions(), Permissions: eks.ShiftPermissions},
	} {
		s.services[svc.Name] = svc
	}
}

// Permissions returns how often the sessions of a role have used each permission: "iam:PassRole" → 3. It is empty for a
// role whose policies are not evaluated: see identity.IAM.IsRestricted.
func (s *Server) Permissions(role string) map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.permissions[role])
}

// authorize returns an error if the policies of the caller's role do not allow the call. CreateFleet and RunInstances
// authorize themselves, when their launch templates are known.
func (s *Server) authorize(c *api.Call, in any) error {
	if c.Service == "sts" && c.Action == "GetCallerIdentity" {
		return nil // needs no permission
	}
	if !c.IsRestricted() {
		return nil
	}
	if permissions := s.services[c.Service].Permissions; permissions != nil {
		return c.Authorize(permissions(c, in)...)
	}
	return c.Authorize(iampolicy.Request{Action: c.Name(), Resource: "*"})
}

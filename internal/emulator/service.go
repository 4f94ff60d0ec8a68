package emulator

import (
	"net/url"
	"time"

	"github.com/joiner-sh/joiner/internal/emulator/iampolicy"
	"github.com/joiner-sh/joiner/internal/emulator/world"
)

// protocol is how a service is spoken to.
type protocol int

// The protocols of the services we serve.
const (
	ec2Query  protocol = iota // form in, XML with small letters out
	awsQuery                  // form in, XML out
	awsJSON10                 // JSON both ways, X-Amz-Target names the action
	awsJSON11                 // the same, with another content type
	restJSON                  // method and path name the action
)

// service is one AWS service.
type service struct {
	name      string // as in signatures: "ec2"
	namespace string // of its XML
	actions   map[string]action
}

// action carries out one action of a service.
type action struct {
	run    func(c *call, decode func(any) error) (any, error)
	checks bool // it looks at call.dryRun itself, once it has checked the request
}

// call is one API call on its way.
type call struct {
	service  string // "ec2"
	action   string // "CreateFleet"
	protocol protocol

	form        url.Values // of a query request
	query       *param     // the same as a tree
	body        []byte     // of a JSON request
	path        []string   // wildcards of a REST path, in order
	host        string     // that the client called
	requestPath string
	dryRun      bool
	id          string // of the request
	caller      world.Identity
	regionID    string // region the request is signed for

	// While the server's lock is held:
	now    time.Time
	world  *world.World
	region *world.Region
	asked  func(iampolicy.Request, bool) // notes what the caller's role asked for, and whether its policies allow it
}

// op makes an action of a function from a request to an answer.
func op[In, Out any](f func(*call, *In) (Out, error)) action {
	return action{run: func(c *call, decode func(any) error) (any, error) {
		var in In
		if err := decode(&in); err != nil {
			return nil, err
		}
		return f(c, &in)
	}}
}

// checkedOp is op for an action whose dry run checks more than permissions.
func checkedOp[In, Out any](f func(*call, *In) (Out, error)) action {
	a := op(f)
	a.checks = true
	return a
}

// account returns the account of the caller.
func (c *call) account() *world.Account { return c.region.Account }

// name returns what the call is counted as, and faults select: "ec2:CreateFleet".
func (c *call) name() string { return c.service + ":" + c.action }

// dryRunError is the answer to a dry run that would have succeeded.
func dryRunError() error {
	return &world.Error{Code: "DryRunOperation", Message: "Request would have succeeded, but DryRun flag is set.", Status: 412}
}

// none is a request without parameters, and an answer without content.
type none struct{}

// done is EC2's answer to what has nothing to say.
type done struct {
	Return bool
}

// build makes the table of services.
func (s *Server) build() {
	s.services = map[string]service{}
	for _, svc := range []service{
		{"ec2", "http://ec2.amazonaws.com/doc/2016-11-15/", ec2Actions()},
		{"iam", "https://iam.amazonaws.com/doc/2010-05-08/", iamActions()},
		{"sts", "https://sts.amazonaws.com/doc/2011-06-15/", stsActions()},
		{"sqs", "http://queue.amazonaws.com/doc/2012-11-05/", sqsActions()},
		{"ssm", "", ssmActions()},
		{"eks", "", eksActions()},
		{"pricing", "", pricingActions()},
		{"kms", "", kmsActions()},
		{"servicequotas", "", quotaActions()},
		{"organizations", "", organizationActions()},
		{shiftService, "", shiftActions()},
	} {
		s.services[svc.name] = svc
	}
}

// Package api has what the services of the emulated AWS share: calls, actions, request parameters, filters, pages and authorization.
//
// In: the form, body or path of a request, and the caller.
// Out: structs that are filled from requests, and answers as XML.
// Never: the actions of a service, or the state of the world.
package api

import (
	"net/url"
	"time"

	"github.com/joiner-sh/joiner/internal/emulator/iampolicy"
	"github.com/joiner-sh/joiner/internal/emulator/world"
	"github.com/joiner-sh/joiner/internal/emulator/world/failure"
	"github.com/joiner-sh/joiner/internal/emulator/world/identity"
)

// ShiftService is the service of zonal shifts, as signatures and IAM call it.
const ShiftService = "arc-zonal-shift"

// protocol is how a service is spoken to.
type protocol int

// The protocols of the services we serve.
const (
	EC2Query  protocol = iota // form in, XML with small letters out
	AWSQuery                  // form in, XML out
	AWSJSON10                 // JSON both ways, X-Amz-Target names the action
	AWSJSON11                 // the same, with another content type
	RESTJSON                  // method and path name the action
)

// Service is one AWS service.
type Service struct {
	Name      string            // as in signatures: "ec2"
	Namespace string            // of its XML
	Actions   map[string]Action // by name: "DescribeInstances"

	// permissions returns the actions on resources that IAM has to allow the caller of a call; nil: the call's own action on "*".
	Permissions func(c *Call, in any) []iampolicy.Request
}

// Action carries out one action of a service.
type Action struct {
	Run    func(c *Call, decode func(any) error) (any, error) // reads the parameters with decode, and returns the answer
	Checks bool                                               // it looks at call.dryRun itself, once it has checked the request
}

// Call is one API call on its way.
type Call struct {
	Service  string   // "ec2"
	Action   string   // "CreateFleet"
	Protocol protocol // of the service: query, JSON or REST

	Form        url.Values        // of a query request
	Query       *Parameter        // the same as a tree
	Body        []byte            // of a JSON request
	Path        []string          // wildcards of a REST path, in order
	Host        string            // that the client called
	RequestPath string            // of the URL, with the leading slash
	DryRun      bool              // only whether the call is allowed is checked
	ID          string            // of the request
	Caller      identity.Identity // whose signature the request has
	RegionID    string            // region the request is signed for

	// While the server's lock is held:
	Now    time.Time
	World  *world.World
	Region *world.Region
	OnAsk  func(iampolicy.Request, bool) // notes what the caller's role asked for, and whether its policies allow it
}

// Op makes an action of a function from a request to an answer.
func Op[In, Out any](f func(*Call, *In) (Out, error)) Action {
	return Action{Run: func(c *Call, decode func(any) error) (any, error) {
		var in In
		if err := decode(&in); err != nil {
			return nil, err
		}
		return f(c, &in)
	}}
}

// CheckedOp is op for an action whose dry run checks more than permissions.
func CheckedOp[In, Out any](f func(*Call, *In) (Out, error)) Action {
	a := Op(f)
	a.Checks = true
	return a
}

// Account returns the account of the caller.
func (c *Call) Account() *world.Account { return c.Region.Account }

// Name returns what the call is counted as, and faults select: "ec2:CreateFleet".
func (c *Call) Name() string { return c.Service + ":" + c.Action }

// DryRunError is the answer to a dry run that would have succeeded.
func DryRunError() error {
	return &failure.Error{Code: "DryRunOperation", Message: "Request would have succeeded, but DryRun flag is set.", Status: 412}
}

// None is a request without parameters, and an answer without content.
type None struct{}

// Done is EC2's answer to what has nothing to say.
type Done struct {
	Return bool // true: the call succeeded
}

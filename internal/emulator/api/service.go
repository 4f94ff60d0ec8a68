// Package api has the code that the services of the emulated AWS share: calls, actions, request parameters, filters,
// pages, authorization.
//
// In: the form, body or path of a request, and the caller.
// Out: the requests as structs, and answers as XML.
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

// ShiftService is the name of the zonal shift service in signatures and in IAM.
const ShiftService = "arc-zonal-shift"

type protocol int

// The protocols of the emulated services.
const (
	EC2Query  protocol = iota // the request is a form, the answer is XML whose names begin with small letters
	AWSQuery                  // the request is a form, the answer is XML
	AWSJSON10                 // request and answer are JSON, the header X-Amz-Target names the action
	AWSJSON11                 // like AWSJSON10, with another content type
	RESTJSON                  // request and answer are JSON, method and path determine the action
)

// Service is one AWS service.
type Service struct {
	Name      string            // name in signatures: "ec2"
	Namespace string            // XML namespace; empty for services with JSON
	Actions   map[string]Action // by name: "DescribeInstances"

	// Permissions returns the actions on resources that the policies must allow for a call. If the function is nil, the
	// policies must allow the call's own action on "*".
	Permissions func(c *Call, in any) []iampolicy.Request
}

// Action is the implementation of one action of a service.
type Action struct {
	Run           func(c *Call, decode func(any) error) (any, error) // calls decode to store the parameters in a struct
	HandlesDryRun bool                                               // Run handles Call.DryRun itself, after it has validated the request
}

// Call is one API call.
type Call struct {
	Service  string // "ec2"
	Action   string // "CreateFleet"
	Protocol protocol

	Form        url.Values        // parameters of a query request, or of the URL of a REST request
	Query       *Parameter        // parameters of a query request, as a tree; nil for JSON
	Body        []byte            // body of the request
	Path        []string          // parts of a REST path that match the wildcards of its route, in order
	Host        string            // host that the client called
	RequestPath string            // path of the URL, with the leading slash
	DryRun      bool              // check permissions and parameters only; EC2
	ID          string            // request ID
	Caller      identity.Identity // the identity that signed the request
	RegionID    string            // the region that the request is signed for

	// The fields below may only be used while the server's lock is held.

	Now       time.Time                     // time of the call
	World     *world.World                  // the world that is served
	Region    *world.Region                 // the region of the caller's account
	OnVerdict func(iampolicy.Request, bool) // called by Authorize for each request, with the verdict of the policies; see Server.OnVerdict
}

// Op returns the action that f implements. f converts a request to an answer.
func Op[In, Out any](f func(*Call, *In) (Out, error)) Action {
	return Action{Run: func(c *Call, decode func(any) error) (any, error) {
		var in In
		if err := decode(&in); err != nil {
			return nil, err
		}
		return f(c, &in)
	}}
}

// OpWithDryRun is Op for an action that handles dry runs itself: see Action.HandlesDryRun.
func OpWithDryRun[In, Out any](f func(*Call, *In) (Out, error)) Action {
	a := Op(f)
	a.HandlesDryRun = true
	return a
}

// Account returns the account of the caller.
func (c *Call) Account() *world.Account { return c.Region.Account }

// Name returns service and action, "ec2:CreateFleet". Call counts and faults use this name.
func (c *Call) Name() string { return c.Service + ":" + c.Action }

// DryRunError returns EC2's answer to a dry run that would have succeeded.
func DryRunError() error {
	return &failure.Error{Code: "DryRunOperation", Message: "Request would have succeeded, but DryRun flag is set.", Status: 412}
}

// None is a request without parameters, and an answer without content.
type None struct{}

// Done is the answer of EC2's actions that return no data.
type Done struct {
	Return bool // true: the call succeeded
}

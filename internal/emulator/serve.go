package emulator

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/joiner-sh/joiner/internal/emulator/api"
	"github.com/joiner-sh/joiner/internal/emulator/iampolicy"
	"github.com/joiner-sh/joiner/internal/emulator/world"
	"github.com/joiner-sh/joiner/internal/emulator/world/failure"
	"github.com/joiner-sh/joiner/internal/emulator/world/identity"
)

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	s.once.Do(s.build)
	started := time.Now()
	w.Header().Set("Date", s.now().Format(http.TimeFormat)) // clients correct their clock by it
	c, err := s.read(w, r)
	var answer any
	var fault *world.CallError
	if err == nil {
		answer, fault, err = s.handleCall(r, c)
	} else {
		s.locked(func(*world.World, time.Time) { c.ID = s.requestID() })
	}
	status := http.StatusOK
	switch {
	case fault != nil && fault.Garbage != "":
		status = writeGarbage(w, fault)
	case err != nil:
		status = s.writeError(w, c, err)
	default:
		s.writeAnswer(w, c, answer)
	}
	s.logger().Debug("aws call", "call", c.Name(), "account", c.Caller.Account, "region", c.RegionID,
		"status", status, "error", err, "took", time.Since(started), "request", c.ID)
}

// handleCall authenticates a call, injects the world's faults, and executes the call. If a fault is injected, it
// returns the fault and the fault's error, but no answer.
func (s *Server) handleCall(r *http.Request, c *api.Call) (answer any, fault *world.CallError, err error) {
	act, known := s.services[c.Service].Actions[c.Action]
	s.locked(func(w *world.World, now time.Time) {
		c.World, c.Now, c.ID = w, now, s.requestID()
		if s.calls == nil {
			s.calls = map[string]int{}
		}
		if !known {
			err = unknownAction(c)
			return
		}
		s.calls[c.Name()]++
		fault, err = s.admit(r, c)
		switch {
		case err == nil:
			answer, err = s.run(c, act)
		case fault != nil && fault.Late:
			_, _ = s.run(c, act) // the response is lost
		}
	})
	if c.Service == "sqs" && c.Action == "ReceiveMessage" && err == nil {
		answer, err = s.poll(r, c, act, answer)
	}
	return answer, fault, err
}

// admit authenticates the call and sets its caller and region. If the call must fail, admit returns the error, and the
// injected fault if that is the cause.
func (s *Server) admit(r *http.Request, c *api.Call) (*world.CallError, error) {
	var err error
	if c.Caller, err = s.authenticate(c.World, c.Now, r, c); err != nil && !mayBeUnsigned(c) {
		return nil, err
	}
	if c.RegionID == "" {
		c.RegionID = "us-east-1"
	}
	if len(c.RegionID) > 32 || strings.Trim(c.RegionID, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" {
		return nil, &failure.Error{Code: "AuthFailure", Message: "Credential should be scoped to a valid region.", Status: 401}
	}
	if c.Caller.Account == "" { // the call is not signed
		c.Caller = identity.Root(DefaultAccount, c.RegionID)
	}
	c.Region = c.World.Region(c.Caller.Account, c.RegionID)
	call := world.Call{Account: c.Caller.Account, Region: c.RegionID, Name: c.Name(), Role: c.Caller.Role}
	if fault := c.World.FaultFor(c.Now, call); fault != nil {
		if fault.Code == "RequestLimitExceeded" {
			if s.throttled == nil {
				s.throttled = map[string]int{}
			}
			s.throttled[c.Name()]++
		}
		return fault, faultError(c, fault)
	}
	if c.World.Denied(call) {
		return nil, deniedError(c)
	}
	return nil, nil
}

func mayBeUnsigned(c *api.Call) bool {
	return c.Service == "sts" && c.Action == "AssumeRoleWithWebIdentity"
}

func (s *Server) run(c *api.Call, act api.Action) (any, error) {
	return act.Run(c, func(into any) error {
		if err := s.decode(c, into); err != nil {
			return err
		}
		c.OnVerdict = func(r iampolicy.Request, isAllowed bool) { s.reportVerdict(c.Caller, r, isAllowed) }
		if err := s.authorize(c, into); err != nil {
			return err
		}
		if c.DryRun && !act.HandlesDryRun {
			return api.DryRunError()
		}
		return nil
	})
}

// reportVerdict calls Server.OnVerdict, and counts the permission if the request is allowed. The lock is held.
func (s *Server) reportVerdict(caller identity.Identity, r iampolicy.Request, isAllowed bool) {
	if s.OnVerdict != nil {
		s.OnVerdict(caller, r, isAllowed)
	}
	if isAllowed {
		s.countUse(caller.Role, r.Action)
	}
}

// countUse counts the use of a permission. The lock is held.
func (s *Server) countUse(role, permission string) {
	if s.permissions == nil {
		s.permissions = map[string]map[string]int{}
	}
	if s.permissions[role] == nil {
		s.permissions[role] = map[string]int{}
	}
	s.permissions[role][permission]++
}

// decode stores the parameters of a request in a struct. An EC2 call with a parameter that is not emulated is an error,
// as EC2 rejects unknown parameters.
func (s *Server) decode(c *api.Call, into any) error {
	if c.Query != nil {
		if err := s.codec.Decode(c.Query, into); err != nil {
			return err
		}
		if name := c.Query.Unused(""); name != "" && c.Protocol == api.EC2Query {
			return &failure.Error{Code: "UnknownParameter", Message: "The parameter " + name + " is not recognized"}
		}
		return nil
	}
	if len(c.Body) == 0 {
		return nil
	}
	if err := json.Unmarshal(c.Body, into); err != nil {
		return &failure.Error{
			Code: "SerializationException", Message: "The body of the request does not match the parameters of the action: " + err.Error(),
		}
	}
	return nil
}

// requestID returns a new id for a request. The lock is held.
func (s *Server) requestID() string {
	s.requests++
	sum := sha256.Sum256([]byte(strconv.FormatUint(s.requests, 10)))
	h := hex.EncodeToString(sum[:16])
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}

func unknownAction(c *api.Call) error {
	if c.Protocol == api.EC2Query || c.Protocol == api.AWSQuery {
		return &failure.Error{Code: "InvalidAction", Message: "The action " + c.Action + " is not valid for this web service."}
	}
	return &failure.Error{Code: "UnknownOperationException", Message: "This emulator does not serve the action " + c.Name() + "."}
}

// faultError returns the error of an injected fault. If the fault has EC2's code for throttling, the error has the
// throttling code of the call's service.
func faultError(c *api.Call, fault *world.CallError) error {
	if fault.Garbage != "" {
		return errGarbage
	}
	e := &failure.Error{Code: fault.Code, Message: fault.Message, Status: fault.Status}
	if e.Status == 0 {
		e.Status = http.StatusInternalServerError
	}
	if e.Code == "" {
		e.Code = "InternalError"
	}
	if e.Message == "" {
		e.Message = "An internal error has occurred"
	}
	if e.Code != "RequestLimitExceeded" {
		return e
	}
	switch c.Service {
	case "iam", "sts":
		e.Code, e.Message, e.Status = "Throttling", "Rate exceeded", 400
	case "sqs":
		e.Code, e.Message, e.Status = "RequestThrottled", "Request is throttled.", 403
	case "ssm", "pricing":
		e.Code, e.Message, e.Status = "ThrottlingException", "Rate exceeded", 400
	case "eks", api.ShiftService:
		e.Code, e.Message, e.Status = "ThrottlingException", "Rate exceeded", 429
	}
	return e
}

var errGarbage = errors.New("answered with garbage")
